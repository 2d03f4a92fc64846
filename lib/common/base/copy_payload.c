/* SPDX-License-Identifier: BSD-3-Clause */
/* The non-temporal copy. Any stage. Writes exactly dst[0..n). */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "base/copy_payload.h"

#ifdef __x86_64__
#include <immintrin.h>

enum { LINE_BYTES = 64 };

static inline void stream_line(uint8_t *dst, const uint8_t *src)
{
	for (unsigned i = 0; i < LINE_BYTES; i += sizeof(__m128i))
		_mm_stream_si128((__m128i *)(dst + i), _mm_loadu_si128((const __m128i *)(src + i)));
}

void copy_nt(uint8_t *dst, const uint8_t *src, size_t n)
{
	size_t head = -(uintptr_t)dst & (LINE_BYTES - 1);

	if (head > n)
		head = n;
	memcpy(dst, src, head);
	for (dst += head, src += head, n -= head; n >= LINE_BYTES; n -= LINE_BYTES) {
		stream_line(dst, src);
		dst += LINE_BYTES;
		src += LINE_BYTES;
	}
	memcpy(dst, src, n);
	_mm_sfence();
}
#else
void copy_nt(uint8_t *dst, const uint8_t *src, size_t n)
{
	memcpy(dst, src, n);
}
#endif
