/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_FIRST_H
#define VERBS_FIRST_H
/* The first device of the daemon that SOFTHCA_SOCKET names. */
#include <infiniband/verbs.h>

/* NULL with errno: as ibv_open_device(). */
static inline struct ibv_context *open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = ibv_open_device(list[0]);

	ibv_free_device_list(list);
	return c;
}

#endif
