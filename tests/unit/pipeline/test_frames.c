/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine_fixture.h"
#include "pipeline/frames.h"
#include "pipeline/train.h"

/* Not inlined: with n known, gcc 12 complains about branches of DPDK's memcpy that n excludes. */
static __attribute__((noinline)) void give_back(struct rte_mbuf **m, unsigned n)
{
	frames_free(fx->e, m, n);
}

/* Frames of the engine's pool and of another one, held by nobody else, by somebody else, and by
 * a clone: each loses one reference, and is in its pool when that was the last. */
static void takes_one_reference(bool frames_are_ours)
{
	struct rte_mempool *own = fx->packets, *other = fx->descriptors;
	unsigned own_count = rte_mempool_avail_count(own);
	unsigned other_count = rte_mempool_avail_count(other);
	struct rte_mbuf *last = rte_pktmbuf_alloc(own), *kept = rte_pktmbuf_alloc(own);
	struct rte_mbuf *foreign = rte_pktmbuf_alloc(other), *clone = rte_pktmbuf_alloc(other);
	struct rte_mbuf *cloned = rte_pktmbuf_alloc(own), *m[] = {kept, last, clone, foreign};

	fx->e->frames_are_ours = frames_are_ours;
	rte_mbuf_refcnt_set(kept, 2);
	rte_pktmbuf_attach(clone, cloned);
	give_back(m, RTE_DIM(m));
	assert_int_equal(rte_mbuf_refcnt_read(kept), 1);
	assert_int_equal(rte_mbuf_refcnt_read(cloned), 1);
	assert_int_equal(rte_mempool_avail_count(own), own_count - 2);
	assert_int_equal(rte_mempool_avail_count(other), other_count);
	m[0] = kept;
	m[1] = cloned;
	give_back(m, 2);
	assert_int_equal(rte_mempool_avail_count(own), own_count);
}

TEST(frames_free__takes_one_reference)
{
	takes_one_reference(false);
	takes_one_reference(true);
}

TEST(train_write_packet__of_no_valid_frame)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(fx->packets);
	uint8_t frame[64];
	uint32_t skip;

	memset(rte_pktmbuf_append(m, sizeof(frame)), 0, sizeof(frame));
	m->ol_flags |= FRAME_TRAIN;
	m->pkt_len = 2 * m->data_len;
	assert_false(train_write_packet(frame, m, 1, &skip));
	rte_pktmbuf_free(m);
}
