/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_DP_COPY_H
#define REQUESTER_DP_COPY_H
/* The bytes of a segment, from the data units of its request into a packet. */
#include "context/qp_context.h"
#include "pipeline/engine.h"

enum dp_answer {
	DP_COPIED,
	DP_PENDING, /* VirtToPhys has the memory pending: nothing has changed, ask again later */
	DP_REFUSED, /* the client has no right to the memory that it named (counted); the request's
		       cursor is undefined, it fails with OUTCOME_LOCAL_PROT */
};

/*
 * Copies the next `bytes` of the request's message to dst, without the gaps between its data units,
 * and moves the request's cursor on. The message has that many left (request.length). If crc is not
 * NULL, *crc becomes the raw CRC of the bytes from state 0. Stage segmentation.
 */
enum dp_answer dp_copy(struct engine *e, const struct qp *q, struct rte_mbuf *m, uint8_t *dst,
		       uint32_t bytes, uint32_t *crc);

/*
 * Writes a reference to the bytes of `packets` packets to dst (virt-to-phys/payload_ref.h) instead
 * of copying them, and moves the cursor on. `crcs`: leaves the raw CRC of each packet's bytes, from
 * state 0, where train_crc() finds it. False: the bytes are inline or not in one piece, or their
 * translation takes the slow path; nothing has changed, use dp_copy(). Stage segmentation.
 */
bool dp_refer(struct engine *e, const struct qp *q, struct rte_mbuf *m, uint8_t *dst,
	      uint32_t packet_bytes, uint32_t packets, bool crcs);

#endif
