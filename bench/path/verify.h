/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PATH_VERIFY_H
#define PATH_VERIFY_H
/*
 * The data of messages: a pattern that follows from (seed, stream, message) and differs in every
 * eight bytes, so that a byte that is lost, doubled, swapped or of another message shows.
 */
#include <stdint.h>
#include <stddef.h>

/* splitmix64: a good 64-bit number from any. Also the generator of the soak's choices. */
static inline uint64_t verify_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* The key of one message. stream: queue pair and direction. */
static inline uint64_t verify_key(uint64_t seed, uint64_t stream, uint64_t message)
{
	return verify_mix(verify_mix(seed ^ verify_mix(stream)) + message);
}

/* Writes the pattern of a message. Any alignment. */
void verify_fill(uint8_t *p, size_t bytes, uint64_t key);

/* The first byte that differs, or `bytes` if none does. */
size_t verify_check(const uint8_t *p, size_t bytes, uint64_t key);

/* verify_check, and a line on stderr that names the place. 0 or -1. `what` names the message. */
int verify_message(const uint8_t *p, size_t bytes, uint64_t key, const char *what,
		   uint64_t message);

#endif
