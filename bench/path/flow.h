/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PATH_FLOW_H
#define PATH_FLOW_H
/*
 * Messages of one kind and size in one direction over all queue pairs of a session: the requester's
 * half ("source") and the other one ("sink"), either of which may be in the other process. What bw,
 * lat, demo and dead_peer are made of.
 *
 * Message m of a QP uses slot m % slots of its areas. There is one slot, or with `verify` or --span
 * as many as fit.
 */
#include <stdbool.h>
#include <stdint.h>
#include "session.h"

enum { POST_LIST_MAX = 256, POLL_BURST = 32, FLOW_SLOTS_MAX = 1024 };
#define GOAL_OPEN UINT64_MAX

struct flow_qp {
	struct end *source, *sink;  /* NULL: in the other process */
	uint64_t goal;		    /* messages to send, ever; GOAL_OPEN: until changed */
	uint64_t posted, completed; /* source */
	uint64_t received;	    /* sink: receive completions */
	uint64_t checked;	    /* messages below this were checked */
	bool ready;		    /* listed in flow.ready */
};

struct flow {
	struct session *s;
	struct side *source, *sink; /* NULL: in the other process */
	const struct kind_info *kind;
	unsigned direction; /* 0: from the client (side 0), 1: to it */
	uint32_t size;
	size_t stride;
	uint32_t slots;
	uint32_t list;	 /* requests of one post call */
	uint32_t cq_mod; /* messages per completion */
	bool verify;
	uint32_t qps;
	struct flow_qp *q;
	uint32_t *ready; /* ring of `qps` places: numbers of queue pairs that may have room */
	uint32_t first_ready, readies;
	uint64_t draws; /* random choices so far */
	struct softhca_send_wr wr[POST_LIST_MAX];
	struct softhca_sge sge[POST_LIST_MAX];
};

/* 0 or -1. flow_close() is due in both cases. */
int flow_open(struct flow *f, struct session *s, unsigned direction, enum kind kind, uint32_t size,
	      bool verify);
void flow_close(struct flow *f);

/* Posts n (<= list) messages of one QP; there is room for them. 0 or -1. */
int flow_post(struct flow *f, uint32_t qp, uint32_t n);

/* Posts what has room, polls what is done. The number of requests posted and completed, or -1. */
int flow_step_source(struct flow *f);
int flow_poll_source(struct flow *f);
/* Takes receive completions and posts new receive requests. The number taken, or -1. */
int flow_step_sink(struct flow *f);
/* Posts receive requests up to the depth and the goal. 0 or -1. */
int flow_post_receives(struct flow *f);

bool flow_source_done(const struct flow *f);
/* Whether all has arrived as far as the sink can see it. */
bool flow_sink_done(const struct flow *f);
/* Messages that the source posted, over all QPs; and that the sink received. */
uint64_t flow_posted(const struct flow *f);
uint64_t flow_received(const struct flow *f);

/* Raises all goals by n messages, or opens them: GOAL_OPEN. */
void flow_extend(struct flow *f, uint64_t n);
/* An open goal becomes what is posted, up to the next completion. */
void flow_finish(struct flow *f);

/* Verified flows: writes the data of the messages between `posted` and the goal; checks those since
 * the last check. flow_check: 0, or -1 with the place on stderr. Each acts for the halves in this
 * process. */
void flow_fill(struct flow *f);
int flow_check(struct flow *f);

#endif
