/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_RRC_READS_H
#define REQUESTER_RRC_READS_H
/* RequesterRecvControl: responses to READs and atomics. Stage requester_recv. */
#include "rrc_work.h"

/* The steps; each returns the next state. */
enum rrc_state rrc_step_read_implicit_release(struct rrc_work *w);
enum rrc_state rrc_step_read_fetch_entry(struct rrc_work *w);
enum rrc_state rrc_step_read_scatter(struct rrc_work *w);
enum rrc_state rrc_step_read_update_entry(struct rrc_work *w);
enum rrc_state rrc_step_read_release_entry(struct rrc_work *w);
enum rrc_state rrc_step_read_flush(struct rrc_work *w);

/* Is the response the whole answer to a READ or atomic? */
static inline bool rrc_is_whole(const struct arrival *a)
{
	return a->headers.opcode == WIRE_RC_READ_RESP_ONLY ||
	       a->headers.opcode == WIRE_RC_ATOMIC_ACK;
}

/*
 * Takes the run at the start of n responses: whole answers for one queue pair and of one kind, each
 * the next one due, with its bytes going to one place and nothing special about it or the queue
 * pair. Writes what they change once for all of them. Returns how many; 0: nothing has happened,
 * and the first one must pass through the states. The responses stay the caller's; the first one
 * must be whole.
 */
unsigned rrc_take_run(struct engine *e, struct counters *c, struct rte_mbuf *const *m, unsigned n);

/* Takes a middle response to a READ, or a train of them, if it is the next one due, with its bytes
 * going to one place, and nothing special about it or the queue pair; m stays the caller's. Checks
 * ICRCs while it copies. False: m must pass through the states; of a train it may be the rest. */
bool rrc_take_middle(struct engine *e, struct counters *c, struct rte_mbuf *m);

/* Takes a train of responses to READs or atomics; m stays the caller's. False: it is not regular to
 * its end; m has the rest, whose first packet the caller splits off. */
bool rrc_take_train(struct engine *e, struct counters *c, struct rte_mbuf *m);

#endif
