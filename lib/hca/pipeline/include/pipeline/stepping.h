/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_STEPPING_H
#define PIPELINE_STEPPING_H
/*
 * Stops modules of an engine and lets them take one element at a time (`softhca pause`, `step`),
 * for users who want to watch. A module that stands is not polled: the channels before it fill and
 * stall the modules before them, as they do when it is slow, back to where frames come in; frames
 * that find no room there are lost, as ever. The data path pays nothing: module_run.h comes here
 * only while engine.watched is not 0.
 *
 * The lcore of the stage executes a step. It gives the module a channel of one place instead of the
 * real one (channel.in), puts the first element of the real one into it, and takes the element off
 * the real one when the module has taken it. So nothing has to be put back, and producers on other
 * lcores notice nothing.
 *
 * While a queue pair leaves, modules that hold something of it run even if they stand, with empty
 * channels. They release it at once, whatever room there is behind them, because the control thread
 * waits for them.
 */
#include <stdbool.h>
#include "host-abi/trace_record.h"
#include "pipeline/engine.h"
#include "pipeline/tap.h"

/* An element that a module took from a channel. */
struct step_element {
	uint32_t qpn;		  /* 0: there is none */
	struct trace_record what; /* as trace_describe() says */
};

struct step_report {
	uint32_t steps;	   /* that did something */
	uint32_t elements; /* handled, as the module counts them */
	uint32_t taken[CHANNEL_COUNT], put[CHANNEL_COUNT];
	struct step_element last; /* taken */
};

struct stepping {
	uint32_t standing; /* atomic: modules that stand, by bit; control thread */
	uint32_t asked;	   /* atomic: steps; the control thread sets it, the lcore clears it when
			       `report` is complete */
	enum module_id module;
	struct step_report report;
	struct rte_ring *gate[CHANNEL_COUNT];
	struct trace *trace; /* atomic: what is followed (trace.h); NULL: nothing; control thread */
	struct tap tap[TAPS_MAX]; /* captures of channels (tap.h) */
};

/* Control thread. 0, -ENOMEM; stepping_destroy() is allowed in both cases. */
int stepping_create(struct engine *e);
void stepping_destroy(struct engine *e);

/* What is paused, traced or captured of the engine has changed. Control thread. */
void stepping_watch(struct engine *e);

/* These modules stand from their next poll on, all others run; stops or starts the engine's time
 * with it: see engine_stop_time(). Control thread. */
void stepping_set(struct engine *e, uint32_t modules);

/*
 * Stops the time of the modules, so that none of their timers expires meanwhile; it continues where
 * it stopped. Before it is started, each lcore of the engine must have polled. The lcore loop
 * implements this; callers of hca_poll() pass a time of their own. Control thread.
 */
void engine_stop_time(struct engine *e);
void engine_start_time(struct engine *e);

/* Asks a module that stands for up to `steps` steps; done when stepping_done(). Each takes one
 * element, or continues with what the module holds already; the first with nothing to do is the
 * last. Control thread. */
void stepping_ask(struct engine *e, enum module_id id, uint32_t steps);
/* Has it been done? Then *report is what has happened. Control thread. */
bool stepping_done(const struct engine *e, struct step_report *report);

/* A module of an engine that is watched: polls it, unless it stands. The lcore that runs its
 * stage. Returns how many elements it handled. */
unsigned module_run_watched(struct engine *e, enum module_id id,
			    unsigned (*poll)(struct engine *e));
/* Polls it, and measures the poll if WATCH_TIMED is set. As above. */
unsigned module_run_measured(struct engine *e, enum module_id id,
			     unsigned (*poll)(struct engine *e));

#endif
