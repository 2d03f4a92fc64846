/* SPDX-License-Identifier: BSD-3-Clause */
/* A daemon with several engines: the queue pairs of one client use them all, each its own for life. */
#include "pair.h"
#include "client_priv.h"
#include "this_cpu.h"

enum { ENGINES = 3 };

static int start_engines(void **state)
{
	int rc;

	fixture_engines = ENGINES;
	rc = start(state);
	fixture_engines = 1;
	return rc;
}

#undef TEST
#define TEST(name) TEST_STATE(name, start_engines, stop, NULL)

static unsigned int engine_of(const struct softhca_qp *qp)
{
	return qp_find(&f.hca->qps, qp->number)->engine;
}

static uint64_t on_engine(unsigned int engine, enum counter which)
{
	return counter_read(&f.hca->engines[engine].stage[STAGE_DOORBELL_WQE].counters, which);
}

/* s: a shared receive queue; r: a queue pair that receives from it; q: one that does not; x: destroys
 * the last one. */
static const struct {
	const char *made, *engines; /* as counted from that of the first */
} rows[] = {
	{"qqqqqqq", "0120120"}, {"srrrr", "00000"},	  {"sqq", "012"},
	{"ssr", "011"},		{"srrqqqqq", "00012121"}, {"qqxqxq", "0111"},
};

struct made {
	struct softhca_pd *pd;
	struct softhca_cq *cq;
	struct softhca_srq *srq[8];
	struct softhca_qp *qp[8];
	unsigned int srqs, qps;
};

/* Its engine. */
static unsigned int make_one(struct made *m, char kind)
{
	struct softhca_srq_init_attr srq = {.max_wr = 4, .max_sge = 1};
	struct softhca_qp_init_attr init = {.send_cq = m->cq,
					    .recv_cq = m->cq,
					    .srq = kind == 'r' ? m->srq[m->srqs - 1] : NULL,
					    .cap = {.max_send_wr = 4, .max_send_sge = 1}};

	if (kind == 's') {
		m->srq[m->srqs] = softhca_create_srq(m->pd, &srq);
		assert_non_null(m->srq[m->srqs]);
		return srq_find(&f.hca->srqs, m->srq[m->srqs++]->number)->engine;
	}
	m->qp[m->qps] = softhca_create_qp(m->pd, &init);
	assert_non_null(m->qp[m->qps]);
	return engine_of(m->qp[m->qps++]);
}

TEST(queue_pairs__of_one_client_spread)
{
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct softhca_context *ctx = softhca_open(f.path, NULL);
		struct made m = {.pd = softhca_alloc_pd(ctx)};
		const char *expected = rows[i].engines;
		unsigned int first = ENGINES;

		m.cq = softhca_create_cq(ctx, 4, NULL, NULL);
		for (const char *kind = rows[i].made; *kind; kind++) {
			unsigned int engine;

			if (*kind == 'x') {
				assert_int_equal(softhca_destroy_qp(m.qp[--m.qps]), 0);
				continue;
			}
			engine = make_one(&m, *kind);
			first = first == ENGINES ? engine : first;
			assert_int_equal((engine + ENGINES - first) % ENGINES, *expected++ - '0');
		}
		while (m.qps)
			assert_int_equal(softhca_destroy_qp(m.qp[--m.qps]), 0);
		assert_int_equal(ctx->engines, 0);
		assert_int_equal(softhca_close(ctx), 0);
	}
}

static struct softhca_send_wr a_write(struct pair *p, struct softhca_sge *sge)
{
	*sge = sge_of(p, 0, 1);
	return (struct softhca_send_wr){.sg_list = sge,
					.num_sge = 1,
					.opcode = SOFTHCA_WR_RDMA_WRITE,
					.send_flags = SOFTHCA_SEND_SIGNALED,
					.wr.rdma = {(uintptr_t)p->memory + 1, p->mr->rkey}};
}

