/* SPDX-License-Identifier: BSD-3-Clause */
/* WriteAddrTable: reads and writes the rows, which lie in the QP contexts. Stage responder_exec. No
 * logic. */
#include "context/qp_context.h"
#include "write_addr_table.h"

struct write_addr wat_load(const struct qp *qp)
{
	return (struct write_addr){
		.va = qp->ee.write_va, .rkey = qp->ee.write_rkey, .left = qp->ee.write_left};
}

void wat_store(struct qp *qp, const struct write_addr *row)
{
	qp->ee.write_va = row->va;
	qp->ee.write_rkey = row->rkey;
	qp->ee.write_left = row->left;
}
