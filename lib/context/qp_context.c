/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of QP contexts and the transitions that modules of the data path make. */
#include <stdio.h>
#include <string.h>
#include <errno.h>
#include <rte_memzone.h>
#include "context/qp_context.h"

int qp_table_create(struct qp_table *t, const char *name, uint32_t count, int socket)
{
	const struct rte_memzone *zone;
	char zone_name[RTE_MEMZONE_NAMESIZE];

	snprintf(zone_name, sizeof(zone_name), "%s_qps", name);
	zone = rte_memzone_reserve_aligned(zone_name, (size_t)count * sizeof(struct qp), socket,
		RTE_MEMZONE_SIZE_HINT_ONLY, RTE_CACHE_LINE_SIZE);
	if (!zone)
		return -ENOMEM;
	*t = (struct qp_table){.zone = zone, .qps = zone->addr, .count = count, .mask = count - 1};
	return 0;
}

void qp_table_destroy(struct qp_table *t)
{
	if (t->zone)
		rte_memzone_free(t->zone);
	*t = (struct qp_table){0};
}

bool qp_set_error(struct engine *e, struct qp *q)
{
	uint8_t state = __atomic_load_n(&q->state, __ATOMIC_ACQUIRE);

	do {
		if (state == QP_RST || state == QP_ERR)
			return false;
	} while (!__atomic_compare_exchange_n(
		&q->state, &state, QP_ERR, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE));
	for (unsigned t = 0; t < WAKE_COUNT; t++)
		wake_post(&e->wake[t], &q->wake[t], q->index);
	return true;
}

bool qp_set_sqe(struct qp *q)
{
	uint8_t state = __atomic_load_n(&q->state, __ATOMIC_ACQUIRE);

	do {
		if (state != QP_RTS && state != QP_SQD)
			return false;
	} while (!__atomic_compare_exchange_n(
		&q->state, &state, QP_SQE, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE));
	return true;
}
