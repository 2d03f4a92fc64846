/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRACE_MESSAGE_H
#define TRACE_MESSAGE_H
/* One message among the steps of a trace: its WQE, packets, answers and completion. */
#include "host-abi/trace_record.h"

struct step {
	struct trace_record r;
	unsigned place, order; /* where and as it was read: below STAGE_COUNT at the requester */
};

/*
 * Of `count` steps, in the order of their times, keeps those of the requester's n-th message (from
 * 1), counted from the first doorbell in the order of its send queue. Returns how many remain; 0:
 * there is no such message.
 */
unsigned trace_message(struct step *step, unsigned count, unsigned n);

#endif
