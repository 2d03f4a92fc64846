/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state machines of TPTMetaData, of the MTT's commands and of the parsers in front of it: what
 * takes which transition, how often. Those of mpt_ram_ctl and mtt_ram_ctl: test_request_scheduler.
 */
#include <errno.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <rte_common.h>
#include <rte_eal.h>
#include <rte_memory.h>
#include "pipeline/machine.h"
#include "virt-to-phys/v2p.h"

enum {
#define STATE(id, text) TPTMDATA_##id,
#include "tptmdata.def"
};
enum {
#define STATE(id, text) CEU_TPTM_##id,
#include "ceu_tptm_proc.def"
};
enum {
#define STATE(id, text) TPTM_##id,
#include "tptm_ceu.def"
};
enum {
#define STATE(id, text) ENTRY_##id,
#include "tptm_entry.def"
};
enum {
#define STATE(id, text) MTT_CEU_##id,
#include "mtt_ram_ceu.def"
};
enum {
#define STATE(id, text) PARSER_##id,
#include "mpt_req_parser.def"
};

enum {
	PD = 7,
	KEY = 0x200100,
	OTHER = 0x200200,
	MPTS = 8192, /* two chunks */
	MTTS = 65536,
	IN_2ND_MPT = (MPTS / 2) << KEY_TAG_BITS | 1u << 30,
};

static struct {
	struct v2p v2p;
	struct counters counters;
	struct v2p_port port;
} f;

/* Caches of one line, so that every other key misses. */
static int setup(void **state)
{
	const struct v2p_config c = {.name = "t",
		.mpts = MPTS,
		.mtts = MTTS,
		.mpt_cache_lines = 1,
		.mtt_cache_lines = 1,
		.counters = &f.counters,
		.socket = SOCKET_ID_ANY};

	machine_set_test(*state);
	memset(&f, 0, sizeof(f));
	assert_int_equal(v2p_create(&f.v2p, &c), 0);
	f.port = (struct v2p_port){.v2p = &f.v2p, .counters = &f.counters};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	v2p_destroy(&f.v2p);
	return 0;
}

/* What the statements do takes a transition so many times. Release builds count none. */
#ifdef SOFTHCA_DEBUG
#define TAKES_AS(before, n, machine, from, to, ...)                                                \
	do {                                                                                       \
		uint64_t before = machine_taken(machine, from, to);                                \
		__VA_ARGS__;                                                                       \
		assert_int_equal(machine_taken(machine, from, to), before + (n));                  \
	} while (0)
#else
#define TAKES_AS(before, n, machine, from, to, ...)                                                \
	do {                                                                                       \
		(void)(machine);                                                                   \
		__VA_ARGS__;                                                                       \
	} while (0)
#endif
#define TAKES(...)	TAKES_AS(before_, __VA_ARGS__)
#define WITH_TAKES(...) TAKES_AS(before_all_, __VA_ARGS__)

static int write_mpt(uint32_t key, uint32_t flags)
{
	static uint8_t memory[8192];
	struct mpt_entry m = {.key = key,
		.pd = PD,
		.access = 0xf,
		.flags = flags,
		.length = sizeof(memory),
		.log_page = 12};

	if (!(flags & MPT_PAGES))
		m.phys = memory;
	return v2p_write_mpt(&f.v2p, &m);
}

static int write_mtt(uint32_t first, uint32_t count)
{
	static const uint64_t page[16] = {0x10000, 0x30000, 0x50000};

	return v2p_write_mtt(&f.v2p, first, page, count);
}

static enum v2p_state reach(uint32_t key)
{
	uint64_t run;
	uint8_t *at;

	return v2p_map(&f.port, V2P_EE_DATA, PD, key, 0, 8, ACCESS_LOCAL_WRITE, &at, &run);
}

