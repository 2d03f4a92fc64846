/* SPDX-License-Identifier: BSD-3-Clause */
/* The CEU's commands on the device as a whole. Control thread. */
#include "ceu_priv.h"

enum ceu_status ceu_query_dev_lim(const struct ceu *ceu, struct ceu_dev_lim *out)
{
	*out = (struct ceu_dev_lim){
		.log_max_qps = (uint32_t)__builtin_ctz(ceu->config.qps->count),
		.log_max_cqs = (uint32_t)__builtin_ctz(ceu->config.completion->cq_count),
		.log_max_mpts = (uint32_t)__builtin_ctz(ceu->config.v2p->mpts),
		.max_sg = SGE_MAX,
		.max_rd_atomic = READS_MAX,
		.max_mtu = ceu->config.mtu_code_max,
		.log_min_page = 12,
	};
	return CEU_OK;
}

enum ceu_status ceu_query_adapter(struct ceu_adapter *out)
{
	*out = (struct ceu_adapter){.board_id = "softhca"};
	return CEU_OK;
}
