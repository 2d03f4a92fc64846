/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue pair fails while RequesterTransControl is in the middle of a visit to it: every order of
 * that visit and of RequesterRecvControl's flush, and each request completes all the same, and no
 * reference to its payload is believed afterwards. Two lcores by one thread: either stands still
 * before an atomic operation while the other one continues.
 */
#include <ucontext.h>

static void atomic_operation(void);

#define __atomic_load_n(...)	 (atomic_operation(), __atomic_load_n(__VA_ARGS__))
#define __atomic_store_n(...)	 (atomic_operation(), __atomic_store_n(__VA_ARGS__))
#define __atomic_thread_fence(x) (atomic_operation(), __atomic_thread_fence(x))
#define __atomic_compare_exchange_n(...)                                                           \
	(atomic_operation(), __atomic_compare_exchange_n(__VA_ARGS__))
#include "requester_trans_control.c"
#include "segmentation.c"
#include "local_operation.c"
#include "requester_recv_control.c"
#include "rrc_acks.c"
#include "rrc_release.c"
#include "rrc_timers.c"
#undef __atomic_load_n
#undef __atomic_store_n
#undef __atomic_thread_fence
#undef __atomic_compare_exchange_n
#include "requester_fixture.h"
#include "virt-to-phys/payload_ref.h"

/* The visit does `turn[0]` operations, the flush `turn[1]`, the visit `turn[2]`; then the flush
 * ends, then the visit. Who ends sooner leaves the rest to the other one. */
enum { TURNS = 3, STACK_BYTES = 256 * 1024, WINDOW = 0x4404 };

static ucontext_t visit_lcore, flush_lcore;
static unsigned turn[TURNS], turns;
static bool flushes, flush_ended;
static unsigned references; /* to payload, in all orders */

static void hand_over(void)
{
	flushes = !flushes;
	if (flushes)
		swapcontext(&visit_lcore, &flush_lcore);
	else
		swapcontext(&flush_lcore, &visit_lcore);
}

static void atomic_operation(void)
{
	if (flush_ended || turns == TURNS || turn[turns]-- > 0)
		return;
	turns++;
	hand_over();
}

static void fail_and_flush(void)
{
	qp_set_error(fx->e, fx->qp[0]);
	rrc_poll(fx->e);
	flush_ended = true;
	flushes = false;
}

/* Returns how many of the turns were over before their lcore had ended. */
static unsigned run(unsigned first, unsigned second, unsigned third)
{
	static uint8_t stack[STACK_BYTES] __attribute__((aligned(64)));
	unsigned taken;

	turn[0] = first;
	turn[1] = second;
	turn[2] = third;
	turns = 0;
	flushes = flush_ended = false;
	getcontext(&flush_lcore);
	flush_lcore.uc_stack.ss_sp = stack;
	flush_lcore.uc_stack.ss_size = sizeof(stack);
	flush_lcore.uc_link = &visit_lcore;
	makecontext(&flush_lcore, fail_and_flush, 0);
	rtc_poll(fx->e);
	taken = turns;
	turns = TURNS;
	if (!flush_ended)
		hand_over();
	return taken;
}

/* As it was before anything was sent. */
static void begin_anew(void)
{
	struct qp *q = fx->qp[0];

	fx_unfill(CHANNEL_RTC_RPG);
	fx_unfill(CHANNEL_RTC_TC);
	q->state = QP_RTS;
	q->rtc.flushing = q->rrc.flushed = 0;
	q->rtc.next_psn = q->rrc.unacked_psn = FX_PSN;
	q->rtc.ssn = 1;
	q->rrc.reads_done = q->rtc.reads_issued;
}

struct sent {
	uint8_t opcode;
	uint32_t length;
	uint8_t flags; /* of the request, besides REQUEST_SIGNALED */
	enum wire_outcome outcome;
};

static void put(const struct sent *what, unsigned n)
{
	const struct wqe_bind bind = {
		.key = WINDOW}; /* to nothing: that can be done again and again */

	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = fx_request(0, what[i].opcode, what[i].length, 64 * i);

		request_of(m)->flags |= what[i].flags;
		request_of(m)->outcome = what[i].outcome;
		if (what[i].opcode == USER_BIND_MW)
			memcpy(request_wqe(m) + request_of(m)->data_first, &bind, sizeof(bind));
		fx_put(CHANNEL_DP_RTC, m);
	}
}