static void tptmdata__works_for_commands_and_caches(void **state)
{
	const struct tpt_table *t = &f.v2p.mtt;

	(void)state;
	for (unsigned to = TPTMDATA_IDLE; to <= TPTMDATA_PROC; to++) {
		const unsigned from = to == TPTMDATA_IDLE ? TPTMDATA_PROC : TPTMDATA_IDLE;

		(void)from; /* a release build keeps no record */
		TAKES(1, "tptmdata", from, to,
			assert_int_equal(v2p_map_icm(&f.v2p, t->base, NULL, TPT_CHUNK_PAGES), 0));
		TAKES(1, "tptmdata", from, to,
			assert_int_equal(v2p_unmap_icm(&f.v2p, t->base, TPT_CHUNK_PAGES), 0));
		TAKES(1, "tptmdata", from, to, assert_int_equal(reach(KEY), V2P_KEY_ERR));
		TAKES(2, "tptmdata", from, to, assert_int_equal(v2p_close(&f.v2p), 0));
		v2p_destroy(&f.v2p);
		setup(state);
	}
}

static void ceu_tptm_proc__deals_commands_out(void **state)
{
	const char *m = "ceu_tptm_proc";
	struct v2p_init init = {
		.mtt_base = 2 * TPT_CHUNK_BYTES, .log_mpts = 13, .log_mtts = 16, .on_demand = true};
	struct v2p *v = &f.v2p;

	(void)state;
	TAKES(1, m, CEU_TPTM_IDLE, CEU_TPTM_HEADER, assert_int_equal(v2p_close(v), 0));
	TAKES(1, m, CEU_TPTM_HEADER, CEU_TPTM_IDLE, assert_int_equal(v2p_close(v), -EBUSY));
	TAKES(1, m, CEU_TPTM_IDLE, CEU_TPTM_HEADER, assert_int_equal(v2p_init(v, &init), 0));
	TAKES(1, m, CEU_TPTM_HEADER, CEU_TPTM_IDLE, assert_int_equal(v2p_init(v, &init), -EBUSY));
	TAKES(1, m, CEU_TPTM_HEADER, CEU_TPTM_PAYLOAD,
		assert_int_equal(v2p_map_icm(v, 0, NULL, TPT_CHUNK_PAGES), 0));
	TAKES(1, m, CEU_TPTM_PAYLOAD, CEU_TPTM_IDLE,
		assert_int_equal(v2p_map_icm(v, 0, NULL, TPT_CHUNK_PAGES), -EEXIST));
	TAKES(1, m, CEU_TPTM_HEADER, CEU_TPTM_IDLE,
		assert_int_equal(v2p_map_icm(v, 1ull << 40, NULL, TPT_CHUNK_PAGES), -EINVAL));
	TAKES(1, m, CEU_TPTM_HEADER, CEU_TPTM_IDLE,
		assert_int_equal(v2p_unmap_icm(v, 0, TPT_CHUNK_PAGES), 0));
	TAKES(1, m, CEU_TPTM_HEADER, CEU_TPTM_IDLE,
		assert_int_equal(v2p_unmap_icm(v, 0, TPT_CHUNK_PAGES), -ENOENT));
}

