/* SPDX-License-Identifier: BSD-3-Clause */
/* How settings fit together, what follows from them, and the paths that both programs agree on. */
#include "config_file.h"
#include "configure.h"

#define ALONE(port) "hca0.port=" port, "hca0.device=d", "hca0.peer=", "hca1.peer=hca1"
#define MEMIF	    ALONE("memif")

TEST(contradictions__refused)
{
	static const struct {
		const char *set[SETS_MAX], *reason;
	} rows[] = {
		{{"hca0.peer=hca2"}, "no HCA 'hca2' to be its peer"},
		{{"hca0.peer=hca0"}, "the peer of its peer 'hca0' is 'hca0'"},
		{{"hca1.peer=hca1"}, "the peer of its peer 'hca1' is 'hca1'"},
		{{"hca1.port=tap", "hca1.device=t0", "hca1.peer="}, "is not a ring port"},
		{{"hca1.engines=2"}, "its peer 'hca1' has a different number of engines"},
		{{"hca1.queues=2"}, "more queues than engines"},
		{{"hca0.queues=3", "hca0.engines=2", "hca1.engines=2"}, "more queues than engines"},
		{{ALONE("tap"), "hca0.queues=2"}, "more queues than engines"},
		{{MEMIF, "hca0.queues=1", "hca0.engines=2"}, "fewer queues than engines"},
		{{"hca1.address=192.168.77.1/24"}, "an address is listed twice"},
		{{"hca1.address=10.0.0.1/24,10.0.0.1/8"}, "an address is listed twice"},
		{{"hca0.port=tap", "hca0.device=t0"}, "only a ring port has a peer"},
		{{"hca0.port=tap", "hca0.device=t0", "hca0.peer=", "hca1.port=tap",
		  "hca1.device=t0", "hca1.peer="},
		 "its device is also that of"},
		{{"hca0.backup=e1"}, "only an af_packet port has a backup"},
		{{"hca0.bond_mode=balance-xor"}, "bond_mode needs a backup"},
		{{"hca0.port=af_packet", "hca0.device=e0", "hca0.backup=e0", "hca0.peer="},
		 "its backup is its device"},
		{{"hca0.port=af_packet", "hca0.device=e0", "hca0.backup=e1",
		  "hca0.peer=", "hca1.port=af_packet", "hca1.device=e1", "hca1.peer="},
		 "its device is also that of"},
		{{"hca0.port=af_packet", "hca0.device=e0", "hca0.peer=", "hca1.port=af_packet",
		  "hca1.device=e1", "hca1.backup=e0", "hca1.peer="},
		 "its device is also that of"},
		{{"hca0.icrc=never"}, "only a memif port"},
		{{"hca0.port=af_packet", "hca0.device=e0", "hca0.peer=", "hca0.icrc=never"},
		 "only a memif port"},
		{{"hca0.address="}, "has no address"},
		{{"daemon.packet_buffers=2558"},
		 "packet_buffers: 2558 are too few, at least 2559 are needed"},
		{{"hca0.tx_copy=never", "hca1.tx_copy=always"}, "its peer copies"},
		{{"hca0.tx_copy=never", "hca1.loss=0.1"}, "its peer copies"},
		{{"hca0.tx_copy=never", "hca0.capture=/tmp/c"}, "its port captures"},
		{{ALONE("tap"), "hca0.tx_copy=never"}, "only ring, memif and af_packet"},
		{{ALONE("af_xdp"), "hca0.tx_copy=never"}, "only ring, memif and af_packet"},
		{{MEMIF, "hca0.tx_copy=never", "hca0.stages=all on lcore 0",
		  "hca0.lcore.responder_exec=1"},
		 "run on several lcores"},
		{{"daemon.clone_buffers=510"}, "clone_buffers: 510 are too few"},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config_error error;
		struct config c;

		configure(&c, rows[i].set);
		if (config_check(&c, "test", &error) != -EINVAL ||
		    !strstr(error.text, rows[i].reason))
			fail_msg("row %u: '%s', expected '%s'", i, error.text, rows[i].reason);
		assert_int_equal(strncmp(error.text, "test: ", 6), 0);
	}
}

TEST(both_ends_of_a_memif__accepted)
{
	static const char *const sets[SETS_MAX] = {
		"hca0.port=memif", "hca0.device=/tmp/m", "hca0.peer=", "hca0.memif_server=yes",
		"hca1.port=memif", "hca1.device=/tmp/m", "hca1.peer="};
	struct config c;

	configure_checked(&c, sets);
}

