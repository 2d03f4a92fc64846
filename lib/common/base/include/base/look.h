/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_LOOK_H
#define BASE_LOOK_H
/*
 * For a thread that waits for a message of another: it looks again and again instead of sleeping at
 * once, where that pays and takes the CPU from no one. Where CPUs halt, as those of an idle virtual
 * machine do, waking a thread takes 20 to 30 us, more than most requests.
 *
 *     look_begin()                        the wait begins
 *     if (look_pays())
 *             do { look; sched_yield(); } while (nothing yet && look_again());
 *     sleep unless something was found
 *     look_end()                          it is over, however it was spent
 *
 * So looking pays if the last wait was short; a thread looks in vain during one long wait at most.
 * The yield gives the CPU to any other thread that wants it. A busy one may keep it for its whole
 * time slice; then the thread does not look for LOOK_AWAY times as long, so looking costs a busy
 * machine at most one part in LOOK_AWAY of its speed. One struct for each thread, or under its
 * owner's lock.
 */
#include <stdbool.h>
#include <stdint.h>

enum {
	LOOK_NS = 200000,	/* a wait that is not over by then is slept through */
	LOOK_YIELD_NS = 100000, /* a yield that took longer went to a thread that is busy */
	LOOK_AWAY = 32,		/* times as long as that yield took: no looking */
};

struct look {
	uint64_t since_ns;	/* when the wait began */
	uint64_t away_until_ns; /* a busy thread wants the CPU */
	bool pays;		/* the last wait was short */
};

static inline void look_begin(struct look *l, uint64_t now_ns)
{
	l->since_ns = now_ns;
}

static inline bool look_pays(const struct look *l, uint64_t now_ns)
{
	return l->pays && now_ns >= l->away_until_ns;
}

/* After having looked in vain, and a yield from before_ns to now_ns. False: sleep. */
static inline bool look_again(struct look *l, uint64_t before_ns, uint64_t now_ns)
{
	const uint64_t took_ns = now_ns - before_ns;

	if (took_ns > LOOK_YIELD_NS) {
		l->away_until_ns = now_ns + LOOK_AWAY * took_ns;
		return false;
	}
	return now_ns - l->since_ns < LOOK_NS;
}

static inline void look_end(struct look *l, uint64_t now_ns)
{
	l->pays = now_ns - l->since_ns < LOOK_NS;
}

#endif
