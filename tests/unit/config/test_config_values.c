/* SPDX-License-Identifier: BSD-3-Clause */
/* Each kind of value: accepted into its field, or refused with a reason. One row for each. */
#include "test.h"
#include "setting.h"

static struct config c;
static struct reason why;

static int set_up(void **state)
{
	config_defaults(&c); /* aborts if one does not parse */
	return 0;
}

static int set_daemon(const char *key, const char *value)
{
	why.text[0] = '\0';
	return setting_parse(setting_find(SCOPE_DAEMON, key), key, value, &c.daemon, &why);
}

static int set_hca(const char *key, const char *value)
{
	why.text[0] = '\0';
	return setting_parse(setting_find(SCOPE_HCA, key), key, value, &c.hca[0], &why);
}

#undef TEST
#define TEST(name) TEST_WITH(name, set_up, NULL)

TEST(every_row_parses_its_default)
{
	assert_int_equal(c.hcas, 2);
	assert_int_equal(c.hca[0].qps, 16384);
	assert_int_equal(c.hca[0].settings.timer_tick_ns, 16384);
	assert_true(c.hca[0].settings.e2e_credits);
	assert_int_equal(c.hca[0].icrc, CONFIG_ICRC_AUTO);
	assert_int_equal(c.hca[0].cpu[0][0], CONFIG_CPU_AUTO);
	assert_int_equal(c.daemon.hugepages_mib, CONFIG_HUGEPAGES_AUTO);
}

TEST(every_key_is_named_once_and_explained)
{
	for (unsigned i = 0; i < setting_count; i++) {
		size_t length = strlen(settings[i].doc);

		assert_true(length > 10 && settings[i].doc[length - 1] == '.');
		assert_true(settings[i].min <= settings[i].max);
		for (unsigned k = 0; k < i; k++)
			assert_false(settings[i].scope == settings[k].scope &&
				     strcmp(settings[i].key, settings[k].key) == 0);
	}
}

