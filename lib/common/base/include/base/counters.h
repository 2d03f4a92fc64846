/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_COUNTERS_H
#define BASE_COUNTERS_H
/*
 * Named counters: one list (counters.def) with a sentence for each. Every drop and every refusal
 * has one.
 *
 * A struct counters has ONE writing lcore at a time (a stage instance, or the control thread);
 * readers (telemetry) sum over all of them and may see slightly stale values.
 */
#include <stdint.h>

enum counter {
#define COUNTER(name, text) COUNTER_##name,
#include "base/counters.def"
#undef COUNTER
	COUNTER_COUNT
};

struct counters {
	uint64_t v[COUNTER_COUNT];
};

static inline void count(struct counters *c, enum counter which)
{
	__atomic_store_n(&c->v[which], c->v[which] + 1, __ATOMIC_RELAXED);
}

static inline void count_n(struct counters *c, enum counter which, uint64_t n)
{
	__atomic_store_n(&c->v[which], c->v[which] + n, __ATOMIC_RELAXED);
}

static inline uint64_t counter_read(const struct counters *c, enum counter which)
{
	return __atomic_load_n(&c->v[which], __ATOMIC_RELAXED);
}

/* Name as it appears in `softhca counters`; static storage. */
const char *counter_name(enum counter which);

#endif
