/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFORMANCE_TRAFFIC_H
#define CONFORMANCE_TRAFFIC_H
/*
 * Operations between the two HCAs of a simulation, and their proof: each completes exactly once, in
 * order, with its data right, nothing beside its buffers touched, each receive likewise; at the end
 * nothing is left over. A flow is the operations of one node on one QP. RC only. Any error fails
 * the test with the label given to traffic_begin(), which must say how to reproduce it.
 */
#include "test.h"
#include "sim.h"

enum {
	TRAFFIC_OPS = 8,	   /* of a flow */
	TRAFFIC_SLOT = 16384,	   /* memory of an operation, on each side */
	TRAFFIC_BYTES_MAX = 12000, /* of a message */
	TRAFFIC_PIECE_MAX = 4000,  /* of one scatter-gather entry, when there are several */
	TRAFFIC_INLINE_MAX = 60,
	TRAFFIC_MEMORY = 2 * SIM_QPS * TRAFFIC_OPS * TRAFFIC_SLOT + 4096,
};

struct traffic_op {
	/* The caller may change these before traffic_run(): */
	uint8_t opcode; /* enum user_opcode */
	bool fence, unsignaled, is_inline;
	uint32_t bytes;	      /* atomics: 8 */
	unsigned pieces;      /* entries of the local list, 1..4 */
	unsigned recv_pieces; /* of the receive, 1..2 */
	uint64_t post_ns;     /* when it is posted, and its receive; in the order of the operations,
				 whatever they say; 0: at once */
	uint64_t recv_ns;
	/* These are the module's: */
	uint64_t seed, expected;
	uint32_t wqe, recv_wqe, imm;
	struct sim_sge local[4], recv[2];
	uint64_t remote;
};

struct traffic_flow {
	struct traffic_op op[TRAFFIC_OPS];
	unsigned ops, posted, done, recv_posted, received;
	bool failed;	 /* an error has completed: the rest is flushed */
	uint64_t atomic; /* expected value of the peer's word */
};

struct traffic {
	struct sim *s;
	struct traffic_flow flow[2][SIM_QPS]; /* by node, QP */
	char label[128];
	unsigned lost_max; /* if more frames than this were lost, an operation may fail */
};

/* Nothing to do yet. The simulation's memory: at least TRAFFIC_MEMORY. */
void traffic_begin(struct traffic *t, struct sim *s, const char *label, ...)
	__attribute__((format(printf, 3, 4)));
/* One more operation of that flow; at most TRAFFIC_OPS. */
struct traffic_op *traffic_add(struct traffic *t, int node, unsigned qp, uint8_t opcode,
			       uint32_t bytes);
/* Runs all of them and proves them. True: all succeeded; false: more than lost_max frames were lost
 * and one flow or more failed in the proper way. */
bool traffic_run(struct traffic *t);

#endif
