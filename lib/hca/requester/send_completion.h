/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_SEND_COMPLETION_H
#define REQUESTER_SEND_COMPLETION_H
/* Completions of send descriptors. */
#include "context/qp_context.h"
#include "host-abi/cqe.h"
#include "pipeline/engine.h"
#include "wire/error.h"

/* Fills in the completion of a send WQE of queue pair `qpn`, which is *q. */
void requester_cqe(struct cqe *out, const struct qp *q, uint32_t qpn, enum wire_outcome outcome,
		   uint32_t wqe_offset, uint8_t user_opcode, uint32_t length);

/* Writes the completion of a send WQE of an RC QP into its CQ, unless the QP is being removed. A CQ
 * without room has overrun: qp_completion_lost(). Stage `stage`, the caller's. */
void requester_complete(struct engine *e, struct qp *q, enum stage_id stage,
			enum wire_outcome outcome, uint32_t wqe_offset, uint8_t user_opcode,
			uint32_t length);

#endif
