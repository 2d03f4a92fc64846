/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_RQ_WQE_MANAGER_H
#define RESPONDER_RQ_WQE_MANAGER_H
/*
 * RQWQEManager (doc/modules.md#rqwqemanager): receive descriptors, fetched ahead from client memory
 * into the QP's own buffer, 512 bytes at most, and handed out entry by entry. ExecutionEngine's
 * commands of the design are these functions; a call answers at once. Stage responder_exec.
 *
 * Client memory is copied once and only the copy is looked at.
 */
#include <string.h>
#include <rte_common.h>
#include "base/counters.h"
#include "context/qp_context.h"
#include "host-abi/wqe.h"

enum rwm_result {
	RWM_VALID_ENTRY,   /* here it is */
	RWM_INVALID_ENTRY, /* the descriptor's entries are used up: the message is longer than its
			      buffers */
	RWM_INVALID_WQE,   /* no descriptor is posted: receiver not ready */
	RWM_BAD_WQE,	   /* the descriptor is open but wrong: it completes in error */
	RWM_BAD_QUEUE, /* the client says that it posted more than fits: nothing can be trusted */
};

/* A piece of client memory to scatter into. */
struct rwm_entry {
	uint64_t va;
	uint32_t bytes; /* left of the entry, never 0 */
	uint32_t lkey;
};

/* How many receive descriptors are posted and not consumed, as the client says: may be more than
 * the queue has. */
static inline uint32_t rwm_claimed(const struct qp *qp)
{
	if (!qp->rq)
		return 0;
	return __atomic_load_n(&qp->record->rq_posted, __ATOMIC_ACQUIRE) - qp->rwm.consumed;
}

/* Receive descriptors for the messages that the MSN does not count yet, at most what the queue
 * holds: these are the credits of an AETH (C9-161). One in use by a message in progress is among
 * them. */
static inline uint32_t rwm_credits(const struct qp *qp)
{
	return RTE_MIN(rwm_claimed(qp), qp->rq_entries);
}

/* Receive descriptors left for later messages. */
static inline uint32_t rwm_available(const struct qp *qp)
{
	uint32_t n = rwm_credits(qp);

	return n - (n && qp->rwm.open);
}

/* The tag of the descriptor that was taken from an SRQ. */
static inline uint32_t rwm_tag(const struct qp *qp)
{
	struct wqe_next next;

	memcpy(&next, &qp->rwm.buffer[qp->rwm.unit], sizeof(next));
	return next.imm;
}

/* How completions name the current descriptor: by its offset in the receive queue, bytes, or in an
 * SRQ by its tag. */
static inline uint32_t rwm_wqe_offset(const struct qp *qp)
{
	if (unlikely(qp->srq))
		return rwm_tag(qp);
	return (qp->rwm.consumed & (qp->rq_entries - 1)) * qp->rq_stride;
}

/* Opens the next descriptor; see rwm_open(). */
enum rwm_result rwm_open_next(struct counters *c, struct qp *qp);

/*
 * Makes sure that a descriptor is open (in use by a message): first half of the design's
 * CMD_FETCH_ENTRY, fetching from memory when the buffer is used up. RWM_VALID_ENTRY (also when one
 * was open), RWM_INVALID_WQE, RWM_BAD_WQE, RWM_BAD_QUEUE.
 */
static inline enum rwm_result rwm_open(struct counters *c, struct qp *qp)
{
	return qp->rwm.open ? RWM_VALID_ENTRY : rwm_open_next(c, qp);
}

/* CMD_FETCH_ENTRY: what is left of the current entry, or the next one that is not empty. A
 * descriptor is open. RWM_VALID_ENTRY (*out filled), RWM_INVALID_ENTRY. */
enum rwm_result rwm_fetch_entry(struct qp *qp, struct rwm_entry *out);

/* Is the next descriptor in the buffer, not open, and of one entry? True: it is *out; nothing has
 * changed. */
bool rwm_sees_single(const struct qp *qp, struct rwm_entry *out);

/* CMD_UPDATE_ENTRY: `bytes` more of the current entry are used, not all that it had left. */
static inline void rwm_update_entry(struct qp *qp, uint32_t bytes)
{
	qp->rwm.entry_bytes += bytes;
}

/* CMD_RELEASE_ENTRY: the current entry is full. */
static inline void rwm_release_entry(struct qp *qp)
{
	qp->rwm.entry++;
	qp->rwm.entry_bytes = 0;
}

/* CMD_RELEASE_WQE: the open descriptor is done with (its completion is known). */
static inline void rwm_release_wqe(struct qp *qp)
{
	qp->rwm.open = 0;
	qp->rwm.consumed++;
	qp->rwm.unit += qp->rq_stride;
}

/* CMD_UPDATE_ENTRY: the message was given up (UC, UD): its descriptor serves the next one from its
 * start. Also when none is open. */
static inline void rwm_rewind(struct qp *qp)
{
	qp->rwm.open = 0;
}

/* CMD_RELEASE_WQE in ERR: skips the current descriptor and forgets what was fetched. */
static inline void rwm_skip_wqe(struct qp *qp)
{
	qp->rwm.open = 0;
	qp->rwm.consumed++;
	qp->rwm.fetched = qp->rwm.consumed;
}

#endif
