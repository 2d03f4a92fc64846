/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_COPY_PAYLOAD_H
#define BASE_COPY_PAYLOAD_H
/* The one copy of a received payload into client memory. Any stage. */
#include <stdbool.h>
#include <rte_branch_prediction.h>
#include "base/copy_bytes.h"

/* Bypasses the caches, which is faster if dst is not in them. A fence at its end orders it before the
 * completion. */
void copy_nt(uint8_t *dst, const uint8_t *src, size_t n);

enum { COPY_NT_MIN = 4096 }; /* shorter copies lose by the fence (Zen 3) */

static inline void copy_payload(uint8_t *dst, const uint8_t *src, size_t n, bool nt)
{
	if (unlikely(nt) && n >= COPY_NT_MIN)
		copy_nt(dst, src, n);
	else
		copy_bytes(dst, src, n);
}

#endif
