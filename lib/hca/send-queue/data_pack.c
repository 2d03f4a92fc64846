/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DataPack (seed 000 2.4.5): makes one gapless byte stream of a request's data units. In hardware
 * it moves the bytes into a FIFO ahead of RequesterTransControl; here it sets up a cursor and
 * starts the prefetches, and dp_copy() moves each segment's bytes when RequesterTransControl has
 * judged that they may be sent: so a queue pair that has to wait holds a descriptor and not a
 * megabyte, and each byte is copied once. Stage doorbell_wqe; dp_copy() runs on segmentation.
 */
#include "send_queue_priv.h"

static inline const struct wqe_data *entry_of(struct rte_mbuf *m, unsigned i)
{
	return (const struct wqe_data *)(request_wqe(m) + request_of(m)->data_first) + i;
}

/* Will the request send bytes from the memory of its gather entries? */
static bool is_gathered(const struct request *r)
{
	return r->outcome == OUTCOME_OK && r->opcode < USER_RDMA_READ &&
	       !(r->flags & REQUEST_INLINE) && r->length;
}

unsigned dp_poll(struct engine *e)
{
	struct channel *in = &e->channel[CHANNEL_WP_DP], *out = &e->channel[CHANNEL_DP_RTC];
	unsigned room = RTE_MIN(channel_room(out), 2u * BURST);
	struct rte_mbuf *m[2 * BURST];
	unsigned n = channel_take(in, m, room);

	for (unsigned i = 0; i < n; i++)
		if (is_gathered(request_of(m[i])))
			v2p_prefetch(e->v2p, entry_of(m[i], 0)->lkey);
	if (n)
		channel_put(out, m, n);
	return n;
}

static inline void copy_piece(uint8_t *dst, const uint8_t *src, uint32_t bytes, uint32_t *crc)
{
	if (crc)
		*crc = wire_crc_copy(*crc, dst, src, bytes);
	else
		rte_memcpy(dst, src, bytes);
}

/* VirtToPhys did not say where the bytes are. */
static enum wire_outcome refused(struct engine *e, enum v2p_state s)
{
	if (s == V2P_PENDING)
		return DP_PENDING;
	v2p_count_error(stage_counters(e, STAGE_SEGMENTATION), s);
	return OUTCOME_LOCAL_PROT;
}

/* A segment that does not lie in one piece, or that VirtToPhys has more to say about. */
static __rte_noinline enum wire_outcome copy_pieces(struct engine *e, const struct qp *q,
						    struct rte_mbuf *m, uint8_t *dst,
						    uint32_t bytes, uint32_t *crc)
{
	struct request *r = request_of(m);
	uint32_t used = r->entry_bytes;
	uint8_t entry = r->entry;

	while (bytes) {
		const struct wqe_data *d = entry_of(m, entry);
		uint32_t piece = RTE_MIN(bytes, d->length - used);
		enum v2p_state s;
		uint8_t *src;
		uint64_t run;

		s = v2p_request(e->v2p_port[STAGE_SEGMENTATION], V2P_WP_DATA, q->pd, 0, d->lkey,
				d->addr + used, piece, V2P_LOCAL_READ, &src, &run);
		if (unlikely(s != V2P_SUCCESS))
			return refused(e, s);
		piece = RTE_MIN(piece, (uint32_t)run);
		copy_piece(dst, src, piece, crc);
		dst += piece;
		bytes -= piece;
		used += piece;
		if (used < d->length)
			continue;
		entry++;
		used = 0;
	}
	r->entry = entry;
	r->entry_bytes = used;
	return OUTCOME_OK;
}

/* Most segments are one piece of one entry. */
static inline enum wire_outcome copy_entries(struct engine *e, const struct qp *q,
					     struct rte_mbuf *m, uint8_t *dst, uint32_t bytes,
					     uint32_t *crc)
{
	struct request *r = request_of(m);
	const struct wqe_data *d = entry_of(m, r->entry);
	uint8_t *src;

	if (unlikely(bytes > d->length - r->entry_bytes ||
		     !v2p_map_short(e->v2p_port[STAGE_SEGMENTATION], V2P_WP_DATA, q->pd, d->lkey,
				    d->addr + r->entry_bytes, bytes, V2P_LOCAL_READ, &src)))
		return copy_pieces(e, q, m, dst, bytes, crc);
	copy_piece(dst, src, bytes, crc);
	r->entry_bytes += bytes;
	if (r->entry_bytes == d->length) {
		r->entry++;
		r->entry_bytes = 0;
	}
	return OUTCOME_OK;
}

static void copy_inline(struct rte_mbuf *m, uint8_t *dst, uint32_t bytes, uint32_t *crc)
{
	const struct request *r = request_of(m);

	copy_piece(dst, request_wqe(m) + r->data_first + r->sent_bytes, bytes, crc);
}

enum wire_outcome dp_copy(struct engine *e, const struct qp *q, struct rte_mbuf *m, uint8_t *dst,
			  uint32_t bytes, uint32_t *crc)
{
	struct request *r = request_of(m);
	enum wire_outcome outcome = OUTCOME_OK;

	if (crc)
		*crc = 0;
	if (r->flags & REQUEST_INLINE)
		copy_inline(m, dst, bytes, crc);
	else if (bytes)
		outcome = copy_entries(e, q, m, dst, bytes, crc);
	if (likely(outcome != DP_PENDING))
		r->sent_bytes += bytes;
	return outcome;
}
