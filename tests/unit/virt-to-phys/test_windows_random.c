/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows and fast-registered regions at random: against a plain model, and while three
 * threads change, use and remove the same entries. Whatever happens, a translated address is in the
 * client's own region, at the place that the entry says.
 */
#include <pthread.h>
#include "engine_fixture.h"

enum {
	REGIONS = 4, /* two of each domain */
	ENTRIES = 6, /* over them: windows of both types, fast keys */
	BYTES = 0x8000,
	PAGE = 0x1000,
	STEPS = 300000,
	RACE_STEPS = 200000,
};
#define START(region)	   (0x100000ull * ((region) + 1))
#define REGION_KEY(region) (0x554000u + ((uint32_t)(region) << KEY_TAG_BITS))
#define ENTRY_KEY(entry)   (0x556000u + ((uint32_t)(entry) << KEY_TAG_BITS))

static uint8_t memory[REGIONS][BYTES] __attribute__((aligned(4096)));

static uint64_t seed;

static uint32_t rnd(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 16) % n;
}

static uint32_t pd_of(unsigned i)
{
	return FX_PD + i % 2;
}

static uint32_t kind_of(unsigned entry)
{
	static const uint32_t kinds[] = {MPT_WINDOW_1, MPT_WINDOW_2 | MPT_INVALIDATE_REMOTE,
					 MPT_FAST | MPT_INVALIDATE_REMOTE};

	return kinds[entry / 2];
}

/* Half of them through the MTT, with pages that happen to follow one another. */
static int region_make(unsigned i)
{
	struct mpt_entry m = {.key = REGION_KEY(i),
			      .pd = pd_of(i),
			      .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ | ACCESS_MW_BIND,
			      .start = START(i),
			      .length = BYTES};
	uint64_t page[BYTES / PAGE];

	if (i < 2) {
		m.phys = memory[i];
		return v2p_write_mpt(fx->e->v2p, &m);
	}
	for (unsigned k = 0; k < BYTES / PAGE; k++)
		page[k] = (uintptr_t)memory[i] + k * PAGE;
	m.flags = MPT_PAGES | MPT_OWNS_PAGES;
	m.mtt_first = 1024 + i * (BYTES / PAGE);
	m.log_page = 12;
	assert_int_equal(v2p_write_mtt(fx->e->v2p, m.mtt_first, page, BYTES / PAGE), 0);
	return v2p_write_mpt(fx->e->v2p, &m);
}

static int entry_make(unsigned i)
{
	struct mpt_entry m = {.key = ENTRY_KEY(i), .pd = pd_of(i), .flags = kind_of(i)};
	const uint64_t none[3] = {0};

	if (m.flags & MPT_FAST) {
		m.flags |= MPT_OWNS_PAGES;
		m.mtt_first = 3 * i;
		m.pages_max = 3;
		assert_int_equal(v2p_write_mtt(fx->e->v2p, m.mtt_first, none, 3), 0);
	}
	return v2p_write_mpt(fx->e->v2p, &m);
}

/* The model's state of an entry. */
struct model {
	uint32_t key; /* 0: invalid */
	unsigned region;
	uint64_t start, length;
	uint64_t offset;  /* of the first byte, from the first page on */
	unsigned page[3]; /* of the region */
	bool scattered;	  /* otherwise only the first counts */
	uint32_t qpn;	  /* 0: any */
};

static struct model model[ENTRIES];
static bool region_there[REGIONS];

static uint32_t random_key(unsigned entry)
{
	return ENTRY_KEY(entry) | rnd(4);
}

static bool in_region(uint64_t start, uint64_t length, unsigned region)
{
	return start >= START(region) && length <= BYTES && start + length <= START(region) + BYTES;
}

/* A bind that makes sense often enough. */
static void random_bind(unsigned i)
{
	unsigned region = rnd(REGIONS);
	struct v2p_bind b = {.key = random_key(i),
			     .parent = REGION_KEY(region),
			     .pd = rnd(8) ? pd_of(i) : pd_of(i + 1),
			     .qpn = 1 + rnd(2),
			     .access = ACCESS_REMOTE_WRITE,
			     .start = START(region) + rnd(BYTES + PAGE) - PAGE / 2,
			     .length = rnd(6) ? rnd(BYTES / 2) : 0};
	bool type_2 = kind_of(i) & MPT_WINDOW_2, fits;
	struct model *m = &model[i];

	fits = b.length == 0 ? !type_2
			     : region_there[region] && pd_of(region) == b.pd &&
				       in_region(b.start, b.length, region);
	fits = fits && !(kind_of(i) & MPT_FAST) && b.pd == pd_of(i) && !(type_2 && m->key);
	assert_int_equal(v2p_bind(fx->e->v2p, &b) == V2P_SUCCESS, fits);
	if (!fits)
		return;
	*m = (struct model){.key = b.length ? b.key : 0,
			    .region = region,
			    .start = b.start,
			    .length = b.length,
			    .offset = b.start - START(region),
			    .qpn = type_2 ? b.qpn : 0};
}

