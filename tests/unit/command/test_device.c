/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device as its driver sees it, by raw mailboxes: nothing works before INIT_HCA and after
 * CLOSE_HCA, sizes and modifiers of every command, chunks of contexts mapped and given back.
 */
#include "command_fixture.h"

#define BIG (1u << 14) /* QPs: many chunks */

static struct command_fixture f;

static int start(bool not_started)
{
	command_fixture_new(&f);
	f.not_started = not_started;
	f.qp_count = BIG;
	command_fixture_make(&f);
	return 0;
}

static int setup_started(void **state)
{
	return start(false);
}

static int setup_raw(void **state)
{
	return start(true);
}

static int teardown(void **state)
{
	command_fixture_free(&f);
	return 0;
}

/* All commands there are, with the sizes of their mailboxes. */
static const struct form {
	uint16_t op;
	uint16_t in, out;
	bool maybe,	/* `in` may be missing */
		always; /* works before INIT_HCA */
} forms[] = {
	{CEU_QUERY_DEV_LIM, 0, sizeof(struct ceu_dev_lim), false, true},
	{CEU_QUERY_ADAPTER, 0, sizeof(struct ceu_adapter), false, true},
	{CEU_INIT_HCA, sizeof(struct ceu_init_hca), 0, false, true},
	{CEU_CLOSE_HCA, 0, 0, false, false},
	{CEU_SW2HW_MPT, sizeof(struct mpt_entry), 0, false, false},
	{CEU_HW2SW_MPT, 0, 0, false, false},
	{CEU_WRITE_MTT, sizeof(struct ceu_write_mtt), 0, false, false},
	{CEU_MAP_EQ, sizeof(struct ceu_event_mask), 0, false, false},
	{CEU_SW2HW_EQ, sizeof(struct ceu_eq), 0, false, false},
	{CEU_HW2SW_EQ, 0, 0, false, false},
	{CEU_RESIZE_CQ, sizeof(struct ceu_resize_cq), 0, false, false},
	{CEU_SW2HW_CQ, sizeof(struct ceu_cq), 0, false, false},
	{CEU_HW2SW_CQ, 0, 0, false, false},
	{CEU_RST2INIT, sizeof(struct ceu_modify), 0, false, false},
	{CEU_INIT2RTR, sizeof(struct ceu_modify), 0, false, false},
	{CEU_RTR2RTS, sizeof(struct ceu_modify), 0, false, false},
	{CEU_RTS2RTS, sizeof(struct ceu_modify), 0, false, false},
	{CEU_SQERR2RTS, sizeof(struct ceu_modify), 0, false, false},
	{CEU_2ERR, sizeof(struct ceu_modify), 0, true, false},
	{CEU_RTS2SQD, sizeof(struct ceu_modify), 0, false, false},
	{CEU_SQD2RTS, sizeof(struct ceu_modify), 0, false, false},
	{CEU_2RST, sizeof(struct ceu_modify), 0, true, false},
	{CEU_QUERY_QP, 0, sizeof(struct control_qp_attr), false, false},
	{CEU_INIT2INIT, sizeof(struct ceu_modify), 0, false, false},
	{CEU_NOP, 0, 0, false, true},
	{CEU_SQD2SQD, sizeof(struct ceu_modify), 0, false, false},
	{CEU_UNMAP_ICM, sizeof(struct ceu_unmap_icm), 0, false, false},
	{CEU_MAP_ICM, sizeof(struct ceu_map_icm), 0, false, false},
	{CEU_SW2HW_QP, sizeof(struct ceu_qp), 0, false, false},
	{CEU_HW2SW_QP, 0, 0, false, false},
	{CEU_SW2HW_SRQ, sizeof(struct ceu_srq), 0, false, false},
	{CEU_HW2SW_SRQ, 0, 0, false, false},
	{CEU_ARM_SRQ, sizeof(struct ceu_srq_limit), 0, false, false},
	{CEU_QUERY_SRQ, 0, sizeof(struct control_srq_attr), false, false},
	{CEU_ATTACH_MGM, sizeof(struct ceu_multicast), 0, false, false},
	{CEU_DETACH_MGM, sizeof(struct ceu_multicast), 0, false, false},
};
#define FORMS (sizeof(forms) / sizeof(forms[0]))

