/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a queue pair has written ahead, which decides whether its payload bypasses the caches. */
#include "context/walk.h"
#include "engine_fixture.h"

#define KIB 1024ull
#define GIB (1ull << 30)

TEST(walk__goes_on_or_begins_again)
{
	static const struct {
		uint64_t at, bytes, ahead;
	} rows[] = {
		{5 * GIB, 128 * KIB, 128 * KIB},
		{5 * GIB + 128 * KIB, 128 * KIB, 256 * KIB}, /* behind it */
		{5 * GIB + 320 * KIB, 64 * KIB, 384 * KIB},  /* a step is left out */
		{5 * GIB + 320 * KIB, 64 * KIB, 64 * KIB},   /* the same again */
		{5 * GIB + 512 * KIB, 64 * KIB, 64 * KIB},   /* a jump */
		{5 * GIB + 576 * KIB, 4 * KIB, 64 * KIB},    /* parts of a step ... */
		{5 * GIB + 580 * KIB, 60 * KIB, 128 * KIB},  /* ... and the rest */
		{4 * GIB, 64 * KIB, 64 * KIB},		     /* back */
		{4 * GIB + 64 * KIB, 2 * GIB, 2 * GIB + 64 * KIB},
		{6 * GIB + 64 * KIB, 2 * GIB, 4 * GIB - 64 * KIB}, /* no more than that is known */
		{8 * GIB + 64 * KIB, 64 * KIB, 4 * GIB - 64 * KIB},
		{5 * GIB, 0, 0},
	};
	struct walk w = {0};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		assert_int_equal(walk_on(&w, rows[i].at, rows[i].bytes), rows[i].ahead);
		assert_int_equal(walk_bytes(&w), rows[i].ahead);
	}
}
