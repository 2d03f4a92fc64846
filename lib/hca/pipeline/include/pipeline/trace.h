/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_TRACE_H
#define PIPELINE_TRACE_H
/*
 * Follows what belongs to one queue pair through an engine (`softhca trace`): which module took it
 * from which channel, when, and how long that poll lasted. All of that can be seen from outside the
 * modules, by looking at their channels before and after a poll, so that the data path knows
 * nothing of it: module_run.h comes here only while engine.watched is not 0.
 *
 * What arrives from outside, doorbells and frames, is seen when DoorbellProcessing and HeaderParser
 * have put it into their channels. A frame that arrives at another engine is seen only from the
 * next module on, since that engine's HeaderParser puts it into the channel of this one.
 */
#include "host-abi/trace_record.h"
#include "pipeline/engine.h"

enum { TRACE_RECORDS_MAX = 1024 }; /* of a stage; what comes later is not recorded */

/* One writer each: the lcore of the stage. */
struct trace_stage {
	uint32_t count; /* atomic */
	struct trace_record record[TRACE_RECORDS_MAX];
};

struct trace {
	uint32_t qpn;
	struct trace_stage stage[STAGE_COUNT];
};

/* Begins; one trace of an engine at a time. 0, -ENOMEM, -EBUSY. Control thread. */
int trace_begin(struct engine *e, uint32_t qpn);
/* Nothing is recorded any more once all lcores have polled. Returns the trace, which is then to be
 * freed with rte_free(); NULL: there is none. Control thread. */
struct trace *trace_end(struct engine *e);

/* Describes an element in that channel: fills in *r except time, module and channel. Returns the
 * number of its queue pair. Any lcore, as long as the element lies there. */
uint32_t trace_describe(struct rte_mbuf *m, enum channel_id in, struct trace_record *r);

/* Polls a module of an engine that is traced. The lcore of its stage. */
unsigned trace_run(struct engine *e, struct trace *t, enum module_id id,
		   unsigned (*poll)(struct engine *e));

#endif
