/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows over regions whose pages are not contiguous, fast registrations of any pages: translation
 * of accesses, refusals, and that no access reaches another registration's pages.
 */
#include <pthread.h>
#include "engine_fixture.h"

enum {
	FLAT = 0x660100,  /* PAGES pages in one piece at START */
	PAGED = 0x660200, /* the same pages in another order */
	WINDOW = 0x660300,
	WINDOW2 = 0x660400,
	FAST = 0x660500,  /* with SLOT MTT entries */
	PLAIN = 0x660600, /* without */
	LARGE = 0x660700,
	PAGES = 8,
	PAGE = 0x1000,
	START = 0x40000,
	IOVA = 0x70000100, /* of fast registrations */
	SLOT = 4,
	MTT_PAGED = 16,
	MTT_FAST = 101, /* not at the beginning of a cache line */
	QPN = 0x101,
	RACE_STEPS = 20000,
};
#define ALL (ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)

static uint8_t bytes[PAGES * PAGE] __attribute__((aligned(4096)));
/* The order of the bytes' pages in PAGED. */
static const unsigned order[PAGES] = {3, 0, 1, 2, 7, 5, 6, 4};

static struct v2p_port *port(void)
{
	return fx->e->v2p_port[STAGE_RESPONDER_EXEC];
}

static int write_region(uint32_t key, uint32_t flags, uint8_t *phys)
{
	struct mpt_entry m = {.key = key,
			      .pd = FX_PD,
			      .access = ACCESS_LOCAL_WRITE | ALL | ACCESS_MW_BIND,
			      .flags = flags,
			      .start = START,
			      .length = PAGES * PAGE};

	if (flags & MPT_PAGES) {
		m.mtt_first = MTT_PAGED;
		m.log_page = 12;
	} else {
		m.phys = phys;
	}
	return v2p_write_mpt(fx->e->v2p, &m);
}

static int write_key(uint32_t key, uint32_t flags, uint32_t mtt_first, uint8_t pages_max)
{
	struct mpt_entry m = {.key = key,
			      .pd = FX_PD,
			      .flags = flags,
			      .mtt_first = mtt_first,
			      .pages_max = pages_max};

	return v2p_write_mpt(fx->e->v2p, &m);
}

static void make(void)
{
	const uint32_t fast = MPT_FAST | MPT_INVALIDATE_REMOTE;
	uint64_t page[PAGES];

	for (unsigned i = 0; i < PAGES; i++)
		page[i] = (uintptr_t)bytes + order[i] * PAGE;
	assert_int_equal(v2p_write_mtt(fx->e->v2p, MTT_PAGED, page, PAGES), 0);
	assert_int_equal(write_region(FLAT, 0, bytes), 0);
	assert_int_equal(write_region(PAGED, MPT_PAGES, NULL), 0);
	assert_int_equal(write_key(WINDOW, MPT_WINDOW_1, 0, 0), 0);
	assert_int_equal(write_key(WINDOW2, MPT_WINDOW_2 | MPT_INVALIDATE_REMOTE, 0, 0), 0);
	assert_int_equal(write_key(FAST, fast | MPT_OWNS_PAGES, MTT_FAST, SLOT), 0);
	assert_int_equal(write_key(PLAIN, fast, 0, 0), 0);
}

static enum v2p_state reach(uint32_t key, uint64_t va, uint64_t length, uint8_t **at, uint64_t *run)
{
	return v2p_request(port(), V2P_EE_DATA,
			   &(struct v2p_access){.pd = FX_PD,
						.qpn = QPN,
						.key = key,
						.va = va,
						.length = length,
						.rights = ACCESS_REMOTE_READ},
			   at, run);
}