TEST(icrc__follows_both_ends)
{
	static const struct {
		const char *set[SETS_MAX];
		enum icrc_mode mode[2];
	} rows[] = {
		{{NULL}, {ICRC_NEVER, ICRC_NEVER}},
		{{"hca0.icrc=always"}, {ICRC_ALWAYS, ICRC_TO_OTHERS}},
		{{"hca1.icrc=always"}, {ICRC_TO_OTHERS, ICRC_ALWAYS}},
		{{"hca0.icrc=always", "hca1.icrc=always"}, {ICRC_ALWAYS, ICRC_ALWAYS}},
		{{"hca0.peer=hca0", "hca1.peer=hca1", "hca1.icrc=always"},
		 {ICRC_NEVER, ICRC_ALWAYS}},
		{{"hca0.port=memif", "hca0.device=/tmp/m", "hca0.peer=", "hca1.peer=hca1"},
		 {ICRC_TO_OTHERS, ICRC_NEVER}},
		{{"hca0.port=memif", "hca0.device=/tmp/m", "hca0.peer=", "hca0.icrc=never",
		  "hca1.peer=hca1"},
		 {ICRC_NEVER, ICRC_NEVER}},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config c;

		configure_checked(&c, rows[i].set);
		for (unsigned k = 0; k < 2; k++)
			if (c.hca[k].settings.icrc != rows[i].mode[k])
				fail_msg("row %u: hca%u has mode %u", i, k, c.hca[k].settings.icrc);
	}
}

TEST(payload_refs__need_two_willing_ends_that_show_nobody)
{
	static const struct {
		const char *set[SETS_MAX];
		enum payload_refs refs[2];
	} rows[] = {
		{{NULL}, {REFS_IN_TRAINS, REFS_IN_TRAINS}},
		{{"hca0.tx_copy=always"}, {REFS_NONE, REFS_NONE}},
		{{"hca1.icrc=always"}, {REFS_IN_TRAINS, REFS_IN_TRAINS}},
		{{"hca1.capture=/tmp/c"}, {REFS_NONE, REFS_NONE}},
		{{"hca0.loss=0.1"}, {REFS_NONE, REFS_NONE}},
		{{"hca0.mark=0.1"}, {REFS_NONE, REFS_NONE}},
		{{"hca0.delay_us=1"}, {REFS_NONE, REFS_NONE}},
		{{"hca0.peer=hca0", "hca1.peer=hca1", "hca1.tx_copy=always"},
		 {REFS_IN_TRAINS, REFS_NONE}},
		{{MEMIF, "hca0.icrc=never"}, {REFS_SINGLY, REFS_IN_TRAINS}},
		{{ALONE("af_packet"), "hca0.tx_copy=never"}, {REFS_SINGLY, REFS_IN_TRAINS}},
		{{ALONE("af_packet")}, {REFS_NONE, REFS_IN_TRAINS}},
		{{"hca0.tx_copy=never", "hca1.tx_copy=never"}, {REFS_IN_TRAINS, REFS_IN_TRAINS}},
		{{MEMIF, "hca1.tx_copy=never"}, {REFS_NONE, REFS_IN_TRAINS}},
		{{MEMIF, "hca0.tx_copy=never"}, {REFS_SINGLY, REFS_IN_TRAINS}},
		{{MEMIF, "hca0.icrc=never", "hca0.loss=0.1"}, {REFS_NONE, REFS_IN_TRAINS}},
		{{MEMIF, "hca0.icrc=never", "hca0.tx_copy=always"}, {REFS_NONE, REFS_IN_TRAINS}},
		{{MEMIF, "hca0.icrc=never", "hca0.stages=all on lcore 0",
		  "hca0.lcore.responder_exec=1"},
		 {REFS_NONE, REFS_IN_TRAINS}},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config c;

		configure_checked(&c, rows[i].set);
		for (unsigned k = 0; k < 2; k++)
			if (c.hca[k].settings.payload_refs != rows[i].refs[k])
				fail_msg("row %u: hca%u", i, k);
	}
}

TEST(queues__follow_engines)
{
	static const char *const sets[SETS_MAX] = {"hca0.engines=2", "hca1.engines=2"};
	struct config c;

	configure_checked(&c, sets);
	assert_int_equal(c.hca[0].port.queues, 2);
}

TEST(buffers__follow_engines)
{
	static const char *const none[SETS_MAX],
		*const sets[SETS_MAX] = {"hca0.engines=2", "hca1.engines=2",
					 "daemon.packet_buffers=4607"},
		       *const lcores[SETS_MAX] = {"hca0.lcore.segmentation=4"};
	struct config c;

	configure_checked(&c, none);
	assert_int_equal(c.daemon.packet_buffers, 4095);
	assert_int_equal(c.daemon.descriptor_buffers, 4095);
	assert_int_equal(c.daemon.clone_buffers, 2047);
	configure_checked(&c, sets);
	assert_int_equal(c.daemon.packet_buffers, 4607);
	assert_int_equal(c.daemon.descriptor_buffers, 8189);
	configure_checked(&c, lcores);
	assert_int_equal(c.daemon.descriptor_buffers, 4095 + 768);
	assert_int_equal(c.daemon.clone_buffers, 2047 + 768);
}