/* mptm_proc and mttm_proc: each takes what is of its table, and the other nothing of it. */
static void tptm_proc__commands_of_each_table(void **state)
{
	static const char *const names[] = {"mptm_proc, CEU", "mttm_proc, CEU"};
	struct v2p *v = &f.v2p;

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(names); i++) {
		const struct tpt_table *t = i ? &v->mtt : &v->mpt;
		const char *m = names[i], *other = names[!i];

		WITH_TAKES(0, other, TPTM_CEU_IDLE, TPTM_CEU_ACCESS,
			TAKES(1, m, TPTM_CEU_IDLE, TPTM_CEU_ACCESS,
				assert_int_equal(
					v2p_map_icm(v, t->base, NULL, TPT_CHUNK_PAGES), 0)));
		TAKES(1, m, TPTM_CEU_ACCESS, TPTM_CEU_IDLE,
			assert_int_equal(v2p_map_icm(v, t->base, NULL, TPT_CHUNK_PAGES), -EEXIST));
		TAKES(1, m, TPTM_CEU_ACCESS, TPTM_CEU_IDLE,
			assert_int_equal(v2p_unmap_icm(v, t->base, TPT_CHUNK_PAGES), 0));
		TAKES(1, m, TPTM_CEU_ACCESS, TPTM_CEU_PAYLOAD,
			assert_int_equal(v2p_map_icm(v, t->base, NULL, TPT_CHUNK_PAGES), 0));
		v2p_unmap_icm(v, t->base, TPT_CHUNK_PAGES);
		TAKES(1, m, TPTM_CEU_PAYLOAD, TPTM_CEU_IDLE,
			assert_int_equal(v2p_map_icm(v, t->base, NULL, TPT_CHUNK_PAGES), 0));
	}
	WITH_TAKES(1, names[0], TPTM_CEU_ACCESS, TPTM_CEU_IDLE,
		TAKES(1, names[1], TPTM_CEU_ACCESS, TPTM_CEU_IDLE,
			assert_int_equal(v2p_close(v), 0)));
}

static void mptm_proc__reads_and_writes_entries(void **state)
{
	const char *m = "mptm_proc, MPT";

	(void)state;
	TAKES(1, m, ENTRY_ACCESS, ENTRY_IDLE, assert_int_equal(reach(KEY), V2P_KEY_ERR));
	TAKES(1, m, ENTRY_IDLE, ENTRY_ACCESS, assert_int_equal(write_mpt(KEY, 0), 0));
	TAKES(0, m, ENTRY_IDLE, ENTRY_ACCESS, assert_int_equal(reach(KEY), V2P_SUCCESS)); /* hit */
	/* what it evicts is dirty, and goes to memory; then it does so no more */
	TAKES(2, m, ENTRY_ACCESS, ENTRY_DMA_REQ, assert_int_equal(reach(OTHER), V2P_KEY_ERR));
	TAKES(1, m, ENTRY_DMA_REQ, ENTRY_IDLE, assert_int_equal(reach(KEY), V2P_SUCCESS));
	/* a chunk that is not mapped */
	WITH_TAKES(0, m, ENTRY_ACCESS, ENTRY_DMA_REQ,
		TAKES(1, m, ENTRY_ACCESS, ENTRY_IDLE,
			assert_int_equal(reach(IN_2ND_MPT), V2P_KEY_ERR)));
}

static void mttm_proc__reads_and_writes_entries(void **state)
{
	const char *m = "mttm_proc, MTT";

	(void)state;
	assert_int_equal(write_mpt(KEY, MPT_PAGES), 0);
	TAKES(1, m, ENTRY_ACCESS, ENTRY_IDLE, assert_int_equal(reach(KEY), V2P_LENGTH_ERR));
	TAKES(1, m, ENTRY_IDLE, ENTRY_ACCESS, assert_int_equal(write_mtt(0, 2), 0));
	TAKES(0, m, ENTRY_IDLE, ENTRY_ACCESS, assert_int_equal(reach(KEY), V2P_SUCCESS));
	TAKES(2, m, ENTRY_ACCESS, ENTRY_DMA_REQ, assert_int_equal(write_mtt(4, 2), 0));
	TAKES(2, m, ENTRY_DMA_REQ, ENTRY_IDLE, assert_int_equal(reach(KEY), V2P_SUCCESS));
}

