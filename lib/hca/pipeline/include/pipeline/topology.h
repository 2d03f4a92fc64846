/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_TOPOLOGY_H
#define PIPELINE_TOPOLOGY_H
/* The pipeline as data, from topology.def. */

enum stage_id {
#define STAGE(id, name, text) STAGE_##id,
#include "pipeline/topology.def"
	STAGE_COUNT
};

enum module_id {
#define MODULE(id, name, stage, text) MODULE_##id,
#include "pipeline/topology.def"
	MODULE_COUNT
};

enum channel_id {
#define CHANNEL(id, name, producer, consumer, engine, depth, fifos, full) CHANNEL_##id,
#include "pipeline/topology.def"
	CHANNEL_COUNT
};

/* Whose producer puts into a channel. */
enum channel_engine {
	ENGINE_OWN, /* the consumer's engine's */
	ENGINE_EACH /* and that of each other engine */
};

/* Which ring a channel is. */
enum channel_form {
#define FORM(id, text) FORM_##id,
#include "pipeline/topology.def"
	FORM_COUNT
};

enum call_id {
#define CALL(id, name, caller, called, fifos, text) CALL_##id,
#include "pipeline/topology.def"
	CALL_COUNT
};

struct stage_info {
	const char *name; /* as in the configuration: doorbell_wqe … */
	const char *text;
};

struct module_info {
	const char *name;	 /* short form: dbp … */
	const char *design_name; /* DoorbellProcessing … */
	enum stage_id stage;
};

struct channel_info {
	const char *name; /* dbp_ws … */
	enum module_id producer, consumer;
	enum channel_engine engine;
	unsigned depth;
	const char *fifos, *full;
};

struct call_info {
	const char *name; /* rrc_sem … */
	enum module_id caller, called;
	const char *fifos, *text;
};

extern const struct stage_info stage_infos[STAGE_COUNT];
extern const struct module_info module_infos[MODULE_COUNT];
extern const struct channel_info channel_infos[CHANNEL_COUNT];
extern const struct call_info call_infos[CALL_COUNT];

/* The module that calls that one; MODULE_COUNT: none does, its stage polls it. */
enum module_id module_caller(enum module_id id);

enum channel_form channel_form(enum channel_id id);
/* In words; static storage. */
const char *channel_form_text(enum channel_id id);

/* CHANNEL_COUNT: no channel has that name. */
enum channel_id channel_named(const char *name);

#endif
