/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_RRC_WORK_H
#define REQUESTER_RRC_WORK_H
/*
 * What the files of RequesterRecvControl share: its states, and the work that passes through them.
 * The table of transitions is requester_recv_control.def. Stage requester_recv.
 *
 *   requester_recv_control.c  the loop over the states; RESP_CXT, SILENT_DROP, BAD_REQ
 *   rrc_acks.c                acknowledgements, NAKs, what counts as a try
 *   rrc_reads.c               responses to READs and atomics
 *   rrc_early.c               responses that came ahead of missing ones
 *   rrc_release.c             what leaves MultiQueue: acknowledged or flushed
 *   rrc_timers.c              expired timers, wakes
 *   retransmission.c          go-back-N, selective repeat
 *   round_trip.c              the smoothed round trip
 */
#include "context/early.h"
#include "context/path_class.h"
#include "context/qp_context.h"
#include "context/qp_list.h"
#include "multi_queue.h"
#include "pipeline/engine.h"
#include "pipeline/message.h"
#include "wire/error.h"
#include "wire/opcode.h"

enum rrc_state {
#define STATE(id, text) RRC_##id,
#include "requester_recv_control.def"
};

/* The module's own state. */
struct rrc {
	/* Responses to retry at the next poll, in order; the first may have been split off the
	 * train behind it. */
	struct rte_mbuf *held[BURST + 1];
	unsigned holds;
	struct qp_list retransmit; /* queue pairs that retransmit */
	struct qp_list lossy;	   /* those with rrc_watch() */
	struct qp_list filled;	   /* those whose next response had come early */
	struct early *early;
	uint32_t relinked;	     /* last value of engine.relinked that was handled */
	uint32_t walked;	     /* contexts checked since then */
	uint32_t newest[SPREAD_MAX]; /* retransmission.c */
};

/* One response, expired timer, bad request or failed queue pair on its way through the states. */
struct rrc_work {
	struct engine *e;
	struct counters *c;
	struct qp *q;
	struct rte_mbuf *m;	   /* the response, the caller's; NULL: it is something else */
	const struct arrival *a;   /* its metadata */
	enum wire_outcome outcome; /* of the NAK; in FLUSH: of the oldest request, the others are
				      flushed */
	bool relinked;		   /* PROBE: the port failed over, or its link came back */
	bool kept;		   /* the response is in rrc.early, which owns it */
	bool again; /* VirtToPhys has a request pending: the response is retried, and continues
		       where its bytes stopped (rrc.scattered) */
	/* The states READ_*: */
	struct rd_element *rd; /* the READ or atomic at the head, which the response is for */
	const uint8_t *data;   /* of the response, `bytes` of them */
	uint32_t bytes;
	uint32_t piece;		 /* of them written in READ_SCATTER */
	struct re_element entry; /* what is left of the scatter entry */
};

/* Takes w through the states, from `state` until IDLE. requester_recv_control.c */
void rrc_run(struct rrc_work *w, enum rrc_state state);

/* Takes one response, which stays the caller's. False: it must be retried before any other of its
 * queue pair. requester_recv_control.c */
bool rrc_take_one(struct engine *e, struct rte_mbuf *m);

/* Completes the bad requests whose turn has come. requester_recv_control.c */
void rrc_bad_requests(struct engine *e, struct qp *q);

enum { PROBES_OF_EQUALS = 4 }; /* selective probes, at doubling intervals */

/* Is the peer one of ours that has agreed to selective repeat? */
static inline bool rrc_is_equal(const struct qp *q)
{
	return q->agreed & AGREED_REPEAT;
}

static inline struct counters *rrc_counters(struct engine *e)
{
	return stage_counters(e, STAGE_REQUESTER_RECV);
}

/* The response changes nothing (more). Returns the next state. */
static inline enum rrc_state rrc_drop(struct rrc_work *w, enum counter why)
{
	count(w->c, why);
	return RRC_SILENT_DROP;
}

/* The QP fails; its oldest request completes as `outcome`. Returns the next state. */
static inline enum rrc_state rrc_fail(struct rrc_work *w, enum wire_outcome outcome)
{
	qp_set_error(w->e, w->q);
	w->outcome = outcome;
	return RRC_FLUSH;
}

#endif
