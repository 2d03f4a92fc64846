/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H
/*
 * The configuration of a daemon: the built-in defaults, then a file, then --set options, then
 * checks of the whole. All settings are in settings.def. Slow path, one thread; needs no EAL.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "base/limits.h"
#include "base/log_levels.h"
#include "base/peer_list.h"
#include "congestion/rules.h"
#include "config/paths.h"
#include "pipeline/engine.h"
#include "pipeline/topology.h"
#include "pmd-glue/port.h"

enum {
	CONFIG_NAME_BYTES = 9,	  /* HCA name: short, as ring names contain it */
	CONFIG_PREFIX_BYTES = 32, /* name among DPDK processes */
	CONFIG_CPU_MAX = 1023,	  /* highest CPU number that can be named */
	CONFIG_CPU_AUTO = -1,	  /* no CPU named: the daemon places the stage */
	CONFIG_ERROR_BYTES = 512,
	CONFIG_TEXT_BYTES = 1280, /* a value as text: the placements of all stages */
	CONFIG_WORD_BYTES = 32,	  /* one word of a CHOICE */
	CONFIG_LINES_MAX = 128,	  /* settings per section whose line number is kept */
};

/* Values of daemon_config.hugepages_mib that are not a size. */
#define CONFIG_HUGEPAGES_OFF  0u
#define CONFIG_HUGEPAGES_AUTO UINT32_MAX

enum config_poll { CONFIG_POLL_ADAPTIVE, CONFIG_POLL_BUSY };
enum config_icrc { CONFIG_ICRC_AUTO, CONFIG_ICRC_ALWAYS, CONFIG_ICRC_NEVER };
enum config_tx_copy { CONFIG_TX_COPY_AUTO, CONFIG_TX_COPY_ALWAYS, CONFIG_TX_COPY_NEVER };

struct config_cpus {
	uint16_t cpu[LCORES_MAX]; /* in the order written, each once */
	unsigned count;		  /* 0: none given */
};

/* Section [daemon]; see settings.def. After config_check() no path or name is empty. */
struct daemon_config {
	char socket[PATHS_BYTES_MAX];
	uint32_t socket_mode; /* permissions; filled in by config_check() */
	char socket_group[CONFIG_NAME_BYTES];
	char admin_group[CONFIG_PREFIX_BYTES];
	char user[CONFIG_PREFIX_BYTES];
	char prefix[CONFIG_PREFIX_BYTES];
	struct log_levels log_level;
	uint32_t hugepages_mib; /* or CONFIG_HUGEPAGES_* */
	uint32_t memory_mib;	/* 0: computed by the daemon */
	struct config_cpus lcores;
	uint32_t poll; /* enum config_poll */
	uint32_t idle_spin_us, idle_sleep_us;
	uint32_t packet_buffers, descriptor_buffers, clone_buffers;
	uint32_t user_share; /* percent; 0: as in shares.def */
	uint32_t connections, hello_timeout_s;
	uint32_t cm; /* 1: there is a connection manager */
};

/* A section [hca NAME]. */
struct hca_section {
	char name[CONFIG_NAME_BYTES];
	/* A running daemon no longer has it. It keeps its place, since HCAs are known by their
	 * index, and its settings, since its peer still names it. */
	bool removed;
	struct port_config
		port; /* port.name is the HCA's; port.queues is filled in by config_check() */
	struct peer_list admitted; /* as written: without the port's own addresses */
	struct cc_rules cc_for;
	uint32_t qps, cqs, srqs, mpts, mtts, mpt_cache_bytes, mtt_cache_bytes; /* powers of two */
	uint32_t engines;
	uint32_t icrc;			 /* enum config_icrc */
	uint32_t tx_copy;		 /* enum config_tx_copy */
	uint32_t debug;			 /* 1: its modules may be paused */
	struct engine_settings settings; /* config_check() fills in .icrc and .payload_refs */
	int16_t stages_cpu;		 /* `stages`: a CPU or CONFIG_CPU_AUTO */
	/*
	 * CPU of each stage of each engine, or CONFIG_CPU_AUTO. While a file is read, row
	 * ENGINES_MAX holds the settings for all engines; config_check() merges it into the
	 * others.
	 */
	int16_t cpu[ENGINES_MAX + 1][STAGE_COUNT];
	/*
	 * NUMA nodes, filled in by the daemon once all CPUs are known: of the port's device
	 * (-1: unknown), of what all engines share, of each engine.
	 */
	int port_node, node, engine_node[ENGINES_MAX];
	/* Lines of the settings, by their index in settings.def; the last one: the section's. 0:
	 * not in a file. */
	uint16_t line[CONFIG_LINES_MAX];
};

