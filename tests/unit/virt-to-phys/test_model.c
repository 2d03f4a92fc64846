/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VirtToPhys against a plain reference model: random commands of the CEU and random accesses, with
 * caches from one line to the default size. Every answer must be the model's.
 *
 * SOFTHCA_MODEL=N: N steps in all instead of 100000; SOFTHCA_SEED: of the random numbers.
 */
#include "test.h"
#include <rte_memory.h>
#include "world_eal.h"
#include "virt-to-phys/v2p.h"

enum {
	MPTS = 8192,  /* two chunks of ICM */
	MTTS = 65536, /* two chunks */
	KEYS = 96,    /* indices that are used: many commands meet the same one */
	PAGES = 512,  /* MTT entries that are used, in both chunks */
	RUN_PAGES = V2P_RUN_PAGES_MAX,
};

/* The expected contents of the tables. */
static struct {
	struct mpt_entry mpt[MPTS];
	uint64_t mtt[MTTS]; /* 0: no page */
	bool mpt_mapped[2], mtt_mapped[2];
} model;

static struct v2p v2p;
static struct counters counters;
static struct v2p_port port = {.v2p = &v2p, .counters = &counters};
static uint64_t seed, step;

static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((seed >> 33) % below);
}

static uint32_t draw_index(void)
{
	return draw(KEYS / 2) + (draw(2) ? MPTS / 2 : 0);
}

static uint32_t draw_key(void)
{
	return (draw_index() | (draw(3) + (draw(8) != 0)) * MPTS) << KEY_TAG_BITS | draw(2);
}

static uint32_t index_of(uint32_t key)
{
	return key >> KEY_TAG_BITS & (MPTS - 1);
}

static uint32_t draw_page(void)
{
	return draw(2) ? draw(PAGES / 2) : MTTS / 2 - PAGES / 4 + draw(PAGES / 2);
}

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			printf("step %lu: %s\n", (unsigned long)step, #cond);                      \
			fail();                                                                    \
		}                                                                                  \
	} while (0)

static bool mapped(uint32_t index)
{
	return model.mpt_mapped[index / (MPTS / 2)];
}

static uint64_t pages_of(const struct mpt_entry *m)
{
	uint64_t page = 1ull << m->log_page;

	return (m->first_offset + m->length + page - 1) / page;
}

static struct mpt_entry draw_entry(void)
{
	static const uint8_t log_pages[] = {12, 12, 21, 30};
	struct mpt_entry m = {.key = draw_key(),
			      .pd = draw(3),
			      .access = draw(16),
			      .flags = draw(2) ? MPT_INVALIDATE_REMOTE : 0,
			      .start = draw(4) ? (uint64_t)draw(1 << 20) << draw(30)
					       : UINT64_MAX - draw(1 << 16),
			      .length = (uint64_t)draw(1 << 16) << draw(20)};

	if (draw(4) == 0)
		m.start = 0;
	if (draw(2)) {
		m.phys = (uint8_t *)((uintptr_t)draw(1 << 20) * 4096);
		return m;
	}
	m.log_page = log_pages[draw(4)];
	m.length = ((uint64_t)draw(24) << m.log_page) + draw(5000);
	m.flags |= MPT_PAGES | (draw(2) ? MPT_OWNS_PAGES : 0);
	m.first_offset = draw(3) * draw(4096);
	m.mtt_first = draw_page();
	return m;
}

static void step_write_mpt(void)
{
	struct mpt_entry m = draw_entry();
	uint32_t index = index_of(m.key);
	struct mpt_entry *r = &model.mpt[index];
	bool pages = m.flags & MPT_PAGES;
	int expected = 0;

	if (!(m.key & ~MPT_KEY_TAG) || m.start + m.length < m.start ||
	    (pages && m.mtt_first + pages_of(&m) > MTTS))
		expected = -EINVAL;
	else if (mapped(index) && r->owned)
		expected = -EEXIST;
	CHECK(v2p_write_mpt(&v2p, &m) == expected);
	if (expected)
		return;
	model.mpt_mapped[index / (MPTS / 2)] = true;
	*r = m;
	r->owned = m.key;
	r->access |= V2P_LOCAL_READ | (r->flags & MPT_NOT_PLAIN ? 0 : V2P_PLAIN);
}

