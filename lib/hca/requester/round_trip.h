/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_ROUND_TRIP_H
#define REQUESTER_ROUND_TRIP_H
/*
 * The smoothed round trip of a queue pair (rrc.srtt_ns), which times probes and repetitions, from
 * one measurement at a time (rrc.mark_ns, mark_psn). It includes all waiting; congestion control
 * measures another one (path_delay.h). Stage requester_recv.
 */
#include "context/qp_context.h"
#include "pipeline/engine.h"

/* UPSN has advanced: ends the measurement if it is complete, and begins the next one. */
void round_trip_acked(struct engine *e, struct qp *q);

/* The packet `psn` is sent again: if it is the oldest one, its acknowledgement ends a
 * measurement. */
void round_trip_again(const struct engine *e, struct qp *q, uint32_t psn);

#endif