struct config {
	struct daemon_config daemon;
	struct hca_section hca[HCA_MAX];
	unsigned hcas;
};

struct config_error {
	char text[CONFIG_ERROR_BYTES]; /* "FILE:LINE: reason", without a newline */
};

/* The built-in configuration, as config_print() prints it. Not checked yet. */
void config_defaults(struct config *c);

/*
 * Reads a file into *c, from scratch: nothing of the built-in HCAs remains. Not checked yet. 0;
 * -ENOENT and other -errno of opening it; -EINVAL: refused. *error says where and why in all cases.
 */
int config_read(struct config *c, const char *path, struct config_error *error);

/* Applies one --set option, "daemon.key=value" or "NAME.key=value" with the name of an HCA. 0;
 * -EINVAL with *error. */
int config_set(struct config *c, const char *assignment, struct config_error *error);

/* The same for an assignment that is no option: *error says only what is wrong. */
int config_assign(struct config *c, const char *assignment, struct config_error *error);

/*
 * Checks how settings fit together (ring peers, addresses, devices, placements) and fills in
 * derived values (socket, prefix, queues, placements). `origin` precedes errors without a line,
 * such as the file's name. 0; -EINVAL with *error.
 */
int config_check(struct config *c, const char *origin, struct config_error *error);

/* Marks an HCA as removed, for config_merge(). 0; -ENOENT: there is none of that name; -EBUSY: it
 * is the last one. */
int config_remove_hca(struct config *c, const char *name);

/* Buffers that an engine takes of the daemon's pools. */
struct config_buffers {
	uint32_t packets, descriptors, clones;
};
struct config_buffers config_buffers_of(const struct hca_section *h, unsigned engine);

/* What distinguishes two configurations: a setting; or an HCA, whose key is then NULL. */
struct config_change {
	const char *section, *key;
	bool runtime; /* a running daemon can apply it */
	char before[CONFIG_TEXT_BYTES], after[CONFIG_TEXT_BYTES]; /* of an HCA: "", and how */
};
typedef void config_change_fn(void *ctx, const struct config_change *change);

/*
 * Adds an HCA to the configuration of a running daemon: `lines` are "KEY=VALUE" each, as in its
 * section. One that was removed, of the same name if there is, gives it its place. The HCA at the
 * other end of its ring need not exist: it then gets a place, too, as if it had been removed. Not
 * checked yet. 0; -EINVAL with *error, which says only what is wrong.
 */
int config_add(struct config *c, const char *name, const char *lines, struct config_error *error);

/* Can a running daemon open the port of such an HCA? */
bool config_may_add(const struct hca_section *h);

/* Would an HCA of that name open files that its section names? */
bool config_names_files(const struct config *c, const char *name);

/*
 * Calls fn (NULL: none) for everything in which *asked differs from *now, and copies to *now what a
 * running daemon can apply. Adds HCAs that *now lacks if `add` is true and they may be added. Marks
 * HCAs that *asked lacks as removed, unless none would be left or *asked has others that could not
 * be added. Both unchecked, or both checked. Returns the number of differences.
 */
unsigned config_merge(struct config *now, const struct config *asked, bool add,
		      config_change_fn *fn, void *ctx);

/* Checks that HCAs which *checked adds fit with those of *running, which stay as they are: both
 * ends of a ring have to agree on what they leave out of packets. Both checked. 0; -EINVAL with
 * *error. */
int config_fits(const struct config *running, const struct config *checked,
		struct config_error *error);

/* Copies to a running configuration what a daemon can apply of *checked, which config_merge() made
 * from it, and what config_check() derived from that. */
void config_adopt(struct config *running, const struct config *checked);

/* One setting of a configuration, for people. */
struct config_value {
	const char *section, *key, *doc;
	bool runtime;
	char text[CONFIG_TEXT_BYTES];
};
unsigned config_setting_count(const struct config *c);
/* The index-th one, from 0. 0; -ENOENT. */
int config_setting(const struct config *c, unsigned index, struct config_value *out);

/* The word for value `number` of the HCA setting `key`, which is a CHOICE; "" if there is none.
 * Returns `word`. */
const char *config_choice(const char *key, uint32_t number, char word[CONFIG_WORD_BYTES]);

/* Prints the built-in configuration as a commented file. */
void config_print(FILE *out);

/* Prints all settings with defaults, units and ranges: the second half of `softhcad --help`. */
void config_help(FILE *out);

#endif
