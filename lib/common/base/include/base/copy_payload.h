/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_COPY_PAYLOAD_H
#define BASE_COPY_PAYLOAD_H
/* The one copy of a received payload into client memory. Any stage. */
#include <stdbool.h>
#include <rte_branch_prediction.h>
#include "base/copy_bytes.h"

/* Bypasses the caches: faster for long messages whose destination is in DRAM (wire/crc.h). The
 * fence orders it before the completion. */
void copy_nt(uint8_t *dst, const uint8_t *src, size_t n);

static inline void copy_payload(uint8_t *dst, const uint8_t *src, size_t n, bool nt)
{
	if (unlikely(nt))
		copy_nt(dst, src, n);
	else
		copy_bytes(dst, src, n);
}

#endif
