/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SYSTEM_VERBS_DEVICE_H
#define TESTS_SYSTEM_VERBS_DEVICE_H
/* What the verbs programs of this folder begin with. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Or the program ends with 2, and says what went wrong, and errno. */
static inline void must(bool so, const char *what)
{
	if (so)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(2);
}

/* The device of that name; ibv_close_device() is the caller's. */
static inline struct ibv_context *open_named(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	must(list != NULL, "ibv_get_device_list");
	for (struct ibv_device **d = list; *d && !context; d++)
		if (strcmp(ibv_get_device_name(*d), name) == 0)
			context = ibv_open_device(*d);
	must(context != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	return context;
}

#endif
