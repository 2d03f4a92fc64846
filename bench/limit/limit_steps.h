/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIMIT_STEPS_H
#define LIMIT_STEPS_H
/*
 * What each step of a model costs. Each step passes over a whole burst before the next one begins,
 * as a module of the product does, and the clock is read between two steps. So messages cost
 * something else here than in limit_messages_per_s(), whose steps alternate packet by packet.
 */
#include "limit.h"

/* STEP(id, "name"), in order: the requester's, the responder's, the requester's with the answer. */
#define LIMIT_STEPS(STEP)                                                                          \
	STEP(REQUEST_ALLOC, "alloc")                                                               \
	STEP(REQUEST_WQE, "wqe")                                                                   \
	STEP(REQUEST_COPY, "copy") /* bulk: with its CRC */                                        \
	STEP(REQUEST_HEADERS, "headers")                                                           \
	STEP(REQUEST_ICRC, "icrc")                                                                 \
	STEP(REQUEST_RING, "enqueue")                                                              \
	STEP(ARRIVAL_RING, "dequeue")                                                              \
	STEP(ARRIVAL_ICRC, "icrc")                                                                 \
	STEP(ARRIVAL_PARSE, "parse")                                                               \
	STEP(ARRIVAL_CHECK, "checks")                                                              \
	STEP(ARRIVAL_STORE, "store") /* bulk: parsed, checked, stored with its CRC */              \
	STEP(ARRIVAL_FREE, "free")                                                                 \
	STEP(ACK_ALLOC, "alloc")                                                                   \
	STEP(ACK_HEADERS, "headers")                                                               \
	STEP(ACK_ICRC, "icrc")                                                                     \
	STEP(ACK_RING, "enqueue")                                                                  \
	STEP(ANSWER_RING, "dequeue")                                                               \
	STEP(ANSWER_ICRC, "icrc")                                                                  \
	STEP(ANSWER_PARSE, "parse")                                                                \
	STEP(ANSWER_COMPLETE, "complete")                                                          \
	STEP(ANSWER_FREE, "free")

enum limit_step {
#define LIMIT_STEP_ID(id, name) LIMIT_##id,
	LIMIT_STEPS(LIMIT_STEP_ID)
#undef LIMIT_STEP_ID
		LIMIT_STEP_COUNT
};

/* TSC cycles of a message (limit_bulk_steps(): of a packet), means of the quickest tenth. */
struct limit_steps {
	double total;		       /* measured without reading the clock between steps */
	double step[LIMIT_STEP_COUNT]; /* without the cost of reading it; 0: not in this model */
};

const char *limit_step_name(enum limit_step step);

/*
 * Run the model for about `ms`, in rounds that read the clock between steps and rounds that do not,
 * in turns. 0; -1: memory is short or a packet came out wrong.
 */
int limit_messages_steps(unsigned int ms, struct limit_steps *out);
int limit_bulk_steps(unsigned int ms, struct limit_steps *out);

#endif
