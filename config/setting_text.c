/* SPDX-License-Identifier: BSD-3-Clause */
/* Values as text, as a file could have them: what setting_parse() reads, backwards. Pure. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "base/ip.h"
#include "setting.h"

/* A text being written; what does not fit is left out. */
struct text {
	char *at;
	size_t room; /* with the terminator; never 0 */
};

static void text_put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void text_put(struct text *t, const char *format, ...)
{
	va_list arguments;
	size_t n;

	va_start(arguments, format);
	n = (size_t)vsnprintf(t->at, t->room, format, arguments);
	va_end(arguments);
	if (n >= t->room)
		n = t->room - 1;
	t->at += n;
	t->room -= n;
}

/* All machines that DPDK and our formats support are little-endian. */
static uint64_t number_at(const struct setting *s, const void *field)
{
	uint64_t number = 0;

	memcpy(&number, field, s->bytes);
	return number;
}

/* With as few digits as give the same number again. */
static void put_probability(struct text *t, double p)
{
	char digits[32];
	int precision = 1;

	do
		snprintf(digits, sizeof(digits), "%.*g", precision, p);
	while (strtod(digits, NULL) != p && ++precision <= 17);
	text_put(t, "%s", digits);
}

static void put_choice(struct text *t, const struct setting *s, uint64_t number)
{
	const char *word = s->unit;

	while (number-- && word)
		word = strchr(word, '|') ? strchr(word, '|') + 1 : NULL;
	if (word)
		text_put(t, "%.*s", (int)strcspn(word, "|"), word);
}

const char *config_choice(const char *key, uint32_t number, char word[CONFIG_WORD_BYTES])
{
	struct text t = {word, CONFIG_WORD_BYTES};

	*word = '\0';
	put_choice(&t, setting_find(SCOPE_HCA, key), number);
	return word;
}

static void put_hugepages(struct text *t, uint32_t mib)
{
	if (mib == CONFIG_HUGEPAGES_AUTO || mib == CONFIG_HUGEPAGES_OFF)
		text_put(t, "%s", mib == CONFIG_HUGEPAGES_AUTO ? "auto" : "off");
	else
		text_put(t, "%" PRIu32, mib);
}

static void put_cpus(struct text *t, const struct config_cpus *cpus)
{
	for (unsigned i = 0; i < cpus->count; i++)
		text_put(t, "%s%u", i ? "," : "", cpus->cpu[i]);
}

static void put_ip(struct text *t, const uint8_t ip[16])
{
	const bool v4 = ip_is_v4_mapped(ip);
	char name[INET6_ADDRSTRLEN];

	text_put(t, "%s",
		 inet_ntop(v4 ? AF_INET : AF_INET6, ip + (v4 ? IP_V4_AT : 0), name, sizeof(name)));
}

static void put_addresses(struct text *t, const struct port_addresses *a)
{
	for (unsigned i = 0; i < a->count; i++) {
		text_put(t, "%s", i ? ", " : "");
		put_ip(t, a->at[i].ip);
		text_put(t, "/%u", a->at[i].prefix_len);
	}
}

static void put_gateways(struct text *t, const struct port_gateways *g)
{
	if (g->has_v4)
		put_ip(t, g->v4);
	text_put(t, "%s", g->has_v4 && g->has_v6 ? ", " : "");
	if (g->has_v6)
		put_ip(t, g->v6);
}

/* Of a prefix shorter than that of all IPv4 addresses, the address says which version it is. */
static void put_prefix(struct text *t, const uint8_t ip[16], unsigned bits)
{
	put_ip(t, ip);
	if (bits < 128)
		text_put(t, "/%u", ip_is_v4_mapped(ip) ? bits - 8 * IP_V4_AT : bits);
}

static void put_peers(struct text *t, const struct peer_list *peers)
{
	for (unsigned i = 0; i < peers->count; i++) {
		text_put(t, "%s", i ? ", " : "");
		put_prefix(t, peers->prefix[i].ip, peers->prefix[i].bits);
	}
}