TEST(places__the_more_particular_wins)
{
	static const char *const sets[SETS_MAX] = {
		"hca0.engines=2", "hca1.engines=2", "hca0.lcore.segmentation.1=5",
		"hca0.lcore.segmentation=4", "hca0.stages=all on lcore 3"};
	struct config c;

	configure_checked(&c, sets);
	assert_int_equal(c.hca[0].cpu[0][STAGE_SEGMENTATION], 4);
	assert_int_equal(c.hca[0].cpu[1][STAGE_SEGMENTATION], 5);
	assert_int_equal(c.hca[0].cpu[1][STAGE_HEADER_PARSE], 3);
	assert_int_equal(c.hca[1].cpu[1][STAGE_HEADER_PARSE], CONFIG_CPU_AUTO);
}

TEST(at_most_hca_max)
{
	struct hca_section *h;
	struct reason why;
	struct config c;
	char name[8];

	config_defaults(&c);
	while (c.hcas < HCA_MAX) {
		snprintf(name, sizeof(name), "x%u", c.hcas);
		assert_int_equal(config_add_hca(&c, name, &h, &why), 0);
	}
	assert_int_equal(config_add_hca(&c, "more", &h, &why), -EINVAL);
}

TEST(port_types__are_in_the_order_of_their_enum)
{
	static const struct {
		const char *name;
		enum port_type type;
	} rows[] = {{"ring", PORT_RING}, {"memif", PORT_MEMIF},	  {"af_packet", PORT_AF_PACKET},
		    {"tap", PORT_TAP},	 {"af_xdp", PORT_AF_XDP}, {"pci", PORT_PCI}};
	struct config c;
	struct reason why;

	assert_int_equal(sizeof(rows) / sizeof(rows[0]), PORT_TYPE_COUNT);
	config_defaults(&c);
	for (unsigned i = 0; i < PORT_TYPE_COUNT; i++) {
		assert_int_equal(setting_parse(setting_find(SCOPE_HCA, "port"), "port",
					       rows[i].name, &c.hca[0], &why),
				 0);
		assert_int_equal(c.hca[0].port.type, rows[i].type);
	}
}

TEST(paths__agree)
{
	char text[PATHS_BYTES_MAX], other[PATHS_BYTES_MAX];

	setenv("RUNTIME_DIRECTORY", "/somewhere", 1);
	assert_int_equal(paths_runtime("any", text, sizeof(text)), 0);
	assert_string_equal(text, "/somewhere");
	assert_int_equal(paths_runtime("any", text, 9), -ENAMETOOLONG);
	unsetenv("RUNTIME_DIRECTORY");
	assert_int_equal(paths_runtime(PATHS_SYSTEM_SOCKET, text, sizeof(text)), 0);
	assert_string_equal(text, "/run/softhca");
	assert_int_equal(paths_prefix(PATHS_SYSTEM_SOCKET, other, sizeof(other)), 0);
	assert_string_equal(other, "softhca");
	assert_int_equal(paths_default_socket(text, sizeof(text)), 0);
	assert_int_equal(paths_prefix(text, other, sizeof(other)), 0);
	assert_string_equal(other, "softhca");
	assert_int_equal(paths_prefix("/tmp/a.sock", text, sizeof(text)), 0);
	assert_int_equal(paths_prefix("/tmp/b.sock", other, sizeof(other)), 0);
	assert_string_not_equal(text, other);
	assert_int_equal(chdir("/tmp"), 0);
	assert_int_equal(paths_prefix("a.sock", other, sizeof(other)), 0);
	assert_string_equal(text, other);
}

TEST(socket_mode__of_the_systems_socket)
{
	static const struct {
		const char *set[SETS_MAX];
		uint32_t mode;
	} rows[] = {{{"daemon.socket=" PATHS_SYSTEM_SOCKET}, 0660},
		    {{"daemon.socket=" PATHS_SYSTEM_SOCKET, "daemon.socket_mode=0666"}, 0666},
		    {{"daemon.socket=/tmp/a.sock"}, 0666},
		    {{"daemon.socket=/tmp/a.sock", "daemon.socket_mode=0600"}, 0600}};
	struct config c;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		configure_checked(&c, rows[i].set);
		assert_int_equal(c.daemon.socket_mode, rows[i].mode);
	}
}
