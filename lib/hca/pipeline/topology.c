/* SPDX-License-Identifier: BSD-3-Clause */
/* The pipeline as data: four arrays made from topology.def. */
#include <string.h>
#include "pipeline/topology.h"

const struct stage_info stage_infos[STAGE_COUNT] = {
#define STAGE(id, name, text) [STAGE_##id] = {name, text},
#include "pipeline/topology.def"
};

const struct module_info module_infos[MODULE_COUNT] = {
#define MODULE(id, name, stage, text) [MODULE_##id] = {name, text, STAGE_##stage},
#include "pipeline/topology.def"
};

const struct channel_info channel_infos[CHANNEL_COUNT] = {
#define CHANNEL(id, name, producer, consumer, engine, depth, fifos, full)                          \
	[CHANNEL_##id] = {                                                                         \
		name, MODULE_##producer, MODULE_##consumer, ENGINE_##engine, depth, fifos, full},
#include "pipeline/topology.def"
};

const struct call_info call_infos[CALL_COUNT] = {
#define CALL(id, name, caller, called, fifos, text)                                                \
	[CALL_##id] = {name, MODULE_##caller, MODULE_##called, fifos, text},
#include "pipeline/topology.def"
};

enum module_id module_caller(enum module_id id)
{
	for (unsigned i = 0; i < CALL_COUNT; i++)
		if (call_infos[i].called == id)
			return call_infos[i].caller;
	return MODULE_COUNT;
}

enum channel_form channel_form(enum channel_id id)
{
	const struct channel_info *c = &channel_infos[id];

	if (c->engine == ENGINE_EACH)
		return FORM_FROM_EACH;
	return module_infos[c->producer].stage == module_infos[c->consumer].stage ? FORM_WITHIN
										  : FORM_BETWEEN;
}

const char *channel_form_text(enum channel_id id)
{
	static const char *const texts[FORM_COUNT] = {
#define FORM(id, text) text,
#include "pipeline/topology.def"
	};

	return texts[channel_form(id)];
}

enum channel_id channel_named(const char *name)
{
	enum channel_id id = 0;

	while (id < CHANNEL_COUNT && strcmp(name, channel_infos[id].name) != 0)
		id++;
	return id;
}