/* An access of `length` bytes begins at an offset into `bytes`, and `run` of them follow there. */
static void assert_reach(uint32_t key, uint64_t va, uint64_t length, uint64_t offset,
			 uint64_t expected_run)
{
	uint64_t run;
	uint8_t *at;

	assert_int_equal(reach(key, va, length, &at, &run), V2P_SUCCESS);
	assert_ptr_equal(at, bytes + offset);
	assert_int_equal(run, expected_run);
	assert_int_equal(v2p_check(port(), V2P_EE_DATA,
				   &(struct v2p_access){.pd = FX_PD,
							.qpn = QPN,
							.key = key,
							.va = va,
							.length = length,
							.rights = ACCESS_REMOTE_READ}),
			 V2P_SUCCESS);
}

static void assert_refused(uint32_t key, uint64_t va, uint64_t length, enum v2p_state why)
{
	uint64_t run;
	uint8_t *at;

	assert_int_equal(reach(key, va, length, &at, &run), why);
	assert_null(at);
}

static uint32_t held(uint32_t key)
{
	return fx->e->v2p->bound[v2p_index(fx->e->v2p, key)];
}

static enum v2p_state bind(uint32_t key, uint32_t parent, uint64_t offset, uint64_t length)
{
	const struct v2p_bind b = {.key = key,
				   .parent = parent,
				   .pd = FX_PD,
				   .qpn = QPN,
				   .access = ACCESS_REMOTE_READ,
				   .start = START + offset,
				   .length = length};

	return v2p_bind(fx->e->v2p, &b);
}

/* ---- windows ---- */

TEST(window__over_pages)
{
	struct v2p *v = fx->e->v2p;

	make();
	assert_int_equal(bind(WINDOW + 1, PAGED, 0x800, 3 * PAGE), V2P_SUCCESS);
	assert_reach(WINDOW + 1, START + 0x800, 16, 3 * PAGE + 0x800, 16);
	assert_reach(WINDOW + 1, START + 0x800, 3 * PAGE, 3 * PAGE + 0x800, 0x800);
	assert_reach(WINDOW + 1, START + PAGE, 2 * PAGE, 0, 2 * PAGE);
	assert_reach(WINDOW + 1, START + 3 * PAGE, 0x800, 2 * PAGE, 0x800);
	assert_refused(WINDOW + 1, START + 3 * PAGE, 0x801, V2P_LENGTH_ERR);
	assert_refused(WINDOW + 1, START + 0x7ff, 1, V2P_LENGTH_ERR);
	assert_int_equal(held(PAGED), 1);
	assert_int_equal(v2p_invalidate_mpt(v, PAGED), -EBUSY);
	/* to a region in one piece and back */
	assert_int_equal(bind(WINDOW + 2, FLAT, 0x800, 3 * PAGE), V2P_SUCCESS);
	assert_reach(WINDOW + 2, START + 0x800, 3 * PAGE, 0x800, 3 * PAGE);
	assert_int_equal(held(PAGED), 0);
	assert_int_equal(bind(WINDOW + 3, PAGED, 7 * PAGE, PAGE), V2P_SUCCESS);
	assert_reach(WINDOW + 3, START + 7 * PAGE, PAGE, 4 * PAGE, PAGE);
	assert_int_equal(bind(WINDOW + 4, 0, 0, 0), V2P_SUCCESS);
	assert_int_equal(v2p_invalidate_mpt(v, PAGED), 0);
}

TEST(window__whose_page_is_missing)
{
	const uint64_t none = 0;

	make();
	assert_int_equal(bind(WINDOW2 + 1, PAGED, PAGE, 2 * PAGE), V2P_SUCCESS);
	assert_int_equal(v2p_write_mtt(fx->e->v2p, MTT_PAGED + 2, &none, 1), 0);
	assert_reach(WINDOW2 + 1, START + PAGE, 2 * PAGE, 0, PAGE);
	assert_refused(WINDOW2 + 1, START + 2 * PAGE, 1, V2P_LENGTH_ERR);
	assert_int_equal(v2p_invalidate(fx->e->v2p, FX_PD, QPN, WINDOW2 + 1), V2P_SUCCESS);
	assert_refused(WINDOW2 + 1, START + PAGE, 1, V2P_KEY_ERR);
}

