/* SPDX-License-Identifier: BSD-3-Clause */
/* Values as text, and what distinguishes two configurations. */
#include "configure.h"

enum { SEEN_BYTES = 1024 };

/* The text of a value is as written, or what it means; and read again it gives the same text. */
TEST(text__of_each_kind)
{
	static const struct {
		const char *key, *value, *text; /* NULL: as written */
	} rows[] = {
		{"qps", "128", NULL},
		{"seed", "18446744073709551615", NULL},
		{"e2e_credits", "no", NULL},
		{"loss", "0.1", NULL},
		{"loss", "0.000", "0"},
		{"loss", "0.3333333333333333", NULL},
		{"port", "af_packet", NULL},
		{"port", "pci", NULL},
		{"device", "/run/a b", NULL},
		{"peer", "", NULL},
		{"address", " 10.0.0.7/8 ,fd00:0:0::7/64", "10.0.0.7/8, fd00::7/64"},
		{"gateway", "fd00::1,10.0.0.1", "10.0.0.1, fd00::1"},
		{"gateway", "", NULL},
		{"admit", "10.0.0.7/32, 10.1.0.0/16 ,fd00::/64,0.0.0.0/0",
		 "10.0.0.7, 10.1.0.0/16, fd00::/64, 0.0.0.0/0"},
		{"cc_for", " 10.0.0.0/8=delay ,tc 32=none,fd00::/64=auto, 10.1.1.1=dcqcn",
		 "10.0.0.0/8=delay, tc 32=none, fd00::/64=auto, 10.1.1.1=dcqcn"},
		{"cc_for", "", NULL},
		{"mac", "02:AB:00:00:00:ff", "02:ab:00:00:00:ff"},
		{"mac", "", NULL},
		{"stages", "auto", NULL},
		{"stages", "all on lcore 3", NULL},
	};
	char text[CONFIG_TEXT_BYTES], again[CONFIG_TEXT_BYTES];
	struct reason why;
	struct config c;

	config_defaults(&c);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct setting *s = setting_find(SCOPE_HCA, rows[i].key);

		assert_int_equal(setting_parse(s, s->key, rows[i].value, &c.hca[0], &why), 0);
		setting_text(s, &c.hca[0], text);
		assert_string_equal(text, rows[i].text ? rows[i].text : rows[i].value);
		assert_int_equal(setting_parse(s, s->key, text, &c.hca[0], &why), 0);
		setting_text(s, &c.hca[0], again);
		assert_string_equal(again, text);
	}
}

/* Placements have many keys and one text, which must have room for all of them. */
TEST(text__of_all_placements_fits)
{
	const struct setting *s = setting_find(SCOPE_HCA, "lcore.");
	char text[CONFIG_TEXT_BYTES];
	struct config c;

	config_defaults(&c);
	for (unsigned e = 0; e <= ENGINES_MAX; e++)
		for (unsigned stage = 0; stage < STAGE_COUNT; stage++)
			c.hca[0].cpu[e][stage] = CONFIG_CPU_MAX;
	setting_text(s, &c.hca[0], text);
	assert_true(strlen(text) < sizeof(text) - 1);
	assert_int_equal(atoi(strrchr(text, '=') + 2), CONFIG_CPU_MAX);
}

static void note(void *ctx, const struct config_change *c)
{
	char *seen = ctx;

	if (c->key)
		snprintf(seen + strlen(seen), SEEN_BYTES - strlen(seen), "%s.%s %s>%s%s;",
			 c->section, c->key, c->before, c->after, c->runtime ? "" : " restart");
	else
		snprintf(seen + strlen(seen), SEEN_BYTES - strlen(seen), "%s %s%s;", c->section,
			 c->after, c->runtime ? "" : " restart");
}

TEST(merge__tells_each_difference_and_applies_what_can_be)
{
	static const struct {
		const char *now[SETS_MAX], *asked[SETS_MAX], *seen, *left;
	} rows[] = {
		{{NULL}, {NULL}, "", ""},
		{{"hca0.loss=0.10"}, {"hca0.loss=0.1"}, "", ""},
		{{NULL}, {"hca1.loss=0.1"}, "hca1.loss 0>0.1;", ""},
		{{"hca1.loss=0.1"}, {NULL}, "hca1.loss 0.1>0;", ""},
		{{NULL},
		 {"daemon.log_level=notice,cm=debug", "hca0.admit=10.0.0.1"},
		 "daemon.log_level info>notice, cm=debug;hca0.admit >10.0.0.1;",
		 ""},
		{{NULL},
		 {"hca0.mtu=2000", "hca0.address=10.0.0.1/8"},
		 "hca0.address 192.168.77.1/24, fd77::1/64>10.0.0.1/8;hca0.mtu 0>2000 restart;",
		 "hca0.mtu 0>2000 restart;"},
		{{NULL},
		 {"daemon.cm=off", "hca0.ack_interval=4", "hca0.lcore.header_parse.1=3"},
		 "daemon.cm on>off restart;hca0.lcore.STAGE[.ENGINE] >header_parse.1 = 3 restart;"
		 "hca0.ack_interval 16>4;",
		 "daemon.cm on>off restart;hca0.lcore.STAGE[.ENGINE] >header_parse.1 = 3 restart;"},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char seen[SEEN_BYTES] = "", left[SEEN_BYTES] = "";
		static struct config now, asked;

		configure(&now, rows[i].now);
		configure(&asked, rows[i].asked);
		config_merge(&now, &asked, false, note, seen);
		config_merge(&now, &asked, false, note, left);
		assert_string_equal(seen, rows[i].seen);
		assert_string_equal(left, rows[i].left);
	}
}

