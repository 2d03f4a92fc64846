/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_TIMER_CONTROL_H
#define REQUESTER_TIMER_CONTROL_H
/*
 * TimerControl (doc/modules.md#timercontrol): the Loss and the RNR timer of each queue pair.
 * RTC_TC, RRC_TC → TC_RRC. Stage requester_recv, except timer_set().
 */
#include <stdbool.h>
#include "context/qp_context.h"
#include "pipeline/engine.h"
#include "pipeline/message.h"

int tc_create(struct engine *e); /* 0 or -ENOMEM */
void tc_destroy(struct engine *e);

/* One poll: turns the wheels as far as time has passed. Returns the commands taken and timers
 * due. */
unsigned tc_poll(struct engine *e);

/*
 * Commands TimerControl to set a timer of the QP, to expire in value_ns from now; if it runs
 * already, it starts again. False: the channel `to` is full (there are always more events than
 * places in the channels). Stage segmentation into RTC_TC, stage requester_recv into RRC_TC.
 */
bool timer_set(struct engine *e, enum channel_id to, const struct qp *q, enum timer_kind timer,
	       uint64_t value_ns);

/* The time that timers go by: all answers that had arrived by then have been taken. Stage
 * requester_recv. */
uint64_t tc_clock_ns(const struct engine *e);

/* Takes the QP's timers off the wheels: the QP goes away. */
void tc_stop(struct engine *e, struct qp *q);

/* The QP's timer settings have changed: stops the RNR timer, and has the Loss timer check at the
 * next tick whether it has to run, and for how long. */
void tc_restart(struct engine *e, struct qp *q);

/* The QP has something outstanding and was probed without an expiry: the next probe counts from
 * now, and the Loss timer finds out at the next tick when that is. Stage requester_recv. */
void tc_probed(struct engine *e, struct qp *q);

/* Ticks until a Loss timer first checks whether a round trip has been measured. */
#define FIRST_LOOK_TICKS 16

#endif
