/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures of a channel: what its consumer takes is in the reader's memory, and nothing else. */
#include <pthread.h>
#include "engine_fixture.h"
#include "host-abi/capture_element.h"
#include "pipeline/stepping.h"
#include "pipeline/trace.h"
#include "send-queue/send_queue.h"

enum { BYTES = CAPTURE_HEAD_BYTES + CAPTURE_QUEUE_BYTES_MIN, ELEMENTS = 5, LENGTH = 8 };

static struct capture_head *begin(enum channel_id channel, uint32_t snap)
{
	struct capture_head *h = aligned_alloc(4096, BYTES);

	assert_non_null(h);
	assert_int_equal(tap_begin(fx->e, 1, channel, h, BYTES, snap), 0);
	return h;
}

static void end(struct capture_head *h)
{
	tap_end(fx->e, 1, h);
	free(h);
}

static void put_elements(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		fx_put(CHANNEL_WP_DP, fx_request(1, USER_RDMA_READ, LENGTH, i * 64));
}

static void assert_shows(struct capture_head *h, uint32_t wqe)
{
	const struct capture_record *r = capture_next(h, 0);
	const struct capture_element *e = (const void *)(r + 1);

	assert_non_null(r);
	assert_int_equal(r->captured, sizeof(*e));
	assert_int_equal(r->original, sizeof(*e));
	assert_int_equal(e->version, CAPTURE_ELEMENT_VERSION);
	assert_int_equal(e->kind, TRACE_REQUEST);
	assert_int_equal(e->layer, CAPTURE_LAYER_NONE);
	assert_int_equal(e->qpn, FX_QPN + 2);
	assert_int_equal(e->wqe, wqe);
	assert_int_equal(e->psn, CAPTURE_ELEMENT_NONE32);
	assert_int_equal(e->length, LENGTH);
	assert_string_equal(e->channel, "wp_dp");
	assert_string_equal(e->producer, "wp");
	assert_string_equal(e->consumer, "dp");
	capture_pass(h, 0, r);
}

static void assert_no_more(struct capture_head *h)
{
	assert_null(capture_next(h, 0));
}

/* What is not taken is not shown; it is when it is taken. Beside a trace, which sees the same. */
TEST(tap__shows_what_is_taken)
{
	struct capture_head *h = begin(CHANNEL_WP_DP, 0);

	assert_int_equal(trace_begin(fx->e, FX_QPN + 2), 0);
	put_elements(ELEMENTS);
	fx_fill(CHANNEL_DP_RTC, 2);
	assert_int_equal(doorbell_wqe_poll(fx->e), 2);
	assert_int_equal(fx_ring_count(CHANNEL_WP_DP), ELEMENTS - 2);
	for (unsigned i = 0; i < 2; i++)
		assert_shows(h, i * 64);
	assert_no_more(h);
	fx_unfill(CHANNEL_DP_RTC);
	doorbell_wqe_poll(fx->e);
	for (unsigned i = 2; i < ELEMENTS; i++)
		assert_shows(h, i * 64);
	assert_no_more(h);
	assert_int_equal(fx->e->channel[CHANNEL_WP_DP].taken, ELEMENTS);
	assert_int_equal(fx->e->stepping->trace->stage[STAGE_DOORBELL_WQE].count, ELEMENTS);
	rte_free(trace_end(fx->e));
	fx_unfill(CHANNEL_DP_RTC);
	end(h);
	assert_int_equal(fx->e->watched, 0);
}

TEST(tap__of_a_module_that_steps)
{
	struct capture_head *h = begin(CHANNEL_WP_DP, 0);

	put_elements(ELEMENTS);
	stepping_set(fx->e, 1u << MODULE_DP);
	doorbell_wqe_poll(fx->e);
	assert_no_more(h);
	stepping_ask(fx->e, MODULE_DP, 1);
	doorbell_wqe_poll(fx->e);
	assert_shows(h, 0);
	assert_no_more(h);
	stepping_set(fx->e, 0);
	doorbell_wqe_poll(fx->e);
	assert_shows(h, 64);
	fx_unfill(CHANNEL_DP_RTC);
	end(h);
}

/* What finds no room is counted, once, and the pipeline goes on. */
TEST(tap__counts_what_is_lost)
{
	struct capture_head *h = begin(CHANNEL_WP_DP, 0);
	const uint64_t record = capture_record_bytes(sizeof(struct capture_element));
	const unsigned room = CAPTURE_QUEUE_BYTES_MIN / record, rounds = room / ELEMENTS + 2;
	const struct capture_record *r;

	for (unsigned i = 0; i < rounds; i++) {
		put_elements(ELEMENTS);
		assert_int_equal(doorbell_wqe_poll(fx->e), ELEMENTS);
		fx_unfill(CHANNEL_DP_RTC);
	}
	assert_int_equal(capture_dropped(h), rounds * ELEMENTS - room);
	for (unsigned i = 0; i < room; i++)
		assert_shows(h, i % ELEMENTS * 64);
	assert_no_more(h);
	put_elements(1);
	doorbell_wqe_poll(fx->e);
	fx_unfill(CHANNEL_DP_RTC);
	r = capture_next(h, 0);
	assert_non_null(r);
	assert_int_equal(r->dropped, rounds * ELEMENTS - room);
	end(h);
}

static bool enough; /* atomic */

/* Takes the memory away and gives it back, as the control thread does between two looks of an lcore. */
static void *end_and_begin(void *memory)
{
	struct tap *t = fx->e->stepping->tap;

	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
		__atomic_store_n(&t->ring, NULL, __ATOMIC_RELEASE);
		__atomic_store_n(&t->ring, memory, __ATOMIC_RELEASE);
	}
	return NULL;
}

TEST(tap__ends_at_any_time)
{
	struct capture_head *h = begin(CHANNEL_WP_DP, 0);
	struct rte_mbuf *m = fx_request(1, USER_RDMA_READ, LENGTH, 0);
	pthread_t other;

	assert_int_equal(pthread_create(&other, NULL, end_and_begin, h), 0);
	for (unsigned i = 0; i < 1000000; i++) {
		tap_offer(fx->e, CHANNEL_WP_DP, &m, 1);
		tap_settle(fx->e, CHANNEL_WP_DP, 1);
	}
	__atomic_store_n(&enough, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(other, NULL), 0);
	rte_pktmbuf_free(m);
	end(h);
}

TEST(tap__is_limited)
{
	struct capture_head *h[TAPS_MAX], *more = aligned_alloc(4096, BYTES);
	const struct capture_record *r;

	assert_int_equal(tap_begin(fx->e, 1, CHANNEL_WP_DP, more, BYTES - 1, 0), -EINVAL);
	for (unsigned i = 0; i < TAPS_MAX; i++)
		h[i] = begin(CHANNEL_WP_DP, 10);
	assert_int_equal(tap_begin(fx->e, 1, CHANNEL_WP_DP, more, BYTES, 0), -EBUSY);
	put_elements(1);
	doorbell_wqe_poll(fx->e);
	fx_unfill(CHANNEL_DP_RTC);
	for (unsigned i = 0; i < TAPS_MAX; i++) {
		r = capture_next(h[i], 0);
		assert_non_null(r);
		assert_int_equal(r->captured, 10);
		assert_int_equal(r->original, sizeof(struct capture_element));
		end(h[i]);
	}
	free(more);
}
