/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMAND_FIXTURE_H
#define COMMAND_FIXTURE_H
/* The tables that a CEU writes; no lcores. */
#include "test.h"
#include <rte_memory.h>
#include "world_eal.h"
#include "command/ceu.h"

enum { QPN = 0x123405, TABLE = 16 };

struct command_fixture {
	struct qp_table qps;
	struct srq_table srqs;
	struct v2p v2p;
	struct completion completion;
	struct engine *engine;
	struct counters counters;
	struct ceu_hooks hooks; /* these three set before command_fixture_make() */
	bool not_started;	/* no INIT_HCA */
	uint32_t qp_count;	/* 0: TABLE */
	unsigned int quiesced;	/* times that the CEU waited for the data path */
	bool releases;		/* the simulated modules release QPs that go away */
	void (*woken)(struct qp *q, enum wake_target t); /* a QP that stays; NULL: nothing */
	struct ceu *ceu;
	struct qp_record record;
	struct srq_record srq_record;
	uint8_t sq[256], rq[256];
};

/* A command to the CEU of `f`: with a mailbox for what goes in, for what comes out, with none. */
#define TELL(op, number, in) ceu_exec(f.ceu, op, number, &(in), sizeof(in), NULL, 0)
#define ASK(op, number, out) ceu_exec(f.ceu, op, number, NULL, 0, &(out), sizeof(out))
#define DO(op, number)	     ceu_exec(f.ceu, op, number, NULL, 0, NULL, 0)

static inline void *zeroed(size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	assert_non_null(p);
	return memset(p, 0, bytes);
}

/* Simulates a poll of the modules: takes their wake lists. */
static inline void command_fixture_poll(void *ctx)
{
	struct command_fixture *f = ctx;

	f->quiesced++;
	for (unsigned int t = 0; t < WAKE_COUNT; t++)
		for (uint32_t i = wake_take(&f->engine->wake[t]); i != WAKE_END;) {
			struct qp *q = qp_at(&f->qps, i);

			i = wake_next(&q->wake[t]);
			if (qp_closing(q) && f->releases)
				qp_close(q, (enum wake_target)t);
			else if (!qp_closing(q) && f->woken)
				f->woken(q, (enum wake_target)t);
		}
}

/* Before command_fixture_make(): all as new, with modules that poll when the CEU waits for them. */
static inline void command_fixture_new(struct command_fixture *f)
{
	*f = (struct command_fixture){.releases = true,
				      .hooks = {.ctx = f, .quiesce = command_fixture_poll}};
}

static inline void command_fixture_make(struct command_fixture *f)
{
	struct ceu_config config = {.engine_count = 1, .hooks = f->hooks};
	struct v2p_config v2p = {.name = "command",
				 .mpts = TABLE,
				 .mtts = 1024,
				 .mpt_cache_lines = 4,
				 .mtt_cache_lines = 4,
				 .counters = &f->counters,
				 .socket = SOCKET_ID_ANY};

	assert_int_equal(world_eal(NULL), 0);

	assert_int_equal(qp_table_create(&f->qps, f->qp_count ? f->qp_count : TABLE), 0);
	assert_int_equal(srq_table_create(&f->srqs, TABLE), 0);
	assert_int_equal(v2p_create(&f->v2p, &v2p), 0);
	assert_int_equal(completion_create(&f->completion, TABLE, TABLE, TABLE), 0);
	f->engine = zeroed(sizeof(*f->engine));
	for (unsigned int t = 0; t < WAKE_COUNT; t++)
		wake_list_init(&f->engine->wake[t]);
	config.qps = &f->qps;
	config.srqs = &f->srqs;
	config.v2p = &f->v2p;
	config.completion = &f->completion;
	config.engines = f->engine;
	config.counters = &f->counters;
	assert_int_equal(ceu_create(&config, &f->ceu), 0);
	if (f->not_started)
		return;
	assert_int_equal(ceu_start(f->ceu), CEU_OK);
	for (enum ceu_context kind = CEU_CONTEXT_QP; kind < CEU_CONTEXTS; kind++)
		assert_int_equal(ceu_map_context(f->ceu, kind, 0), CEU_OK);
	memset(&f->counters, 0, sizeof(f->counters));
}

static inline void command_fixture_free(struct command_fixture *f)
{
	ceu_destroy(f->ceu);
	qp_table_destroy(&f->qps);
	srq_table_destroy(&f->srqs);
	completion_destroy(&f->completion);
	v2p_destroy(&f->v2p);
	free(f->engine);
}

static inline struct ceu_qp command_qp(struct command_fixture *f, enum qp_service service)
{
	return (struct ceu_qp){.service = (uint8_t)service,
			       .client = 3,
			       .pd = 0x77,
			       .cqn_snd = 0x101,
			       .cqn_rcv = 0x102,
			       .sq = f->sq,
			       .sq_bytes = sizeof(f->sq),
			       .rq = f->rq,
			       .rq_stride = 64,
			       .rq_entries = 4,
			       .record = &f->record};
}

static inline void command_make_qp(struct command_fixture *f, uint32_t qpn, enum qp_service service)
{
	struct ceu_qp make = command_qp(f, service);

	assert_int_equal(ceu_exec(f->ceu, CEU_SW2HW_QP, qpn, &make, sizeof(make), NULL, 0), CEU_OK);
}

static inline void command_free_qp(struct command_fixture *f, uint32_t qpn)
{
	assert_int_equal(ceu_exec(f->ceu, CEU_HW2SW_QP, qpn, NULL, 0, NULL, 0), CEU_OK);
}

/* Good values for all attributes; the mask is empty. */
static inline struct ceu_modify command_attributes(void)
{
	return (struct ceu_modify){
		.attr = {.access = 0xf,
			 .qkey = 0x1234,
			 .dest_qpn = 0x456,
			 .rq_psn = 0xabcdef,
			 .sq_psn = 0xfedcba,
			 .path_mtu = 3,
			 .timeout = 14,
			 .retry_cnt = 5,
			 .rnr_retry = 6,
			 .min_rnr_timer = 12,
			 .max_rd_atomic = 4,
			 .max_dest_rd_atomic = 8,
			 .av = {.dgid = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2},
				.traffic_class = 0x20},
			 .port = 1},
		.path = {.dst_mac = {2, 0, 0, 0, 0, 2},
			 .src_mac = {2, 0, 0, 0, 0, 1},
			 .src_ip = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}},
	};
}

#endif
