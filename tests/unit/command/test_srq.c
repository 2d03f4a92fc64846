/* SPDX-License-Identifier: BSD-3-Clause */
/* The CEU's commands on shared receive queues: what they write, what they refuse, the limit. */
#include "command_fixture.h"

enum { SRQN = 0x456703 };

static struct command_fixture f;
static struct client_page *page;
static unsigned int given_back; /* times that ExecutionEngine found a QP in ERR and flushed it */

static void flush(struct qp *q, enum wake_target t)
{
	if (t != WAKE_EE || qp_state(q) != QP_ERR)
		return;
	assert_int_equal(q->leaving, 1);
	q->ee.flushed = EE_FLUSHED;
	given_back++;
}

static int setup(void **state)
{
	command_fixture_new(&f);
	given_back = 0;
	f.woken = flush;
	command_fixture_make(&f);
	page = zeroed(sizeof(*page));
	eq_write(&f.completion, 3, page, -1);
	return 0;
}

static int teardown(void **state)
{
	command_fixture_free(&f);
	free(page);
	return 0;
}

static struct ceu_srq good(void)
{
	return (struct ceu_srq){.pd = 0x88,
				.client = 3,
				.entries = 4,
				.stride = 64,
				.ring = f.rq,
				.record = &f.srq_record};
}

static enum ceu_status make(uint32_t srqn, const struct ceu_srq *in)
{
	return TELL(CEU_SW2HW_SRQ, srqn, *in);
}

static enum ceu_status take_away(uint32_t srqn)
{
	return DO(CEU_HW2SW_SRQ, srqn);
}

static enum ceu_status arm(uint32_t srqn, uint32_t limit)
{
	struct ceu_srq_limit in = {.limit = limit};

	return TELL(CEU_ARM_SRQ, srqn, in);
}

static struct control_srq_attr query(void)
{
	struct control_srq_attr out;

	assert_int_equal(ASK(CEU_QUERY_SRQ, SRQN, out), CEU_OK);
	return out;
}

#undef TEST
#define TEST(name) TEST_WITH(name, setup, teardown)

TEST(srq__context_and_query)
{
	struct ceu_srq in = good();
	struct srq *s;

	assert_int_equal(make(SRQN, &in), CEU_OK);
	s = srq_find(&f.srqs, SRQN);
	assert_non_null(s);
	assert_int_equal(s->pd, 0x88);
	assert_int_equal(s->client, 3);
	assert_int_equal(s->entries, 4);
	assert_int_equal(s->stride, 64);
	assert_ptr_equal(s->ring, f.rq);
	assert_ptr_equal(s->completion, &f.completion);
	f.srq_record.posted = 3;
	s->consumed = 1;
	s->state = SRQ_ERROR;
	assert_int_equal(query().entries, 4);
	assert_int_equal(query().available, 2);
	assert_int_equal(query().error, 1);
	f.srq_record.posted = 77; /* not to be believed */
	assert_int_equal(query().available, 4);
	assert_int_equal(make(SRQN ^ 0x100, &in), CEU_BAD_SYS_STATE);
	assert_int_equal(take_away(SRQN ^ 0x100), CEU_BAD_PARAM);
	assert_int_equal(take_away(SRQN), CEU_OK);
	assert_true(f.quiesced > 0);
	assert_null(srq_find(&f.srqs, SRQN));
	assert_int_equal(take_away(SRQN), CEU_BAD_PARAM);
	assert_int_equal(make(SRQN ^ 0x100, &in), CEU_OK);
	assert_int_equal(srq_find(&f.srqs, SRQN ^ 0x100)->consumed, 0);
	assert_int_equal(srq_find(&f.srqs, SRQN ^ 0x100)->state, SRQ_READY);
}

TEST(srq__refused_parameters)
{
	struct ceu_srq in;

#define REFUSED(field, value)                                                                      \
	do {                                                                                       \
		in = good();                                                                       \
		in.field = value;                                                                  \
		assert_int_equal(make(SRQN, &in), CEU_BAD_PARAM);                                  \
	} while (0)
	REFUSED(client, CLIENTS_MAX);
	REFUSED(engine, 1);
	REFUSED(entries, 0);
	REFUSED(entries, 3);
	REFUSED(stride, 32);
	REFUSED(stride, 56);
	REFUSED(stride, 528);
	REFUSED(ring, NULL);
	REFUSED(record, NULL);
	in = good();
	assert_int_equal(make(0, &in), CEU_BAD_PARAM);
	assert_int_equal(make(1u << 24, &in), CEU_BAD_PARAM);
	assert_int_equal(arm(SRQN, 1), CEU_BAD_PARAM);
}

