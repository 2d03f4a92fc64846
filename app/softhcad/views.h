/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VIEWS_H
#define VIEWS_H
/* The lists of views.def as dictionaries: PORT_VIEW(PUT) puts what `it` is into the dictionary `to`. */
#include "../views.def"
#include "dict.h"

#define PUT(key, heading, unit, read) PUT_##unit(to, #key, read);

#define PUT_TEXT     rte_tel_data_add_dict_string
#define PUT_NODE     rte_tel_data_add_dict_int
#define PUT_ID	     rte_tel_data_add_dict_u64
#define PUT_LEVEL    rte_tel_data_add_dict_u64
#define PUT_COUNT    rte_tel_data_add_dict_u64
#define PUT_BYTES    rte_tel_data_add_dict_u64
#define PUT_MEMORY   rte_tel_data_add_dict_u64
#define PUT_KIB	     rte_tel_data_add_dict_u64
#define PUT_MIB	     rte_tel_data_add_dict_u64
#define PUT_MBPS     rte_tel_data_add_dict_u64
#define PUT_SECONDS  rte_tel_data_add_dict_u64
#define PUT_MS	     rte_tel_data_add_dict_u64
#define PUT_PERMILLE rte_tel_data_add_dict_u64
#define PUT_DISTANCE rte_tel_data_add_dict_u64

/* Defines name(it): a new dictionary of the view of that object; NULL: no memory. */
#define VIEW_OF(name, type, VIEW)                                                                  \
	static struct rte_tel_data *name(const struct type *it)                                    \
	{                                                                                          \
		struct rte_tel_data *to = dict_new();                                              \
                                                                                                   \
		if (to) {                                                                          \
			VIEW(PUT)                                                                  \
		}                                                                                  \
		return to;                                                                         \
	}

#endif