static uint8_t box[8192] __attribute__((aligned(8))), out[8192] __attribute__((aligned(8)));

static enum ceu_status exec(uint16_t op, uint32_t modifier, uint32_t in, uint32_t out_bytes)
{
	return ceu_exec(f.ceu, op, modifier, in ? box : NULL, in, out_bytes ? out : NULL,
			out_bytes);
}

#undef TEST
#define TEST(name) TEST_WITH(name, setup_raw, teardown)

/* One byte too few or too many is another mailbox, whatever is in it. */
TEST_WITH(forms__sizes, setup_started, teardown)
{
	memset(box, 0, sizeof(box));
	for (unsigned int i = 0; i < FORMS; i++) {
		const struct form *c = &forms[i];
		static const int off[] = {-1, 1, 4096};

		for (unsigned int k = 0; k < 3; k++) {
			if (c->in || off[k] > 0)
				assert_int_equal(exec(c->op, 0, (uint32_t)(c->in + off[k]), c->out),
						 CEU_BAD_PARAM);
			if (c->out || off[k] > 0)
				assert_int_equal(exec(c->op, 0, c->in, (uint32_t)(c->out + off[k])),
						 CEU_BAD_PARAM);
		}
		if (c->in) /* promised, not given */
			assert_int_equal(ceu_exec(f.ceu, c->op, 0, NULL, c->in, out, c->out),
					 CEU_BAD_PARAM);
		if (c->out)
			assert_int_equal(ceu_exec(f.ceu, c->op, 0, box, c->in, NULL, c->out),
					 CEU_BAD_PARAM);
		if (c->in && !c->maybe)
			assert_int_equal(exec(c->op, 0, 0, c->out), CEU_BAD_PARAM);
	}
}

TEST_WITH(forms__the_rest_does_not_exist, setup_started, teardown)
{
	bool known[0x10000] = {false};

	for (unsigned int i = 0; i < FORMS; i++)
		known[forms[i].op] = true;
	for (unsigned int op = 0; op < 0x10000; op++)
		if ((exec((uint16_t)op, 0, 8191, 8191) == CEU_BAD_OP) != !known[op])
			fail_msg("opcode %#x", op);
}

static struct ceu_init_hca init(void)
{
	return (struct ceu_init_hca){.qpc_base = 0x40000000,
				     .srqc_base = 0,
				     .cqc_base = 0x40000,
				     .mtt_base = 0x40000000,
				     .log_qps = 14,
				     .log_srqs = 4,
				     .log_cqs = 4,
				     .log_mpts = 4,
				     .log_mtts = 10};
}

static enum ceu_status exec_init(const struct ceu_init_hca *in)
{
	return TELL(CEU_INIT_HCA, 0, *in);
}

TEST(init__nothing_works_before_and_after)
{
	const struct ceu_init_hca in = init();

	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < FORMS; i++)
			if (!forms[i].always)
				assert_int_equal(exec(forms[i].op, QPN, forms[i].in, forms[i].out),
						 CEU_BAD_SYS_STATE);
		assert_int_equal(exec(CEU_NOP, 0, 0, 0), CEU_OK);
		assert_int_equal(exec(CEU_QUERY_DEV_LIM, 0, 0, sizeof(struct ceu_dev_lim)), CEU_OK);
		assert_int_equal(exec(CEU_QUERY_ADAPTER, 0, 0, sizeof(struct ceu_adapter)), CEU_OK);
		assert_int_equal(exec_init(&in), CEU_OK);
		assert_int_equal(exec_init(&in), CEU_BAD_SYS_STATE);
		assert_int_equal(exec(CEU_CLOSE_HCA, 0, 0, 0), CEU_OK);
	}
}

