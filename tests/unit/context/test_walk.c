/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a queue pair has written ahead, which decides whether its payload bypasses the caches. */
#include "context/walk.h"
#include "engine_fixture.h"

#define KIB 1024ull
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)

TEST(walk__goes_on_or_begins_again)
{
	static const struct {
		uint64_t at, bytes, ahead;
	} rows[] = {
		{5 * GIB, 128 * KIB, 128 * KIB},
		{5 * GIB + 128 * KIB, 128 * KIB, 256 * KIB}, /* behind it */
		{5 * GIB + 320 * KIB, 64 * KIB, 384 * KIB},  /* the largest gap */
		{5 * GIB + 376 * KIB, 8 * KIB, 8 * KIB},     /* the last bytes again */
		{5 * GIB + 452 * KIB, 64 * KIB, 64 * KIB},   /* a jump */
		{5 * GIB + 516 * KIB, 1 * KIB, 64 * KIB},    /* parts of a page ... */
		{5 * GIB + 517 * KIB, 3 * KIB, 68 * KIB},    /* ... and the rest */
		{4 * GIB, 64 * KIB, 64 * KIB},		     /* back */
		{4 * GIB + 64 * KIB, 100 * MIB, 100 * MIB + 64 * KIB},
		{4 * GIB + 64 * KIB + 100 * MIB, 2 * GIB, 256 * MIB - 4 * KIB}, /* the most */
		{6 * GIB + 64 * KIB + 100 * MIB, 64 * KIB, 256 * MIB - 4 * KIB},
		{5 * GIB + MIB, 0, 0},
	};
	struct walk w = {0};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		assert_int_equal(walk_on(&w, rows[i].at, rows[i].bytes), rows[i].ahead);
		assert_int_equal(walk_bytes(&w), rows[i].ahead);
	}
}