/* All requests have completed: their client may write to the payload of those packets again.
 * Returns how many refer to it. */
static unsigned references_sent(void)
{
	unsigned n = 0;
	struct rte_mbuf *m;

	while ((m = fx_take(CHANNEL_RTC_RPG))) {
		if (packet_of(m)->flags & PACKET_REF) {
			assert_false(payload_ref_held((uint8_t *)m->buf_addr + HEADROOM_BYTES));
			n++;
		}
		rte_pktmbuf_free(m);
	}
	return n;
}

/* One order of events. Returns what run() does. */
static unsigned order(const struct sent *what, unsigned n, const unsigned at[TURNS])
{
	struct qp *q = fx->qp[0];
	bool flushed = false, late = false;
	unsigned taken, done = 0;
	const struct cqe *c;

	begin_anew();
	put(what, n);
	taken = run(at[0], at[1], at[2]);
	for (unsigned i = 0; i < 2; i++) { /* the modules woken, and those they wake */
		rtc_poll(fx->e);
		rrc_poll(fx->e);
	}
	while ((c = fx_cqe())) {
		flushed = flushed || c->opcode == USER_INVALID;
		late = late || (flushed && c->opcode != USER_INVALID);
		done++;
	}
	if (done != n || late)
		print_error("after %u, %u, %u operations:\n", at[0], at[1], at[2]);
	assert_int_equal(done, n);
	assert_false(late); /* none succeeds behind one that was flushed */
	assert_int_equal(mq_count(&q->mq.sw) + mq_count(&q->mq.rd) + mq_count(&q->mq.re), 0);
	assert_null(q->rrc.bad_head);
	references += references_sent();
	return taken;
}

static void each_order(const struct sent *what, unsigned n)
{
	unsigned at[TURNS], taken, orders = 0;

	at[0] = 0;
	do {
		at[1] = 0;
		do {
			at[2] = 0;
			do {
				taken = order(what, n, at);
				orders++;
			} while (at[2]++, taken == 3);
		} while (at[1]++, taken == 2);
	} while (at[0]++, taken == 1);
	assert_true(orders > 1000);
}

/* A case: what is on its way while the queue pair fails. */
#define FLUSHED_MEANWHILE(name, ...)                                                               \
	TEST(end_visit__flushed_meanwhile_##name)                                                  \
	{                                                                                          \
		static const struct sent what[] = {__VA_ARGS__};                                   \
                                                                                                   \
		each_order(what, RTE_DIM(what));                                                   \
	}

FLUSHED_MEANWHILE(a_packet, {.opcode = USER_SEND, .length = 16})
FLUSHED_MEANWHILE(the_end_of_a_message, {.opcode = USER_RDMA_WRITE, .length = 2 * FX_MTU})
FLUSHED_MEANWHILE(a_read, {.opcode = USER_RDMA_READ, .length = 16})
FLUSHED_MEANWHILE(a_local_operation, {.opcode = USER_LOCAL_INV, .flags = REQUEST_LOCAL})
FLUSHED_MEANWHILE(a_bad_request_behind_a_packet, {.opcode = USER_SEND, .length = 16},
		  {.opcode = USER_SEND, .length = 16, .outcome = OUTCOME_LOCAL_QP_OP})

TEST(end_visit__flushed_meanwhile_references_to_payload)
{
	static const struct sent what[] = {{.opcode = USER_SEND, .length = FX_MTU},
					   {.opcode = USER_RDMA_WRITE, .length = 2 * FX_MTU}};

	fx->e->settings.payload_refs = true;
	each_order(what, RTE_DIM(what));
	assert_true(references > 1000);
}

TEST(end_visit__flushed_meanwhile_a_local_operation_behind_a_packet)
{
	static const struct sent what[] = {{.opcode = USER_SEND, .length = 16},
					   {.opcode = USER_BIND_MW, .flags = REQUEST_LOCAL}};
	const struct mpt_entry window = {.key = WINDOW, .pd = FX_PD, .flags = MPT_WINDOW_1};

	assert_int_equal(v2p_write_mpt(&fx->h->v2p, &window), 0);
	each_order(what, RTE_DIM(what));
}