static void mtt_ram_ctl__commands_line_by_line(void **state)
{
	const char *m = "mtt_ram_ctl, CEU";

	(void)state;
	TAKES(1, m, MTT_CEU_REQ_IDLE, MTT_CEU_REQ_PROC, assert_int_equal(write_mtt(0, 1), 0));
	TAKES(1, m, MTT_CEU_REQ_PROC, MTT_CEU_REQ_IDLE, assert_int_equal(write_mtt(0, 4), 0));
	TAKES(0, m, MTT_CEU_REQ_PROC, MTT_CEU_REQ_PROC, assert_int_equal(write_mtt(0, 4), 0));
	TAKES(1, m, MTT_CEU_REQ_PROC, MTT_CEU_REQ_PROC, assert_int_equal(write_mtt(3, 2), 0));
	TAKES(3, m, MTT_CEU_REQ_PROC, MTT_CEU_REQ_PROC, assert_int_equal(write_mtt(3, 10), 0));
	/* HW2SW_MPT covers its MTTs */
	assert_int_equal(write_mpt(KEY, MPT_PAGES | MPT_OWNS_PAGES), 0);
	TAKES(1, m, MTT_CEU_REQ_IDLE, MTT_CEU_REQ_PROC,
		assert_int_equal(v2p_invalidate_mpt(&f.v2p, KEY), 0));
}

/* Which of the parsers a request with pages goes through. */
static void parsers__one_for_each_kind_of_access(void **state)
{
	static const struct {
		enum v2p_channel channel;
		uint32_t access;
		const char *parser;
	} rows[] = {
		{V2P_DBP_WQE, V2P_LOCAL_READ, "mpt_rd_wqe_req_parser"},
		{V2P_WP_WQE, V2P_LOCAL_READ, "mpt_rd_wqe_req_parser"},
		{V2P_EE_RQ_WQE, V2P_LOCAL_READ, "mpt_rd_wqe_req_parser"},
		{V2P_WP_DATA, V2P_LOCAL_READ, "mpt_rd_req_parser"},
		{V2P_EE_DATA, ACCESS_REMOTE_READ, "mpt_rd_req_parser"},
		{V2P_EE_DATA, ACCESS_REMOTE_WRITE, "mpt_wr_req_parser"},
		{V2P_EE_DATA, ACCESS_REMOTE_ATOMIC, "mpt_wr_req_parser"},
		{V2P_RTC_CQ, ACCESS_LOCAL_WRITE, "mpt_wr_req_parser"},
		{V2P_RRC_DATA, ACCESS_LOCAL_WRITE, "mpt_wr_req_parser"},
	};

	(void)state;
	assert_int_equal(write_mpt(KEY, MPT_PAGES), 0);
	assert_int_equal(write_mtt(0, 2), 0);
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		uint64_t run;
		uint8_t *at;

		WITH_TAKES(1, rows[i].parser, PARSER_INIT_LOOKUP, PARSER_RD_MPT_REQ,
			TAKES(1, rows[i].parser, PARSER_RD_MPT_REQ, PARSER_INIT_LOOKUP,
				assert_int_equal(v2p_request(&f.port, rows[i].channel, PD, 0, KEY,
							 0, 8, rows[i].access, &at, &run),
					V2P_SUCCESS)));
		assert_ptr_equal(at, 0x10000);
	}
}

static int group_setup(void **state)
{
	char *argv[] = {"test", "--no-huge", "-m", "64", "--no-pci", "--no-shconf",
		"--no-telemetry", "--lcores=0@0", "--log-level=lib.*:4", NULL};

	(void)state;
	return rte_eal_init(9, argv) < 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_prestate_setup_teardown(name, setup, teardown, #name)
	const struct CMUnitTest tests[] = {
		TEST(tptmdata__works_for_commands_and_caches),
		TEST(ceu_tptm_proc__deals_commands_out),
		TEST(tptm_proc__commands_of_each_table),
		TEST(mptm_proc__reads_and_writes_entries),
		TEST(mttm_proc__reads_and_writes_entries),
		TEST(mtt_ram_ctl__commands_line_by_line),
		TEST(parsers__one_for_each_kind_of_access),
	};

	return cmocka_run_group_tests_name("v2p_machines", tests, group_setup, NULL);
}
