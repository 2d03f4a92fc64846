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
#define ROW(o, n, aeth, cqe, recv_cqe, req_qp, resp_qp)                                            \
	[OUTCOME_##o] = {                                                                          \
		n, aeth, WIRE_CQE_##cqe, WIRE_CQE_##recv_cqe, WIRE_QP_##req_qp, WIRE_QP_##resp_qp}

/*
 * Columns: the responder's answer; the completion of the requester's WQE; the completion of the
 * responder's receive WQE; the fate of the requester's and of the responder's QP. RNR and SEQUENCE
 * are retried: they complete nothing themselves.
 */
const struct wire_outcome_info wire_outcomes[OUTCOME_COUNT] = {
	ROW(OK, "ok", AETH_CREDIT_INVALID, OK, OK, STAYS, STAYS),
	ROW(RNR, "rnr", 0x20, OK, OK, STAYS, STAYS),
	ROW(SEQUENCE, "sequence", NAK(SEQUENCE), OK, OK, STAYS, STAYS),
	ROW(INVALID_REQUEST, "invalid_request", NAK(INVALID_REQUEST), REMOTE_INVAL_REQ, LOCAL_QP_OP,
	    ERROR, ERROR),
	ROW(REMOTE_ACCESS, "remote_access", NAK(REMOTE_ACCESS), REMOTE_ACCESS, LOCAL_ACCESS, ERROR,
	    ERROR),
	ROW(REMOTE_OPERATION, "remote_operation", NAK(REMOTE_OPERATION), REMOTE_OP, LOCAL_QP_OP,
	    ERROR, ERROR),
	ROW(LOCAL_LENGTH, "local_length", NAK(INVALID_REQUEST), LOCAL_LENGTH, LOCAL_LENGTH, ERROR,
	    ERROR),
	ROW(LOCAL_QP_OP, "local_qp_op", NAK(REMOTE_OPERATION), LOCAL_QP_OP, LOCAL_QP_OP, ERROR,
	    ERROR),
	ROW(LOCAL_PROT, "local_prot", NAK(REMOTE_OPERATION), LOCAL_PROT, LOCAL_PROT, ERROR, ERROR),
	ROW(LOCAL_ACCESS, "local_access", NAK(REMOTE_ACCESS), LOCAL_ACCESS, LOCAL_ACCESS, ERROR,
	    ERROR),
	ROW(FLUSH, "flush", NO_NAK, WR_FLUSH, WR_FLUSH, STAYS, STAYS),
	ROW(RETRY_EXC, "retry_exceeded", NO_NAK, RETRY_EXC, OK, ERROR, STAYS),
	ROW(RNR_RETRY_EXC, "rnr_retry_exceeded", NO_NAK, RNR_RETRY_EXC, OK, ERROR, STAYS),
	ROW(BAD_RESP, "bad_response", NO_NAK, BAD_RESP, OK, ERROR, STAYS),
	ROW(REMOTE_ABORTED, "remote_aborted", NO_NAK, REMOTE_ABORTED, REMOTE_ABORTED, ERROR, ERROR),
	ROW(MW_BIND, "mw_bind", NO_NAK, MW_BIND, OK, ERROR, STAYS),
	ROW(BAD_INVALIDATE, "bad_invalidate", NO_NAK, OK, LOCAL_ACCESS, STAYS, ERROR),
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