static void random_register(unsigned i)
{
	unsigned region = rnd(REGIONS), n = 1 + rnd(3);
	bool scattered = rnd(2), inside_all = true;
	uint64_t page[3];
	struct v2p_registration r = {.key = random_key(i),
				     .parent = REGION_KEY(region),
				     .pd = pd_of(i),
				     .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE,
				     .iova = 0x7000000 + rnd(PAGE),
				     .page = page,
				     .pages = n,
				     .log_page = 12};
	struct model *m = &model[i];
	unsigned at[3] = {0};
	bool fits;

	at[0] = rnd(BYTES / PAGE);
	for (unsigned k = 0; k < n; k++) {
		at[k] = k && !scattered ? at[0] + k : rnd(BYTES / PAGE);
		page[k] = START(region) + at[k] * PAGE;
		inside_all = inside_all && at[k] < BYTES / PAGE;
	}
	r.length = n * PAGE - r.iova % PAGE;
	fits = kind_of(i) & MPT_FAST && !m->key && region_there[region] &&
	       pd_of(region) == pd_of(i) && inside_all;
	assert_int_equal(v2p_fast_register(fx->e->v2p_port[STAGE_SEGMENTATION], &r) == V2P_SUCCESS,
			 fits);
	if (fits)
		*m = (struct model){.key = r.key,
				    .region = region,
				    .start = r.iova,
				    .length = r.length,
				    .offset = r.iova % PAGE,
				    .page = {at[0], at[1], at[2]},
				    .scattered = true};
}

static void random_invalidate(unsigned i)
{
	uint32_t key = random_key(i), qpn = 1 + rnd(2);
	struct model *m = &model[i];
	bool fits = m->key == key && !(kind_of(i) & MPT_WINDOW_1) && (!m->qpn || m->qpn == qpn);
	enum v2p_state s = v2p_invalidate(fx->e->v2p, pd_of(i), qpn, key);

	assert_int_equal(s == V2P_SUCCESS, fits);
	if (fits)
		m->key = 0;
}

static unsigned lying_over(unsigned region)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ENTRIES; i++)
		n += model[i].key && model[i].region == region;
	return n;
}

static void random_region(unsigned region)
{
	int rc;

	if (!region_there[region]) {
		assert_int_equal(region_make(region), 0);
		region_there[region] = true;
		return;
	}
	rc = v2p_invalidate_mpt(fx->e->v2p, REGION_KEY(region));
	assert_int_equal(rc, lying_over(region) ? -EBUSY : 0);
	region_there[region] = rc != 0;
}

static void random_entry(unsigned i)
{
	assert_int_equal(v2p_invalidate_mpt(fx->e->v2p, ENTRY_KEY(i)), 0);
	assert_int_equal(entry_make(i), 0);
	model[i].key = 0;
}

static uint8_t *address_of(const struct model *m, uint64_t at)
{
	if (!m->scattered)
		return memory[m->region] + at;
	return memory[m->region] + m->page[at / PAGE] * PAGE + at % PAGE;
}

/* An access at random, mostly near the entry. */
static void random_access(unsigned i)
{
	const struct model *m = &model[i];
	uint32_t key = random_key(i), qpn = 1 + rnd(2);
	uint64_t va = m->start + rnd(BYTES) - 16, length = 1 + rnd(64), run;
	bool fits = m->key == key && (!m->qpn || m->qpn == qpn) && va >= m->start &&
		    va - m->start <= m->length && length <= m->length - (va - m->start);
	uint8_t *at;
	enum v2p_state s = v2p_request(fx->e->v2p_port[STAGE_RESPONDER_EXEC], V2P_EE_DATA,
				       &(struct v2p_access){.pd = pd_of(i),
							    .qpn = qpn,
							    .key = key,
							    .va = va,
							    .length = length,
							    .rights = ACCESS_REMOTE_WRITE},
				       &at, &run);

	assert_int_equal(s == V2P_SUCCESS, fits);
	if (fits)
		assert_ptr_equal(at, address_of(m, m->offset + (va - m->start)));
}

