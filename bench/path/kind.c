/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of operations; see kind.h. */
#include "softhca/softhca.h"
#include "kind.h"

const struct kind_info kinds[KIND_COUNT] = {
	[KIND_SEND] = {.name = "SEND",
		       .opcode = SOFTHCA_WR_SEND,
		       .receives = true,
		       .lands_in_recv = true},
	[KIND_SEND_IMM] = {.name = "SEND_IMM",
			   .opcode = SOFTHCA_WR_SEND_WITH_IMM,
			   .receives = true,
			   .lands_in_recv = true,
			   .imm = true},
	[KIND_WRITE] = {.name = "WRITE", .opcode = SOFTHCA_WR_RDMA_WRITE},
	[KIND_WRITE_IMM] = {.name = "WRITE_IMM",
			    .opcode = SOFTHCA_WR_RDMA_WRITE_WITH_IMM,
			    .receives = true,
			    .imm = true},
	[KIND_READ] = {.name = "READ", .opcode = SOFTHCA_WR_RDMA_READ, .inbound = true},
	[KIND_CMP_SWAP] = {.name = "CMP_SWAP",
			   .opcode = SOFTHCA_WR_ATOMIC_CMP_AND_SWP,
			   .inbound = true,
			   .atomic = true,
			   .bytes = 8},
	[KIND_FETCH_ADD] = {.name = "FETCH_ADD",
			    .opcode = SOFTHCA_WR_ATOMIC_FETCH_AND_ADD,
			    .inbound = true,
			    .atomic = true,
			    .bytes = 8},
	[KIND_ATOMIC_WRITE] = {.name = "ATOMIC_WRITE",
			       .opcode = SOFTHCA_WR_ATOMIC_WRITE,
			       .bytes = 8},
};
