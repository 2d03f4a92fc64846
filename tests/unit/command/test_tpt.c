/* SPDX-License-Identifier: BSD-3-Clause */
/* The TPT by raw mailboxes: regions of pages, chunks of ICM, what CLOSE_HCA wants. */
#include "command_fixture.h"

enum { KEY = 0x7703, PD = 9, MPT_BASE = 0, MTT_BASE = CEU_ICM_CHUNK_BYTES };

static struct command_fixture f;
static struct v2p_port port;

static int setup(void **state)
{
	memset(&f, 0, sizeof(f));
	command_fixture_make(&f);
	port = (struct v2p_port){.v2p = &f.v2p, .counters = &f.counters};
	return 0;
}

static int teardown(void **state)
{
	command_fixture_free(&f);
	return 0;
}

static enum ceu_status exec(uint16_t op, uint32_t modifier, const void *in, uint32_t bytes)
{
	return ceu_exec(f.ceu, op, modifier, in, bytes, NULL, 0);
}

static enum ceu_status write_mtt(uint32_t count, uint64_t first, uint64_t page)
{
	static struct ceu_write_mtt in;

	in.first = first;
	for (uint32_t i = 0; i < CEU_MTT_MAX; i++)
		in.page[i] = page + ((uint64_t)i << 12);
	return exec(CEU_WRITE_MTT, count, &in, sizeof(in));
}

static struct mpt_entry region(void)
{
	return (struct mpt_entry){.key = KEY,
				  .pd = PD,
				  .access = ACCESS_LOCAL_WRITE,
				  .flags = MPT_PAGES | MPT_OWNS_PAGES,
				  .start = 0x1800,
				  .length = 0x2000,
				  .first_offset = 0x800,
				  .mtt_first = 510,
				  .log_page = 12};
}

static enum ceu_status make(const struct mpt_entry *m)
{
	return exec(CEU_SW2HW_MPT, v2p_index(&f.v2p, m->key), m, sizeof(*m));
}

static enum v2p_state map(uint64_t va, uint64_t length, uintptr_t *addr, uint64_t *run)
{
	uint8_t *at;
	enum v2p_state s = v2p_request(
		&port, V2P_EE_DATA,
		&(struct v2p_access){.pd = PD, .key = KEY, .va = va, .length = length, .rights = 0},
		&at, run);

	*addr = (uintptr_t)at;
	return s;
}

#undef TEST
#define TEST(name) TEST_WITH(name, setup, teardown)

TEST(mtt__pages_of_a_region)
{
	const struct mpt_entry m = region();
	uintptr_t addr;
	uint64_t run;

	assert_int_equal(write_mtt(512, 0, 0x100000), CEU_OK);
	assert_int_equal(write_mtt(3, 510, 0x700000), CEU_OK);
	assert_int_equal(write_mtt(1, 511, 0x900000), CEU_OK);
	assert_int_equal(make(&m), CEU_OK);
	assert_int_equal(map(0x1800, 0x2000, &addr, &run), V2P_SUCCESS);
	assert_int_equal(addr, 0x700800);
	assert_int_equal(run, 0x800);
	assert_int_equal(map(0x2000, 0x1800, &addr, &run), V2P_SUCCESS);
	assert_int_equal(addr, 0x900000);
	assert_int_equal(run, 0x1000);
	assert_int_equal(map(0x37ff, 1, &addr, &run), V2P_SUCCESS);
	assert_int_equal(addr, 0x7027ff);
	assert_int_equal(map(0x3800, 1, &addr, &run), V2P_LENGTH_ERR);
}

TEST(mtt__goes_with_its_region)
{
	struct mpt_entry m = region();
	uintptr_t addr;
	uint64_t run;

	assert_int_equal(write_mtt(512, 400, 0x100000), CEU_OK);
	assert_int_equal(make(&m), CEU_OK);
	assert_int_equal(exec(CEU_HW2SW_MPT, KEY, NULL, 0), CEU_OK);
	m.flags = MPT_PAGES;
	assert_int_equal(make(&m), CEU_OK);
	assert_int_equal(map(0x1800, 8, &addr, &run), V2P_LENGTH_ERR);
	assert_int_equal(write_mtt(3, 510, 0x100000), CEU_OK);
	assert_int_equal(exec(CEU_HW2SW_MPT, KEY, NULL, 0), CEU_OK);
	assert_int_equal(make(&m), CEU_OK); /* whose pages they are not, they stay */
	assert_int_equal(map(0x1800, 8, &addr, &run), V2P_SUCCESS);
}

TEST(mtt__refused_parameters)
{
	struct mpt_entry m;

	assert_int_equal(write_mtt(513, 0, 0x1000), CEU_BAD_PARAM);
	assert_int_equal(write_mtt(1, 1024, 0x1000), CEU_BAD_PARAM);
	assert_int_equal(write_mtt(2, 1023, 0x1000), CEU_BAD_PARAM);
	assert_int_equal(write_mtt(1, 1ull << 32, 0x1000), CEU_BAD_PARAM);
	assert_int_equal(write_mtt(1, 0, 0x1001), CEU_BAD_PARAM);
#define REFUSED(field, value)                                                                      \
	do {                                                                                       \
		m = region();                                                                      \
		m.field = value;                                                                   \
		assert_int_equal(make(&m), CEU_BAD_PARAM);                                         \
	} while (0)
	REFUSED(log_page, 11);
	REFUSED(log_page, 31);
	REFUSED(log_page, 0);
	REFUSED(mtt_first, 1022); /* three pages, as the first byte lies in the middle of one */
	REFUSED(mtt_first, UINT32_MAX);
	REFUSED(first_offset, UINT64_MAX - 0x1000);
	REFUSED(length, UINT64_MAX - 0x1800);
	REFUSED(flags, MPT_OWNS_PAGES);
	REFUSED(flags, MPT_PAGES | 1u << 30);
#undef REFUSED
}

