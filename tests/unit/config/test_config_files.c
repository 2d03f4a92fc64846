/* SPDX-License-Identifier: BSD-3-Clause */
/* Files and --set: the resulting values, and that each refusal names the line. */
#include "test.h"
#include "setting.h"

static char path[] = "/tmp/softhca-test-config.XXXXXX";

/* Writes the text to the file, reads and checks it. */
static int read_text(struct config *c, const char *text, struct config_error *error)
{
	FILE *file = fopen(path, "w");
	int ret;

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	ret = config_read(c, path, error);
	return ret ? ret : config_check(c, path, error);
}

#define A_RING "[hca a]\npeer = a\naddress = 10.0.0.1/24\n"

TEST(file__accepted)
{
	struct config_error error;
	struct config c;

	assert_int_equal(
		read_text(&c,
			  "# comment\n\n[daemon]   # another\n  poll=busy # and one\n"
			  "socket = /tmp/x.sock\n\n[hca a]\npeer = a\naddress = 10.0.0.1/24\n"
			  "loss = .25\ncapture =\nlcore.header_parse = 3\n",
			  &error),
		0);
	assert_int_equal(c.hcas, 1);
	assert_string_equal(c.hca[0].name, "a");
	assert_string_equal(c.hca[0].port.name, "a");
	assert_int_equal(c.daemon.poll, CONFIG_POLL_BUSY);
	assert_string_equal(c.daemon.socket, "/tmp/x.sock");
	assert_true(c.hca[0].port.impairment.loss == 0.25);
	assert_int_equal(c.hca[0].cpu[0][STAGE_HEADER_PARSE], 3);
	assert_int_equal(c.hca[0].cpu[0][STAGE_SEGMENTATION], CONFIG_CPU_AUTO);
}

TEST(file__refused_with_its_line)
{
	static const struct {
		const char *text;
		unsigned line; /* 0: none */
		const char *reason;
	} rows[] = {
		{"", 0, "there is no [hca NAME]"},
		{"# nothing\n", 0, "there is no [hca NAME]"},
		{A_RING "\n[deamon]\n", 5, "unknown section [deamon]"},
		{A_RING "colour = blue\n", 4, "no setting 'colour' in [hca]"},
		{"[daemon]\n\n# x\nqps = 64\n" A_RING, 4, "no setting 'qps' in [daemon]"},
		{A_RING "qps = 65\n", 4, "qps: 65 is not a power of two"},
		{A_RING "qps = 64\n\nqps = 128\n", 6, "qps is set twice"},
		{A_RING A_RING, 4, "'a' exists already"},
		{"[hca a-b]\n", 1, "cannot name an HCA"},
		{"[hca daemon]\n", 1, "cannot name an HCA"},
		{"[hca ]\n", 1, "unknown section [hca]"},
		{"[hca abcdefghi]\n", 1, "cannot name an HCA"},
		{"[hca a\n", 1, "']' is missing"},
		{"poll = busy\n", 1, "before the first section"},
		{"[daemon]\npoll\n", 2, "neither [section] nor key = value"},
		{"[daemon]\n= busy\n", 2, "the key is missing"},
		{"[daemon]\npoll = \\busy\n", 2, "backslashes"},
		{"[hca a]\naddress = 10.0.0.1/24\n", 1, "a ring port needs a peer"},
		{"[hca a]\naddress = 10.0.0.1/24\npeer = b\n", 3, "no HCA 'b'"},
		{"[hca a]\npeer = a\n", 1, "has no address"},
		{A_RING "port = tap\n", 1, "name a device"},
		{A_RING "mtu = 200\n", 4, "RoCE needs at least 336"},
		{A_RING "engines = 2\nlcore.header_parse.2 = 0\n", 5, "there are 2 engines"},
		{A_RING "engines = 2\nqueues = 1\n", 5, "fewer queues than engines"},
		{A_RING "engines = 2\nqueues = 3\n", 5, "more queues than engines"},
	};
	struct config_error error;
	struct config c;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char place[128];
		int ret = read_text(&c, rows[i].text, &error);

		if (rows[i].line)
			snprintf(place, sizeof(place), "%s:%u: ", path, rows[i].line);
		else
			snprintf(place, sizeof(place), "%s: ", path);
		if (ret != -EINVAL || strncmp(error.text, place, strlen(place)) != 0 ||
		    !strstr(error.text, rows[i].reason))
			fail_msg("row %u: %d '%s', expected '%s%s'", i, ret, ret ? error.text : "",
				 place, rows[i].reason);
	}
}

TEST(file__long_lines)
{
	struct config_error error;
	struct config c;
	char text[1024] = "[daemon]\nsocket = ";
	size_t length = strlen(text);

	memset(text + length, 'x', 260);
	strcpy(text + length + 260, "\n");
	assert_int_equal(read_text(&c, text, &error), -EINVAL);
	assert_non_null(strstr(error.text, ":2: the value is too long"));
	memset(text + length, 'x', 600);
	strcpy(text + length + 600, "\n");
	assert_int_equal(read_text(&c, text, &error), -EINVAL);
	assert_non_null(strstr(error.text, ":2: the line is too long"));
	memset(text, 0, sizeof(text));
	strcpy(text, "[daemon]\n");
	memset(text + 9, 'k', 70);
	strcat(text, " = 1\n");
	assert_int_equal(read_text(&c, text, &error), -EINVAL);
	assert_non_null(strstr(error.text, ":2: the key is too long"));
}