TEST(values__refused)
{
	static const struct {
		const char *key, *value, *reason;
	} rows[] = {
		{"qps", "", "not a number"},
		{"qps", "-64", "not a number"},
		{"qps", "64k", "not a number"},
		{"qps", "0x40", "not a number"},
		{"qps", "32", "out of range 64..131072"},
		{"qps", "262144", "out of range"},
		{"qps", "99999999999999999999999", "out of range"},
		{"qps", "100", "power of two"},
		{"vlan", "4095", "out of range"},
		{"loss", "1.01", "out of range 0..1"},
		{"loss", "nan", "not a number"},
		{"loss", "-0.1", "not a number"},
		{"loss", "0.1x", "not a number"},
		{"e2e_credits", "true", "neither yes nor no"},
		{"port", "ethernet", "none of ring|memif"},
		{"port", "", "none of"},
		{"port", "rin", "none of"},
		{"peer", "a b", "not a name"},
		{"address", "10.0.0.1", "no prefix length"},
		{"address", "10.0.0/24", "not an IP address"},
		{"address", "300.1.1.1/24", "not an IP address"},
		{"address", "10.0.0.1/33", "not a prefix length"},
		{"address", "10.0.0.1/0", "not a prefix length"},
		{"address", "10.0.0.1/", "not a prefix length"},
		{"address", "fd00::1/129", "not a prefix length"},
		{"address", "fd00::g/64", "not an IP address"},
		{"address", "::ffff:10.0.0.1/120", "not an IP address"},
		{"address", "224.0.0.1/24", "not the address of a host"},
		{"address", "0.0.0.0/24", "not the address of a host"},
		{"address", "::/64", "not the address of a host"},
		{"address", "ff02::1/64", "not the address of a host"},
		{"address", "10.0.0.1/24,10.0.0.2/24,10.0.0.3/24,10.0.0.4/24,10.0.0.5/24",
		 "more than 4 addresses"},
		{"gateway", "10.0.0.1/24", "not the IP address"},
		{"gateway", "10.0.0.1, 10.0.0.2", "second gateway"},
		{"admit", "10.0.0.0/33", "out of range 0..32"},
		{"admit", "fd00::/x", "not a number"},
		{"admit", "everyone", "not an IP address"},
		{"admit", "10.0.0.1,,/8", "not an IP address"},
		{"cc_for", "10.0.0.0/8", "has no ="},
		{"cc_for", "10.0.0.0/8=fast", "none of none|dcqcn"},
		{"cc_for", "10.0.0.0/8=", "none of none|dcqcn"},
		{"cc_for", "10.0.0.0/33=delay", "out of range 0..32"},
		{"cc_for", "tc 256=none", "out of range 0..255"},
		{"cc_for", "tc=none", "not an IP address"},
		{"mac", "02:00:00:00:00", "not of the form"},
		{"mac", "02:00:00:00:00:0g", "not of the form"},
		{"mac", "02:00:00:00:00:00:00", "not of the form"},
		{"mac", "01:00:00:00:00:00", "unicast"},
		{"mac", "00:00:00:00:00:00", "unicast"},
		{"stages", "all", "neither auto nor"},
		{"stages", "all on lcore", "neither auto nor"},
		{"stages", "all on lcore x", "not a number"},
		{"lcore.nothing", "1", "no stage 'nothing'"},
		{"lcore.header_parse.8", "1", "out of range 0..7"},
		{"lcore.header_parse.", "1", "not a number"},
		{"lcore.header_parse", "1024", "out of range"},
		{"lcore.", "1", "no stage"},
		{"timer_tick_ns", "0", "out of range"},
		{"timer_tick_ns", "16000", "power of two"},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (set_hca(rows[i].key, rows[i].value) != -EINVAL ||
		    !strstr(why.text, rows[i].reason))
			fail_msg("%s = %s: '%s', expected '%s'", rows[i].key, rows[i].value,
				 why.text, rows[i].reason);
}

TEST(addresses__both_families_and_spaces)
{
	static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 7};

	assert_int_equal(set_hca("address", " 10.0.0.7/8 ,\tfd00::7/64"), 0);
	assert_int_equal(c.hca[0].port.addresses.count, 2);
	assert_false(c.hca[0].port.addresses.at[0].v6);
	assert_memory_equal(c.hca[0].port.addresses.at[0].ip, v4, 16);
	assert_int_equal(c.hca[0].port.addresses.at[0].prefix_len, 8);
	assert_true(c.hca[0].port.addresses.at[1].v6);
	assert_int_equal(c.hca[0].port.addresses.at[1].ip[15], 7);
	assert_int_equal(set_hca("gateway", "10.0.0.1, fd00::1"), 0);
	assert_true(c.hca[0].port.gateways.has_v4 && c.hca[0].port.gateways.has_v6);
}

TEST(admit__addresses_and_prefixes)
{
	static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 7};
	const struct peer_list *l = &c.hca[0].admitted;

	assert_int_equal(l->count, 0);
	assert_int_equal(set_hca("admit", "10.0.0.7, 10.1.0.0/16 ,fd00::/64,0.0.0.0/0"), 0);
	assert_int_equal(l->count, 4);
	assert_memory_equal(l->prefix[0].ip, v4, 16);
	assert_int_equal(l->prefix[0].bits, 128);
	assert_int_equal(l->prefix[1].bits, 112);
	assert_int_equal(l->prefix[2].bits, 64);
	assert_int_equal(l->prefix[3].bits, 96);
}

TEST(admit__at_most_32)
{
	char list[33 * 9 + 1] = "";

	for (unsigned i = 0; i < 32; i++)
		strcat(list, "10.0.0.1,");
	assert_int_equal(set_hca("admit", list), 0);
	strcat(list, "10.0.0.1");
	assert_int_equal(set_hca("admit", list), -EINVAL);
	assert_string_equal(why.text, "more than 32 addresses");
}

