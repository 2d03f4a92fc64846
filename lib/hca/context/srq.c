/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of shared receive queues. Control thread. */
#include "context/srq.h"

int srq_table_create(struct srq_table *t, uint32_t count)
{
	int err;

	*t = (struct srq_table){.count = count, .mask = count - 1};
	err = icm_reserve(&t->icm, count, sizeof(struct srq));
	t->srqs = (struct srq *)t->icm.base;
	return err;
}

void srq_table_destroy(struct srq_table *t)
{
	icm_release(&t->icm);
	*t = (struct srq_table){0};
}
