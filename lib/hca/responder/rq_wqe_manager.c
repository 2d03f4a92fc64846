/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RQWQEManager: fetches receive descriptors from client memory and splits them into entries. Reads
 * the receive queue and the count in the client's record, each once; writes only qp->rwm. Stage
 * responder_exec. Never waits, never believes a count or a length.
 */
#include "rq_wqe_manager.h"
#include "srq_take.h"

/* Data units that a descriptor of this queue can hold: the first unit is the next unit. */
static inline unsigned data_units(const struct qp *qp)
{
	return RTE_MIN(qp->rq_stride / WQE_UNIT_BYTES - 1, (uint32_t)SGE_MAX);
}

/* Data unit i of the current descriptor, copied out of the buffer (which is not aligned). */
static inline struct wqe_data data_unit(const struct qp *qp, unsigned i)
{
	struct wqe_data d;

	memcpy(&d, &qp->rwm.buffer[qp->rwm.unit + (i + 1) * WQE_UNIT_BYTES], sizeof(d));
	return d;
}

/* The 16 zero bytes that end a descriptor. */
static inline bool is_terminator(const struct wqe_data *d)
{
	return d->length == 0 && d->lkey == 0 && d->addr == 0;
}

/* Prefetches what the next fetch will read of the `posted` descriptors from number `next` on. */
static inline void rwm_prefetch(const struct qp *qp, uint32_t next, uint32_t posted)
{
	uint32_t index = next & (qp->rq_entries - 1);
	uint32_t n = RTE_MIN(posted, qp->rq_entries - index);
	const uint8_t *at = qp->rq + (size_t)index * qp->rq_stride;
	uint32_t bytes = RTE_MIN(n * qp->rq_stride, (uint32_t)RQ_FETCH_BYTES);

	for (uint32_t i = 0; i < bytes; i += RTE_CACHE_LINE_SIZE)
		rte_prefetch0(at + i);
}

/* MEM_RESP: one read of at most RQ_FETCH_BYTES: never past the end of the ring, never past what is
 * posted. */
static enum rwm_result fetch(struct counters *c, struct qp *qp)
{
	uint32_t claimed = rwm_claimed(qp);
	uint32_t index = qp->rwm.consumed & (qp->rq_entries - 1);
	uint32_t n;

	if (claimed == 0)
		return RWM_INVALID_WQE;
	if (unlikely(claimed > qp->rq_entries)) {
		count(c, COUNTER_bad_recv_wqe);
		return RWM_BAD_QUEUE;
	}
	n = RTE_MIN(claimed, qp->rq_entries - index);
	n = RTE_MIN(n, RQ_FETCH_BYTES / qp->rq_stride);
	ASSERT(n > 0);
	memcpy(qp->rwm.buffer, qp->rq + (size_t)index * qp->rq_stride, (size_t)n * qp->rq_stride);
	qp->rwm.fetched = qp->rwm.consumed + n;
	qp->rwm.unit = 0;
	rwm_prefetch(qp, qp->rwm.fetched, claimed - n);
	count(c, COUNTER_rq_fetches);
	return RWM_VALID_ENTRY;
}

/* WQE_SPLIT: validates the data units of the current descriptor and adds up their lengths. */
static enum rwm_result split(struct counters *c, struct qp *qp)
{
	unsigned units = data_units(qp);
	uint64_t sum = 0;

	qp->rwm.open = 1;
	qp->rwm.entry = 0;
	qp->rwm.entry_bytes = 0;
	for (unsigned i = 0; i < units; i++) {
		struct wqe_data d = data_unit(qp, i);

		if (is_terminator(&d))
			break;
		if (unlikely(d.length & WQE_INLINE)) {
			count(c, COUNTER_bad_recv_wqe);
			return RWM_BAD_WQE;
		}
		sum += d.length;
	}
	qp->rwm.length = (uint32_t)RTE_MIN(sum, (uint64_t)UINT32_MAX);
	return RWM_VALID_ENTRY;
}

enum rwm_result rwm_open_next(struct counters *c, struct qp *qp)
{
	enum rwm_result r = RWM_VALID_ENTRY;

	if (qp->rwm.consumed == qp->rwm.fetched) /* the buffer is used up */
		r = unlikely(qp->srq) ? srq_take(c, qp) : fetch(c, qp);
	return r == RWM_VALID_ENTRY ? split(c, qp) : r;
}

enum rwm_result rwm_fetch_entry(struct qp *qp, struct rwm_entry *out)
{
	unsigned units = data_units(qp);

	for (; qp->rwm.entry < units; rwm_release_entry(qp)) {
		struct wqe_data d = data_unit(qp, qp->rwm.entry);

		if (is_terminator(&d))
			break;
		if (d.length > qp->rwm.entry_bytes) {
			out->va = d.addr + qp->rwm.entry_bytes;
			out->bytes = d.length - qp->rwm.entry_bytes;
			out->lkey = d.lkey;
			return RWM_VALID_ENTRY;
		}
	}
	return RWM_INVALID_ENTRY;
}

bool rwm_sees_single(const struct qp *qp, struct rwm_entry *out)
{
	struct wqe_data d, end;

	if (qp->rwm.open || qp->rwm.consumed == qp->rwm.fetched)
		return false;
	d = data_unit(qp, 0);
	if (data_units(qp) > 1) {
		end = data_unit(qp, 1);
		if (!is_terminator(&end))
			return false;
	}
	*out = (struct rwm_entry){.va = d.addr, .bytes = d.length, .lkey = d.lkey};
	return d.length && !(d.length & WQE_INLINE);
}
