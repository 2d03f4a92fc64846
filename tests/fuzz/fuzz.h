/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_H
#define FUZZ_H
/*
 * Shared by the targets: reading of inputs, and failing on a violated invariant.
 *
 * A target is LLVMFuzzerTestOneInput() in a separate file. Linked with libFuzzer it gets new
 * inputs, linked with replay.c it repeats those of its corpus.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(cond)                                                                              \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond);         \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* A function that neither sanitizers nor libFuzzer look at. */
#ifdef __clang__
#define FUZZ_PLAIN __attribute__((no_sanitize("address", "undefined", "coverage")))
#else
#define FUZZ_PLAIN
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* libFuzzer's own mutation, for custom mutators. Returns the new size, at most `max`. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed);

/*
 * The background: what inputs reach anyway, where idle modules are polled and what an input did is undone.
 * It says nothing about an input, yet libFuzzer looks at each counter that an input has moved, which
 * takes longer than most inputs.
 *
 * fuzz_background(): all that has been reached so far belongs to it. fuzz_hide_background(), at the end of
 * an input: libFuzzer sees the rest alone. Without libFuzzer they do nothing.
 */
void fuzz_background(void);
void fuzz_hide_background(void);

/* The rest of an input. Reading past its end yields zeros. */
struct fuzz_bytes {
	const uint8_t *at;
	size_t left;
};

/* The next n bytes, zeros behind the end. */
static inline void fuzz_copy(struct fuzz_bytes *b, void *out, size_t n)
{
	size_t have = n < b->left ? n : b->left;

	memset(out, 0, n);
	memcpy(out, b->at, have);
	b->at += have;
	b->left -= have;
}

static inline uint8_t fuzz_u8(struct fuzz_bytes *b)
{
	uint8_t v;

	fuzz_copy(b, &v, sizeof(v));
	return v;
}

static inline uint16_t fuzz_u16(struct fuzz_bytes *b)
{
	uint16_t v;

	fuzz_copy(b, &v, sizeof(v));
	return v;
}

static inline uint32_t fuzz_u32(struct fuzz_bytes *b)
{
	uint32_t v;

	fuzz_copy(b, &v, sizeof(v));
	return v;
}

static inline uint64_t fuzz_u64(struct fuzz_bytes *b)
{
	uint64_t v;

	fuzz_copy(b, &v, sizeof(v));
	return v;
}

/* The next n bytes in place; *n becomes less at the end of the input. */
static inline const uint8_t *fuzz_take(struct fuzz_bytes *b, size_t *n)
{
	const uint8_t *at = b->at;

	if (*n > b->left)
		*n = b->left;
	b->at += *n;
	b->left -= *n;
	return at;
}

#endif
