/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of numbers. */
#include "client_priv.h"

#define WORD(table, i)                                                                             \
	((i) < sizeof(table) / sizeof((table)[0]) && (table)[i] ? (table)[i] : "unknown")

const char *softhca_wc_status_str(uint32_t status)
{
	static const char *const words[] = {
		[SOFTHCA_WC_SUCCESS] = "success",
		[SOFTHCA_WC_LOC_LEN_ERR] = "local length error",
		[SOFTHCA_WC_LOC_QP_OP_ERR] = "local QP operation error",
		[SOFTHCA_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
		[SOFTHCA_WC_LOC_PROT_ERR] = "local protection error",
		[SOFTHCA_WC_WR_FLUSH_ERR] = "Work Request Flushed Error",
		[SOFTHCA_WC_MW_BIND_ERR] = "memory management operation error",
		[SOFTHCA_WC_BAD_RESP_ERR] = "bad response error",
		[SOFTHCA_WC_LOC_ACCESS_ERR] = "local access error",
		[SOFTHCA_WC_REM_INV_REQ_ERR] = "remote invalid request error",
		[SOFTHCA_WC_REM_ACCESS_ERR] = "remote access error",
		[SOFTHCA_WC_REM_OP_ERR] = "remote operation error",
		[SOFTHCA_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
		[SOFTHCA_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
		[SOFTHCA_WC_LOC_RDD_VIOL_ERR] = "local RDD violation error",
		[SOFTHCA_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
		[SOFTHCA_WC_REM_ABORT_ERR] = "aborted error",
		[SOFTHCA_WC_INV_EECN_ERR] = "invalid EE context number",
		[SOFTHCA_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
		[SOFTHCA_WC_FATAL_ERR] = "fatal error",
		[SOFTHCA_WC_RESP_TIMEOUT_ERR] = "response timeout error",
		[SOFTHCA_WC_GENERAL_ERR] = "general error",
	};

	return WORD(words, status);
}

const char *softhca_event_type_str(uint32_t type)
{
	static const char *const words[] = {
		[SOFTHCA_EVENT_CQ_ERR] = "completion queue overflow",
		[SOFTHCA_EVENT_QP_FATAL] = "queue pair failed",
		[SOFTHCA_EVENT_QP_REQ_ERR] = "invalid request received",
		[SOFTHCA_EVENT_QP_ACCESS_ERR] = "access violation by the peer",
		[SOFTHCA_EVENT_COMM_EST] = "communication established",
		[SOFTHCA_EVENT_SQ_DRAINED] = "send queue drained",
		[SOFTHCA_EVENT_PATH_MIG] = "path migrated",
		[SOFTHCA_EVENT_PATH_MIG_ERR] = "path migration request error",
		[SOFTHCA_EVENT_DEVICE_FATAL] = "the HCA or the daemon has gone",
		[SOFTHCA_EVENT_PORT_ACTIVE] = "port up",
		[SOFTHCA_EVENT_PORT_ERR] = "port down",
		[SOFTHCA_EVENT_SRQ_ERR] = "shared receive queue failed",
		[SOFTHCA_EVENT_SRQ_LIMIT] = "shared receive queue limit reached",
		[SOFTHCA_EVENT_QP_LAST_WQE] = "last request reached",
		[SOFTHCA_EVENT_GID_CHANGE] = "addresses changed",
	};

	return WORD(words, type);
}

const char *softhca_qp_state_str(uint32_t state)
{
	static const char *const words[] = {
		[SOFTHCA_QPS_RESET] = "RESET", [SOFTHCA_QPS_INIT] = "INIT",
		[SOFTHCA_QPS_RTR] = "RTR",     [SOFTHCA_QPS_RTS] = "RTS",
		[SOFTHCA_QPS_SQE] = "SQE",     [SOFTHCA_QPS_SQD] = "SQD",
		[SOFTHCA_QPS_ERR] = "ERR",
	};

	return WORD(words, state);
}
