/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CEU: takes commands apart, checks the form of their mailboxes and hands them to the file that
 * executes them (*_commands.c, modify_qp.c). Control thread; never on the data path, which it waits
 * for when something is taken away.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/assert.h"
#include "ceu_priv.h"

int ceu_create(const struct ceu_config *config, struct ceu **out)
{
	struct ceu *ceu;

	if (!config->qps || !config->v2p || !config->completion || !config->counters ||
	    (config->engine_count && !config->engines) || config->mtu_code_max > 5)
		return -EINVAL;
	ceu = calloc(1, sizeof(*ceu));
	if (!ceu)
		return -ENOMEM;
	ceu->config = *config;
	if (ceu->config.mtu_code_max == 0)
		ceu->config.mtu_code_max = 5;
	ceu->shadow = calloc(config->qps->count, sizeof(*ceu->shadow));
	ceu->leaving = calloc(config->qps->count, sizeof(*ceu->leaving));
	ceu->busy = calloc(config->qps->count, sizeof(*ceu->busy));
	if (!ceu->shadow || !ceu->leaving || !ceu->busy) {
		ceu_destroy(ceu);
		return -ENOMEM;
	}
	*out = ceu;
	return 0;
}

void ceu_destroy(struct ceu *ceu)
{
	if (!ceu)
		return;
	free(ceu->shadow);
	free(ceu->leaving);
	free(ceu->busy);
	free(ceu);
}

void ceu_set_mtu_max(struct ceu *ceu, uint8_t mtu_code)
{
	ASSERT(mtu_code >= 1 && mtu_code <= 5);
	ceu->config.mtu_code_max = mtu_code;
}

uint32_t ceu_tidy(struct ceu *ceu)
{
	uint32_t still = 0;

	for (uint32_t i = 0; i < ceu->leaving_count; i++) {
		uint32_t index = ceu->leaving[i];
		struct qp *q = qp_at(ceu->config.qps, index);

		if (ceu->busy[index] == QP_TOLD && ceu_qp_left(ceu, q)) {
			q->epoch++;
			ceu->busy[index] = QP_NOT_LEAVING;
			ceu_context_leave(ceu, CEU_CONTEXT_QP, index);
		} else {
			ceu->leaving[still++] = index;
		}
	}
	ceu->leaving_count = still;
	return still;
}

uint32_t ceu_leaving(const struct ceu *ceu)
{
	return ceu->leaving_count;
}

void ceu_quiesce(struct ceu *ceu)
{
	if (ceu->config.hooks.quiesce)
		ceu->config.hooks.quiesce(ceu->config.hooks.ctx);
}

static void settle_now(struct ceu *ceu)
{
	ceu_quiesce(ceu);
	for (uint32_t i = 0; i < ceu->leaving_count; i++) {
		uint32_t index = ceu->leaving[i];

		if (ceu->busy[index] == QP_GIVEN_UP) {
			ceu->busy[index] = QP_TOLD;
			ceu_qp_tell(ceu, qp_at(ceu->config.qps, index));
		}
	}
	if (ceu->config.multicast)
		multicast_reap(ceu->config.multicast);
	ceu_tidy(ceu);
	ceu->owed = false;
}

void ceu_settle(struct ceu *ceu)
{
	if (ceu->batch)
		ceu->owed = true;
	else
		settle_now(ceu);
}

void ceu_batch_begin(struct ceu *ceu)
{
	ASSERT(!ceu->batch);
	ceu->batch = true;
}

void ceu_batch_end(struct ceu *ceu)
{
	ASSERT(ceu->batch);
	ceu->batch = false;
	if (ceu->owed)
		settle_now(ceu);
}

enum ceu_status ceu_status_of(int err)
{
	return err == 0 ? CEU_OK : err == -EINVAL ? CEU_BAD_PARAM : CEU_BAD_SYS_STATE;
}

