/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Header checks of ExecutionEngine: pure functions of a packet's headers and its QP's context.
 * Stage responder_exec. Never read payload or client memory, never write the context.
 */
#include "base/assert.h"
#include "host-abi/control.h"
#include "request_check.h"

/* C9-81. READs and atomics are messages of one packet, and none may come within another message. */
static inline bool in_sequence(const struct qp *qp, const struct wire_opcode *op)
{
	if (op->flags & WIRE_START)
		return qp->ee.message == EE_MESSAGE_NONE;
	return qp->ee.message == message_of(op);
}

/* C9-85, C9-92; and no payload where the opcode has none. A frame is a whole number of words, so
 * that a payload of just the MTU has no pad. */
static inline bool payload_fits(const struct qp *qp, const struct arrival *a,
				const struct wire_opcode *op)
{
	uint32_t bytes = a->payload_bytes;

	if (!(op->headers & WIRE_HAS_PAYLOAD))
		return bytes == 0;
	if (op->flags & WIRE_ONLY)
		return bytes <= qp->mtu_bytes;
	if (op->flags & WIRE_LAST)
		return bytes >= 1 && bytes <= qp->mtu_bytes;
	return bytes == qp->mtu_bytes;
}

/* C9-72, C9-93: the packets of a WRITE carry exactly the length that its RETH announced. */
static inline bool write_fits(const struct qp *qp, const struct arrival *a,
			      const struct wire_opcode *op)
{
	uint32_t left = op->flags & WIRE_START ? a->headers.dma_len : qp->ee.write_left;

	if (left > MESSAGE_BYTES_MAX)
		return false;
	return op->flags & WIRE_END ? a->payload_bytes == left : a->payload_bytes < left;
}

/* C9-86: READs and atomics answered are counted by RespPktGen. */
static inline bool has_resource(const struct qp *qp)
{
	return (uint8_t)(qp->ee.reads_issued - qp->respg.reads_done) < qp->max_dest_rd_atomic;
}

/* Annex A19: the FLUSH asks for something, and only for what we know and the queue pair allows. */
static bool flush_allowed(const struct qp *qp, const struct wire_headers *h)
{
	uint64_t placement = h->compare & WIRE_FLUSH_PLACEMENTS;

	return placement && !(placement & ~(qp->access / (uint64_t)ACCESS_FLUSH_GLOBAL)) &&
	       (h->compare & WIRE_FLUSH_LEVELS) <= WIRE_FLUSH_REGION &&
	       h->swap_add <= MESSAGE_BYTES_MAX;
}

static bool kind_allows(const struct qp *qp, const struct arrival *a, const struct wire_opcode *op)
{
	switch ((enum wire_kind)op->kind) {
	case WIRE_KIND_SEND:
		return op->flags & WIRE_START ||
		       qp->ee.received_bytes <= MESSAGE_BYTES_MAX - a->payload_bytes;
	case WIRE_KIND_WRITE:
		return qp->access & ACCESS_REMOTE_WRITE && write_fits(qp, a, op);
	case WIRE_KIND_READ:
		return qp->access & ACCESS_REMOTE_READ && a->headers.dma_len <= MESSAGE_BYTES_MAX &&
		       has_resource(qp);
	case WIRE_KIND_ATOMIC:
		return qp->access & ACCESS_REMOTE_ATOMIC && a->headers.va % 8 == 0 &&
		       has_resource(qp);
	case WIRE_KIND_ATOMIC_WRITE:
		return qp->access & ACCESS_REMOTE_WRITE && a->headers.va % 8 == 0 &&
		       a->headers.dma_len == 8 && a->payload_bytes == 8 && has_resource(qp);
	case WIRE_KIND_FLUSH:
		return flush_allowed(qp, &a->headers);
	case WIRE_KIND_READ_RESP:
	case WIRE_KIND_ATOMIC_ACK:
	case WIRE_KIND_ACK:
	case WIRE_KIND_CNP:
	case WIRE_KIND_SACK:
	case WIRE_KIND_COUNT:
		return false;
	}
	return false;
}

enum wire_outcome request_check(const struct qp *qp, const struct arrival *a,
				const struct wire_opcode *op)
{
	if (unlikely(!op->defined || !in_sequence(qp, op) || !payload_fits(qp, a, op) ||
		     !kind_allows(qp, a, op)))
		return OUTCOME_INVALID_REQUEST;
	return OUTCOME_OK;
}

bool request_check_duplicate_read(const struct qp *qp, const struct arrival *a)
{
	uint32_t executed = psn_sub(qp->ee.expected_psn, a->headers.psn);

	if (!(qp->access & ACCESS_REMOTE_READ) || a->headers.dma_len > MESSAGE_BYTES_MAX)
		return false;
	return psn_packets(a->headers.dma_len, qp->mtu_bytes) <= executed;
}
