/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DataPack (seed 000 2.4.5): makes one gapless byte stream of a request's data units. In hardware
 * it moves the bytes into a FIFO ahead of RequesterTransControl; here it sets up a cursor and
 * starts the prefetches, and dp_copy() moves each segment's bytes when RequesterTransControl has
 * judged that they may be sent: so a queue pair that has to wait holds a descriptor and not a
 * megabyte, and each byte is copied once. Stage doorbell_wqe; dp_copy() runs on segmentation.
 *
 * state	condition				next
 * IDLE		a request				META_FWD
 * META_FWD	bad request				FLUSH_DATA
 * META_FWD	READ, atomic				ENTRY
 * META_FWD	inline					INLINE_DATA
 * META_FWD	length 0				IDLE
 * META_FWD	else					SGL_DATA_TRANS
 * SGL_DATA_TRANS the entry has bytes			IDLE
 * SGL_DATA_TRANS the entry is empty (a bubble)		SGL_DATA_NEXT
 * SGL_DATA_NEXT -					SGL_DATA_TRANS
 * ENTRY, INLINE_DATA, FLUSH_DATA			IDLE
 */
#include "send_queue_priv.h"

enum dp_state {
	DP_IDLE,
	DP_META_FWD,
	DP_ENTRY,
	DP_INLINE_DATA,
	DP_SGL_DATA_TRANS,
	DP_SGL_DATA_NEXT,
	DP_FLUSH_DATA
};

static inline const struct wqe_data *entry_of(struct rte_mbuf *m, unsigned i)
{
	return (const struct wqe_data *)(request_wqe(m) + request_of(m)->data_first) + i;
}

static enum dp_state meta_fwd(const struct request *r)
{
	if (unlikely(r->outcome != OUTCOME_OK))
		return DP_FLUSH_DATA;
	if (r->opcode >= USER_RDMA_READ)
		return DP_ENTRY;
	if (r->flags & REQUEST_INLINE)
		return DP_INLINE_DATA;
	return r->length ? DP_SGL_DATA_TRANS : DP_IDLE;
}

/* Skips a bubble: an entry without bytes. There is one with bytes: the message's length is not 0.
 */
static enum dp_state sgl_data_trans(struct engine *e, struct rte_mbuf *m)
{
	const struct wqe_data *d = entry_of(m, request_of(m)->entry);

	if (unlikely(d->length == 0))
		return DP_SGL_DATA_NEXT;
	v2p_prefetch(e->v2p, d->lkey);
	return DP_IDLE;
}

static void pack(struct engine *e, struct rte_mbuf *m)
{
	struct request *r = request_of(m);
	enum dp_state state = DP_META_FWD;

	while (state != DP_IDLE) {
		switch (state) {
		case DP_META_FWD:
			state = meta_fwd(r);
			break;
		case DP_SGL_DATA_TRANS:
			state = sgl_data_trans(e, m);
			break;
		case DP_SGL_DATA_NEXT:
			r->entry++;
			state = DP_SGL_DATA_TRANS;
			break;
		case DP_FLUSH_DATA: /* nothing was fetched yet */
		case DP_ENTRY:
		case DP_INLINE_DATA:
		case DP_IDLE:
			state = DP_IDLE;
			break;
		}
	}
}

unsigned dp_poll(struct engine *e)
{
	struct channel *in = &e->channel[CHANNEL_WP_DP], *out = &e->channel[CHANNEL_DP_RTC];
	unsigned room = RTE_MIN(channel_room(out), 2u * BURST);
	struct rte_mbuf *m[2 * BURST];
	unsigned n = room ? channel_take(in, m, room) : 0;

	for (unsigned i = 0; i < n; i++)
		pack(e, m[i]);
	if (n)
		channel_put(out, m, n);
	return n;
}

static inline uint32_t copy_piece(uint8_t *dst, const uint8_t *src, uint32_t bytes, uint32_t *crc)
{
	if (crc)
		*crc = wire_crc_copy(*crc, dst, src, bytes);
	else
		rte_memcpy(dst, src, bytes);
	return bytes;
}

static enum wire_outcome copy_entries(struct engine *e, const struct qp *q, struct rte_mbuf *m,
	uint8_t *dst, uint32_t bytes, uint32_t *crc)
{
	struct request *r = request_of(m);

	while (bytes) {
		const struct wqe_data *d = entry_of(m, r->entry);
		uint32_t piece = RTE_MIN(bytes, d->length - r->entry_bytes);
		enum v2p_state s;
		uint8_t *src;
		uint64_t run;

		s = v2p_map(e->v2p, q->pd, d->lkey, d->addr + r->entry_bytes, piece, V2P_LOCAL_READ,
			&src, &run);
		if (unlikely(s != V2P_SUCCESS)) {
			v2p_count_error(stage_counters(e, STAGE_SEGMENTATION), s);
			return OUTCOME_LOCAL_PROT;
		}
		copy_piece(dst, src, RTE_MIN(piece, (uint32_t)run), crc);
		piece = RTE_MIN(piece, (uint32_t)run);
		dst += piece;
		bytes -= piece;
		r->entry_bytes += piece;
		if (r->entry_bytes == d->length) {
			r->entry++;
			r->entry_bytes = 0;
		}
	}
	return OUTCOME_OK;
}

enum wire_outcome dp_copy(struct engine *e, const struct qp *q, struct rte_mbuf *m, uint8_t *dst,
	uint32_t bytes, uint32_t *crc)
{
	struct request *r = request_of(m);
	enum wire_outcome outcome = OUTCOME_OK;

	if (crc)
		*crc = 0;
	if (r->flags & REQUEST_INLINE)
		copy_piece(dst, request_wqe(m) + r->data_first + r->sent_bytes, bytes, crc);
	else if (bytes)
		outcome = copy_entries(e, q, m, dst, bytes, crc);
	r->sent_bytes += bytes;
	return outcome;
}