static enum ceu_status map_icm(uint32_t count, uint64_t virt, uint64_t next)
{
	const struct ceu_map_icm in = {
		.chunk = {{.virt = virt, .page = CEU_ICM_PAGES}, {.virt = next, .page = 64}}};

	return exec(CEU_MAP_ICM, CEU_ICM_TPT | count, &in, sizeof(in));
}

static enum ceu_status unmap_icm(uint64_t virt, uint32_t pages)
{
	const struct ceu_unmap_icm in = {.virt = virt, .pages = pages};

	return exec(CEU_UNMAP_ICM, CEU_ICM_TPT, &in, sizeof(in));
}

TEST(icm__mapped_and_given_back)
{
	const struct mpt_entry m = region();

	assert_int_equal(f.v2p.chunks, 0); /* nothing before it is used */
	assert_int_equal(map_icm(2, MPT_BASE, MTT_BASE), CEU_OK);
	assert_int_equal(f.v2p.chunks, 2);
	assert_int_equal(map_icm(1, MTT_BASE, 0), CEU_BAD_SYS_STATE);
	assert_int_equal(make(&m), CEU_OK);
	assert_int_equal(f.v2p.chunks, 2);
	assert_int_equal(unmap_icm(MPT_BASE, CEU_ICM_PAGES), CEU_BAD_SYS_STATE);
	assert_int_equal(unmap_icm(MTT_BASE, CEU_ICM_PAGES), CEU_OK);
	assert_int_equal(exec(CEU_HW2SW_MPT, KEY, NULL, 0), CEU_OK);
	assert_int_equal(unmap_icm(MPT_BASE, CEU_ICM_PAGES), CEU_OK);
	assert_int_equal(unmap_icm(MPT_BASE, CEU_ICM_PAGES), CEU_BAD_SYS_STATE);
	assert_int_equal(f.v2p.chunks, 0);
	assert_int_equal(make(&m), CEU_OK); /* and mapped again when it is used */
	assert_int_equal(f.v2p.chunks, 1);
}

TEST(icm__refused_parameters)
{
	assert_int_equal(map_icm(0, MPT_BASE, 0), CEU_BAD_PARAM);
	assert_int_equal(map_icm(65, MPT_BASE, 0), CEU_BAD_PARAM);
	assert_int_equal(map_icm(1, MPT_BASE + 4096, 0), CEU_BAD_PARAM);
	assert_int_equal(map_icm(1, MTT_BASE + CEU_ICM_CHUNK_BYTES, 0), CEU_BAD_PARAM);
	assert_int_equal(map_icm(2, MPT_BASE, MPT_BASE), CEU_BAD_SYS_STATE); /* all or none */
	assert_int_equal(f.v2p.chunks, 0);
	assert_int_equal(unmap_icm(MPT_BASE, 63), CEU_BAD_PARAM);
	assert_int_equal(unmap_icm(MPT_BASE, 0), CEU_BAD_PARAM);
	assert_int_equal(unmap_icm(MPT_BASE, 128), CEU_BAD_PARAM); /* it has one chunk */
}

TEST(close__not_while_there_are_regions)
{
	const struct mpt_entry m = region();

	assert_int_equal(make(&m), CEU_OK);
	assert_int_equal(exec(CEU_CLOSE_HCA, 0, NULL, 0), CEU_BAD_SYS_STATE);
	assert_int_equal(exec(CEU_HW2SW_MPT, KEY, NULL, 0), CEU_OK);
	assert_int_equal(exec(CEU_CLOSE_HCA, 0, NULL, 0), CEU_OK);
	assert_int_equal(f.v2p.chunks, 0);
	assert_int_equal(make(&m), CEU_BAD_SYS_STATE);
	assert_int_equal(ceu_start(f.ceu), CEU_OK);
	assert_int_equal(make(&m), CEU_OK);
}

/* Keys for fast registrations, with MTT entries to put pages into. */
TEST(fast__keys_with_pages_of_their_own)
{
	const uint32_t flags = MPT_FAST | MPT_INVALIDATE_REMOTE | MPT_OWNS_PAGES;
	struct mpt_entry m;

#define MAKE(status, ...)                                                                          \
	do {                                                                                       \
		m = (struct mpt_entry){.key = KEY, .pd = PD, .flags = flags, .pages_max = 4};      \
		__VA_ARGS__;                                                                       \
		assert_int_equal(make(&m), status);                                                \
	} while (0)
	MAKE(CEU_BAD_PARAM, m.pages_max = 0);
	MAKE(CEU_BAD_PARAM, m.mtt_first = 1021);
	MAKE(CEU_BAD_PARAM, m.flags |= MPT_PAGES);
	MAKE(CEU_BAD_PARAM, m.flags |= MPT_CLAIMED);
	MAKE(CEU_BAD_PARAM, m.flags = MPT_WINDOW_1 | MPT_OWNS_PAGES);
	MAKE(CEU_BAD_PARAM, m.length = 1);
	MAKE(CEU_OK, m.mtt_first = 1020);
	assert_int_equal(exec(CEU_HW2SW_MPT, KEY, NULL, 0), CEU_OK);
#undef MAKE
}
