/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of protocol outcomes and the names of parse errors. Constant data and look-ups; used on
 * all stages that produce or consume acknowledgements and completions.
 */
#include "wire/error.h"

#include <stddef.h>

#include "wire/aeth.h"

#define NAK(code) (0x60 | AETH_NAK_##code)
#define NO_NAK	  WIRE_NO_SYNDROME
#define STAYS	  false
#define FAILS	  true
#define ROW(o, aeth, cqe, recv_cqe, responder)                                                     \
	[OUTCOME_##o] = {aeth, SYNDROME_##cqe, SYNDROME_##recv_cqe, responder}

/*
 * Columns: the responder's answer; the completion of the requester's WQE; the completion of the
 * responder's receive WQE; the fate of the responder's queue pair. RNR and SEQUENCE are retried:
 * they complete nothing themselves.
 */
const struct wire_outcome_info wire_outcomes[OUTCOME_COUNT] = {
	ROW(OK, AETH_CREDIT_INVALID, OK, OK, STAYS),
	ROW(RNR, 0x20, OK, OK, STAYS),
	ROW(SEQUENCE, NAK(SEQUENCE), OK, OK, STAYS),
	ROW(INVALID_REQUEST, NAK(INVALID_REQUEST), REMOTE_INVAL_REQ, LOCAL_QP_OP, FAILS),
	ROW(REMOTE_ACCESS, NAK(REMOTE_ACCESS), REMOTE_ACCESS, LOCAL_ACCESS, FAILS),
	ROW(REMOTE_OPERATION, NAK(REMOTE_OPERATION), REMOTE_OP, LOCAL_QP_OP, FAILS),
	ROW(LOCAL_LENGTH, NAK(INVALID_REQUEST), LOCAL_LENGTH, LOCAL_LENGTH, FAILS),
	ROW(LOCAL_QP_OP, NAK(REMOTE_OPERATION), LOCAL_QP_OP, LOCAL_QP_OP, FAILS),
	ROW(LOCAL_PROT, NAK(REMOTE_OPERATION), LOCAL_PROT, LOCAL_PROT, FAILS),
	ROW(LOCAL_ACCESS, NAK(REMOTE_ACCESS), LOCAL_ACCESS, LOCAL_ACCESS, FAILS),
	ROW(FLUSH, NO_NAK, WR_FLUSH, WR_FLUSH, STAYS),
	ROW(RETRY_EXC, NO_NAK, RETRY_EXC, OK, STAYS),
	ROW(RNR_RETRY_EXC, NO_NAK, RNR_RETRY_EXC, OK, STAYS),
	ROW(BAD_RESP, NO_NAK, BAD_RESP, OK, STAYS),
	ROW(REMOTE_ABORTED, NO_NAK, REMOTE_ABORTED, REMOTE_ABORTED, FAILS),
	ROW(MW_BIND, NO_NAK, MW_BIND, OK, STAYS),
	ROW(BAD_INVALIDATE, NO_NAK, OK, LOCAL_ACCESS, FAILS),
};

enum wire_outcome wire_outcome_of_nak(uint8_t nak_code)
{
	switch (nak_code) {
	case AETH_NAK_SEQUENCE:
		return OUTCOME_SEQUENCE;
	case AETH_NAK_INVALID_REQUEST:
		return OUTCOME_INVALID_REQUEST;
	case AETH_NAK_REMOTE_ACCESS:
		return OUTCOME_REMOTE_ACCESS;
	case AETH_NAK_REMOTE_OPERATION:
		return OUTCOME_REMOTE_OPERATION;
	}
	return OUTCOME_BAD_RESP;
}

const char *wire_error_name(enum wire_error error)
{
	static const char *const names[WIRE_ERR_COUNT] = {
		[WIRE_OK] = "ok",
		[WIRE_ERR_TRUNCATED] = "truncated",
		[WIRE_ERR_NOT_ROCE] = "not_roce",
		[WIRE_ERR_VERSION] = "version",
		[WIRE_ERR_FRAGMENT] = "fragment",
		[WIRE_ERR_LENGTH] = "length",
		[WIRE_ERR_CHECKSUM] = "checksum",
		[WIRE_ERR_OPCODE] = "opcode",
		[WIRE_ERR_TVER] = "tver",
	};

	return (unsigned int)error < WIRE_ERR_COUNT ? names[error] : "wire_error?";
}
