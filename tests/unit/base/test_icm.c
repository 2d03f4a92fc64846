/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunks of table memory: which entries lie where, what mapping and unmapping do, and that memory
 * is there only while it is mapped. */
#include "test.h"
#include <sys/mman.h>
#include "base/icm.h"

static struct icm m;

/* Pages of a chunk that have memory. */
static unsigned int resident(uint32_t chunk)
{
	unsigned char pages[ICM_CHUNK_BYTES / 4096];
	unsigned int n = 0;

	assert_int_equal(mincore(m.base + (size_t)chunk * ICM_CHUNK_BYTES, ICM_CHUNK_BYTES, pages),
			 0);
	for (unsigned int i = 0; i < sizeof(pages); i++)
		n += pages[i] & 1;
	return n;
}

TEST(reserve__touches_nothing)
{
	assert_int_equal(icm_reserve(&m, 1 << 17, 1792), 0);
	assert_int_equal(m.chunks, ((1ull << 17) * 1792 + ICM_CHUNK_BYTES - 1) / ICM_CHUNK_BYTES);
	assert_int_equal((uintptr_t)m.base % (2 << 20), 0);
	assert_int_equal(m.mapped, 0);
	for (uint32_t i = 0; i < m.chunks; i++)
		assert_int_equal(resident(i), 0);
	icm_release(&m);
	assert_null(m.base);
}

/* A look-up of an invented number finds zeros. */
TEST(reserve__unmapped_reads_as_zero)
{
	uint32_t word;

	assert_int_equal(icm_reserve(&m, 1 << 14, 1792), 0);
	memcpy(&word, m.base + (size_t)12345 * 1792, sizeof(word));
	assert_int_equal(word, 0);
	assert_false(icm_ready(&m, 12345));
	icm_release(&m);
}

TEST(map__and_unmap)
{
	assert_int_equal(icm_reserve(&m, 4096, 128), 0); /* two chunks */
	assert_int_equal(m.chunks, 2);
	assert_int_equal(icm_unmap(&m, 0), -ENOENT);
	assert_int_equal(icm_map(&m, 1), 0);
	assert_int_equal(icm_map(&m, 1), -EEXIST);
	assert_int_equal(m.mapped, 1);
	assert_int_equal(resident(1), ICM_CHUNK_BYTES / 4096);
	assert_int_equal(resident(0), 0);
	assert_false(icm_ready(&m, 2047));
	assert_true(icm_ready(&m, 2048));
	assert_true(icm_ready(&m, 4095));
	assert_false(icm_ready(&m, 4096));
	m.base[ICM_CHUNK_BYTES] = 7;
	icm_use(&m, 2048);
	assert_int_equal(icm_unmap(&m, 1), -EBUSY);
	icm_leave(&m, 2048);
	assert_int_equal(icm_unmap(&m, 1), 0);
	assert_int_equal(icm_unmap(&m, 1), -ENOENT);
	assert_int_equal(m.mapped, 0);
	assert_int_equal(resident(1), 0);
	assert_int_equal(icm_map(&m, 1), 0);
	assert_int_equal(m.base[ICM_CHUNK_BYTES], 0);
	icm_release(&m);
}

/* 262144 / 1792 = 146.28: entry 146 lies in two chunks and needs both. */
TEST(entry__across_a_border)
{
	assert_int_equal(icm_reserve(&m, 1024, 1792), 0);
	assert_int_equal(icm_last(&m, 145), 0);
	assert_int_equal(icm_first(&m, 146), 0);
	assert_int_equal(icm_last(&m, 146), 1);
	assert_int_equal(icm_first(&m, 147), 1);
	assert_int_equal(icm_entry_first(&m, 0), 0);
	assert_int_equal(icm_entry_end(&m, 0), 147);
	assert_int_equal(icm_entry_first(&m, 1), 146);
	assert_int_equal(icm_entry_end(&m, m.chunks - 1), 1024);
	assert_int_equal(icm_map(&m, 0), 0);
	assert_true(icm_ready(&m, 145));
	assert_false(icm_ready(&m, 146));
	assert_int_equal(icm_map(&m, 1), 0);
	assert_true(icm_ready(&m, 146));
	icm_use(&m, 146);
	assert_int_equal(icm_unmap(&m, 0), -EBUSY);
	assert_int_equal(icm_unmap(&m, 1), -EBUSY);
	icm_leave(&m, 146);
	assert_int_equal(icm_unmap(&m, 0), 0);
	icm_release(&m);
}

/* Every entry lies in the chunks that say so. */
TEST(entry__both_ways)
{
	static const uint32_t sizes[] = {64, 128, 1792, 2048};

	for (unsigned int s = 0; s < 4; s++) {
		assert_int_equal(icm_reserve(&m, 1 << 14, sizes[s]), 0);
		for (uint32_t i = 0; i < m.entries; i++)
			for (uint32_t c = 0; c < m.chunks; c++) {
				bool in = c >= icm_first(&m, i) && c <= icm_last(&m, i);

				if (in != (i >= icm_entry_first(&m, c) && i < icm_entry_end(&m, c)))
					fail_msg("size %u, entry %u, chunk %u", sizes[s], i, c);
			}
		assert_int_equal(icm_last(&m, m.entries - 1), m.chunks - 1);
		icm_release(&m);
	}
}
