/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interleaved repetitions of the same WRITE run, without and with one more queue pair that is full
 * of requests to a number which does not exist at the peer. The ratio of the medians counts, so
 * that the machine's changes of speed do not; if it does not show the cost to be small enough,
 * more repetitions are added, so that a bad moment of the machine does not count either.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include "../sort.h"
#include "softhca/softhca.h"
#include "bw.h"
#include "dead_peer.h"

enum { REPETITIONS = 15, ROUNDS_MAX = 5, DEAD_REQUESTS = 64, DEAD_BYTES = 65536 };
#define REPETITION_NS 250000000ull
#define COST_MAX      0.05

struct dead {
	struct softhca_cq *cq;
	struct softhca_qp *qp;
};

static int post_to_nobody(struct session *s, struct dead *d)
{
	struct end *e = &s->side[0].ends[0];
	struct softhca_sge sge = {.addr = (uintptr_t)e->out,
				  .length = s->area_bytes < DEAD_BYTES ? (uint32_t)s->area_bytes
								       : DEAD_BYTES,
				  .lkey = s->side[0].mr->lkey};
	struct softhca_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = SOFTHCA_WR_RDMA_WRITE,
		.send_flags = SOFTHCA_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = e->remote.addr, .rkey = e->remote.rkey}};

	for (unsigned i = 0; i < DEAD_REQUESTS; i++)
		if (session_post_send(d->qp, &wr))
			return -1;
	return 0;
}

static int make_dead(struct session *s, struct dead *d)
{
	struct side *side = &s->side[0];
	struct softhca_qp_init_attr init = {.send_cq = d->cq,
					    .recv_cq = d->cq,
					    .cap = {.max_send_wr = DEAD_REQUESTS,
						    .max_recv_wr = 1,
						    .max_send_sge = 1,
						    .max_recv_sge = 1},
					    .type = SOFTHCA_QP_RC};
	struct softhca_endpoint local, remote = side->ends[0].remote.qp;
	struct softhca_connect_attr attr;
	int error;

	d->qp = softhca_create_qp(side->pd, &init);
	if (!d->qp)
		return session_fail("create QP", errno);
	session_connect_attr(s, side, &attr);
	remote.qpn ^= 0x800000; /* the index of a QP that exists, with the number of none */
	error = softhca_local_endpoint(d->qp, s->o->gid_index, &local);
	if (!error)
		error = softhca_connect_qp(d->qp, &local, &remote, &attr);
	return error ? session_fail("connect to the dead peer", error) : post_to_nobody(s, d);
}

static int repetition(struct session *s, struct dead *d, bool with_dead, double *gbps)
{
	struct bw_params p = {.kind = KIND_WRITE, .size = s->o->size, .duration_ns = REPETITION_NS};
	struct bw_result result;
	int error = with_dead ? make_dead(s, d) : 0;

	if (!error)
		error = bw_run(s, &p, &result);
	if (d->qp)
		softhca_destroy_qp(d->qp);
	d->qp = NULL;
	*gbps = error ? 0 : bw_gbps(&result);
	return error;
}

struct samples {
	double without[ROUNDS_MAX * REPETITIONS], with[ROUNDS_MAX * REPETITIONS];
	unsigned int n;
};

/* Is the cost below the limit, by what has been measured so far? */
static bool judge(struct samples *m)
{
	double a, b, cost;

	sort_doubles(m->without, m->n);
	sort_doubles(m->with, m->n);
	a = m->without[m->n / 2];
	b = m->with[m->n / 2];
	cost = 1 - b / a;
	printf("without dead peer %.2f Gbit/s, with %.2f Gbit/s (medians of %u): ratio %.3f, "
	       "slowdown %.1f %% (limit %.0f %%)\n",
	       a, b, m->n, b / a, 100 * cost, 100 * COST_MAX);
	return cost < COST_MAX;
}

static int measure(struct session *s, struct dead *d, struct samples *m)
{
	int error = 0;

	for (unsigned int i = 0; i < REPETITIONS && !error; i++) {
		error = repetition(s, d, false, &m->without[m->n]);
		if (!error)
			error = repetition(s, d, true, &m->with[m->n]);
		m->n++;
	}
	return error;
}

int dead_peer_main(const struct options *o)
{
	struct samples m = {.n = 0};
	struct dead d = {0};
	struct session s;
	bool small = false;
	int error = session_open(&s, o, bw_area_bytes(o, o->size, false));

	if (!error) {
		d.cq = softhca_create_cq(s.side[0].ctx, 2 * DEAD_REQUESTS, NULL, NULL);
		error = d.cq ? 0 : session_fail("create CQ", errno);
	}
	for (unsigned int i = 0; i < ROUNDS_MAX && !error && !small; i++) {
		error = measure(&s, &d, &m);
		small = !error && judge(&m);
	}
	session_close(&s);
	return error ? -1 : !small;
}