TEST(init__refused_parameters)
{
	struct ceu_init_hca in = init();

#define REFUSED(field, value)                                                                      \
	do {                                                                                       \
		in = init();                                                                       \
		in.field = value;                                                                  \
		assert_int_equal(exec_init(&in), CEU_BAD_PARAM);                                   \
	} while (0)
	REFUSED(log_qps, 15);
	REFUSED(log_qps, 13);
	REFUSED(log_srqs, 5);
	REFUSED(log_cqs, 3);
	REFUSED(log_mpts, 63);
	REFUSED(log_mtts, 9);
	REFUSED(mpt_base, 0x40000000); /* the MTT's */
	REFUSED(mtt_base, 0x1000);
	REFUSED(reserved[0], 1);
	REFUSED(reserved[2], 1);
	REFUSED(qpc_base, 0x40000001);
	REFUSED(qpc_base, 0x20000);		 /* not a chunk's */
	REFUSED(qpc_base, 0);			 /* the SRQs' */
	REFUSED(cqc_base, 0x40000000 + 0x40000); /* in the middle of the QPs */
	REFUSED(qpc_base, UINT64_MAX - 0x3ffff); /* wraps */
#undef REFUSED
	in = init();
	in.cqc_base =
		0x40000000 + f.qps.icm.chunks * (uint64_t)CEU_ICM_CHUNK_BYTES; /* just behind */
	assert_int_equal(exec_init(&in), CEU_OK);
}

TEST(query__limits)
{
	struct ceu_dev_lim lim;
	struct ceu_adapter adapter;

	assert_int_equal(ASK(CEU_QUERY_DEV_LIM, 0, lim), CEU_OK);
	assert_int_equal(lim.log_max_qps, 14);
	assert_int_equal(lim.log_max_srqs, 4);
	assert_int_equal(lim.log_max_cqs, 4);
	assert_int_equal(lim.log_max_eqs, 11);
	assert_int_equal(lim.log_max_mpts, 4);
	assert_int_equal(lim.log_max_mtts, 10);
	assert_int_equal(lim.max_sg, SGE_MAX);
	assert_int_equal(lim.max_rd_atomic, READS_MAX);
	assert_int_equal(lim.max_mtu, 5);
	assert_int_equal(lim.log_min_page, 12);
	ceu_set_mtu_max(f.ceu, 3);
	assert_int_equal(ASK(CEU_QUERY_DEV_LIM, 0, lim), CEU_OK);
	assert_int_equal(lim.max_mtu, 3);
	assert_int_equal(ASK(CEU_QUERY_ADAPTER, 0, adapter), CEU_OK);
	assert_string_equal(adapter.board_id, "softhca");
}

/* ---- contexts ---- */

static uint64_t virt_of(uint32_t chunk)
{
	return init().qpc_base + (uint64_t)chunk * CEU_ICM_CHUNK_BYTES;
}

static enum ceu_status map(uint32_t modifier, uint64_t virt, uint64_t page)
{
	const struct ceu_map_icm in = {.chunk[0] = {.virt = virt, .page = page}};

	return TELL(CEU_MAP_ICM, modifier, in);
}

static enum ceu_status unmap(uint64_t virt, uint32_t pages)
{
	const struct ceu_unmap_icm in = {.virt = virt, .pages = pages};

	return TELL(CEU_UNMAP_ICM, CEU_ICM_CONTEXTS, in);
}

static void up(void)
{
	const struct ceu_init_hca in = init();

	assert_int_equal(exec_init(&in), CEU_OK);
}

TEST(map__refused_parameters)
{
	up();
	assert_int_equal(map(CEU_ICM_CONTEXTS | 0, virt_of(0), CEU_ICM_PAGES), CEU_BAD_PARAM);
	assert_int_equal(map(CEU_ICM_CONTEXTS | 65, virt_of(0), CEU_ICM_PAGES), CEU_BAD_PARAM);
	assert_int_equal(map(1, virt_of(0), CEU_ICM_PAGES), CEU_BAD_PARAM);
	assert_int_equal(map(3u << 24 | 1, virt_of(0), CEU_ICM_PAGES), CEU_BAD_PARAM);
	assert_int_equal(map(CEU_ICM_CONTEXTS | 1, virt_of(0) + 4096, CEU_ICM_PAGES),
			 CEU_BAD_PARAM);
	assert_int_equal(map(CEU_ICM_CONTEXTS | 1, virt_of(f.qps.icm.chunks), CEU_ICM_PAGES),
			 CEU_BAD_PARAM);
	assert_int_equal(map(CEU_ICM_CONTEXTS | 1, virt_of(0), CEU_ICM_PAGES - 1), CEU_BAD_PARAM);
	assert_int_equal(map(CEU_ICM_CONTEXTS | 1, virt_of(0), CEU_ICM_PAGES | 1 << 12),
			 CEU_BAD_PARAM);
	assert_int_equal(f.qps.icm.mapped, 0);
	assert_int_equal(map(CEU_ICM_CONTEXTS | 1, virt_of(0), CEU_ICM_PAGES), CEU_OK);
	assert_int_equal(map(CEU_ICM_CONTEXTS | 1, virt_of(0), CEU_ICM_PAGES), CEU_BAD_SYS_STATE);
	assert_int_equal(f.qps.icm.mapped, 1);
}