static void invalidate(struct mpt_entry *r)
{
	CHECK(v2p_invalidate_mpt(&v2p, r->owned) == 0);
	if (r->flags & MPT_OWNS_PAGES)
		memset(&model.mtt[r->mtt_first], 0, pages_of(r) * sizeof(uint64_t));
	*r = (struct mpt_entry){0};
}

static void step_invalidate_mpt(void)
{
	uint32_t owned = model.mpt[draw_index()].owned, key = draw(4) ? owned : draw_key();

	if (key && model.mpt[index_of(key)].owned == key)
		invalidate(&model.mpt[index_of(key)]);
	else
		CHECK(v2p_invalidate_mpt(&v2p, key) == -ENOENT);
}

static void step_write_mtt(void)
{
	uint32_t first = draw_page(), n = 1 + draw(24);
	uint64_t page[24], at = 4096ull * (1 + draw(1 << 20));
	unsigned log_page = draw(3) ? 12 : 21;

	for (uint32_t i = 0; i < n; i++) {
		at = draw(4) ? at + (1ull << log_page) : 4096ull * (1 + draw(1 << 20));
		page[i] = draw(16) ? at : 0;
	}
	CHECK(v2p_write_mtt(&v2p, first, page, n) == 0);
	memcpy(&model.mtt[first], page, n * sizeof(page[0]));
	model.mtt_mapped[first / (MTTS / 2)] = model.mtt_mapped[(first + n - 1) / (MTTS / 2)] =
		true;
}

static void step_invalidate_remote(void)
{
	struct mpt_entry *r = &model.mpt[draw_index()];
	uint32_t key = draw(4) ? r->key : draw_key(), pd = draw(4) ? r->pd : draw(3);
	enum v2p_state expected = V2P_SUCCESS;

	r = &model.mpt[index_of(key)];
	if (key == 0 || r->key != key)
		expected = V2P_KEY_ERR;
	else if (r->pd != pd)
		expected = V2P_PD_ERR;
	else if (!(r->flags & MPT_INVALIDATE_REMOTE))
		expected = V2P_FLAGS_ERR;
	CHECK(v2p_invalidate(&v2p, pd, 0, key) == expected);
	if (expected == V2P_SUCCESS)
		r->key = 0;
}

static void step_replace(void)
{
	uint32_t index = draw_index(), expected_key;
	struct mpt_entry *r = &model.mpt[index], copy;
	bool there = v2p_entry_get(&v2p, r->owned ? r->owned : index << KEY_TAG_BITS, &copy);

	CHECK(there == (r->owned != 0));
	if (!there)
		return;
	r->version = copy.version; /* the model counts no changes */
	CHECK(memcmp(&copy, r, sizeof(copy)) == 0);
	expected_key = draw(4) ? copy.key : draw_key();
	copy.key = copy.owned;
	copy.length /= 2;
	CHECK(v2p_entry_replace(&v2p, expected_key, &copy) ==
	      (expected_key == r->key ? V2P_SUCCESS : V2P_KEY_ERR));
	if (expected_key == r->key)
		*r = copy;
}

static bool in_use(uint32_t half)
{
	for (uint32_t i = 0; i < KEYS / 2; i++)
		if (model.mpt[half * MPTS / 2 + i].owned)
			return true;
	return false;
}

/* HW2SW_MPT of all entries of one half. */
static void empty(uint32_t half)
{
	for (uint32_t i = 0; i < KEYS / 2; i++)
		if (model.mpt[half * MPTS / 2 + i].owned)
			invalidate(&model.mpt[half * MPTS / 2 + i]);
}

