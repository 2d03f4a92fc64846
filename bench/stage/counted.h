/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_COUNTED_H
#define STAGE_COUNTED_H
/* A workload in identical rounds of `messages` messages. */
#include "rig.h"
#include "workload.h"

enum counted_icrc { COUNTED_ALWAYS, COUNTED_NEVER, COUNTED_BOTH };

/* What the rig's client costs, between two readings of the TSC each. */
struct counted_client {
	uint64_t post_cycles, poll_cycles;
	uint64_t readings; /* pairs of them */
};

/* A round: posts and completes `messages` on a virtual clock. client: NULL, or adds to it. 0 or -1. */
int counted_round(struct rig *r, const struct workload *w, unsigned messages,
		  struct counted_client *client);

/* EAL is up. Runs `rounds` rounds of `messages` messages, a multiple of WORKLOAD_POST; prints
 * cycles per message. COUNTED_BOTH: rounds with and without ICRC in turns, `rounds` of each. 0; 1:
 * something failed. */
int counted_main(const struct workload *w, unsigned messages, unsigned rounds,
		 enum counted_icrc icrc, enum congestion_control cc);

#endif
