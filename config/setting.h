/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFIG_SETTING_H
#define CONFIG_SETTING_H
/* settings.def as data, private to config/. */
#include "config/config.h"
#include "words.h"

enum setting_scope { SCOPE_DAEMON, SCOPE_HCA };

enum setting_kind {
	KIND_UINT,	  /* decimal, min..max; field of 1, 2, 4 or 8 bytes */
	KIND_POWER2,	  /* the same, a power of two */
	KIND_BOOL,	  /* yes or no */
	KIND_PROBABILITY, /* decimal fraction, 0..1; double */
	KIND_CHOICE,	  /* one of the words in `unit`; the field holds its number, 4 bytes */
	KIND_STRING,	  /* any text that fits */
	KIND_PATH,	  /* the same; a file */
	KIND_NAME,	  /* letters, digits, - and _ */
	KIND_PERMISSIONS, /* octal, as for chmod; 4 bytes */
	KIND_HUGEPAGES,	  /* auto, off or MiB */
	KIND_LOG_LEVELS,  /* info, cm=debug: struct log_levels */
	KIND_CPUS,	  /* list of CPUs and ranges of them: struct config_cpus */
	KIND_ADDRESSES,	  /* addresses with prefix lengths: struct port_addresses */
	KIND_GATEWAYS,	  /* addresses: struct port_gateways */
	KIND_PEERS,	  /* addresses, with prefix lengths or without: struct peer_list */
	KIND_CC_RULES,	  /* prefix=word or "tc N=word", ...: struct cc_rules */
	KIND_MAC,
	KIND_STAGES,	/* auto, or "all on lcore N" */
	KIND_PLACEMENT, /* a CPU; the key contains stage and engine */
};

struct setting {
	enum setting_scope scope;
	const char *key;
	enum setting_kind kind;
	size_t offset; /* of the field in struct daemon_config or hca_section, bytes */
	size_t bytes;  /* of the field */
	const char *unit, *def;
	uint64_t min, max;
	bool runtime; /* can change while the daemon runs; then the field is its own alone */
	const char *doc;
};

struct default_hca {
	const char *name, *key, *value;
};

extern const struct setting settings[];
extern const unsigned setting_count;
extern const struct default_hca default_hcas[];
extern const unsigned default_hca_count;

/* The setting of a key, or NULL. "lcore.header_parse.1" means the row lcore.STAGE[.ENGINE].
 */
const struct setting *setting_find(enum setting_scope scope, const char *key);

/* The same by its key: what a line of a file does. 0; -EINVAL with *why. */
int setting_apply(enum setting_scope scope, void *base, const char *key, const char *value,
		  struct reason *why);

/* Writes a value into its field; `base` is the struct of the scope. 0; -EINVAL with *why. */
int setting_parse(const struct setting *s, const char *key, const char *value, void *base,
		  struct reason *why);

/* The value as text, such that setting_parse() gives the same; of settings lcore.*: all of them. */
void setting_text(const struct setting *s, const void *base, char out[CONFIG_TEXT_BYTES]);

/* Sets all settings of a scope to their defaults. */
void setting_defaults(enum setting_scope scope, void *base);

/* Records the line from which an HCA's setting (NULL: the section itself) was read; and returns it,
 * or the section's if the setting was not in the file. */
void setting_note_line(struct hca_section *h, const struct setting *s, unsigned line);
unsigned setting_line(const struct hca_section *h, const char *key);

/* Does row i of default_hcas[] begin an HCA? */
bool default_hca_begins(unsigned i);

#endif