static void make_all(void)
{
	for (unsigned i = 0; i < REGIONS; i++) {
		assert_int_equal(region_make(i), 0);
		region_there[i] = true;
	}
	for (unsigned i = 0; i < ENTRIES; i++) {
		assert_int_equal(entry_make(i), 0);
		model[i].key = 0;
	}
}

TEST(random__as_a_plain_model)
{
	seed = 0x2545f4914f6cdd1d;
	make_all();
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned i = rnd(ENTRIES), what = rnd(16);

		if (what < 4)
			random_bind(i);
		else if (what < 6)
			random_register(i);
		else if (what < 9)
			random_invalidate(i);
		else if (what < 10)
			random_region(rnd(REGIONS));
		else if (what < 11 && !rnd(8))
			random_entry(i);
		else
			random_access(i);
	}
	for (unsigned i = 0; i < ENTRIES; i++)
		assert_int_equal(v2p_invalidate_mpt(fx->e->v2p, ENTRY_KEY(i)), 0);
	for (unsigned i = 0; i < REGIONS; i++)
		if (region_there[i])
			assert_int_equal(v2p_invalidate_mpt(fx->e->v2p, REGION_KEY(i)), 0);
}

/* ---- threads ---- */

static bool over; /* atomic */

/* Binds one window now to region 0, now to region 2, and a fast key: always byte for byte at
 * another address, of another length. */
static void *changer(void *arg)
{
	struct v2p *v = fx->e->v2p;
	uintptr_t ok = 0;

	for (uint32_t n = 0; n < RACE_STEPS; n++) {
		unsigned region = n & 2;
		struct v2p_bind b = {.key = ENTRY_KEY(0),
				     .parent = REGION_KEY(region),
				     .pd = FX_PD,
				     .access = ACCESS_REMOTE_WRITE,
				     .start = START(region) + (region ? BYTES - 64 : 0),
				     .length = region ? 64 : BYTES};

		ok += v2p_bind(v, &b) == V2P_SUCCESS;
		if (n % 3 == 0) {
			b.length = 0;
			ok += v2p_bind(v, &b) == V2P_SUCCESS;
		}
	}
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	return (void *)ok;
}

/* Uses it: an address is one of the two, at the right place, and all of the length is inside. */
static void *user(void *arg)
{
	static struct counters counters;
	struct v2p_port port = {.v2p = fx->e->v2p, .counters = &counters};
	uintptr_t wrong = 0;

	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		for (unsigned region = 0; region < 4; region += 2) {
			uint64_t va = START(region) + BYTES - 64, run;
			uint8_t *at;

			if (v2p_request(&port, V2P_EE_DATA,
					&(struct v2p_access){.pd = FX_PD,
							     .qpn = 1,
							     .key = ENTRY_KEY(0),
							     .va = va,
							     .length = 64,
							     .rights = ACCESS_REMOTE_WRITE},
					&at, &run) == V2P_SUCCESS)
				wrong += at != memory[region] + BYTES - 64;
			if (v2p_request(&port, V2P_EE_DATA,
					&(struct v2p_access){.pd = FX_PD,
							     .qpn = 1,
							     .key = ENTRY_KEY(0),
							     .va = START(2),
							     .length = 64,
							     .rights = ACCESS_REMOTE_WRITE},
					&at, &run) == V2P_SUCCESS)
				wrong++; /* never bound */
		}
	}
	return (void *)wrong;
}

TEST(race__readers_see_one_entry_or_none)
{
	pthread_t threads[2];
	void *ok, *wrong;
	unsigned refused = 0, gone = 0;

	over = false;
	make_all();
	assert_int_equal(pthread_create(&threads[0], NULL, changer, NULL), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, user, NULL), 0);
	/* The control thread: takes the region away whenever it may, and gives it back. */
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		if (v2p_invalidate_mpt(fx->e->v2p, REGION_KEY(2))) {
			refused++;
			continue;
		}
		gone++;
		assert_int_equal(region_make(2), 0);
	}
	pthread_join(threads[0], &ok);
	pthread_join(threads[1], &wrong);
	assert_true((uintptr_t)ok > 0);
	assert_int_equal((uintptr_t)wrong, 0);
	assert_true(refused + gone > 0);
	assert_int_equal(v2p_invalidate_mpt(fx->e->v2p, ENTRY_KEY(0)), 0);
	for (unsigned i = 0; i < REGIONS; i++) /* nothing is counted any more */
		assert_int_equal(v2p_invalidate_mpt(fx->e->v2p, REGION_KEY(i)), 0);
}