TEST(srq__stays_while_queue_pairs_use_it)
{
	struct ceu_qp qp = command_qp(&f, SERVICE_RC);
	struct ceu_srq in = good();
	struct srq *s;
	struct qp *q;

	assert_int_equal(make(SRQN, &in), CEU_OK);
	s = srq_find(&f.srqs, SRQN);
	qp.srqn = SRQN; /* and a receive queue */
#define MAKE_QP() TELL(CEU_SW2HW_QP, QPN, qp)
	assert_int_equal(MAKE_QP(), CEU_BAD_PARAM);
	qp.rq = NULL;
	qp.rq_entries = 0;
	qp.srqn = SRQN ^ 0x100;
	assert_int_equal(MAKE_QP(), CEU_BAD_PARAM);
	qp.srqn = SRQN;
	qp.client = 4; /* another's */
	assert_int_equal(MAKE_QP(), CEU_BAD_PARAM);
	qp.client = 3;
	s->engine = 7;
	assert_int_equal(MAKE_QP(), CEU_BAD_PARAM);
	s->engine = 0;
	assert_int_equal(s->users, 0);
	assert_int_equal(MAKE_QP(), CEU_OK);
	q = qp_find(&f.qps, QPN);
	assert_ptr_equal(q->srq, s);
	assert_int_equal(q->rq_stride, 64);
	assert_int_equal(q->rq_pd, 0x88);
	assert_int_equal(q->pd, 0x77);
	assert_int_equal(take_away(SRQN), CEU_BAD_SYS_STATE);
	assert_int_equal(DO(CEU_2RST, QPN), CEU_OK);
	assert_int_equal(take_away(SRQN), CEU_BAD_SYS_STATE);
	assert_ptr_equal(q->srq, s);
	command_free_qp(&f, QPN);
	assert_int_equal(take_away(SRQN), CEU_OK);
	qp.srqn = 0;
	assert_int_equal(MAKE_QP(), CEU_OK);
	assert_null(q->srq);
	assert_int_equal(q->rq_pd, 0x77);
	command_free_qp(&f, QPN);
}

/* A QP returns its SRQ's descriptor before it is destroyed. */
TEST(srq__gets_back_what_a_queue_pair_holds)
{
	struct ceu_qp qp = command_qp(&f, SERVICE_RC);
	struct ceu_srq in = good();
	struct qp *q;

	assert_int_equal(make(SRQN, &in), CEU_OK);
	qp.rq = NULL;
	qp.rq_entries = 0;
	qp.srqn = SRQN;
	assert_int_equal(MAKE_QP(), CEU_OK);
	q = qp_find(&f.qps, QPN);
	q->state = QP_INIT; /* never received */
	assert_int_equal(DO(CEU_2RST, QPN), CEU_OK);
	assert_int_equal(given_back, 0);
	q->state = QP_RTS;
	assert_int_equal(DO(CEU_2RST, QPN), CEU_OK);
	assert_int_equal(given_back, 1);
	assert_int_equal(q->leaving, 0);
	assert_int_equal(q->state, QP_RST);
	q->state = QP_RTR;
	command_free_qp(&f, QPN);
	assert_int_equal(given_back, 2);
}

TEST(batch__srq_goes_with_its_queue_pairs)
{
	struct ceu_qp qp = command_qp(&f, SERVICE_UD);
	struct ceu_srq in = good();

	assert_int_equal(make(SRQN, &in), CEU_OK);
	qp.rq = NULL;
	qp.rq_entries = 0;
	qp.srqn = SRQN;
	assert_int_equal(MAKE_QP(), CEU_OK);
	ceu_batch_begin(f.ceu);
	command_free_qp(&f, QPN);
	assert_int_equal(take_away(SRQN), CEU_OK);
	assert_int_equal(f.quiesced, 0);
	ceu_batch_end(f.ceu);
	assert_true(f.quiesced > 0);
}

TEST(arm__raises_the_event_at_once_if_below)
{
	struct ceu_srq in = good();

	assert_int_equal(make(SRQN, &in), CEU_OK);
	assert_int_equal(arm(SRQN, 5), CEU_BAD_PARAM);
	f.srq_record.posted = 2;
	assert_int_equal(arm(SRQN, 2), CEU_OK); /* not below */
	assert_int_equal(page->eq[0].owner, 0);
	assert_int_equal(query().limit, 2);
	assert_int_equal(f.quiesced, 1);
	assert_int_equal(arm(SRQN, 0), CEU_OK);
	assert_int_equal(query().limit, 0);
	assert_int_equal(arm(SRQN, 3), CEU_OK);
	assert_int_equal(query().limit, 0);
	assert_int_equal(page->eq[0].owner, 1);
	assert_int_equal(page->eq[0].type, EQE_SRQ_LIMIT);
	assert_int_equal(page->eq[0].number, SRQN);
	assert_int_equal(page->eq[1].owner, 0);
	assert_int_equal(counter_read(&f.counters, COUNTER_srq_limits), 1);
}