/* MAP_ICM and UNMAP_ICM of one of the four chunks. */
static void step_icm(void)
{
	uint32_t half = draw(2);
	bool of_mpt = draw(2), *is_mapped = &(of_mpt ? model.mpt_mapped : model.mtt_mapped)[half];
	const struct tpt_table *t = of_mpt ? &v2p.mpt : &v2p.mtt;
	uint64_t virt = t->base + half * (uint64_t)TPT_CHUNK_BYTES;
	int expected = 0;

	if (draw(2)) {
		CHECK(v2p_map_icm(&v2p, virt, NULL, TPT_CHUNK_PAGES) == (*is_mapped ? -EEXIST : 0));
		*is_mapped = true;
		return;
	}
	if (of_mpt && draw(4) == 0)
		empty(half);
	if (of_mpt && in_use(half))
		expected = -EBUSY;
	if (!*is_mapped)
		expected = -ENOENT;
	CHECK(v2p_unmap_icm(&v2p, virt, TPT_CHUNK_PAGES) == expected);
	if (expected)
		return;
	*is_mapped = false;
	if (!of_mpt)
		memset(&model.mtt[half * MTTS / 2], 0, sizeof(model.mtt) / 2);
}

static void step_close(void)
{
	struct v2p_init init = {.mpt_base = (uint64_t)draw(9) * TPT_CHUNK_BYTES,
				.mtt_base = (uint64_t)(11 + draw(9)) * TPT_CHUNK_BYTES,
				.log_mpts = 13,
				.log_mtts = 16,
				.on_demand = true};

	CHECK(v2p_init(&v2p, &init) == -EBUSY);
	if (in_use(0) || in_use(1))
		CHECK(v2p_close(&v2p) == -EBUSY);
	empty(0);
	empty(1);
	CHECK(v2p_close(&v2p) == 0);
	CHECK(v2p_close(&v2p) == -EBUSY);
	CHECK(v2p_init(&v2p, &init) == 0);
	memset(&model, 0, sizeof(model));
}

struct access {
	uint32_t pd, key, rights;
	uint64_t va, length;
};

static enum v2p_state model_check(const struct access *a, uint64_t *offset)
{
	const struct mpt_entry *r = &model.mpt[index_of(a->key)];
	uint64_t start = a->rights & V2P_RELATIVE ? 0 : r->start;
	__uint128_t from = a->va, end = from + a->length;

	if (a->key == 0 || r->key != a->key)
		return V2P_KEY_ERR;
	if (r->pd != a->pd)
		return V2P_PD_ERR;
	if (a->rights & 0xf & ~r->access)
		return V2P_FLAGS_ERR;
	if (from < start || end > (__uint128_t)start + r->length)
		return V2P_LENGTH_ERR;
	*offset = a->va - start;
	return V2P_SUCCESS;
}

static enum v2p_state model_pages(const struct mpt_entry *r, uint64_t offset, uint64_t length,
				  uint64_t *addr, uint64_t *run)
{
	uint64_t page = 1ull << r->log_page, at = r->first_offset + offset;
	const uint64_t *mtt = &model.mtt[r->mtt_first + at / page];
	unsigned n = 1;

	if (!mtt[0])
		return V2P_LENGTH_ERR;
	while (n < RUN_PAGES && n * page - at % page < length && mtt[n] == mtt[0] + n * page)
		n++;
	*addr = mtt[0] + at % page;
	*run = RTE_MIN(length, n * page - at % page);
	return V2P_SUCCESS;
}

static struct access draw_access(void)
{
	const struct mpt_entry *r = &model.mpt[draw_index()];
	struct access a = {.pd = draw(8) ? r->pd : draw(3),
			   .key = draw(8) ? r->key : draw_key(),
			   .rights = draw(3) ? r->access & draw(16) : draw(16),
			   .va = r->start,
			   .length =
				   draw(8) ? 1 + draw(5000) : (uint64_t)draw(1 << 30) << draw(34)};