TEST(merge__tells_which_hcas_were_added_and_removed)
{
	char seen[SEEN_BYTES] = "";
	static struct config now, asked;

	config_defaults(&now);
	config_defaults(&asked);
	strcpy(asked.hca[0].name, "new"); /* renamed: it stays until the restart */
	assert_int_equal(config_merge(&now, &asked, false, note, seen), 2);
	assert_string_equal(seen, "new added restart;hca0 removed restart;");
	assert_int_equal(now.hcas, 2);
	assert_string_equal(now.hca[0].name, "hca0");
	assert_false(now.hca[0].removed);
	asked.hca[0] = asked.hca[1];
	asked.hcas = 1;
	seen[0] = '\0';
	assert_int_equal(config_merge(&now, &asked, false, note, seen), 1);
	assert_string_equal(seen, "hca0 removed;");
	assert_true(now.hca[0].removed);
	assert_int_equal(config_merge(&now, &asked, false, note, seen), 0); /* it has been */
}

/* One that has been removed keeps its place and, for its peer, its settings; but has none for people, and
 * its addresses are free. */
TEST(remove__all_but_one)
{
	struct config_error error;
	static struct config c, again, checked;
	static struct config_value v;
	char seen[SEEN_BYTES] = "";

	config_defaults(&c);
	config_defaults(&again);
	assert_int_equal(config_remove_hca(&c, "hca2"), -ENOENT);
	assert_int_equal(config_remove_hca(&c, "hca0"), 0);
	assert_int_equal(config_remove_hca(&c, "hca0"), -ENOENT);
	assert_int_equal(config_remove_hca(&c, "hca1"), -EBUSY);
	for (unsigned i = 0; config_setting(&c, i, &v) == 0; i++)
		assert_string_not_equal(v.section, "hca0");
	assert_int_equal(config_assign(&c, "hca0.loss=0.5", &error), -EINVAL);
	assert_int_equal(config_assign(&c, "hca1.address=192.168.77.1/24", &error), 0);
	checked = c;
	assert_int_equal(config_check(&checked, "test", &error), 0);
	assert_int_equal(config_merge(&c, &again, false, note, seen), 2);
	assert_string_equal(
		seen,
		"hca1.address 192.168.77.1/24>192.168.77.2/24, fd77::2/64;hca0 added restart;");
	config_remove_hca(&again, "hca1");
	assert_int_equal(config_merge(&c, &again, false, NULL, NULL), 2);
	assert_false(c.hca[1].removed);
}

/* One that a running daemon can open is added; then what the file no longer has may go, in exchange for it. */
TEST(merge__adds_hcas)
{
	static struct config now, asked, running, checked;
	struct config_error error;
	char seen[SEEN_BYTES] = "";

	config_defaults(&now);
	config_defaults(&asked);
	running = now;
	assert_int_equal(config_check(&running, "test", &error), 0);
	config_remove_hca(&asked, "hca1");
	assert_int_equal(config_add(&asked, "lo", "peer=lo\naddress=10.0.0.1/8", &error), 0);
	assert_int_equal(config_merge(&now, &asked, true, note, seen), 2);
	assert_string_equal(seen, "lo added;hca1 removed;");
	checked = now;
	assert_int_equal(config_check(&checked, "test", &error), 0);
	config_adopt(&running, &checked);
	assert_int_equal(running.hcas, 3);
	assert_true(running.hca[1].removed);
	assert_string_equal(running.hca[2].name, "lo");
	assert_false(running.hca[2].removed);
	assert_int_equal(running.hca[2].port.queues, 1); /* what was derived, too */
	assert_int_equal(config_merge(&now, &asked, true, NULL, NULL), 0);
	/* and back again, in its place */
	config_defaults(&asked);
	seen[0] = '\0';
	assert_int_equal(config_merge(&now, &asked, true, note, seen), 2);
	assert_string_equal(seen, "hca1 added;lo removed;");
	assert_string_equal(now.hca[1].name, "hca1");
	assert_false(now.hca[1].removed);
	strcpy(asked.hca[1].name, "pci");
	asked.hca[1].port.type = PORT_PCI;
	seen[0] = '\0';
	assert_int_equal(config_merge(&now, &asked, true, note, seen), 2);
	assert_string_equal(seen, "pci added restart;hca1 removed restart;");
}

