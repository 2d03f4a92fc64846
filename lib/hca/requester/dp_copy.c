/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dp_copy(), dp_refer(): DataPack's work on one segment (doc/modules.md#datapack), done when
 * RequesterTransControl has judged that the segment may be sent. Reads the client's memory through
 * VirtToPhys; writes the packet and the request's cursor. Stage segmentation.
 */
#include "base/copy_bytes.h"
#include "dp_copy.h"
#include "pipeline/train.h"
#include "send-queue/send_queue.h"
#include "virt-to-phys/payload_ref.h"
#include "wire/crc.h"

static inline void copy_piece(uint8_t *dst, const uint8_t *src, uint32_t bytes, uint32_t *crc)
{
	if (crc)
		*crc = wire_crc_copy(*crc, dst, src, bytes);
	else
		copy_bytes(dst, src, bytes);
}

/* VirtToPhys did not say where the bytes are. */
static enum dp_answer refused(struct engine *e, enum v2p_state s)
{
	if (s == V2P_PENDING)
		return DP_PENDING;
	v2p_count_error(stage_counters(e, STAGE_SEGMENTATION), s);
	return DP_REFUSED;
}

/* A segment that is not in one piece, or that v2p_map_short() could not map. */
static __rte_noinline enum dp_answer copy_pieces(struct engine *e, const struct qp *q,
						 struct rte_mbuf *m, uint8_t *dst, uint32_t bytes,
						 uint32_t *crc)
{
	struct request *r = request_of(m);
	uint32_t used = r->entry_bytes;
	uint8_t entry = r->entry;

	while (bytes) {
		const struct wqe_data *d = request_entries(m) + entry;
		uint32_t piece = RTE_MIN(bytes, d->length - used);
		enum v2p_state s;
		uint8_t *src;
		uint64_t run;

		s = v2p_request(e->v2p_port[STAGE_SEGMENTATION], V2P_WP_DATA,
				&(struct v2p_access){.pd = q->pd,
						     .key = d->lkey,
						     .va = d->addr + used,
						     .length = piece,
						     .rights = V2P_LOCAL_READ},
				&src, &run);
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
	return DP_COPIED;
}

/* Moves the cursor on within an entry, or to the next one. */
static inline void used_of_entry(struct request *r, const struct wqe_data *d, uint32_t bytes)
{
	r->entry_bytes += bytes;
	if (r->entry_bytes == d->length) {
		r->entry++;
		r->entry_bytes = 0;
	}
}

/* Most segments are one piece of one entry. */
static inline enum dp_answer copy_entries(struct engine *e, const struct qp *q, struct rte_mbuf *m,
					  uint8_t *dst, uint32_t bytes, uint32_t *crc)
{
	struct request *r = request_of(m);
	const struct wqe_data *d = request_entries(m) + r->entry;
	uint8_t *src;

	if (unlikely(bytes > d->length - r->entry_bytes ||
		     !v2p_map_short(e->v2p_port[STAGE_SEGMENTATION], V2P_WP_DATA,
				    &(struct v2p_access){.pd = q->pd,
							 .key = d->lkey,
							 .va = d->addr + r->entry_bytes,
							 .length = bytes,
							 .rights = V2P_LOCAL_READ},
				    &src)))
		return copy_pieces(e, q, m, dst, bytes, crc);
	copy_piece(dst, src, bytes, crc);
	used_of_entry(r, d, bytes);
	return DP_COPIED;
}

static void copy_inline(struct rte_mbuf *m, uint8_t *dst, uint32_t bytes, uint32_t *crc)
{
	const struct request *r = request_of(m);

	copy_piece(dst, request_wqe(m) + r->data_first + r->sent_bytes, bytes, crc);
}

enum dp_answer dp_copy(struct engine *e, const struct qp *q, struct rte_mbuf *m, uint8_t *dst,
		       uint32_t bytes, uint32_t *crc)
{
	struct request *r = request_of(m);
	enum dp_answer answer = DP_COPIED;

	if (crc)
		*crc = 0;
	if (r->flags & REQUEST_INLINE)
		copy_inline(m, dst, bytes, crc);
	else if (bytes)
		answer = copy_entries(e, q, m, dst, bytes, crc);
	if (likely(answer == DP_COPIED))
		r->sent_bytes += bytes;
	return answer;
}

_Static_assert(sizeof(struct payload_ref) <= TRAIN_ICRCS_AT &&
		       TRAIN_REFERRED_BYTES <= PAYLOAD_REF_BYTES_MIN,
	       "ICRCs and CRCs are behind the reference, within the room of its payload");

bool dp_refer(struct engine *e, const struct qp *q, struct rte_mbuf *m, uint8_t *dst,
	      uint32_t packet_bytes, uint32_t packets, bool crcs)
{
	struct request *r = request_of(m);
	const struct wqe_data *d = request_entries(m) + r->entry;
	uint32_t bytes = packets * packet_bytes;
	const uint8_t *at;

	if (r->flags & REQUEST_INLINE || bytes > d->length - r->entry_bytes ||
	    !payload_ref_make(e->v2p_port[STAGE_SEGMENTATION], V2P_WP_DATA,
			      &(struct v2p_access){.pd = q->pd,
						   .key = d->lkey,
						   .va = d->addr + r->entry_bytes,
						   .length = bytes,
						   .rights = V2P_LOCAL_READ},
			      &q->payload_turn, dst))
		return false;
	if (crcs && unlikely(payload_ref_follow(dst, &at) != V2P_SUCCESS))
		return false;
	if (crcs)
		train_put_crcs(dst, at, packet_bytes, packets);
	used_of_entry(r, d, bytes);
	r->sent_bytes += bytes;
	return true;
}