/* All chunks of a list, or none. */
TEST(map__list)
{
	struct ceu_map_icm in;

	up();
	for (uint32_t i = 0; i < 64; i++) {
		in.chunk[i].virt = virt_of(i);
		in.chunk[i].page = CEU_ICM_PAGES;
	}
	in.chunk[63].virt = virt_of(5); /* twice */
	assert_int_equal(TELL(CEU_MAP_ICM, CEU_ICM_CONTEXTS | 64, in), CEU_BAD_SYS_STATE);
	assert_int_equal(f.qps.icm.mapped, 0);
	in.chunk[63].virt = init().cqc_base;
	assert_int_equal(TELL(CEU_MAP_ICM, CEU_ICM_CONTEXTS | 64, in), CEU_OK);
	assert_int_equal(f.qps.icm.mapped, 63);
	assert_int_equal(f.completion.icm.mapped, 1);
	assert_int_equal(unmap(virt_of(0), 63 * CEU_ICM_PAGES), CEU_OK);
	assert_int_equal(f.qps.icm.mapped, 0);
}

TEST(unmap__refused_parameters)
{
	struct ceu_unmap_icm in = {.virt = virt_of(0), .pages = CEU_ICM_PAGES, .reserved = 1};

	up();
	assert_int_equal(map(CEU_ICM_CONTEXTS | 1, virt_of(0), CEU_ICM_PAGES), CEU_OK);
	assert_int_equal(TELL(CEU_UNMAP_ICM, CEU_ICM_CONTEXTS, in), CEU_BAD_PARAM);
	in.reserved = 0;
	assert_int_equal(TELL(CEU_UNMAP_ICM, 0, in), CEU_BAD_PARAM);
	assert_int_equal(unmap(virt_of(0), 0), CEU_BAD_PARAM);
	assert_int_equal(unmap(virt_of(0), 63), CEU_BAD_PARAM);
	assert_int_equal(unmap(virt_of(0), 65), CEU_BAD_PARAM);
	assert_int_equal(unmap(virt_of(0) + 1, CEU_ICM_PAGES), CEU_BAD_PARAM);
	assert_int_equal(unmap(UINT64_MAX - 0x3ffff, 2 * CEU_ICM_PAGES), CEU_BAD_PARAM);
	assert_int_equal(unmap(virt_of(0), 2 * CEU_ICM_PAGES), CEU_BAD_SYS_STATE); /* the second */
	assert_int_equal(f.qps.icm.mapped, 1);
	assert_int_equal(unmap(virt_of(0), CEU_ICM_PAGES), CEU_OK);
	assert_int_equal(unmap(virt_of(0), CEU_ICM_PAGES), CEU_BAD_SYS_STATE);
}