/* ---- fast registration ---- */

static uint64_t va_of(unsigned page)
{
	return START + page * PAGE;
}

/* Pages a, b, c of a region: nearly three pages from IOVA. */
static enum v2p_state register_three(uint32_t key, uint32_t parent, unsigned a, unsigned b,
				     unsigned c)
{
	const uint64_t page[] = {va_of(a), va_of(b), va_of(c)};
	const struct v2p_registration r = {.key = key,
					   .parent = parent,
					   .pd = FX_PD,
					   .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ,
					   .iova = IOVA,
					   .length = 3 * PAGE - 0x100,
					   .page = page,
					   .pages = 3,
					   .log_page = 12};

	return v2p_fast_register(port(), &r);
}

TEST(fast__pages_in_any_order)
{
	struct v2p *v = fx->e->v2p;

	make();
	assert_int_equal(register_three(FAST + 1, FLAT, 5, 0, 1), V2P_SUCCESS);
	assert_reach(FAST + 1, IOVA, 3 * PAGE - 0x100, 5 * PAGE + 0x100, PAGE - 0x100);
	assert_reach(FAST + 1, IOVA + PAGE - 0x100, 2 * PAGE, 0, 2 * PAGE);
	assert_reach(FAST + 1, IOVA + 2 * PAGE, 8, PAGE + 0x100, 8);
	assert_refused(FAST + 1, IOVA + 2 * PAGE, PAGE, V2P_LENGTH_ERR);
	assert_int_equal(register_three(FAST + 2, FLAT, 5, 0, 1), V2P_KEY_ERR); /* is valid */
	assert_int_equal(held(FLAT), 1);
	assert_int_equal(v2p_invalidate_mpt(v, FLAT), -EBUSY);
	assert_int_equal(v2p_invalidate(v, FX_PD, QPN, FAST + 1), V2P_SUCCESS);
	assert_int_equal(held(FLAT), 0);
	/* in one piece, which needs no MTT; and in pieces again, of a region in pieces */
	assert_int_equal(register_three(FAST + 2, FLAT, 2, 3, 4), V2P_SUCCESS);
	assert_refused(FAST + 1, IOVA, 1, V2P_KEY_ERR);
	assert_reach(FAST + 2, IOVA, 3 * PAGE - 0x100, 2 * PAGE + 0x100, 3 * PAGE - 0x100);
	assert_int_equal(v2p_invalidate(v, FX_PD, QPN, FAST + 2), V2P_SUCCESS);
	assert_int_equal(register_three(FAST + 3, PAGED, 4, 2, 3), V2P_SUCCESS);
	assert_reach(FAST + 3, IOVA, 3 * PAGE - 0x100, 7 * PAGE + 0x100, PAGE - 0x100);
	assert_reach(FAST + 3, IOVA + PAGE - 0x100, 2 * PAGE, PAGE, 2 * PAGE);
	assert_int_equal(v2p_invalidate(v, FX_PD, QPN, FAST + 3), V2P_SUCCESS);
	/* pages that lie apart in the region and one behind the other in memory */
	assert_int_equal(register_three(PLAIN, PAGED, 0, 7, 5), V2P_SUCCESS);
	assert_reach(PLAIN, IOVA, 3 * PAGE - 0x100, 3 * PAGE + 0x100, 3 * PAGE - 0x100);
	assert_int_equal(v2p_invalidate_mpt(v, PLAIN), 0);
	assert_int_equal(held(PAGED), 0);
}

TEST(fast__invalidated_by_the_control_side)
{
	struct v2p *v = fx->e->v2p;

	make();
	assert_int_equal(register_three(FAST + 1, FLAT, 5, 0, 1), V2P_SUCCESS);
	assert_int_equal(v2p_invalidate_mpt(v, FAST), 0);
	assert_refused(FAST + 1, IOVA, 1, V2P_KEY_ERR);
	assert_int_equal(held(FLAT), 0);
	assert_int_equal(v2p_invalidate_mpt(v, FLAT), 0);
}