static void put_cc_rules(struct text *t, const struct cc_rules *rules)
{
	for (unsigned i = 0; i < rules->count; i++) {
		const struct cc_rule *r = &rules->rule[i];

		text_put(t, "%s", i ? ", " : "");
		if (r->by_class)
			text_put(t, "tc %u", r->tclass);
		else
			put_prefix(t, r->ip, r->bits);
		text_put(t, "=");
		put_choice(t, setting_find(SCOPE_HCA, "cc"), r->cc);
	}
}

static void put_mac(struct text *t, const uint8_t mac[6])
{
	static const uint8_t none[6];

	if (memcmp(mac, none, 6) != 0)
		text_put(t, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
			 mac[5]);
}

static void put_log_levels(struct text *t, const struct log_levels *levels)
{
	text_put(t, "%s", log_level_names[levels->all]);
	for (unsigned i = 0; i < LOG_MODULE_COUNT; i++)
		if (levels->module[i])
			text_put(t, ", %s=%s", log_module_names[i],
				 log_level_names[levels->module[i] - 1]);
}

static void put_permissions(struct text *t, uint32_t mode)
{
	if (mode)
		text_put(t, "0%o", mode);
}

static void put_stages(struct text *t, int16_t cpu)
{
	if (cpu == CONFIG_CPU_AUTO)
		text_put(t, "auto");
	else
		text_put(t, "all on lcore %d", cpu);
}

/* All that were set: those of one engine, and of all (the last row). */
static void put_placements(struct text *t, const struct hca_section *h)
{
	const char *comma = "";

	for (unsigned e = 0; e <= ENGINES_MAX; e++) {
		for (unsigned s = 0; s < STAGE_COUNT; s++) {
			if (h->cpu[e][s] == CONFIG_CPU_AUTO)
				continue;
			text_put(t, "%s%s", comma, stage_infos[s].name);
			if (e < ENGINES_MAX)
				text_put(t, ".%u", e);
			text_put(t, " = %d", h->cpu[e][s]);
			comma = ", ";
		}
	}
}

void setting_text(const struct setting *s, const void *base, char out[CONFIG_TEXT_BYTES])
{
	const void *field = (const char *)base + s->offset;
	struct text t = {out, CONFIG_TEXT_BYTES};
	const char *string = field;

	*out = '\0';
	switch (s->kind) {
	case KIND_UINT:
	case KIND_POWER2:
		text_put(&t, "%" PRIu64, number_at(s, field));
		break;
	case KIND_BOOL:
		text_put(&t, "%s", *(const bool *)field ? "yes" : "no");
		break;
	case KIND_PROBABILITY:
		put_probability(&t, *(const double *)field);
		break;
	case KIND_CHOICE:
		put_choice(&t, s, number_at(s, field));
		break;
	case KIND_STRING:
	case KIND_PATH:
	case KIND_NAME:
		text_put(&t, "%s", string);
		break;
	case KIND_PERMISSIONS:
		put_permissions(&t, *(const uint32_t *)field);
		break;
	case KIND_HUGEPAGES:
		put_hugepages(&t, *(const uint32_t *)field);
		break;
	case KIND_LOG_LEVELS:
		put_log_levels(&t, field);
		break;
	case KIND_CPUS:
		put_cpus(&t, field);
		break;
	case KIND_ADDRESSES:
		put_addresses(&t, field);
		break;
	case KIND_GATEWAYS:
		put_gateways(&t, field);
		break;
	case KIND_PEERS:
		put_peers(&t, field);
		break;
	case KIND_CC_RULES:
		put_cc_rules(&t, field);
		break;
	case KIND_MAC:
		put_mac(&t, field);
		break;
	case KIND_STAGES:
		put_stages(&t, *(const int16_t *)field);
		break;
	case KIND_PLACEMENT:
		put_placements(&t, base);
		break;
	}
}
