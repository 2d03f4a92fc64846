/* SPDX-License-Identifier: BSD-3-Clause */
/* dp_copy() makes one gapless stream of the data units of a request, segment by segment. */
#include "../send-queue/send_queue_fixture.h"
#include "dp_copy.h"
#include "virt-to-phys/payload_ref.h"

/* A SEND of these lengths, each entry in separate memory with gaps between; the whole message is
 * the pattern `seed`. */
static struct rte_mbuf *gather(const uint32_t *lengths, unsigned n, uint8_t seed, uint32_t *total)
{
	struct wqe w = wqe_begin(0, 0, WQE_SIGNALED);
	uint32_t at = 0;
	struct rte_mbuf *m;

	*total = 0;
	for (unsigned i = 0; i < n; i++) {
		wqe_add_data(&w, FX_KEY, FX_VA + at, lengths[i]);
		for (uint32_t k = 0; k < lengths[i]; k++)
			fx->memory[at + k] = fx_pattern(seed, *total + k);
		*total += lengths[i];
		at += lengths[i] + 5;
	}
	fx_put(CHANNEL_WS_WP, fetched(0, USER_SEND, 0, w.bytes));
	wp_poll(fx->e);
	dp_poll(fx->e);
	m = fx_take(CHANNEL_DP_RTC);
	assert_non_null(m);
	assert_int_equal(request_of(m)->outcome, OUTCOME_OK);
	assert_int_equal(request_of(m)->length, *total);
	return m;
}

static void copy_in_pieces(struct rte_mbuf *m, uint32_t total, uint32_t mtu, uint8_t seed, bool crc)
{
	uint8_t *dst = malloc(total + 64);
	uint32_t at = 0;

	memset(dst, 0xee, total + 64);
	while (at < total) {
		uint32_t piece = RTE_MIN(mtu, total - at), sum = 0x1234;

		assert_int_equal(dp_copy(fx->e, fx->qp[0], m, dst + at, piece, crc ? &sum : NULL),
				 DP_COPIED);
		if (crc)
			assert_true(sum == wire_crc(0, dst + at, piece));
		at += piece;
		assert_int_equal(request_of(m)->sent_bytes, at);
		assert_int_equal(dst[at], 0xee);
	}
	fx_assert_pattern(dst, total, seed);
	free(dst);
}

static void gathered(const uint32_t *lengths, unsigned n)
{
	static const uint32_t mtus[] = {1, 7, 256, 1024, 4096};

	for (unsigned i = 0; i < RTE_DIM(mtus); i++)
		for (unsigned crc = 0; crc < 2; crc++) {
			uint32_t total;
			struct rte_mbuf *m = gather(lengths, n, (uint8_t)(i + 9), &total);

			copy_in_pieces(m, total, mtus[i], (uint8_t)(i + 9), crc);
			rte_mbuf_raw_free(m);
		}
}

#define GATHERED(...)                                                                              \
	do {                                                                                       \
		static const uint32_t lengths[] = {__VA_ARGS__};                                   \
		gathered(lengths, RTE_DIM(lengths));                                               \
	} while (0)

TEST(dp_copy__gathers)
{
	GATHERED(1);
	GATHERED(1024);
	GATHERED(100, 200, 300);
	GATHERED(1023, 1, 1024, 1025, 1);
	GATHERED(4096, 4097, 3);
}

TEST(dp_copy__entries_without_bytes)
{
	GATHERED(0, 10);
	GATHERED(0, 0, 0, 1, 0);
	GATHERED(256, 0, 256, 0, 0, 256, 0);
	GATHERED(1024, 0, 1024);
	GATHERED(3, 0, 0, 4, 0);
	GATHERED(0, 10, 0, 20, 30, 0);
}

TEST(dp_copy__thirty_entries)
{
	uint32_t lengths[SGE_MAX];

	for (unsigned i = 0; i < SGE_MAX; i++)
		lengths[i] = i * 37 % 400;
	gathered(lengths, SGE_MAX);
}

/* A SEND of 700 bytes in its descriptor, the pattern 42. */
static struct rte_mbuf *sent_inline(void)
{
	struct wqe w = wqe_begin(0, 0, 0);

	wqe_add_inline(&w, 700, 700, 42);
	fx_put(CHANNEL_WS_WP, fetched(0, USER_SEND, 0, w.bytes));
	wp_poll(fx->e);
	dp_poll(fx->e);
	return fx_take(CHANNEL_DP_RTC);
}