/* Sizes of the mailboxes; IN_MAYBE: or none. Commands that are not listed do not exist (yet). */
enum { LISTED = 1, IN_MAYBE = 2 };
static const struct command {
	uint8_t flags;
	uint16_t in_bytes, out_bytes;
} commands[] = {
	[CEU_QUERY_DEV_LIM] = {LISTED, 0, sizeof(struct ceu_dev_lim)},
	[CEU_QUERY_ADAPTER] = {LISTED, 0, sizeof(struct ceu_adapter)},
	[CEU_INIT_HCA] = {LISTED, sizeof(struct ceu_init_hca), 0},
	[CEU_CLOSE_HCA] = {LISTED, 0, 0},
	[CEU_MAP_ICM] = {LISTED, sizeof(struct ceu_map_icm), 0},
	[CEU_UNMAP_ICM] = {LISTED, sizeof(struct ceu_unmap_icm), 0},
	[CEU_SW2HW_MPT] = {LISTED, sizeof(struct mpt_entry), 0},
	[CEU_HW2SW_MPT] = {LISTED, 0, 0},
	[CEU_WRITE_MTT] = {LISTED, sizeof(struct ceu_write_mtt), 0},
	[CEU_MAP_EQ] = {LISTED, sizeof(struct ceu_event_mask), 0},
	[CEU_SW2HW_EQ] = {LISTED, sizeof(struct ceu_eq), 0},
	[CEU_HW2SW_EQ] = {LISTED, 0, 0},
	[CEU_SW2HW_CQ] = {LISTED, sizeof(struct ceu_cq), 0},
	[CEU_HW2SW_CQ] = {LISTED, 0, 0},
	[CEU_RESIZE_CQ] = {LISTED, sizeof(struct ceu_resize_cq), 0},
	[CEU_RST2INIT] = {LISTED, sizeof(struct ceu_modify), 0},
	[CEU_INIT2RTR] = {LISTED, sizeof(struct ceu_modify), 0},
	[CEU_RTR2RTS] = {LISTED, sizeof(struct ceu_modify), 0},
	[CEU_RTS2RTS] = {LISTED, sizeof(struct ceu_modify), 0},
	[CEU_SQERR2RTS] = {LISTED, sizeof(struct ceu_modify), 0},
	[CEU_2ERR] = {LISTED | IN_MAYBE, sizeof(struct ceu_modify), 0},
	[CEU_RTS2SQD] = {LISTED, sizeof(struct ceu_modify), 0},
	[CEU_SQD2RTS] = {LISTED, sizeof(struct ceu_modify), 0},
	[CEU_2RST] = {LISTED | IN_MAYBE, sizeof(struct ceu_modify), 0},
	[CEU_INIT2INIT] = {LISTED, sizeof(struct ceu_modify), 0},
	[CEU_SQD2SQD] = {LISTED, sizeof(struct ceu_modify), 0},
	[CEU_QUERY_QP] = {LISTED, 0, sizeof(struct control_qp_attr)},
	[CEU_NOP] = {LISTED, 0, 0},
	[CEU_SW2HW_QP] = {LISTED, sizeof(struct ceu_qp), 0},
	[CEU_HW2SW_QP] = {LISTED, 0, 0},
	[CEU_SW2HW_SRQ] = {LISTED, sizeof(struct ceu_srq), 0},
	[CEU_HW2SW_SRQ] = {LISTED, 0, 0},
	[CEU_ARM_SRQ] = {LISTED, sizeof(struct ceu_srq_limit), 0},
	[CEU_QUERY_SRQ] = {LISTED, 0, sizeof(struct control_srq_attr)},
	[CEU_ATTACH_MGM] = {LISTED, sizeof(struct ceu_multicast), 0},
	[CEU_DETACH_MGM] = {LISTED, sizeof(struct ceu_multicast), 0},
};

static enum ceu_status check(uint16_t op, const void *in, uint32_t in_bytes, const void *out,
			     uint32_t out_bytes)
{
	static const struct command none;
	const struct command *c =
		op < sizeof(commands) / sizeof(commands[0]) ? &commands[op] : &none;

	if (!(c->flags & LISTED))
		return CEU_BAD_OP;
	if (in_bytes != c->in_bytes && !((c->flags & IN_MAYBE) && in_bytes == 0))
		return CEU_BAD_PARAM;
	if (out_bytes != c->out_bytes || (in_bytes && !in) || (out_bytes && !out))
		return CEU_BAD_PARAM;
	return CEU_OK;
}

/* The part of the modifier that says which space, contexts or TPT. */
#define ICM_SPACE (0xffu << 24)

static enum ceu_status map_icm(struct ceu *ceu, uint32_t modifier, const struct ceu_map_icm *in)
{
	switch (modifier & ICM_SPACE) {
	case CEU_ICM_CONTEXTS:
		return ceu_icm_map(ceu, modifier & ~ICM_SPACE, in);
	case CEU_ICM_TPT:
		return ceu_icm_map_tpt(ceu, modifier & ~ICM_SPACE, in);
	default:
		return CEU_BAD_PARAM;
	}
}