TEST(add__or_why_not)
{
	static const struct {
		const char *name, *lines, *why; /* NULL: it is added */
	} rows[] = {
		{"lo", "peer=lo\naddress=10.0.0.1/8\n", NULL},
		{"lo", "port=memif\ndevice=/run/a b\naddress=10.0.0.1/8, fd00::1/64", NULL},
		{"one", "peer=other\naddress=10.0.0.1/8", NULL},
		{"hca0", "", "HCA 'hca0' exists already"},
		{"daemon", "", "'daemon' cannot name an HCA"},
		{"no-name", "", "'no-name' cannot name an HCA"},
		{"lo", "peer", "'peer' is not of the form KEY=VALUE"},
		{"lo", "pear=lo", "there is no setting 'pear' in [hca]"},
		{"lo", "loss=2", "loss: 2 is out of range 0..1"},
		{"lo", "port=af_packet\ndevice=eth0\naddress=10.0.0.1/8", "ring and memif only"},
		{"lo", "address=10.0.0.1/8", "a ring port needs a peer"},
		{"lo", "peer=lo", "has no address"},
		{"lo", "peer=lo\naddress=192.168.77.2/24", "an address is listed twice"},
		{"lo", "peer=hca0\naddress=10.0.0.1/8", "the peer of its peer 'hca0' is 'hca1'"},
		{"lo", "peer=lo\naddress=10.0.0.1/8\nengines=8\nqueues=2", "fewer queues"},
		{"lo", "peer=lo\naddress=10.0.0.1/8\nqueues=2", "more queues"},
	};
	struct config_error error;
	static struct config c;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int ret;

		config_defaults(&c);
		ret = config_add(&c, rows[i].name, rows[i].lines, &error);
		if (!ret)
			ret = config_check(&c, "test", &error);
		assert_int_equal(ret, rows[i].why ? -EINVAL : 0);
		if (ret && !strstr(error.text, rows[i].why))
			fail_msg("%s: %s", rows[i].lines, error.text);
	}
}

/* A place for each that is there, waits or is waited for; whoever is gone for good gives up its own. */
TEST(add__as_many_as_there_are_places)
{
	struct config_error error;
	static struct config c;

	config_defaults(&c);
	assert_int_equal(config_add(&c, "a", "address=10.0.0.1/8\npeer=b", &error), 0);
	assert_int_equal(c.hcas, HCA_MAX);
	assert_int_equal(config_add(&c, "c", "address=10.0.0.3/8\npeer=c", &error), -EINVAL);
	assert_string_equal(error.text, "more than 4 HCAs");
	config_remove_hca(&c, "hca1"); /* hca0 waits for it */
	assert_int_equal(config_add(&c, "c", "address=10.0.0.3/8\npeer=c", &error), -EINVAL);
	assert_int_equal(config_add(&c, "b", "address=10.0.0.2/8\npeer=a", &error), 0);
	assert_int_equal(config_check(&c, "test", &error), 0);
	config_remove_hca(&c, "a");
	config_remove_hca(&c, "b");
	assert_int_equal(config_add(&c, "c", "address=10.0.0.3/8\npeer=d", &error), 0);
	assert_int_equal(config_add(&c, "hca1", "address=10.0.0.9/8\npeer=hca0", &error), 0);
	assert_int_equal(config_check(&c, "test", &error), 0);
	assert_int_equal(c.hcas, HCA_MAX);
}

/* What a ring's ends leave out of packets was agreed on when the first of them began. */
TEST(fits__not_with_another_icrc)
{
	static struct config running, checked;
	struct config_error error;

	config_defaults(&running);
	assert_int_equal(config_check(&running, "test", &error), 0);
	config_remove_hca(&running, "hca1");
	checked = running;
	assert_int_equal(config_add(&checked, "hca1", "address=10.0.0.1/8\npeer=hca0", &error), 0);
	assert_int_equal(config_check(&checked, "test", &error), 0);
	assert_int_equal(config_fits(&running, &checked, &error), 0);
	assert_int_equal(config_set(&checked, "hca1.icrc=always", &error), 0);
	assert_int_equal(config_check(&checked, "test", &error), 0);
	assert_int_equal(config_fits(&running, &checked, &error), -EINVAL);
	assert_non_null(strstr(error.text, "the ring of hca0"));
}

/* What follows from a change reaches the running configuration with it: an impaired port's packets
 * cannot refer to their payload, nor can its peer's. */
TEST(adopt__what_follows_too)
{
	struct config_error error;
	static struct config running, checked;

	config_defaults(&running);
	assert_int_equal(config_check(&running, "test", &error), 0);
	assert_true(running.hca[0].settings.payload_refs);
	config_defaults(&checked);
	assert_int_equal(config_set(&checked, "hca1.loss=0.5", &error), 0);
	assert_int_equal(config_check(&checked, "test", &error), 0);
	config_adopt(&running, &checked);
	assert_true(running.hca[1].port.impairment.loss > 0);
	assert_false(running.hca[0].settings.payload_refs);
}

TEST(list__every_setting_of_every_section_once)
{
	static struct config_value v;
	static struct config c;
	unsigned n = 0, last = 0;

	config_defaults(&c);
	while (config_setting(&c, n, &v) == 0) {
		last += strcmp(v.section, "hca1") == 0 && strcmp(v.key, "port") == 0;
		n++;
	}
	assert_int_equal(n, config_setting_count(&c));
	assert_int_equal(last, 1);
}
