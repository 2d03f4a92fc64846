/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of places: IP and MAC addresses, CPUs, the lcores of stages. Pure: no files, no
 * logging. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/ip.h"
#include "place.h"

/* An address in the form of a GID: IPv4 as ::ffff:a.b.c.d. */
static bool parse_ip(const char *text, uint8_t ip[16], bool *v6)
{
	uint8_t v4[4];

	*v6 = strchr(text, ':') != NULL;
	if (*v6)
		return inet_pton(AF_INET6, text, ip) == 1 && !ip_is_v4_mapped(ip);
	if (inet_pton(AF_INET, text, v4) != 1)
		return false;
	ip_map_v4(v4, ip);
	return true;
}

static int parse_address(char *word, struct port_address *a, struct reason *why)
{
	char *slash = strchr(word, '/');
	uint64_t length;
	struct reason ignored;

	if (!slash)
		return refuse(why, "'%s' has no prefix length, such as /24", word);
	*slash = '\0';
	if (!parse_ip(word, a->ip, &a->v6))
		return refuse(why, "'%s' is not an IP address", word);
	if (!ip_is_host(a->ip))
		return refuse(why, "'%s' is not the address of a host", word);
	if (parse_number(slash + 1, 1, a->v6 ? 128 : 32, &length, &ignored))
		return refuse(why, "'/%s' is not a prefix length of 1..%d", slash + 1,
			      a->v6 ? 128 : 32);
	a->prefix_len = length;
	return 0;
}

int parse_addresses(const char *value, struct port_addresses *to, struct reason *why)
{
	char word[SETTING_WORD_BYTES];
	int ret;

	memset(to, 0, sizeof(*to));
	while (next_word(&value, word)) {
		if (to->count == PORT_ADDRESSES_MAX)
			return refuse(why, "more than %d addresses", PORT_ADDRESSES_MAX);
		ret = parse_address(word, &to->at[to->count], why);
		if (ret)
			return ret;
		to->count++;
	}
	return 0;
}

int parse_gateways(const char *value, struct port_gateways *g, struct reason *why)
{
	char word[SETTING_WORD_BYTES];
	uint8_t ip[16];
	bool v6;

	g->has_v4 = g->has_v6 = false;
	while (next_word(&value, word)) {
		if (!parse_ip(word, ip, &v6) || !ip_is_host(ip))
			return refuse(why, "'%s' is not the IP address of a host", word);
		if (v6 ? g->has_v6 : g->has_v4)
			return refuse(why, "'%s' is a second gateway of its IP version", word);
		memcpy(v6 ? g->v6 : g->v4, ip, sizeof(ip));
		*(v6 ? &g->has_v6 : &g->has_v4) = true;
	}
	return 0;
}

/* Without a length: that address alone. */
static int parse_peer(char *word, struct peer_list *peers, struct reason *why)
{
	char *slash = strchr(word, '/');
	uint8_t *ip = peers->prefix[peers->count].ip;
	uint64_t length;
	bool v6;
	int ret = 0;

	if (slash)
		*slash = '\0';
	if (!parse_ip(word, ip, &v6))
		return refuse(why, "'%s' is not an IP address", word);
	length = v6 ? 128 : 32;
	if (slash)
		ret = parse_number(slash + 1, 0, length, &length, why);
	peers->prefix[peers->count].bits = (uint8_t)(v6 ? length : 8 * IP_V4_AT + length);
	return ret;
}

int parse_peers(const char *value, struct peer_list *peers, struct reason *why)
{
	char word[SETTING_WORD_BYTES];
	int ret = 0;

	memset(peers, 0, sizeof(*peers));
	while (!ret && next_word(&value, word)) {
		if (peers->count == PEERS_MAX)
			return refuse(why, "more than %d addresses", PEERS_MAX);
		ret = parse_peer(word, peers, why);
		peers->count++;
	}
	return ret;
}

/* "tc 32", 10.0.0.0/8 or an address. */
static int parse_whom(char *whom, struct cc_rule *rule, struct reason *why)
{
	struct peer_list one = {.count = 0};
	uint64_t number;
	int ret;

	if (!strncmp(whom, "tc ", 3)) {
		ret = parse_number(whom + 3, 0, UINT8_MAX, &number, why);
		rule->by_class = true;
		rule->tclass = (uint8_t)(ret ? 0 : number);
		return ret;
	}
	ret = parse_peer(whom, &one, why);
	memcpy(rule->ip, one.prefix[0].ip, sizeof(rule->ip));
	rule->bits = one.prefix[0].bits;
	return ret;
}