TEST(fast__large_pages_of_a_region_in_pieces)
{
	uint64_t page = va_of(2);
	struct v2p_registration r = {.key = FAST,
				     .parent = PAGED,
				     .pd = FX_PD,
				     .iova = IOVA,
				     .length = 2 * PAGE - 0x100,
				     .page = &page,
				     .pages = 1,
				     .log_page = 13};

	make();
	assert_int_equal(v2p_fast_register(port(), &r), V2P_SUCCESS); /* 1 and 2 */
	assert_int_equal(v2p_invalidate(fx->e->v2p, FX_PD, QPN, FAST), V2P_SUCCESS);
	page = va_of(0); /* 3 and 0 */
	assert_int_equal(v2p_fast_register(port(), &r), V2P_LENGTH_ERR);
	assert_int_equal(held(PAGED), 0);
}

/* Large pages over a region of small ones cannot hold up an lcore. */
TEST(fast__looks_at_so_many_pages_of_the_region)
{
	enum { COUNT = 2 * V2P_FAST_PARENT_PAGES_MAX, FIRST = 1 << 12 };
	const uint64_t page = 0;
	struct mpt_entry m = {.key = LARGE,
			      .pd = FX_PD,
			      .access = ACCESS_MW_BIND,
			      .flags = MPT_PAGES,
			      .length = (uint64_t)COUNT * PAGE,
			      .mtt_first = FIRST,
			      .log_page = 12};
	struct v2p_registration r = {
		.key = FAST, .parent = LARGE, .pd = FX_PD, .page = &page, .pages = 1};

	make();
	for (uint64_t i = 0; i < COUNT; i++) {
		const uint64_t at = (1ull << 40) + i * PAGE; /* never accessed */

		assert_int_equal(v2p_write_mtt(fx->e->v2p, FIRST + (uint32_t)i, &at, 1), 0);
	}
	assert_int_equal(v2p_write_mpt(fx->e->v2p, &m), 0);
	for (r.log_page = 25; r.log_page >= 24; r.log_page--) {
		r.length = 1ull << r.log_page;
		assert_int_equal(v2p_fast_register(port(), &r),
				 r.log_page == 25 ? V2P_LENGTH_ERR : V2P_SUCCESS);
	}
}

TEST(fast__refusals)
{
	const uint32_t flags = MPT_FAST | MPT_INVALIDATE_REMOTE | MPT_OWNS_PAGES;
	struct v2p *v = fx->e->v2p;
	const uint32_t entries = v->mtt.entries;

	make();
	assert_int_equal(register_three(PLAIN, FLAT, 5, 0, 1), V2P_LENGTH_ERR); /* no MTT */
	assert_int_equal(v2p_invalidate_mpt(v, FAST), 0);
	assert_int_equal(write_key(FAST, flags, MTT_FAST, 0), -EINVAL);
	assert_int_equal(write_key(FAST, flags, entries - 1, 2), -EINVAL);
	assert_int_equal(write_key(FAST, flags & ~MPT_FAST, 0, 1), -EINVAL);
	assert_int_equal(write_key(FAST, flags | MPT_PAGES, 0, 1), -EINVAL);
	assert_int_equal(write_key(FAST, flags | MPT_CLAIMED, 0, 1), -EINVAL);
	assert_int_equal(write_key(FAST, flags, MTT_FAST, 2), 0);
	assert_int_equal(register_three(FAST, FLAT, 5, 0, 1), V2P_LENGTH_ERR); /* made for two */
	assert_int_equal(register_three(FAST, FLAT, 5, 6, 7), V2P_LENGTH_ERR);
	assert_int_equal(v2p_invalidate_mpt(v, FAST), 0);
	/* memory that does not begin where a page of the MTT can */
	assert_int_equal(v2p_invalidate_mpt(v, FLAT), 0);
	assert_int_equal(write_region(FLAT, 0, bytes + 64), 0);
	assert_int_equal(write_key(FAST, flags, MTT_FAST, SLOT), 0);
	assert_int_equal(register_three(FAST, FLAT, 5, 0, 1), V2P_LENGTH_ERR);
	assert_int_equal(held(FLAT), 0);
}

