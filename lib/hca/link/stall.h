/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LINK_STALL_H
#define LINK_STALL_H
/* How long a port or a channel takes nothing. */
#include <stdbool.h>
#include <stdint.h>
#include <rte_common.h>

/* How long something has been stalled. */
struct stall {
	uint64_t ns, tried_ns; /* duration; last try, 0: not stalled */
};

/* Stalled at this try, too: has it lasted more than limit_ns? No try counts for more than a quarter
 * of that, as we may have been preempted. */
static inline bool stall_exceeds(struct stall *s, uint64_t now_ns, uint64_t limit_ns)
{
	uint64_t passed = s->tried_ns ? now_ns - s->tried_ns : 0;

	s->ns += RTE_MIN(passed, limit_ns / 4);
	s->tried_ns = now_ns;
	return s->ns > limit_ns;
}

static inline void stall_ends(struct stall *s)
{
	*s = (struct stall){0};
}

#endif
