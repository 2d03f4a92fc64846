/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and sentences of the counters, from the one list. */
#include "base/counters.h"

static const char *const names[COUNTER_COUNT] = {
#define COUNTER(name, text) [COUNTER_##name] = #name,
#include "base/counters.def"
#undef COUNTER
};

const char *counter_name(enum counter which)
{
	return names[which];
}
