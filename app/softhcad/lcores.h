/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LCORES_H
#define LCORES_H
/* The daemon's lcores: a loop on each CPU in use, and what the loops share. Control thread, unless
 * noted. */
#include <stdbool.h>
#include <stdint.h>
#include "base/look.h"
#include "config/config.h"
#include "lcore/clock.h"
#include "lcore/lcore_loop.h"

struct lcores {
	struct clock clock; /* the time of the data path */
	struct rte_rcu_qsbr *rcu;
	struct lcore_loop *loops; /* one for each CPU in use, index = EAL lcore - 1 */
	unsigned count;
	unsigned running; /* loops that have been launched */
	uint32_t stop;	  /* atomic: nonzero ends the loops */
	struct look look; /* for the end of rounds; under the daemon's lock */
	/* Busy share of each loop over the last second, in 1/1000. Written under the daemon's
	 * lock. */
	uint32_t busy_permille[LCORES_MAX];
	uint64_t sampled_busy_ns[LCORES_MAX], sampled_ns;
};

/* Creates a loop per CPU, without stages yet, and starts the clock. EAL is up. 0; -ENOMEM or
 * another
 * -errno, after which lcores_destroy() must still be called. */
int lcores_create(struct lcores *l, const struct config_cpus *cpus, const struct daemon_config *c);

/* Sets what they do when idle, as configured. At any time. */
void lcores_set_idle(struct lcores *l, const struct daemon_config *c);

/* Launches the loops, which must have their stages. 0 or -errno, logged. */
int lcores_launch(struct lcores *l);

/* Holds the loops of all HCAs between two rounds until lcores_resume(), for a change that no stage
 * may see half done. Returns when the last of them has ended its round. Frames, doorbells and
 * timers wait, so the caller makes no system call in between, except to add or remove an HCA. */
void lcores_pause(struct lcores *l);
void lcores_resume(struct lcores *l);

/* Ends the loops and waits for them. */
void lcores_stop(struct lcores *l);

/* Frees what lcores_create() made. The loops have ended. */
void lcores_destroy(struct lcores *l);

/* Waits until every lcore has finished its current round, and another one. ctx: struct lcores.
 * Control thread, or a telemetry thread under the daemon's lock. */
void lcores_quiesce(void *ctx);

/* Do all of them rest (lcore_loop.h)? May be a moment old. */
bool lcores_rest(const struct lcores *l);

/* Wakes those that rest: the caller has done something for them to look at. Any thread. */
void lcores_end_rest(struct lcores *l);

/* Does an lcore that is awake run on the caller's CPU? Any thread. */
bool lcores_need_this_cpu(const struct lcores *l);

/* Updates the busy shares, once a second. Under the daemon's lock. */
void lcores_sample_busy(struct lcores *l);

#endif