/* Both sides of a connection work, whichever engine a frame arrives at. */
TEST_PAIR(engines__each_serves_its_queue_pairs, SOFTHCA_QP_RC)
{
	struct softhca_sge sge;
	struct softhca_send_wr wr = a_write(p, &sge);
	struct softhca_wc wc;

	assert_int_not_equal(engine_of(p->qp[0]), engine_of(p->qp[1]));
	assert_int_equal(p->ctx->engines, 1u << engine_of(p->qp[0]) | 1u << engine_of(p->qp[1]));
	for (uint8_t round = 1; round < 200; round++) {
		struct softhca_qp *qp = p->qp[round & 1];
		uint64_t before = on_engine(engine_of(qp), COUNTER_doorbells);

		p->memory[0] = round;
		assert_int_equal(softhca_post_send(qp, &wr, NULL), 0);
		wait_for(p, 1, &wc);
		assert_int_equal(wc.status, SOFTHCA_WC_SUCCESS);
		assert_int_equal(p->memory[1], round);
		assert_int_equal(on_engine(engine_of(qp), COUNTER_doorbells), before + 1);
	}
}

/* A doorbell in another engine's page is refused there; the queue pair goes on. */
TEST_PAIR(doorbell__elsewhere_is_refused, SOFTHCA_QP_RC)
{
	struct softhca_sge sge;
	struct softhca_send_wr wr = a_write(p, &sge);
	struct doorbell_fifo *own = p->qp[0]->fifo;
	unsigned int other = engine_of(p->qp[1]);
	struct softhca_wc wc;

	p->memory[0] = 7;
	p->qp[0]->fifo = p->qp[1]->fifo;
	assert_int_equal(softhca_post_send(p->qp[0], &wr, NULL), 0);
	p->qp[0]->fifo = own;
	for (double end = seconds() + 5; !on_engine(other, COUNTER_drop_doorbell_qpn);)
		assert_true(seconds() < end);
	assert_int_equal(softhca_poll_cq(p->cq, 1, &wc), 0);
	assert_int_equal(p->memory[1], 0);
	put(p, &wr, &wc);
	assert_int_equal(p->memory[1], 7);
	assert_int_equal(fixture_counter(&f, COUNTER_drop_doorbell_qpn), 1);
}

/* Polling on the CPU of an engine with one of the queue pairs yields, and the engine's page says so
 * until a completion comes. */
TEST_PAIR(poll__leaves_each_engine_its_cpu, SOFTHCA_QP_RC)
{
	struct softhca_sge sge;
	struct softhca_send_wr wr = a_write(p, &sge);
	struct softhca_wc wc;
	cpu_set_t all = stay_on_this_cpu();

	for (unsigned int i = 0; i < ENGINES; i++) {
		struct uar_page *uar = &p->ctx->page->uar[i];
		bool used = p->ctx->engines >> i & 1;

		uar->daemon_cpu = (uint32_t)sched_getcpu() + 1;
		assert_int_equal(softhca_poll_cq(p->cq, 1, &wc), 0);
		assert_int_equal(uar->client_yields, used);
		uar->daemon_cpu++;
		put(p, &wr, &wc);
		assert_int_equal(uar->client_yields, 0);
	}
	sched_setaffinity(0, sizeof(all), &all);
}

/* A doorbell that finds its FIFO full waits for room in that one only. */
TEST_PAIR(doorbell__waits_for_room_in_its_own_page, SOFTHCA_QP_RC)
{
	struct doorbell_fifo *f0 = p->qp[0]->fifo;
	struct softhca_sge sge;
	struct softhca_send_wr wr = a_write(p, &sge);
	struct softhca_wc wc;

	f0->produced += UAR_DOORBELLS; /* it looks full */
	assert_int_equal(softhca_post_send(p->qp[0], &wr, NULL), 0);
	assert_int_equal(p->ctx->unrung, 1);
	assert_int_equal(softhca_post_send(p->qp[1], &wr, NULL), 0);
	wait_for(p, 1, &wc);
	assert_int_equal(wc.qp_num, p->qp[1]->number);
	assert_int_equal(p->ctx->unrung, 1);
	f0->produced -= UAR_DOORBELLS;
	wait_for(p, 1, &wc);
	assert_int_equal(wc.qp_num, p->qp[0]->number);
	assert_int_equal(p->ctx->unrung, 0);
}