int parse_cc_rules(const char *value, const char *words, struct cc_rules *rules, struct reason *why)
{
	char word[SETTING_WORD_BYTES];
	uint32_t cc;
	int ret = 0;

	memset(rules, 0, sizeof(*rules));
	while (!ret && next_word(&value, word)) {
		struct cc_rule *rule = &rules->rule[rules->count];
		char *is = strchr(word, '=');

		if (rules->count == CC_RULES_MAX)
			return refuse(why, "more than %d rules", CC_RULES_MAX);
		if (!is)
			return refuse(why, "'%s' has no =", word);
		*is = '\0';
		ret = parse_whom(word, rule, why);
		ret = ret ? ret : parse_choice(is + 1, words, &cc, why);
		rule->cc = (uint8_t)(ret ? 0 : cc);
		rules->count++;
	}
	return ret;
}

int parse_mac(const char *value, uint8_t mac[6], struct reason *why)
{
	static const uint8_t none[6];

	memset(mac, 0, 6);
	if (!*value)
		return 0;
	for (unsigned i = 0; i < 6; i++, value += 3) {
		char digits[3] = {value[0], value[0] ? value[1] : '\0', '\0'};

		if (!isxdigit((unsigned char)digits[0]) || !isxdigit((unsigned char)digits[1]) ||
		    value[2] != (i < 5 ? ':' : '\0'))
			return refuse(why, "not of the form xx:xx:xx:xx:xx:xx");
		mac[i] = strtoul(digits, NULL, 16);
		if (i == 5)
			break;
	}
	if ((mac[0] & 1) || memcmp(mac, none, 6) == 0)
		return refuse(why, "not a unicast MAC address");
	return 0;
}

static int add_cpu(struct config_cpus *cpus, unsigned cpu, struct reason *why)
{
	for (unsigned i = 0; i < cpus->count; i++) {
		if (cpus->cpu[i] == cpu)
			return refuse(why, "CPU %u is named twice", cpu);
	}
	if (cpus->count == LCORES_MAX)
		return refuse(why, "more than %d CPUs", LCORES_MAX);
	cpus->cpu[cpus->count++] = cpu;
	return 0;
}

int parse_cpus(const char *value, struct config_cpus *cpus, struct reason *why)
{
	char word[SETTING_WORD_BYTES];

	cpus->count = 0;
	while (next_word(&value, word)) {
		char *dash = strchr(word, '-');
		uint64_t first, last;
		int ret;

		if (dash)
			*dash = '\0';
		ret = parse_number(word, 0, CONFIG_CPU_MAX, &first, why);
		last = first;
		if (!ret && dash)
			ret = parse_number(dash + 1, first, CONFIG_CPU_MAX, &last, why);
		for (uint64_t cpu = first; !ret && cpu <= last; cpu++)
			ret = add_cpu(cpus, cpu, why);
		if (ret)
			return ret;
	}
	return 0;
}

int parse_stages(const char *value, int16_t *cpu, struct reason *why)
{
	static const char words[] = "all on lcore ";
	uint64_t number;
	int ret;

	*cpu = CONFIG_CPU_AUTO;
	if (strcmp(value, "auto") == 0)
		return 0;
	if (strncmp(value, words, sizeof(words) - 1) != 0)
		return refuse(why, "'%.60s' is neither auto nor 'all on lcore N'", value);
	ret = parse_number(value + sizeof(words) - 1, 0, CONFIG_CPU_MAX, &number, why);
	if (!ret)
		*cpu = number;
	return ret;
}

int parse_placement(const char *key, const char *value, struct hca_section *hca, struct reason *why)
{
	const char *name = key + strlen("lcore.");
	size_t length = strcspn(name, ".");
	uint64_t engine = ENGINES_MAX, cpu;
	int ret = 0;

	if (name[length])
		ret = parse_number(name + length + 1, 0, ENGINES_MAX - 1, &engine, why);
	if (!ret)
		ret = parse_number(value, 0, CONFIG_CPU_MAX, &cpu, why);
	if (ret)
		return ret;
	for (unsigned s = 0; s < STAGE_COUNT; s++) {
		if (strlen(stage_infos[s].name) == length &&
		    memcmp(stage_infos[s].name, name, length) == 0) {
			hca->cpu[engine][s] = cpu;
			return 0;
		}
	}
	return refuse(why, "there is no stage '%.*s'", (int)length, name);
}
