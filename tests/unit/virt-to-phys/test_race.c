/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three lcores translate and invalidate while the control thread makes regions and takes them away,
 * with caches so small that every set is fought for: no answer may name another region's memory.
 * Meant for TSan, too.
 */
#include "test.h"
#include <pthread.h>
#include <rte_memory.h>
#include "world_eal.h"
#include "virt-to-phys/v2p.h"

enum { REGIONS = 64, LIVES = 3, PD = 7, PAGE = 4096, AT = 5000, THREADS = 3, CHANGES = 20000 };

static struct v2p v2p;
static struct counters counters[THREADS + 1];
static uint32_t stop, wrong;

static uint32_t draw(uint64_t *x)
{
	*x = *x * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*x >> 33);
}

/* Every use of an index has a different key, address and pages: nothing here quiesces. */
static uint32_t draw_key(uint64_t *x)
{
	return draw(x) % REGIONS << KEY_TAG_BITS | (1 + draw(x) % LIVES) << 16;
}

static uint32_t region_of(uint32_t key)
{
	return key >> KEY_TAG_BITS & (REGIONS - 1);
}

static bool has_pages(uint32_t key)
{
	return region_of(key) & 1;
}

static uint64_t address_of(uint32_t key)
{
	return has_pages(key) ? ((uint64_t)key << 20) + AT - PAGE : ((uint64_t)key << 24) + AT;
}

static void translate(struct v2p_port *port, uint32_t key)
{
	uint64_t va = (uint64_t)key * 2 * PAGE + AT, run;
	enum v2p_state s;
	uint8_t *addr;

	v2p_poll(port);
	s = v2p_request(
		port, V2P_EE_DATA,
		&(struct v2p_access){
			.pd = PD, .key = key, .va = va, .length = 64, .rights = ACCESS_REMOTE_READ},
		&addr, &run);
	if (s == V2P_PD_ERR || s == V2P_FLAGS_ERR ||
	    (s == V2P_SUCCESS && (uintptr_t)addr != address_of(key)))
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static void *data_path(void *arg)
{
	unsigned id = (unsigned)(uintptr_t)arg;
	struct v2p_port port = {.v2p = &v2p, .counters = &counters[id], .pend_misses = id == 2};
	uint64_t x = id;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		uint32_t key = draw_key(&x);

		if (draw(&x) % 16 == 0)
			v2p_invalidate(&v2p, PD, 0, key);
		else
			translate(&port, key);
	}
	return NULL;
}

static void make(uint32_t key)
{
	const uint64_t page[2] = {(uint64_t)key << 24, (uint64_t)key << 20};
	struct mpt_entry m = {.key = key,
			      .pd = PD,
			      .access = 0xf,
			      .flags = MPT_INVALIDATE_REMOTE,
			      .start = (uint64_t)key * 2 * PAGE,
			      .length = 2 * PAGE,
			      .phys = (uint8_t *)((uintptr_t)key << 24)};

	if (has_pages(key)) {
		m.flags |= MPT_PAGES | MPT_OWNS_PAGES;
		m.first_offset = 0;
		m.mtt_first = (region_of(key) * LIVES + (key >> 16) - 1) * 2;
		m.log_page = 12;
		assert_int_equal(v2p_write_mtt(&v2p, m.mtt_first, page, 2), 0);
	}
	assert_int_equal(v2p_write_mpt(&v2p, &m), 0);
}

static void race(uint32_t lines)
{
	struct v2p_config c = {.name = "race",
			       .mpts = 256,
			       .mtts = 512,
			       .mpt_cache_lines = lines,
			       .mtt_cache_lines = lines,
			       .counters = &counters[THREADS],
			       .socket = SOCKET_ID_ANY};
	uint32_t owned[REGIONS] = {0};
	pthread_t thread[THREADS];
	uint64_t x = 99;

	stop = wrong = 0;
	assert_int_equal(v2p_create(&v2p, &c), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, data_path, (void *)i), 0);
	for (unsigned i = 0; i < CHANGES; i++) {
		uint32_t key = draw_key(&x), *o = &owned[region_of(key)];

		if (*o)
			assert_int_equal(v2p_invalidate_mpt(&v2p, *o), 0);
		else
			make(key);
		*o = *o ? 0 : key;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(wrong, 0);
	v2p_destroy(&v2p);
}

TEST(race__one_line)
{
	race(1);
}

TEST(race__few_lines)
{
	race(8);
}

TEST_GROUP(.setup = world_eal);