TEST(mac__accepted)
{
	static const uint8_t expected[6] = {0x02, 0xab, 0, 0, 0, 0xff};

	assert_int_equal(set_hca("mac", "02:AB:00:00:00:ff"), 0);
	assert_memory_equal(c.hca[0].port.mac, expected, 6);
}

TEST(cpus__list_and_ranges)
{
	assert_int_equal(set_daemon("lcores", "7, 2-4"), 0);
	assert_int_equal(c.daemon.lcores.count, 4);
	assert_int_equal(c.daemon.lcores.cpu[0], 7);
	assert_int_equal(c.daemon.lcores.cpu[3], 4);
	assert_int_equal(set_daemon("lcores", "1,1"), -EINVAL);
	assert_int_equal(set_daemon("lcores", "4-2"), -EINVAL);
	assert_int_equal(set_daemon("lcores", "0-64"), -EINVAL);
	assert_int_equal(set_daemon("lcores", "1-"), -EINVAL);
}

TEST(socket__permissions_and_group)
{
	assert_int_equal(c.daemon.socket_mode, 0);
	assert_string_equal(c.daemon.socket_group, "");
	assert_int_equal(set_daemon("socket_mode", "0660"), 0);
	assert_int_equal(c.daemon.socket_mode, 0660);
	assert_int_equal(set_daemon("socket_mode", "600"), 0);
	assert_int_equal(c.daemon.socket_mode, 0600);
	assert_int_equal(set_daemon("socket_mode", "1777"), -EINVAL);
	assert_int_equal(set_daemon("socket_mode", "0"), -EINVAL);
	assert_int_equal(set_daemon("socket_mode", "0668"), -EINVAL);
	assert_int_equal(set_daemon("socket_mode", "rw"), -EINVAL);
	assert_int_equal(set_daemon("socket_group", "rdma"), 0);
	assert_string_equal(c.daemon.socket_group, "rdma");
	assert_int_equal(set_daemon("socket_group", "a b"), -EINVAL);
}

TEST(log_level__of_all_and_of_modules)
{
	static const char *const refused[] = {"loud", "info,cm=loud", "cm:debug",
					      "cm=",  "=debug",	      "pmd=debug"};

	assert_int_equal(set_daemon("log_level", "notice, cm=debug,port=error"), 0);
	assert_int_equal(c.daemon.log_level.all, LEVEL_NOTICE);
	assert_int_equal(c.daemon.log_level.module[LOG_daemon], 0);
	assert_int_equal(c.daemon.log_level.module[LOG_cm], 1 + LEVEL_DEBUG);
	assert_int_equal(c.daemon.log_level.module[LOG_port], 1 + LEVEL_ERROR);
	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_int_equal(set_daemon("log_level", refused[i]), -EINVAL);
	assert_int_equal(set_daemon("log_level", "cm=debug"), 0); /* the rest as always */
	assert_int_equal(c.daemon.log_level.all, LEVEL_INFO);
	assert_int_equal(c.daemon.log_level.module[LOG_port], 0);
}

TEST(hugepages__words_and_sizes)
{
	assert_int_equal(set_daemon("hugepages", "off"), 0);
	assert_int_equal(c.daemon.hugepages_mib, CONFIG_HUGEPAGES_OFF);
	assert_int_equal(set_daemon("hugepages", "512"), 0);
	assert_int_equal(c.daemon.hugepages_mib, 512);
	assert_int_equal(set_daemon("hugepages", "0"), -EINVAL);
	assert_int_equal(set_daemon("hugepages", "on"), -EINVAL);
}

TEST(text__longest_that_fits)
{
	char path[PATHS_BYTES_MAX + 1];

	memset(path, 'x', sizeof(path));
	path[PATHS_BYTES_MAX] = '\0';
	assert_int_equal(set_daemon("socket", path), -EINVAL);
	path[PATHS_BYTES_MAX - 1] = '\0';
	assert_int_equal(set_daemon("socket", path), 0);
	assert_string_equal(c.daemon.socket, path);
}