/* A context needs its memory first, and keeps it until no module uses it any more. */
TEST(unmap__not_while_a_number_is_live)
{
	const uint32_t index = CEU_ICM_CHUNK_BYTES / sizeof(struct qp), qpn = 0x120000 | index;
	struct ceu_qp make = command_qp(&f, SERVICE_RC);

	assert_int_not_equal(CEU_ICM_CHUNK_BYTES % sizeof(struct qp),
			     0); /* so one lies across a border */
	up();
	assert_int_equal(TELL(CEU_SW2HW_QP, qpn, make), CEU_BAD_SYS_STATE);
	assert_int_equal(ceu_map_context(f.ceu, CEU_CONTEXT_QP, qpn), CEU_OK);
	assert_int_equal(f.qps.icm.mapped, 2);
	command_make_qp(&f, qpn, SERVICE_RC);
	assert_int_equal(unmap(virt_of(0), CEU_ICM_PAGES), CEU_BAD_SYS_STATE);
	assert_int_equal(unmap(virt_of(1), CEU_ICM_PAGES), CEU_BAD_SYS_STATE);
	assert_int_equal(exec(CEU_CLOSE_HCA, 0, 0, 0), CEU_BAD_SYS_STATE);
	f.releases = false;
	command_free_qp(&f, qpn);
	assert_int_equal(unmap(virt_of(0), CEU_ICM_PAGES), CEU_BAD_SYS_STATE);
	f.qps.qps[index].closed = QP_CLOSED_ALL;
	assert_int_equal(ceu_tidy(f.ceu), 0);
	f.quiesced = 0;
	assert_int_equal(unmap(virt_of(0), 2 * CEU_ICM_PAGES), CEU_OK);
	assert_int_equal(f.quiesced, 2);
	assert_int_equal(f.qps.qps[index].closed, 0);
	f.releases = true;
	assert_int_equal(exec(CEU_CLOSE_HCA, 0, 0, 0), CEU_OK);
}

/* A module may just be posting the context of a QP that it had released. */
TEST(unmap__not_while_it_is_in_a_wake_list)
{
	up();
	assert_int_equal(ceu_map_context(f.ceu, CEU_CONTEXT_QP, 3), CEU_OK);
	for (unsigned int t = 0; t < WAKE_COUNT; t++) {
		f.qps.qps[3].wake[t].posted = 1;
		assert_int_equal(unmap(virt_of(0), CEU_ICM_PAGES), CEU_BAD_SYS_STATE);
		f.qps.qps[3].wake[t].posted = 0;
	}
	assert_int_equal(unmap(virt_of(0), CEU_ICM_PAGES), CEU_OK);
	assert_int_equal(ceu_map_context(f.ceu, CEU_CONTEXT_CQ, 3), CEU_OK);
	f.completion.cqs[3].touched = CQ_TOUCHED;
	assert_int_equal(unmap(init().cqc_base, CEU_ICM_PAGES), CEU_BAD_SYS_STATE);
	f.completion.cqs[3].touched = 0;
	assert_int_equal(unmap(init().cqc_base, CEU_ICM_PAGES), CEU_OK);
}

TEST(trim__gives_back_all_but_one)
{
	const uint32_t per_chunk = ICM_CHUNK_BYTES / sizeof(struct qp);

	up();
	for (uint32_t i = 0; i < BIG; i += per_chunk) {
		assert_int_equal(ceu_map_context(f.ceu, CEU_CONTEXT_QP, i), CEU_OK);
		command_make_qp(&f, 0x100000 | i, SERVICE_UC);
	}
	assert_int_equal(ceu_trim_contexts(f.ceu), 0);
	assert_in_range(f.qps.icm.mapped, 100, f.qps.icm.chunks);
	ceu_batch_begin(f.ceu);
	for (uint32_t i = per_chunk; i < BIG; i += per_chunk)
		command_free_qp(&f, 0x100000 | i);
	ceu_batch_end(f.ceu);
	command_fixture_poll(&f);
	ceu_tidy(f.ceu);
	f.qps.qps[4096].wake[0].posted = 1; /* a module has just put it there */
	assert_int_equal(ceu_trim_contexts(f.ceu), 0);
	f.qps.qps[4096].wake[0].posted = 0;
	f.quiesced = 0;
	assert_true(ceu_trim_contexts(f.ceu) > 90);
	assert_int_equal(f.quiesced, 2);       /* for all of them */
	assert_int_equal(f.qps.icm.mapped, 2); /* the one in use and a spare one */
	f.quiesced = 0;
	assert_int_equal(ceu_trim_contexts(f.ceu), 0);
	assert_int_equal(f.quiesced, 0);
	assert_non_null(qp_find(&f.qps, 0x100000));
	command_free_qp(&f, 0x100000);
}