/* No ICM behind the MTT entries: the claim is given up again. */
TEST(fast__without_memory_for_its_pages)
{
	const uint64_t none = 0;
	const uint32_t first = 1u << 17;

	make();
	assert_int_equal(v2p_invalidate_mpt(fx->e->v2p, FAST), 0);
	assert_int_equal(
		write_key(FAST, MPT_FAST | MPT_INVALIDATE_REMOTE | MPT_OWNS_PAGES, first, SLOT), 0);
	assert_int_equal(register_three(FAST, FLAT, 5, 0, 1), V2P_LENGTH_ERR);
	assert_int_equal(held(FLAT), 0);
	assert_int_equal(v2p_write_mtt(fx->e->v2p, first, &none, 1), 0);
	assert_int_equal(register_three(FAST, FLAT, 5, 0, 1), V2P_SUCCESS);
}

/* Another work request is in the middle of it. */
TEST(fast__claimed)
{
	struct v2p *v = fx->e->v2p;
	struct mpt_entry m;

	make();
	assert_true(v2p_entry_get(v, FAST, &m));
	m.flags |= MPT_CLAIMED;
	assert_int_equal(v2p_entry_replace(v, 0, &m), V2P_SUCCESS);
	assert_int_equal(register_three(FAST, FLAT, 5, 0, 1), V2P_KEY_ERR);
	assert_int_equal(register_three(FAST, FLAT, 5, 6, 7), V2P_KEY_ERR);
	assert_refused(FAST, IOVA, 1, V2P_KEY_ERR);
	assert_int_equal(v2p_invalidate(v, FX_PD, QPN, FAST), V2P_KEY_ERR);
	assert_int_equal(v2p_invalidate_mpt(v, FAST), 0);
}

/* ---- threads ---- */

static bool over; /* atomic */

/* Registers pages 5, 0, 1 under one tag and 6, 3, 2 under the next, again and again. */
static void *changer(void *arg)
{
	uintptr_t ok = 0;

	for (unsigned n = 0; n < RACE_STEPS; n++) {
		uint32_t key = FAST + n % 2;

		ok += (n % 2 ? register_three(key, FLAT, 6, 3, 2)
			     : register_three(key, FLAT, 5, 0, 1)) == V2P_SUCCESS;
		v2p_invalidate(fx->e->v2p, FX_PD, QPN, key);
	}
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	return (void *)ok;
}

TEST(race__tag_and_pages_belong_together)
{
	static const unsigned pages[2][3] = {{5, 0, 1}, {6, 3, 2}};
	static struct counters counters;
	struct v2p_port mine = {.v2p = fx->e->v2p, .counters = &counters};
	unsigned wrong = 0;
	pthread_t thread;
	void *ok;

	over = false;
	make();
	assert_int_equal(pthread_create(&thread, NULL, changer, NULL), 0);
	for (unsigned n = 0; !__atomic_load_n(&over, __ATOMIC_ACQUIRE); n++) {
		unsigned tag = n % 2, i = n / 2 % 3;
		uint64_t run;
		uint8_t *at;

		if (v2p_request(&mine, V2P_EE_DATA,
				&(struct v2p_access){.pd = FX_PD,
						     .qpn = QPN,
						     .key = FAST + tag,
						     .va = IOVA + i * PAGE,
						     .length = 8,
						     .rights = ACCESS_REMOTE_READ},
				&at, &run) == V2P_SUCCESS)
			wrong += at != bytes + pages[tag][i] * PAGE + 0x100;
	}
	pthread_join(thread, &ok);
	assert_int_equal(wrong, 0);
	assert_int_equal((uintptr_t)ok, RACE_STEPS);
	assert_int_equal(held(FLAT), 0);
}
