/* SPDX-License-Identifier: BSD-3-Clause */
/* See residence.h. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rte_common.h>
#include "residence.h"

bool is_resident(struct residence *r, const void *at)
{
	const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);

	if ((uintptr_t)at < r->from || (uintptr_t)at >= r->to) {
		r->from = (uintptr_t)at & ~(page_bytes - 1);
		r->to = RTE_MIN(r->from + RESIDENCE_PAGES * page_bytes, r->end);
		if (mincore((void *)r->from, r->to - r->from, r->page))
			memset(r->page, 0, sizeof(r->page));
	}
	return r->page[((uintptr_t)at - r->from) / page_bytes] & 1;
}
