/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PATH_SESSION_H
#define PATH_SESSION_H
/*
 * What a test runs on: one side (the other is another process, across TCP) or both sides of a set
 * of connected queue pairs, with their memory.
 *
 * Each QP has two areas of area_bytes: "out", what it sends and what the peer reads; and "in",
 * where the peer's data land and where its own READs put theirs. So both directions can run at
 * once without meeting. With --span and one direction, of which either end needs one area only,
 * the two are the same.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "exchange.h"
#include "options.h"

enum { UD_GRH_BYTES = 40, SLOT_ALIGN = 64 };

/* One queue pair of one side. */
struct end {
	struct softhca_qp *qp;
	struct softhca_ah *ah; /* UD */
	struct endpoint local, remote;
	uint8_t *out, *in;
	uint64_t rq_posted, rq_done; /* receive requests, in all flows of this QP */
};

struct side {
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_mr *mr;
	uint8_t *memory;
	struct softhca_channel *channel; /* --events */
	struct softhca_cq *send_cq, *recv_cq;
	struct softhca_srq *srq; /* --srq */
	struct end *ends;
	const char *name;
};

struct session {
	const struct options *o;
	struct side side[2];
	unsigned sides; /* 2 in pair mode; else side[0] is ours */
	bool client;	/* ours is the client's: it measures and prints */
	int socket;	/* of the exchange; -1 in pair mode */
	size_t area_bytes;
	size_t in_offset; /* from an end's "out" to its "in": area_bytes or 0 */
	uint32_t qkey;
	uint64_t seed; /* of the data, the same on both sides */
};

/* Bytes from one message's slot to the next one's. */
size_t session_stride(const struct options *o, uint32_t size);

/*
 * Opens everything for o->qps queue pairs of o->service and connects them. 0, or -1 with the reason
 * on stderr; session_close() is due in both cases.
 */
int session_open(struct session *s, const struct options *o, size_t area_bytes);
void session_close(struct session *s);

/* Makes one more QP on a side, in RST, with the session's capacities; NULL: said on stderr. */
struct softhca_qp *session_make_qp(struct session *s, struct side *side);
/* Fills *a with the connection's choices from the options. */
void session_connect_attr(const struct session *s, struct side *side,
			  struct softhca_connect_attr *a);

/*
 * Posts a chain; while the daemon takes no doorbells, gives it the CPU and tries again with the
 * rest. 0, or -1: said on stderr.
 */
int session_post_send(struct softhca_qp *qp, struct softhca_send_wr *first);

/* Prints "softhca-perf: what: error" with -errno or errno and returns -1. */
int session_fail(const char *what, int error);

/* Arms all CQs of the session for one event each (--events). */
void session_arm(struct session *s);
/* Sleeps until an event came, or some time passed, and takes all events. */
void session_sleep(struct session *s);

/* Monotonic time. */
uint64_t now_ns(void);

#endif