TEST(dp_copy__inline)
{
	struct rte_mbuf *m = sent_inline();

	copy_in_pieces(m, 700, 256, 42, true);
	rte_mbuf_raw_free(m);
}

/* Data in the descriptor is never referred to, even if it looks like an entry. */
TEST(dp_refer__inline)
{
	const struct wqe_data entry = {.length = 700, .lkey = FX_KEY, .addr = FX_VA};
	uint8_t dst[sizeof(struct payload_ref)];
	struct rte_mbuf *m = sent_inline();

	request_of(m)->data_first =
		RTE_ALIGN_CEIL(request_of(m)->data_first, sizeof(entry)); /* as entries are */
	memcpy(request_wqe(m) + request_of(m)->data_first, &entry, sizeof(entry));
	assert_false(dp_refer(fx->e, fx->qp[0], m, dst, 700, 1, NULL));
	request_of(m)->flags &= (uint8_t)~REQUEST_INLINE;
	assert_true(dp_refer(fx->e, fx->qp[0], m, dst, 700, 1, NULL));
	rte_mbuf_raw_free(m);
}

TEST(dp_copy__key_revoked_in_between)
{
	static const uint32_t lengths[] = {1000, 1000};
	uint8_t dst[1024];
	uint32_t total;
	struct rte_mbuf *m = gather(lengths, 2, 1, &total);

	assert_int_equal(dp_copy(fx->e, fx->qp[0], m, dst, 1024, NULL), DP_COPIED);
	assert_int_equal(v2p_invalidate_mpt(fx->e->v2p, FX_KEY), 0);
	assert_int_equal(dp_copy(fx->e, fx->qp[0], m, dst, 976, NULL), DP_REFUSED);
	fx_assert_counter(v2p_key_error, 1);
	rte_mbuf_raw_free(m);
}

/* Another lcore holds what is needed: the segment is copied later, as a whole. */
TEST(dp_copy__waits_for_virt_to_phys)
{
	static const uint32_t lengths[] = {100, 100};
	struct v2p *v = fx->e->v2p;
	struct tpt_hold hold;
	uint8_t dst[256];
	uint32_t total;
	struct rte_mbuf *m = gather(lengths, 2, 1, &total);

	assert_int_equal(dp_copy(fx->e, fx->qp[0], m, dst, 50, NULL), DP_COPIED);
	assert_true(tpt_take(&v->mpt_cache, v2p_index(v, FX_KEY), NULL, &hold));
	assert_int_equal(dp_copy(fx->e, fx->qp[0], m, dst, 150, NULL), DP_PENDING);
	assert_int_equal(v2p_poll(fx->e->v2p_port[STAGE_SEGMENTATION]), 0);
	assert_int_equal(dp_copy(fx->e, fx->qp[0], m, dst, 150, NULL), DP_PENDING);
	tpt_release(&hold);
	assert_int_equal(request_of(m)->sent_bytes, 50);
	assert_int_equal(v2p_poll(fx->e->v2p_port[STAGE_SEGMENTATION]), 1);
	assert_int_equal(dp_copy(fx->e, fx->qp[0], m, dst, 150, NULL), DP_COPIED);
	assert_int_equal(request_of(m)->sent_bytes, 200);
	rte_mbuf_raw_free(m);
}

TEST(dp_copy__entry_outside_of_its_memory)
{
	struct wqe w = wqe_begin(0, 0, 0);
	uint8_t dst[64];
	struct rte_mbuf *m;

	/* One packet: not looked at before it is copied */
	wqe_add_data(&w, FX_KEY, FX_VA + FX_MEMORY_BYTES - 10, 11);
	fx_put(CHANNEL_WS_WP, fetched(0, USER_SEND, 0, w.bytes));
	wp_poll(fx->e);
	dp_poll(fx->e);
	m = fx_take(CHANNEL_DP_RTC);
	assert_int_equal(request_of(m)->outcome, OUTCOME_OK);
	assert_int_equal(dp_copy(fx->e, fx->qp[0], m, dst, 11, NULL), DP_REFUSED);
	fx_assert_counter(v2p_length_error, 1);
	rte_mbuf_raw_free(m);
}

TEST(dp_copy__no_bytes)
{
	struct rte_mbuf *m = fx_request(0, USER_SEND, 0, 0);
	uint32_t crc = 7;

	assert_int_equal(dp_copy(fx->e, fx->qp[0], m, NULL, 0, &crc), DP_COPIED);
	assert_int_equal(crc, 0);
	rte_mbuf_raw_free(m);
}
