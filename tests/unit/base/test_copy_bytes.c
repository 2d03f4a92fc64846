/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of every length around those at which the way to copy changes, at the end of readable memory. */
#include "test.h"
#include "../wire/guard.h"
#include "base/copy_payload.h"

enum { MARGIN = 64, LONGEST = 2 * COPY_BYTES_CALL_PART + COPY_BYTES_CALL_MIN + 64, FILL = 0xa5 };

static void check_copy(bool nt, uint8_t *guard, const uint8_t *bytes, size_t n, size_t offset)
{
	static _Alignas(64) uint8_t to[MARGIN + LONGEST + MARGIN];
	uint8_t *dst = to + MARGIN / 2 + offset;

	memset(to, FILL, sizeof(to));
	bytes = guard_copy(guard, bytes, n);
	if (nt)
		copy_nt(dst, bytes, n);
	else
		copy_bytes(dst, bytes, n);
	assert_memory_equal(dst, bytes, n);
	for (unsigned i = 1; i <= MARGIN / 2; i++) {
		assert_int_equal(dst[-(int)i], FILL);
		assert_int_equal(dst[n - 1 + i], FILL);
	}
}

TEST(copy_bytes__copies_just_those)
{
	uint8_t bytes[LONGEST], *guard = guard_new();

	for (unsigned i = 0; i < LONGEST; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251);
	for (size_t whole = 0; whole < 2; whole++) {
		copy_bytes_call_max[0] = copy_bytes_call_max[1] =
			whole ? SIZE_MAX : COPY_BYTES_CALL_PART;
		for (size_t n = 0; n <= LONGEST; n++)
			check_copy(false, guard, bytes, n, n % (MARGIN / 2 + 1));
	}
	for (size_t n = 0; n <= LONGEST; n++)
		check_copy(true, guard, bytes, n, n % (MARGIN / 2 + 1));
	guard_free(guard);
}
