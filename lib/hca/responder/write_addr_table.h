/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_WRITE_ADDR_TABLE_H
#define RESPONDER_WRITE_ADDR_TABLE_H
/*
 * WriteAddrTable (doc/modules.md#writeaddrtable): where the next packet of each QP's RDMA WRITE
 * goes. A row lies in its QP's context (ee.write_*), so the table is as large as the QP table and a
 * row comes with the lines that ExecutionEngine reads anyway. Reads and writes rows, has no logic,
 * as in the design. Stage responder_exec.
 */
#include <stdint.h>

struct qp;

/* A row. The design's has va and rkey; `left` is ours: RETH.DMALen not yet received, for the length
 * checks. */
struct write_addr {
	uint64_t va;
	uint32_t rkey;
	uint32_t left; /* bytes */
};

struct write_addr wat_load(const struct qp *qp);
void wat_store(struct qp *qp, const struct write_addr *row);

#endif
