/* SPDX-License-Identifier: BSD-3-Clause */
/* settings.def as arrays, look-up, and the parser of values by kind. Pure: no files, no logging. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "log_levels.h"
#include "place.h"
#include "setting.h"

#define STRUCT_DAEMON struct daemon_config
#define STRUCT_HCA    struct hca_section

enum { CHANGE_RESTART, CHANGE_RUNTIME }; /* the column */

const struct setting settings[] = {
#define SETTING(scope, key, kind, field, unit, def, min, max, change, doc)                         \
	{SCOPE_##scope,                                                                            \
	 key,                                                                                      \
	 KIND_##kind,                                                                              \
	 offsetof(STRUCT_##scope, field),                                                          \
	 sizeof(((STRUCT_##scope *)0)->field),                                                     \
	 unit,                                                                                     \
	 def,                                                                                      \
	 min,                                                                                      \
	 max,                                                                                      \
	 CHANGE_##change,                                                                          \
	 doc},
#include "settings.def"
};
const unsigned setting_count = sizeof(settings) / sizeof(settings[0]);

const struct default_hca default_hcas[] = {
#define DEFAULT_HCA(name, key, value) {name, key, value},
#include "settings.def"
};
const unsigned default_hca_count = sizeof(default_hcas) / sizeof(default_hcas[0]);

bool default_hca_begins(unsigned i)
{
	return i == 0 || strcmp(default_hcas[i].name, default_hcas[i - 1].name) != 0;
}

const struct setting *setting_find(enum setting_scope scope, const char *key)
{
	for (unsigned i = 0; i < setting_count; i++) {
		const struct setting *s = &settings[i];

		if (s->scope != scope)
			continue;
		if (s->kind == KIND_PLACEMENT ? strncmp(key, "lcore.", 6) == 0
					      : strcmp(key, s->key) == 0)
			return s;
	}
	return NULL;
}

static uint16_t *line_of(struct hca_section *h, const struct setting *s)
{
	_Static_assert(sizeof(settings) / sizeof(settings[0]) < CONFIG_LINES_MAX,
		       "a line for each");
	return &h->line[s ? s - settings : CONFIG_LINES_MAX - 1];
}

void setting_note_line(struct hca_section *h, const struct setting *s, unsigned line)
{
	*line_of(h, s) = line;
}

unsigned setting_line(const struct hca_section *h, const char *key)
{
	unsigned line = h->line[setting_find(SCOPE_HCA, key) - settings];

	return line ? line : h->line[CONFIG_LINES_MAX - 1];
}

/* All machines that DPDK and our formats support are little-endian. */
static int parse_uint(const struct setting *s, const char *value, void *field, struct reason *why)
{
	uint64_t number;
	int ret = parse_number(value, s->min, s->max, &number, why);

	if (ret)
		return ret;
	if (s->kind == KIND_POWER2 && (number & (number - 1)))
		return refuse(why, "%.60s is not a power of two", value);
	memcpy(field, &number, s->bytes);
	return 0;
}

static int parse_bool(const char *value, bool *field, struct reason *why)
{
	*field = strcmp(value, "yes") == 0;
	return *field || strcmp(value, "no") == 0
		       ? 0
		       : refuse(why, "'%.60s' is neither yes nor no", value);
}

static int parse_probability(const char *value, double *field, struct reason *why)
{
	char *end;

	if (!isdigit((unsigned char)*value) && *value != '.')
		return refuse(why, "'%.60s' is not a number", value);
	*field = strtod(value, &end);
	if (*end || !isfinite(*field))
		return refuse(why, "'%.60s' is not a number", value);
	return *field <= 1.0 ? 0 : refuse(why, "%.60s is out of range 0..1", value);
}

static int parse_text(const struct setting *s, const char *value, char *field, struct reason *why)
{
	if (strlen(value) >= s->bytes)
		return refuse(why, "longer than %zu characters", s->bytes - 1);
	if (s->kind == KIND_NAME && *value && !name_is_valid(value))
		return refuse(why, "'%.60s' is not a name: a letter, then letters, digits, - and _",
			      value);
	memset(field, 0, s->bytes);
	memcpy(field, value, strlen(value));
	return 0;
}

static int parse_hugepages(const struct setting *s, const char *value, uint32_t *field,
			   struct reason *why)
{
	*field = CONFIG_HUGEPAGES_AUTO;
	if (strcmp(value, "auto") == 0)
		return 0;
	*field = CONFIG_HUGEPAGES_OFF;
	if (strcmp(value, "off") == 0)
		return 0;
	if (!isdigit((unsigned char)*value))
		return refuse(why, "'%.60s' is none of %s", value, s->unit);
	return parse_uint(s, value, field, why);
}

static int parse_permissions(const struct setting *s, const char *value, uint32_t *field,
			     struct reason *why)
{
	char *end;
	unsigned long mode = strtoul(value, &end, 8);

	if (!*value) { /* chosen by config_check() */
		*field = 0;
		return 0;
	}
	if (!isdigit((unsigned char)*value) || *end || !mode || mode > s->max)
		return refuse(why, "'%.60s' is not an octal mode from 1 to 0777", value);
	*field = (uint32_t)mode;
	return 0;
}

int setting_parse(const struct setting *s, const char *key, const char *value, void *base,
		  struct reason *why)
{
	void *field = (char *)base + s->offset;

	switch (s->kind) {
	case KIND_UINT:
	case KIND_POWER2:
		return parse_uint(s, value, field, why);
	case KIND_BOOL:
		return parse_bool(value, field, why);
	case KIND_PROBABILITY:
		return parse_probability(value, field, why);
	case KIND_CHOICE:
		return parse_choice(value, s->unit, field, why);
	case KIND_STRING:
	case KIND_PATH:
	case KIND_NAME:
		return parse_text(s, value, field, why);
	case KIND_PERMISSIONS:
		return parse_permissions(s, value, field, why);
	case KIND_HUGEPAGES:
		return parse_hugepages(s, value, field, why);
	case KIND_LOG_LEVELS:
		return parse_log_levels(value, field, why);
	case KIND_CPUS:
		return parse_cpus(value, field, why);
	case KIND_ADDRESSES:
		return parse_addresses(value, field, why);
	case KIND_GATEWAYS:
		return parse_gateways(value, field, why);
	case KIND_PEERS:
		return parse_peers(value, field, why);
	case KIND_CC_RULES:
		return parse_cc_rules(value, setting_find(SCOPE_HCA, "cc")->unit, field, why);
	case KIND_MAC:
		return parse_mac(value, field, why);
	case KIND_STAGES:
		return parse_stages(value, field, why);
	case KIND_PLACEMENT:
		return parse_placement(key, value, base, why);
	}
	return refuse(why, "'%.60s' has no kind", key);
}

int setting_apply(enum setting_scope scope, void *base, const char *key, const char *value,
		  struct reason *why)
{
	const struct setting *s = setting_find(scope, key);
	struct reason inner;

	if (!s)
		return refuse(why, "there is no setting '%s' in [%s]", key,
			      scope == SCOPE_DAEMON ? "daemon" : "hca");
	if (setting_parse(s, key, value, base, &inner))
		return refuse(why, "%.70s: %.180s", key, inner.text);
	return 0;
}

void setting_defaults(enum setting_scope scope, void *base)
{
	struct reason why;

	for (unsigned i = 0; i < setting_count; i++) {
		const struct setting *s = &settings[i];

		if (s->scope != scope || s->kind == KIND_PLACEMENT)
			continue;
		if (setting_parse(s, s->key, s->def, base, &why)) {
			fprintf(stderr, "settings.def: %s: %s\n", s->key, why.text);
			abort();
		}
	}
}
