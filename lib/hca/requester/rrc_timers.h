/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_RRC_TIMERS_H
#define REQUESTER_RRC_TIMERS_H
/* RequesterRecvControl: expired timers and wakes. Stage requester_recv. */
#include "rrc_work.h"

/* Takes up to a burst of expiries. Returns how many. */
unsigned rrc_take_expiries(struct engine *e);

/* The queue pair has something outstanding: schedules its first probe as early as is useful. */
void rrc_watch(struct engine *e, struct qp *q);

/* Sends probes that are due sooner than TimerControl can tell; checks a few queue pairs. 0: none
 * needs to be checked, so the lcore may sleep. */
unsigned rrc_look_at_lossy(struct engine *e);

/*
 * After the port failed over or its link came back (link_port.h): every queue pair with something
 * outstanding repeats one packet, which does not count as a try. Checks some contexts in each poll,
 * so that thousands neither delay the others nor send in one burst. 0: all are checked.
 */
unsigned rrc_look_at_link(struct engine *e);

/* Is that finished, and has nothing happened to the port since? */
static inline bool rrc_link_is_old(const struct engine *e)
{
	return __atomic_load_n(&e->relinked, __ATOMIC_RELAXED) == e->rrc->relinked &&
	       e->rrc->walked >= e->qps->count;
}

/* Takes all wakes: QPs that go away, have failed, have new settings or executed a local
 * operation. */
void rrc_take_wakes(struct engine *e);

/* The steps; each returns the next state. */
enum rrc_state rrc_step_timer_retrans(struct rrc_work *w);
enum rrc_state rrc_step_probe(struct rrc_work *w);
enum rrc_state rrc_step_rnr_retrans(struct rrc_work *w);

#endif
