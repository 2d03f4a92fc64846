/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VIEWS_H
#define VIEWS_H
/* The lists of views.def as dictionaries: PORT_VIEW(PUT) puts what `it` is into the dictionary
 * `to`. */
#include "../views.def"
#include "dict.h"

#define PUT(key, heading, unit, read) PUT_##unit(to, #key, read);

#define PUT_TEXT     dict_string
#define PUT_NODE     dict_int
#define PUT_ID	     dict_u64
#define PUT_LEVEL    dict_u64
#define PUT_COUNT    dict_u64
#define PUT_BYTES    dict_u64
#define PUT_MEMORY   dict_u64
#define PUT_KIB	     dict_u64
#define PUT_MIB	     dict_u64
#define PUT_MBPS     dict_u64
#define PUT_SECONDS  dict_u64
#define PUT_MS	     dict_u64
#define PUT_PERMILLE dict_u64
#define PUT_DISTANCE dict_u64

/* Defines name(it): a new dictionary of the view of that object; NULL: no memory. */
#define VIEW_OF(name, type, VIEW)                                                                  \
	static json_t *name(const struct type *it)                                                 \
	{                                                                                          \
		json_t *to = dict_new();                                                           \
                                                                                                   \
		if (to) {                                                                          \
			VIEW(PUT)                                                                  \
		}                                                                                  \
		return to;                                                                         \
	}

#endif
