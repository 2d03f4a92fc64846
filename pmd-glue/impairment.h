/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_IMPAIRMENT_H
#define PMD_GLUE_IMPAIRMENT_H
/*
 * Seeded faults on the transmit side of one queue. Frames go in by impairment_take() and come out,
 * in the order the wire shall see them, by impairment_due()/impairment_sent(). Knows no clock but
 * the `now` it is given (TSC cycles, never running back). Runs on the lcore of the queue; no locks.
 * Never writes to a frame it was given: a duplicate is a second reference; what is corrupted or
 * marked is a copy.
 *
 * Each frame takes the same number of random numbers whatever its fate, so that one setting does
 * not affect another: a run with loss and delay loses the same frames as one with loss.
 */
#include <stdbool.h>
#include <stdint.h>

#include "pmd-glue/port.h"

enum {
	IMPAIRMENT_QUEUE = 1024, /* frames under delay; power of two */
	IMPAIRMENT_HELD_MAX = 8, /* frames held back for reordering at a time */
	IMPAIRMENT_SPAN_MAX = 4, /* later frames that pass a held one */
	IMPAIRMENT_HOLD_US = 1000,
	IMPAIRMENT_LINK_BYTES = 32768, /* that may wait for the link */
	IMPAIRMENT_GAP_BYTES = 24,     /* of a frame on it besides its bytes: preamble, FCS, gap */
};

struct impairment;
struct rte_mbuf;

/*
 * count: the queue's counters, written here; pool: for copies; hz: cycles per second of `now`.
 * NULL: no memory. The caller frees it with impairment_destroy.
 */
struct impairment *impairment_create(const struct port_impairment *config, unsigned int queue,
				     struct rte_mempool *pool, uint64_t *count, uint64_t hz);

/* Changes everything but the seed, whose random numbers go on. Applies to frames taken from now on;
 * those that wait keep their time. Any one thread, while the lcore uses it. */
void impairment_set(struct impairment *imp, const struct port_impairment *config);

/* Frees it with all frames in it. NULL is allowed. */
void impairment_destroy(struct impairment *imp);

/* Whether any impairment is set. */
bool impairment_wanted(const struct port_impairment *config);

/* May impairment_take() be called: is there room for all frames that one may release, and in the
 * queue of the link of rate_mbps? */
bool impairment_has_room(const struct impairment *imp, uint64_t now);

/* Takes ownership of one reference to m. */
void impairment_take(struct impairment *imp, struct rte_mbuf *m, uint64_t now);

/* Up to n frames that may be sent now, in order; they stay queued until impairment_sent. */
uint16_t impairment_due(struct impairment *imp, uint64_t now, struct rte_mbuf **out, uint16_t n);

/* The wire has taken the first n of those, with their references. */
void impairment_sent(struct impairment *imp, uint16_t n);

/* Nothing queued or held back. */
bool impairment_is_empty(const struct impairment *imp);

/* Nothing is impaired any more, and nothing waits: frames need not go through it. */
bool impairment_passes(const struct impairment *imp);

#endif
