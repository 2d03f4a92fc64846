/* SPDX-License-Identifier: BSD-3-Clause */
/* The pipeline: its table, and what an engine has counted in it. A number may be a
 * moment old. Changes nothing. */
#include <rte_cycles.h>
#include "base/ring_look.h"
#include "pipeline/stepping.h"
#include "pipeline_view.h"
#include "views.h"

VIEW_OF(channel_of, channel, CHANNEL_VIEW)
VIEW_OF(stage_of, stage, STAGE_VIEW)

void pipeline_put(const struct engine *e, json_t *to)
{
	uint32_t standing = __atomic_load_n(&e->stepping->standing, __ATOMIC_RELAXED);
	json_t *channels = dict_new(), *paused = dict_new();
	json_t *stages = dict_new(), *calls = dict_new();

	dict_u64(to, "engine", e->index);
	dict_u64(to, "engines", e->count);
	for (unsigned i = 0; channels && i < CHANNEL_COUNT; i++)
		dict_put(channels, channel_infos[i].name, channel_of(&e->channel[i]));
	for (unsigned i = 0; stages && i < STAGE_COUNT; i++)
		dict_put(stages, stage_infos[i].name, stage_of(&e->stage[i]));
	for (unsigned i = 0; calls && i < CALL_COUNT; i++)
		dict_u64(calls, call_infos[i].name,
			 e->stage[module_infos[call_infos[i].caller].stage].calls[i]);
	for (unsigned i = 0; paused && i < MODULE_COUNT; i++)
		if (standing & 1u << i)
			dict_string(paused, module_infos[i].name, module_infos[i].design_name);
	dict_put(to, "paused", paused);
	dict_put(to, "fifos", channels);
	dict_put(to, "calls", calls);
	dict_put(to, "stages", stages);
}

static json_t *run_of(const struct module_run *it, const char *stage)
{
	json_t *to = dict_new();

	if (to) {
		RUN_VIEW(PUT)
	}
	return to;
}

void runtime_put(const struct engine *e, json_t *to)
{
	json_t *modules = dict_new();

	dict_u64(to, "engine", e->index);
	dict_u64(to, "engines", e->count);
	dict_u64(to, "measured",
		 (__atomic_load_n(&e->watched, __ATOMIC_RELAXED) & WATCH_TIMED) != 0);
	dict_u64(to, "tsc", rte_rdtsc());
	dict_u64(to, "tsc_hz", rte_get_tsc_hz());
	for (unsigned i = 0; modules && i < MODULE_COUNT; i++)
		if (module_caller(i) == MODULE_COUNT)
			dict_put(modules, module_infos[i].name,
				 run_of(&e->run[i], stage_infos[module_infos[i].stage].name));
	dict_put(to, "modules", modules);
}

VIEW_OF(stage_info_of, stage_info, STAGE_INFO_VIEW)
VIEW_OF(edge_of, channel_info, EDGE_VIEW)
VIEW_OF(call_of, call_info, CALL_VIEW)
VIEW_OF(module_of, module_info, MODULE_VIEW)

void topology_put(json_t *to)
{
	json_t *stages = dict_new(), *modules = dict_new();
	json_t *channels = dict_new(), *calls = dict_new();

	for (unsigned i = 0; stages && i < STAGE_COUNT; i++)
		dict_put(stages, stage_infos[i].name, stage_info_of(&stage_infos[i]));
	for (unsigned i = 0; modules && i < MODULE_COUNT; i++)
		dict_put(modules, module_infos[i].name, module_of(&module_infos[i]));
	for (unsigned i = 0; channels && i < CHANNEL_COUNT; i++)
		dict_put(channels, channel_infos[i].name, edge_of(&channel_infos[i]));
	for (unsigned i = 0; calls && i < CALL_COUNT; i++)
		dict_put(calls, call_infos[i].name, call_of(&call_infos[i]));
	dict_put(to, "stages", stages);
	dict_put(to, "modules", modules);
	dict_put(to, "channels", channels);
	dict_put(to, "calls", calls);
}