static enum ceu_status unmap_icm(struct ceu *ceu, uint32_t modifier, const struct ceu_unmap_icm *in)
{
	switch (modifier) {
	case CEU_ICM_CONTEXTS:
		return ceu_icm_unmap(ceu, in);
	case CEU_ICM_TPT:
		return ceu_icm_unmap_tpt(ceu, in);
	default:
		return CEU_BAD_PARAM;
	}
}

/* Contexts and TPT are somewhere only between INIT_HCA and CLOSE_HCA. */
static bool has_state_for(const struct ceu *ceu, uint16_t op)
{
	return ceu->up || op == CEU_INIT_HCA || op == CEU_NOP || op == CEU_QUERY_DEV_LIM ||
	       op == CEU_QUERY_ADAPTER;
}

static enum ceu_status dispatch(struct ceu *ceu, uint16_t op, uint32_t modifier, const void *in,
				uint32_t in_bytes, void *out)
{
	switch (op) {
	case CEU_NOP:
		return CEU_OK;
	case CEU_QUERY_DEV_LIM:
		return ceu_query_dev_lim(ceu, out);
	case CEU_QUERY_ADAPTER:
		return ceu_query_adapter(out);
	case CEU_INIT_HCA:
		return ceu_hca_init(ceu, in);
	case CEU_CLOSE_HCA:
		return ceu_hca_close(ceu);
	case CEU_MAP_ICM:
		return map_icm(ceu, modifier, in);
	case CEU_UNMAP_ICM:
		return unmap_icm(ceu, modifier, in);
	case CEU_SW2HW_MPT:
		return ceu_mpt_make(ceu, modifier, in);
	case CEU_WRITE_MTT:
		return ceu_mtt_write(ceu, modifier, in);
	case CEU_HW2SW_MPT:
		return ceu_mpt_free(ceu, modifier);
	case CEU_MAP_EQ:
		return ceu_eq_map(ceu, modifier, in);
	case CEU_SW2HW_EQ:
		return ceu_eq_make(ceu, modifier, in);
	case CEU_HW2SW_EQ:
		return ceu_eq_free(ceu, modifier);
	case CEU_SW2HW_CQ:
		return ceu_cq_make(ceu, modifier, in);
	case CEU_HW2SW_CQ:
		return ceu_cq_free(ceu, modifier);
	case CEU_RESIZE_CQ:
		return ceu_cq_resize(ceu, modifier, in);
	case CEU_SW2HW_QP:
		return ceu_qp_make(ceu, modifier, in);
	case CEU_HW2SW_QP:
		return ceu_qp_free(ceu, modifier);
	case CEU_QUERY_QP:
		return ceu_qp_query(ceu, modifier, out);
	case CEU_SW2HW_SRQ:
		return ceu_srq_make(ceu, modifier, in);
	case CEU_HW2SW_SRQ:
		return ceu_srq_free(ceu, modifier);
	case CEU_ARM_SRQ:
		return ceu_srq_arm(ceu, modifier, in);
	case CEU_QUERY_SRQ:
		return ceu_srq_query(ceu, modifier, out);
	case CEU_ATTACH_MGM:
		return ceu_group_attach(ceu, modifier, in);
	case CEU_DETACH_MGM:
		return ceu_group_detach(ceu, modifier, in);
	default: /* listed, and none of the above: MODIFY_QP */
		return ceu_qp_modify(ceu, op, modifier, in_bytes ? in : NULL);
	}
}

enum ceu_status ceu_exec(struct ceu *ceu, uint16_t op, uint32_t modifier, const void *in,
			 uint32_t in_bytes, void *out, uint32_t out_bytes)
{
	enum ceu_status status = check(op, in, in_bytes, out, out_bytes);

	if (status == CEU_OK && !has_state_for(ceu, op))
		status = CEU_BAD_SYS_STATE;
	if (status == CEU_OK)
		status = dispatch(ceu, op, modifier, in, in_bytes, out);
	count(ceu->config.counters, status == CEU_OK ? COUNTER_commands : COUNTER_commands_refused);
	return status;
}

int ceu_errno(enum ceu_status status)
{
	switch (status) {
	case CEU_OK:
		return 0;
	case CEU_BAD_OP:
		return -EOPNOTSUPP;
	case CEU_BAD_PARAM:
		return -EINVAL;
	case CEU_BAD_SYS_STATE:
		return -EBUSY;
	case CEU_BAD_NVMEM:
		return -ENOMEM;
	}
	return -EIO;
}
