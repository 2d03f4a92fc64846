/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of shared receive queues. Control thread. */
#include <stdio.h>
#include <errno.h>
#include <rte_memzone.h>
#include "context/srq.h"

int srq_table_create(struct srq_table *t, const char *name, uint32_t count, int socket)
{
	const struct rte_memzone *zone;
	char zone_name[RTE_MEMZONE_NAMESIZE];

	snprintf(zone_name, sizeof(zone_name), "%s_srqs", name);
	zone = rte_memzone_reserve_aligned(zone_name, (size_t)count * sizeof(struct srq), socket,
		RTE_MEMZONE_SIZE_HINT_ONLY, RTE_CACHE_LINE_SIZE);
	if (!zone)
		return -ENOMEM;
	*t = (struct srq_table){
		.zone = zone, .srqs = zone->addr, .count = count, .mask = count - 1};
	return 0;
}

void srq_table_destroy(struct srq_table *t)
{
	if (t->zone)
		rte_memzone_free(t->zone);
	*t = (struct srq_table){0};
}
