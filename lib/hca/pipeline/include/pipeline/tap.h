/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_TAP_H
#define PIPELINE_TAP_H
/*
 * Captures of a channel (`softhca capture CHANNEL`): each element that its consumer takes is
 * described (host-abi/capture_element.h) in a ring of the reader's memory, one for each engine. An
 * element that finds no room there is counted; the pipeline never waits. The data path knows
 * nothing of it: module_run.h comes here only while engine.watched is not 0.
 *
 * The consumer's lcore writes. Before it polls the consumer, it describes what the consumer may
 * take, and lets it see no more than that (stepping.h: a gate); afterwards it shows the reader as
 * much as was taken. So nothing passes unseen, and nothing that another module owns is read.
 */
#include "base/limits.h"
#include "host-abi/capture_writer.h"
#include "pipeline/engine.h"

enum { TAPS_MAX = 4 }; /* at once, of an engine */

struct tap {
	struct capture_head
		*ring;		 /* control, atomic; NULL: there is none. Set last, cleared first */
	uint64_t queue_bytes;	 /* control */
	uint32_t snap;		 /* control: most bytes of an element; 0: all */
	enum channel_id channel; /* control */
	/* the consumer's lcore */
	struct capture_writer writer;
	struct capture_writer after[BURST]; /* once so many more of those offered have been taken */
	unsigned offered;
};

struct stepping;

/*
 * Captures that channel of `count` engines into zeroed or used memory of that size. 0; -EINVAL: too
 * little; -EBUSY: TAPS_MAX captures are running. Control thread.
 */
int tap_begin(struct engine *engines, unsigned count, enum channel_id channel, void *memory,
	      uint64_t bytes, uint32_t snap);
/* Ends it; the memory is written no more once all lcores have polled. Control thread. */
void tap_end(struct engine *engines, unsigned count, const void *memory);
/* Does the engine have any? Control thread. */
bool tap_any(const struct stepping *s);

/* The consumer of that channel may take these n, at most BURST. Its lcore. */
void tap_offer(struct engine *e, enum channel_id in, struct rte_mbuf *const *m, unsigned n);
/* It has taken the first n of them. The same. */
void tap_settle(struct engine *e, enum channel_id in, unsigned n);

/* Polls a module of an engine that is watched, and captures what it takes. The lcore of its stage.
 * Returns how many elements it handled. */
unsigned tap_run(struct engine *e, enum module_id id, unsigned (*poll)(struct engine *e));

#endif