TEST(file__missing)
{
	struct config_error error;
	struct config c;

	assert_int_equal(config_read(&c, "/nonexistent/softhcad.conf", &error), -ENOENT);
	assert_string_equal(error.text, "/nonexistent/softhcad.conf: No such file or directory");
	assert_true(config_read(&c, "/tmp", &error) < 0);
}

TEST(set__changes_one_setting)
{
	struct config_error error;
	struct config c;

	config_defaults(&c);
	assert_int_equal(config_set(&c, "daemon.poll=busy", &error), 0);
	assert_int_equal(config_set(&c, "hca1.loss=0.5", &error), 0);
	assert_int_equal(config_set(&c, "hca1.lcore.segmentation.0=2", &error), 0);
	assert_int_equal(config_set(&c, "hca1.capture=/tmp/a=b.pcapng", &error), 0);
	assert_int_equal(c.daemon.poll, CONFIG_POLL_BUSY);
	assert_true(c.hca[1].port.impairment.loss == 0.5);
	assert_int_equal(c.hca[1].cpu[0][STAGE_SEGMENTATION], 2);
	assert_string_equal(c.hca[1].port.capture_path, "/tmp/a=b.pcapng");
}

TEST(set__refused)
{
	static const struct {
		const char *assignment, *reason;
	} rows[] = {
		{"", "not of the form"},
		{"poll=busy", "not of the form"},
		{"daemon.poll", "not of the form"},
		{"=daemon.poll", "not of the form"},
		{"daemon.=1", "no setting ''"},
		{"hca7.loss=0", "no HCA 'hca7'"},
		{"hca0.lossy=0", "no setting 'lossy' in [hca]"},
		{"daemon.poll=lazy", "poll: 'lazy' is none of"},
	};
	struct config_error error;
	struct config c;

	config_defaults(&c);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(config_set(&c, rows[i].assignment, &error), -EINVAL);
		if (strncmp(error.text, "--set ", 6) != 0 || !strstr(error.text, rows[i].reason))
			fail_msg("%s: '%s'", rows[i].assignment, error.text);
	}
}

TEST(printed__is_the_file_in_the_tree)
{
	static char printed[65536], stored[65536];
	FILE *out = fmemopen(printed, sizeof(printed), "w");
	FILE *file = fopen(CONFIG_FOLDER "/softhcad.conf", "r");

	assert_non_null(out);
	assert_non_null(file);
	config_print(out);
	fclose(out);
	assert_true(fread(stored, 1, sizeof(stored) - 1, file) > 0);
	fclose(file);
	assert_string_equal(stored, printed);
}

/* The service says what its configuration lacks, and where; nothing else is missing. */
TEST(service__needs_a_device)
{
	struct config_error error;
	struct config c;

	assert_int_equal(config_read(&c, CONFIG_FOLDER "/service.conf", &error), 0);
	c.hca[0].port.addresses.count = 1; /* the interface's */
	assert_int_equal(config_check(&c, "file", &error), -EINVAL);
	assert_non_null(strstr(error.text, "name a device"));
	assert_int_equal(config_read(&c, CONFIG_FOLDER "/service.conf", &error), 0);
	assert_int_equal(config_set(&c, "hca0.device=eth0", &error), 0);
	assert_int_equal(config_set(&c, "hca0.address=192.0.2.1/24", &error), 0);
	assert_int_equal(config_check(&c, "file", &error), 0);
}

TEST(printed__reads_back_as_the_defaults)
{
	struct config built_in, read;
	struct config_error error;

	config_defaults(&built_in);
	assert_int_equal(config_check(&built_in, "built-in", &error), 0);
	assert_int_equal(config_read(&read, CONFIG_FOLDER "/softhcad.conf", &error), 0);
	assert_int_equal(config_check(&read, "file", &error), 0);
	for (unsigned i = 0; i < HCA_MAX; i++)
		memset(read.hca[i].line, 0, sizeof(read.hca[i].line));
	assert_memory_equal(&built_in, &read, sizeof(read));
}

TEST(profiles__are_accepted)
{
	static const char *const names[] = {"demo", "af_packet", "memif", "pci"};
	struct config_error error;
	struct config c;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char file[512];

		snprintf(file, sizeof(file), "%s/%s.conf", CONFIG_FOLDER, names[i]);
		if (config_read(&c, file, &error) || config_check(&c, file, &error))
			fail_msg("%s", error.text);
	}
}

TEST(help__names_every_setting)
{
	static char text[65536];
	FILE *out = fmemopen(text, sizeof(text), "w");

	assert_non_null(out);
	config_help(out);
	fclose(out);
	for (unsigned i = 0; i < setting_count; i++)
		assert_non_null(strstr(text, settings[i].key));
}

static int make_file(void **state)
{
	int fd = mkstemp(path);

	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	return unlink(path);
}

TEST_GROUP(.setup = make_file, .teardown = remove_file);