	if (r->length && draw(8))
		a.va += (uint64_t)draw(1 << 30) * 997 % r->length;
	if (draw(8) == 0) {
		a.rights |= V2P_RELATIVE;
		a.va -= r->start;
	}
	if (draw(32) == 0)
		a.va -= draw(3);
	return a;
}

static void step_access(void)
{
	struct access a = draw_access();
	uint64_t offset = 0, expected_addr = 0, expected_run = a.length, run;
	const struct mpt_entry *r = &model.mpt[index_of(a.key)];
	enum v2p_state expected = V2P_SUCCESS;
	uint8_t *addr;

	if (a.length) {
		expected = model_check(&a, &offset);
		CHECK(v2p_check(&port, V2P_EE_DATA,
				&(struct v2p_access){.pd = a.pd,
						     .key = a.key,
						     .va = a.va,
						     .length = a.length,
						     .rights = a.rights}) == expected);
		if (expected == V2P_SUCCESS && r->flags & MPT_PAGES)
			expected = model_pages(r, offset, a.length, &expected_addr, &expected_run);
		else if (expected == V2P_SUCCESS)
			expected_addr = (uintptr_t)r->phys + offset;
	}
	CHECK(v2p_request(&port, V2P_EE_DATA,
			  &(struct v2p_access){.pd = a.pd,
					       .key = a.key,
					       .va = a.va,
					       .length = a.length,
					       .rights = a.rights},
			  &addr, &run) == expected);
	if (expected == V2P_SUCCESS) {
		CHECK((uintptr_t)addr == expected_addr);
		CHECK(run == expected_run);
	}
}

static void one_step(void)
{
	uint32_t what = draw(1000);

	if (what < 600)
		step_access();
	else if (what < 720)
		step_write_mpt();
	else if (what < 800)
		step_invalidate_mpt();
	else if (what < 900)
		step_write_mtt();
	else if (what < 940)
		step_invalidate_remote();
	else if (what < 995)
		step_replace();
	else if (what < 999 || draw(20))
		step_icm();
	else
		step_close();
}

static uint64_t steps_wanted(void)
{
	const char *text = getenv("SOFTHCA_MODEL");

	return text ? strtoull(text, NULL, 0) : 100000;
}

static void agrees(uint32_t mpt_lines, uint32_t mtt_lines)
{
	struct v2p_config c = {.name = "model",
			       .mpts = MPTS,
			       .mtts = MTTS,
			       .mpt_cache_lines = mpt_lines,
			       .mtt_cache_lines = mtt_lines,
			       .counters = &counters,
			       .socket = SOCKET_ID_ANY};
	const char *text = getenv("SOFTHCA_SEED");
	uint64_t n = steps_wanted() / 5, least = n / 100;

	memset(&model, 0, sizeof(model));
	memset(&counters, 0, sizeof(counters));
	seed = (text ? strtoull(text, NULL, 0) : 1) + mpt_lines;
	assert_int_equal(v2p_create(&v2p, &c), 0);
	for (step = 0; step < n; step++)
		one_step();
	if (mpt_lines < KEYS)
		assert_true(counter_read(&counters, COUNTER_v2p_mpt_misses) > least &&
			    counter_read(&counters, COUNTER_v2p_write_backs) > least);
	v2p_destroy(&v2p);
}

TEST(model__one_line)
{
	agrees(1, 1);
}

TEST(model__one_set)
{
	agrees(2, 2);
}

TEST(model__few_lines)
{
	agrees(8, 4);
}

TEST(model__some_lines)
{
	agrees(64, 64);
}

TEST(model__default_size)
{
	agrees(V2P_MPT_CACHE_LINES, V2P_MTT_CACHE_LINES);
}

TEST_GROUP(.setup = world_eal);
