/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_REQUEST_CHECK_H
#define RESPONDER_REQUEST_CHECK_H
/*
 * The header checks of ExecutionEngine (doc/modules.md#checks-of-executionengine, rules C9-73 to
 * C9-94) that need nothing but the packet's headers and the context. They change nothing. Stage
 * responder_exec.
 */
#include "context/qp_context.h"
#include "pipeline/message.h"
#include "wire/error.h"
#include "wire/opcode.h"
#include "wire/psn.h"

/* qp->ee.message: the message in progress, which the next packet must continue. */
enum ee_message {
	EE_MESSAGE_NONE, /* a first or only packet may come */
	EE_MESSAGE_SEND,
	EE_MESSAGE_WRITE,
};

/* The message that a packet of this opcode leaves in progress if it does not end it. */
static inline enum ee_message message_of(const struct wire_opcode *op)
{
	return op->kind == WIRE_KIND_SEND ? EE_MESSAGE_SEND : EE_MESSAGE_WRITE;
}

/*
 * Opcode defined (C9-84), in sequence (C9-81), enabled on the QP (C9-82, 83), pad (C9-85), payload
 * length by opcode (C9-92, 93), DMA length (C9-72, 94), READ and ATOMIC resources (C9-86),
 * alignment of atomics. RC and UC. OUTCOME_OK or OUTCOME_INVALID_REQUEST.
 */
enum wire_outcome request_check(const struct qp *qp, const struct arrival *a,
				const struct wire_opcode *op);

/* Is this duplicate READ wholly within the PSNs that were executed, and allowed (C9-108)? RC. */
bool request_check_duplicate_read(const struct qp *qp, const struct arrival *a);

#endif
