/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CEU's commands on the device as a whole: INIT_HCA, which says where contexts and TPT lie,
 * CLOSE_HCA, and queries. Control thread.
 */
#include "ceu_priv.h"

static uint8_t log_of(uint32_t count)
{
	return (uint8_t)__builtin_ctz(count);
}

enum ceu_status ceu_nop(struct ceu *ceu, uint32_t modifier)
{
	return CEU_OK;
}

static struct ceu_dev_lim limits_of(const struct ceu *ceu)
{
	return (struct ceu_dev_lim){
		.log_max_qps = log_of(ceu->config.qps->count),
		.log_max_srqs = ceu->config.srqs ? log_of(ceu->config.srqs->count) : 0,
		.log_max_cqs = log_of(ceu->config.completion->cq_count),
		.log_max_eqs = log_of(CLIENTS_MAX),
		.log_max_mpts = log_of(ceu->config.v2p->mpt.entries_max),
		.log_max_mtts = log_of(ceu->config.v2p->mtt.entries_max),
		.max_sg = SGE_MAX,
		.max_rd_atomic = READS_MAX,
		.max_mtu = ceu->config.mtu_code_max,
		.log_min_page = 12,
	};
}

enum ceu_status ceu_query_dev_lim(struct ceu *ceu, uint32_t modifier, struct ceu_dev_lim *out)
{
	*out = limits_of(ceu);
	return CEU_OK;
}

enum ceu_status ceu_query_adapter(struct ceu *ceu, uint32_t modifier, struct ceu_adapter *out)
{
	*out = (struct ceu_adapter){.board_id = "softhca"};
	return CEU_OK;
}

struct part {
	uint64_t base, bytes;
};

static bool parts_ok(const struct part *part, unsigned int parts)
{
	for (unsigned int i = 0; i < parts; i++) {
		if (part[i].base % CEU_ICM_CHUNK_BYTES ||
		    part[i].base + part[i].bytes < part[i].base)
			return false;
		for (unsigned int j = 0; j < i; j++)
			if (part[i].base < part[j].base + part[j].bytes &&
			    part[j].base < part[i].base + part[i].bytes)
				return false;
	}
	return true;
}

static uint64_t bytes_of(const struct icm *m)
{
	return m ? (uint64_t)m->chunks * CEU_ICM_CHUNK_BYTES : 0;
}

/* The tables were created with the device; the driver must repeat the sizes that it was given. */
static bool init_ok(const struct ceu *ceu, const struct ceu_init_hca *in)
{
	const struct part part[] = {
		{in->qpc_base, bytes_of(ceu_area(ceu, CEU_CONTEXT_QP))},
		{in->srqc_base, bytes_of(ceu_area(ceu, CEU_CONTEXT_SRQ))},
		{in->cqc_base, bytes_of(ceu_area(ceu, CEU_CONTEXT_CQ))},
	};
	const struct ceu_dev_lim lim = limits_of(ceu);

	return in->log_qps == lim.log_max_qps && in->log_srqs == lim.log_max_srqs &&
	       in->log_cqs == lim.log_max_cqs && in->log_mpts == lim.log_max_mpts &&
	       in->log_mtts == lim.log_max_mtts && !in->reserved[0] && !in->reserved[1] &&
	       !in->reserved[2] && parts_ok(part, sizeof(part) / sizeof(part[0]));
}

enum ceu_status ceu_hca_init(struct ceu *ceu, uint32_t modifier, const struct ceu_init_hca *in)
{
	enum ceu_status status;

	if (ceu->up)
		return CEU_BAD_SYS_STATE;
	if (!init_ok(ceu, in))
		return CEU_BAD_PARAM;
	status = ceu_tpt_init(ceu, in);
	if (status != CEU_OK)
		return status;
	ceu->init = *in;
	ceu->up = true;
	return CEU_OK;
}

static bool device_in_use(const struct ceu *ceu)
{
	for (enum ceu_context kind = CEU_CONTEXT_QP; kind < CEU_CONTEXTS; kind++) {
		const struct icm *m = ceu_area(ceu, kind);

		for (uint32_t i = 0; m && i < m->chunks; i++)
			if (m->chunk[i].live)
				return true;
	}
	for (uint32_t i = 0; i < CLIENTS_MAX; i++)
		if (ceu->config.completion->eqs[i].page)
			return true;
	return false;
}

enum ceu_status ceu_hca_close(struct ceu *ceu, uint32_t modifier)
{
	enum ceu_status status;

	if (device_in_use(ceu))
		return CEU_BAD_SYS_STATE;
	status = ceu_tpt_close(ceu);
	if (status != CEU_OK)
		return status;
	for (enum ceu_context kind = CEU_CONTEXT_QP; kind < CEU_CONTEXTS; kind++)
		ceu_icm_close(ceu, kind);
	ceu->up = false;
	return CEU_OK;
}

enum ceu_status ceu_start(struct ceu *ceu)
{
	struct ceu_init_hca in = {0};
	struct ceu_dev_lim lim;
	enum ceu_status status = ceu_exec(ceu, CEU_QUERY_DEV_LIM, 0, NULL, 0, &lim, sizeof(lim));

	if (status != CEU_OK)
		return status;
	in.log_qps = (uint8_t)lim.log_max_qps;
	in.log_srqs = (uint8_t)lim.log_max_srqs;
	in.log_cqs = (uint8_t)lim.log_max_cqs;
	in.log_mpts = (uint8_t)lim.log_max_mpts;
	in.log_mtts = (uint8_t)lim.log_max_mtts;
	in.srqc_base = in.qpc_base + bytes_of(ceu_area(ceu, CEU_CONTEXT_QP));
	in.cqc_base = in.srqc_base + bytes_of(ceu_area(ceu, CEU_CONTEXT_SRQ));
	in.mtt_base = in.mpt_base + ((uint64_t)sizeof(struct mpt_entry) << in.log_mpts);
	in.mtt_base =
		(in.mtt_base + CEU_ICM_CHUNK_BYTES - 1) & ~(uint64_t)(CEU_ICM_CHUNK_BYTES - 1);
	return ceu_exec(ceu, CEU_INIT_HCA, 0, &in, sizeof(in), NULL, 0);
}
