/* SPDX-License-Identifier: BSD-3-Clause */
/* Fills and checks message data; see verify.h. Pure: reads and writes only what it is given. */
#include <stdio.h>
#include <string.h>
#include "verify.h"

/* Word i of a message: a step that is odd, so all words of a message differ. */
static inline uint64_t word(uint64_t key, uint64_t i)
{
	return key + i * 0xd1342543de82ef95ull;
}

void verify_fill(uint8_t *p, size_t bytes, uint64_t key)
{
	size_t words = bytes / 8;
	uint64_t last;

	for (size_t i = 0; i < words; i++) {
		uint64_t w = word(key, i);

		memcpy(p + 8 * i, &w, 8);
	}
	last = word(key, words);
	memcpy(p + 8 * words, &last, bytes % 8);
}

static size_t first_difference(const uint8_t *p, size_t bytes, uint64_t key)
{
	for (size_t i = 0; i < bytes; i++) {
		uint64_t w = word(key, i / 8);

		if (p[i] != ((const uint8_t *)&w)[i % 8])
			return i;
	}
	return bytes;
}

size_t verify_check(const uint8_t *p, size_t bytes, uint64_t key)
{
	size_t words = bytes / 8;
	uint64_t wrong = 0, last = word(key, words);

	for (size_t i = 0; i < words; i++) {
		uint64_t w;

		memcpy(&w, p + 8 * i, 8);
		wrong |= w ^ word(key, i);
	}
	if (!wrong && !memcmp(p + 8 * words, &last, bytes % 8))
		return bytes;
	return first_difference(p, bytes, key);
}

int verify_message(const uint8_t *p, size_t bytes, uint64_t key, const char *what, uint64_t message)
{
	size_t at = verify_check(p, bytes, key);

	if (at == bytes)
		return 0;
	fprintf(stderr, "softhca-perf: %s, message %llu: byte %zu of %zu is wrong (0x%02x)\n", what,
		(unsigned long long)message, at, bytes, p[at]);
	return -1;
}