/* Packets that refer to a QP's payload may still be on their way when others have its context. */
TEST(payload_turn__never_the_same_in_two_lives)
{
	const uint32_t qpn = 0x120005;
	const struct qp *q = &f.qps.qps[qpn & f.qps.mask];
	uint64_t first, last;

	up();
	assert_int_equal(ceu_map_context(f.ceu, CEU_CONTEXT_QP, qpn), CEU_OK);
	command_make_qp(&f, qpn, SERVICE_RC);
	first = q->payload_turn;
	command_free_qp(&f, qpn);
	command_fixture_poll(&f);
	assert_int_equal(ceu_tidy(f.ceu), 0);
	last = q->payload_turn;
	assert_true(last != first);
	assert_int_equal(unmap(virt_of(0), CEU_ICM_PAGES), CEU_OK);
	assert_true(q->payload_turn != first && q->payload_turn != last);
	assert_int_equal(ceu_map_context(f.ceu, CEU_CONTEXT_QP, qpn), CEU_OK);
	command_make_qp(&f, qpn, SERVICE_RC);
	assert_true(q->payload_turn != first && q->payload_turn != last);
	command_free_qp(&f, qpn);
}

/* ---- noise ---- */

static uint64_t rng_state = 88172645463325252u;
static uint32_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return (uint32_t)(rng_state >> 16);
}

/* A word that may mean something. */
static uint32_t word(void)
{
	static const uint32_t values[] = {0,
					  1,
					  2,
					  14,
					  31,
					  32,
					  64,
					  65,
					  0xffff,
					  0x40000,
					  0x40000000,
					  0x7fffffff,
					  0x80000000,
					  UINT32_MAX,
					  QPN,
					  QPN + 1,
					  CEU_ICM_CONTEXTS | 1,
					  CEU_ICM_CONTEXTS,
					  CEU_ICM_CONTEXTS | 64,
					  1u << 24,
					  4096,
					  8192};
	uint32_t i = rng() % (sizeof(values) / sizeof(values[0]) + 6);

	return i < sizeof(values) / sizeof(values[0]) ? values[i] : rng() & 0xff;
}

/* Does the mailbox hold addresses? Those are the caller's, and trusted. */
static bool has_addresses(uint16_t op)
{
	return op == CEU_SW2HW_CQ || op == CEU_SW2HW_QP || op == CEU_SW2HW_SRQ ||
	       op == CEU_SW2HW_EQ || op == CEU_SW2HW_MPT || op == CEU_RESIZE_CQ;
}

/* Every field of every command at boundaries and at random, in any order, while there are queue
 * pairs: each gets an answer and is counted, and the memory of contexts stays accounted for. */
TEST(noise__every_field)
{
	uint64_t answers[6] = {0};

	up();
	for (uint32_t i = 0; i < 200000; i++) {
		const struct form *c = &forms[rng() % FORMS];
		enum ceu_status status;

		if (has_addresses(c->op))
			continue;
		for (uint32_t w = 0; w < c->in / 4u; w++)
			((uint32_t *)(void *)box)[w] = word();
		status = exec(c->op, word(), c->in, c->out);
		assert_true(status <= CEU_BAD_NVMEM && status != 1);
		answers[status]++;
		if (c->op == CEU_CLOSE_HCA && status == CEU_OK)
			up();
		if (i % 16 == 0 && ceu_map_context(f.ceu, CEU_CONTEXT_QP, QPN) == CEU_OK) {
			struct ceu_qp make = command_qp(&f, (enum qp_service)(i / 16 % 3));

			command_fixture_poll(&f);
			ceu_tidy(f.ceu);
			TELL(CEU_SW2HW_QP, QPN, make);
		}
		if (i % 64 == 0)
			ceu_trim_contexts(f.ceu);
	}
	print_message("%u done, %u of bad parameters, %u in a wrong state\n",
		      (unsigned int)answers[CEU_OK], (unsigned int)answers[CEU_BAD_PARAM],
		      (unsigned int)answers[CEU_BAD_SYS_STATE]);
	assert_true(answers[CEU_OK] > 1000);
	assert_int_equal(answers[CEU_BAD_OP], 0);
	for (uint32_t i = 0, mapped = 0; i < f.qps.icm.chunks; i++) {
		mapped += f.qps.icm.chunk[i].mapped;
		assert_true(f.qps.icm.chunk[i].mapped || !f.qps.icm.chunk[i].live);
		if (i == f.qps.icm.chunks - 1)
			assert_int_equal(mapped, f.qps.icm.mapped);
	}
}
