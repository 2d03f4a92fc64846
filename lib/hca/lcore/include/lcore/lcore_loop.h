/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LCORE_LOOP_H
#define LCORE_LOOP_H
/*
 * One lcore's loop: polls the stages placed on it, in turn. Without work it either spins (busy) or
 * sleeps until a doorbell, another lcore, the control thread or a timeout wakes it (adaptive).
 *
 * The control thread sets it up before it launches the lcore, and does not change it while it runs.
 */
#include <stdbool.h>
#include <stdint.h>
#include <rte_rcu_qsbr.h>
#include "base/limits.h"
#include "lcore/clock.h"
#include "hca/hca.h"

enum {
	LOOP_STAGES_MAX = HCA_MAX * ENGINES_MAX * STAGE_COUNT,
	LOOP_ENGINES_MAX = HCA_MAX * ENGINES_MAX,
	LOOP_SLEEP_NS_MIN = 50000,	/* the first sleep; each further one is twice as long */
	LOOP_REST_AFTER_NS = 100000000, /* without work */
	LOOP_REST_NS = 20000000,	/* a sleep at rest, if others are not longer */
};

/* struct lcore_loop's asleep */
enum {
	LOOP_AWAKE,
	LOOP_ASLEEP, /* or about to be: wake us when there may be work */
	LOOP_RESTS, /* the same; wake us even for what would otherwise wait for the end of a sleep */
};

struct placed_stage {
	struct engine *engine;
	enum stage_id id;
};

struct lcore_loop {
	unsigned cpu;			/* where it runs */
	unsigned lcore;			/* the EAL's number of it */
	unsigned thread;		/* number in rcu */
	bool adaptive;			/* these three: atomic, may change at any time */
	uint64_t spin_ns, sleep_ns_max; /* ... */
	const struct clock *clock;
	struct rte_rcu_qsbr *rcu;
	const uint32_t *stop; /* atomic: not 0 ends the loop */
	int tid;	      /* the kernel's number of its thread; atomic; 0: not running yet */
	uint32_t handed;      /* atomic; the loop owns this struct from LOOP_READY to LOOP_ENDED */

	struct placed_stage stages[LOOP_STAGES_MAX];
	unsigned stage_count;
	struct engine *engines[LOOP_ENGINES_MAX]; /* those of the stages, each once */
	unsigned engine_count;
	struct engine *bells[LOOP_ENGINES_MAX]; /* those whose doorbell_wqe stage is here */
	unsigned bell_count;
	struct hca *hcas[HCA_MAX];	    /* those whose completions we announce */
	struct counters *counters[HCA_MAX]; /* ours to write, by HCA */
	unsigned hca_count;
	struct lcore_loop *peers[LCORES_MAX]; /* lcores that our work may give work to */
	unsigned peer_count;
	int wake_fd;  /* eventfd that lcore_loop_wake() writes */
	int alarm_fd; /* timerfd: ends a sleep */
	int epoll_fd; /* sleeps on these and on the kicks of the HCAs whose bells are here */

	/* The lcore's own. */
	uint64_t now_ns
		__rte_cache_aligned; /* the time of this round, as published to the modules */
	uint64_t slept_ns;	     /* longest time that we wanted to sleep since then */
	uint64_t idle_since_ns;	     /* 0: the last round found work */
	uint64_t sleep_ns;	     /* of the next sleep */
	uint64_t alarm_ns;	     /* when alarm_fd goes off; 0: it is not set */
	bool announced;		     /* clients and peers know that we may sleep */
	bool contended;		     /* another thread ran when we last yielded to find out */
	uint64_t probe_ns;	     /* when to check again */
	/* Read by telemetry, relaxed. */
	uint64_t rounds, sleeps;
	uint64_t busy_ns; /* in rounds that found work */

	uint32_t asleep __rte_cache_aligned; /* atomic: LOOP_* */
};

enum { LOOP_READY = 1, LOOP_ENDED };

/* Creates the descriptors that it sleeps on. 0; -errno. lcore_loop_close() is allowed in both
 * cases. */
int lcore_loop_init(struct lcore_loop *l);
void lcore_loop_close(struct lcore_loop *l);

/* Adds a stage to the end of the round; kicks is the epoll set of what wakes the lcores of the
 * stage's HCA (nobody waits on it otherwise) and stays the caller's. 0; -errno. */
int lcore_loop_place(struct lcore_loop *l, struct hca *h, struct engine *e, enum stage_id id,
		     int kicks);

/* Takes the stages of an HCA out of the round again; the loop is not running. epoll drops the
 * kicks when its last descriptor is closed. Lcores that were its peers stay so: waking them costs
 * little. */
void lcore_loop_remove(struct lcore_loop *l, const struct hca *h);

/* lcore_function_t: runs until *stop; may be run again. Returns 0. */
int lcore_loop_run(void *loop);

/* The share of passed_ns that it spent in rounds with work, in 1/1000, from 0 to 1000. A round
 * counts when it ends, however long it lasted; the excess over passed_ns counts for the next call.
 * *sampled_ns: 0 at first, then the caller keeps it. Any thread, one at a time. */
uint32_t lcore_loop_busy_permille(const struct lcore_loop *l, uint64_t *sampled_ns,
				  uint64_t passed_ns);

/* Ends its sleep, or the one that it is about to begin. Any thread. */
void lcore_loop_wake(struct lcore_loop *l);

/* Is it at rest? May be a moment old. Any thread. */
bool lcore_loop_rests(const struct lcore_loop *l);

/* The same as lcore_loop_wake() if it is at rest. Whatever the caller has changed before, the loop
 * looks at it, then or within idle_sleep_us. Any thread. */
void lcore_loop_end_rest(struct lcore_loop *l);

#endif
