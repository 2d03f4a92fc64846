/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CEU: takes commands apart, checks the form of their mailboxes and hands them to the file that
 * executes them (*_commands.c, modify_qp.c). Control thread; never on the data path, but waits for
 * it when a command removes something.
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

		if (ceu->busy[index] == QP_NOTIFIED && ceu_qp_left(ceu, q)) {
			ceu->busy[index] = QP_NOT_LEAVING;
			ceu_context_leave(ceu, CEU_CONTEXT_QP, index);
		} else {
			ceu->leaving[still++] = index;
		}
	}
	ceu->leaving_count = still;
	if (!still)
		ceu_set_releasing(ceu, false);
	return still;
}

void ceu_set_releasing(struct ceu *ceu, bool releasing)
{
	for (uint32_t i = 0; i < ceu->config.engine_count; i++) {
		uint32_t *to = &ceu->config.engines[i].releasing;

		if (__atomic_load_n(to, __ATOMIC_RELAXED) != releasing)
			__atomic_store_n(to, releasing, __ATOMIC_RELEASE);
	}
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

		if (ceu->busy[index] == QP_UNLISTED) {
			ceu->busy[index] = QP_NOTIFIED;
			ceu_qp_notify(ceu, qp_at(ceu->config.qps, index));
		}
	}
	if (ceu->config.multicast)
		multicast_reap(ceu->config.multicast);
	ceu_tidy(ceu);
	ceu->settle_due = false;
}

void ceu_settle(struct ceu *ceu)
{
	if (ceu->batch)
		ceu->settle_due = true;
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
	if (ceu->settle_due)
		settle_now(ceu);
}

enum ceu_status ceu_status_of(int err)
{
	return err == 0 ? CEU_OK : err == -EINVAL ? CEU_BAD_PARAM : CEU_BAD_SYS_STATE;
}

/* ---- the table of commands ---- */

#define COMMAND(NAME, opcode, run, when)                                                           \
	static enum ceu_status exec_##NAME(struct ceu *ceu, uint32_t modifier, const void *in,     \
					   void *out)                                              \
	{                                                                                          \
		return run(ceu, modifier);                                                         \
	}
#define COMMAND_IN(NAME, opcode, run, type, when)                                                  \
	static enum ceu_status exec_##NAME(struct ceu *ceu, uint32_t modifier, const void *in,     \
					   void *out)                                              \
	{                                                                                          \
		return run(ceu, modifier, in);                                                     \
	}
#define COMMAND_OUT(NAME, opcode, run, type, when)                                                 \
	static enum ceu_status exec_##NAME(struct ceu *ceu, uint32_t modifier, const void *in,     \
					   void *out)                                              \
	{                                                                                          \
		return run(ceu, modifier, out);                                                    \
	}
#define COMMAND_MODIFY(NAME, opcode, to, mailbox)                                                  \
	static enum ceu_status exec_##NAME(struct ceu *ceu, uint32_t modifier, const void *in,     \
					   void *out)                                              \
	{                                                                                          \
		return ceu_qp_modify(ceu, CEU_##NAME, QP_##to, modifier, in);                      \
	}
#include "command/commands.def"

struct command {
	uint16_t op;
	bool always;	 /* not only between INIT_HCA and CLOSE_HCA */
	bool in_missing; /* is allowed */
	uint16_t in_bytes, out_bytes;
	/* in: NULL where it is missing */
	enum ceu_status (*exec)(struct ceu *ceu, uint32_t modifier, const void *in, void *out);
};

enum { UP, ALWAYS };
enum { MUST, MAY };

static const struct command commands[] = {
#define COMMAND(NAME, opcode, run, when) {opcode, when, MUST, 0, 0, exec_##NAME},
#define COMMAND_IN(NAME, opcode, run, type, when)                                                  \
	{opcode, when, MUST, sizeof(struct type), 0, exec_##NAME},
#define COMMAND_OUT(NAME, opcode, run, type, when)                                                 \
	{opcode, when, MUST, 0, sizeof(struct type), exec_##NAME},
#define COMMAND_MODIFY(NAME, opcode, to, mailbox)                                                  \
	{opcode, UP, mailbox, sizeof(struct ceu_modify), 0, exec_##NAME},
#include "command/commands.def"
};

/* NULL: there is no such command. */
static const struct command *ceu_command_find(uint16_t op)
{
	for (unsigned int i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (commands[i].op == op)
			return &commands[i];
	return NULL;
}

static enum ceu_status ceu_check(const struct ceu *ceu, const struct command *c, const void *in,
				 uint32_t in_bytes, const void *out, uint32_t out_bytes)
{
	if (!c)
		return CEU_BAD_OP;
	if (in_bytes != c->in_bytes && !(c->in_missing && in_bytes == 0))
		return CEU_BAD_PARAM;
	if (out_bytes != c->out_bytes || (in_bytes && !in) || (out_bytes && !out))
		return CEU_BAD_PARAM;
	return ceu->up || c->always ? CEU_OK : CEU_BAD_SYS_STATE;
}

enum ceu_status ceu_exec(struct ceu *ceu, uint16_t op, uint32_t modifier, const void *in,
			 uint32_t in_bytes, void *out, uint32_t out_bytes)
{
	const struct command *c = ceu_command_find(op);
	enum ceu_status status = ceu_check(ceu, c, in, in_bytes, out, out_bytes);

	if (status == CEU_OK)
		status = c->exec(ceu, modifier, in_bytes ? in : NULL, out);
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
