/* SPDX-License-Identifier: BSD-3-Clause */
/* See dict.h. */
#include <stdio.h>
#include "dict.h"

void dict_put_numbered(json_t *to, uint32_t number, json_t *what)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", number);
	dict_put(to, name, what);
}
