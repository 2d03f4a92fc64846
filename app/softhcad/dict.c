/* SPDX-License-Identifier: BSD-3-Clause */
/* See dict.h. */
#include <stdio.h>
#include "dict.h"

struct rte_tel_data *dict_new(void)
{
	struct rte_tel_data *d = rte_tel_data_alloc();

	if (d)
		rte_tel_data_start_dict(d);
	return d;
}

struct rte_tel_data *array_new(enum rte_tel_value_type type)
{
	struct rte_tel_data *a = rte_tel_data_alloc();

	if (a)
		rte_tel_data_start_array(a, type);
	return a;
}

void dict_put(struct rte_tel_data *to, const char *name, struct rte_tel_data *what)
{
	if (what)
		rte_tel_data_add_dict_container(to, name, what, 0);
}

void dict_put_numbered(struct rte_tel_data *to, uint32_t number, struct rte_tel_data *what)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", number);
	dict_put(to, name, what);
}
