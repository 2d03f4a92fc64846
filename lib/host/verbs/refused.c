/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public functions for features that this device lacks: they fail as those of a driver without the
 * feature do. (verbs.h itself refuses what goes through the context's table.)
 */
#include "handles.h"

static void *refused(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

/* No guarantee: long copies may use stores that become visible in any order. */
VERBS_PUBLIC int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
					    uint32_t flags)
{
	return 0;
}

/* Memory of other devices. */
VERBS_PUBLIC struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					      uint64_t iova, int fd, int access)
{
	return refused();
}

/* Memory of the device. */
VERBS_PUBLIC struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	return refused();
}

VERBS_PUBLIC void ibv_unimport_dm(struct ibv_dm *dm)
{
}
