/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_ABI_CQE_H
#define HOST_ABI_CQE_H
/*
 * Completion queue entry, 32 bytes, little-endian. The daemon writes an entry whose owner bit says
 * "hardware" and clears the bit last (release); the client consumes it, sets the bit again and then
 * advances cq_record.consumer_index.
 */
#include <stdint.h>
#include <assert.h>

struct cqe {
	uint32_t my_qpn;
	uint32_t reserved;
	uint32_t remote_qpn;
	uint32_t rlid_flags;   /* 31:16 rlid · 15 has GRH · 7:0 sl */
	uint32_t imm_or_error; /* immediate data or invalidated key; on error 15:8 vendor error ·
				  7:0 syndrome */
	uint32_t byte_count;
	uint32_t wqe_offset; /* byte offset of the WQE in its work queue; SRQ: its tag */
	uint8_t opcode;	     /* enum user_opcode; USER_INVALID on error */
	uint8_t is_send;
	uint8_t reserved2;
	uint8_t owner; /* bit 7: 1 = hardware */
};
static_assert(sizeof(struct cqe) == 32, "completion queue entry");
#define CQE_OWNER_HW 0x80u
#define CQE_HAS_GRH  (1u << 15)
/* The sl of a datagram: which header takes the place of the GRH (A17.4.5.1 wants it reported). The
 * numbers are those of RoCE hardware, by which UCX finds the addresses. */
#define CQE_SL_IPV6 9u
#define CQE_SL_IPV4 10u

enum cqe_syndrome {
	SYNDROME_OK = 0x00,
	SYNDROME_LOCAL_LENGTH = 0x01,
	SYNDROME_LOCAL_QP_OP = 0x02,
	SYNDROME_LOCAL_EEC_OP = 0x03,
	SYNDROME_LOCAL_PROT = 0x04,
	SYNDROME_WR_FLUSH = 0x05,
	SYNDROME_MW_BIND = 0x06,
	SYNDROME_BAD_RESP = 0x10,
	SYNDROME_LOCAL_ACCESS = 0x11,
	SYNDROME_REMOTE_INVAL_REQ = 0x12,
	SYNDROME_REMOTE_ACCESS = 0x13,
	SYNDROME_REMOTE_OP = 0x14,
	SYNDROME_RETRY_EXC = 0x15,
	SYNDROME_RNR_RETRY_EXC = 0x16,
	SYNDROME_REMOTE_ABORTED = 0x22,
};

#endif
