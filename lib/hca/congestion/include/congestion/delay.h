/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONGESTION_DELAY_H
#define CONGESTION_DELAY_H
/*
 * Congestion control by delay, for networks that do not mark packets, in the manner of Swift (Kumar
 * et al., Swift: Delay is Simple and Effective for Congestion Control in the Datacenter, SIGCOMM
 * 2020): what a round trip takes beyond the shortest one is time in queues, and a flow slows down
 * while that exceeds a target.
 *
 * The meter derives the queueing delay from round trips. The shortest of the last ten to twenty
 * seconds is the path without queues: propagation, store and forward at each hop (Swift's scaling
 * by hops), and the time that the peer always takes. The rest of a sample is queueing, or a single
 * delay at the peer: so the smaller of two consecutive samples counts.
 *
 * The control keeps the rate of a flow where DCQCN does (struct dcqcn), and borrows it from there:
 *
 *   state      sample of queueing delay        next       what happens
 *   unlimited  more than the target            borrowed   cut, from rpg_max_rate
 *   borrowed   more than the target            borrowed   cut: rate = the part of it that
 *                                                         arrives, at least half;
 *                                                         rate *= 1 - delay_beta·(1 - target/delay)
 *   borrowed   not more                        borrowed   rate += delay_ai_rate for each
 *                                                         DELAY_STEP_US; up to 16 times that after
 *                                                         DELAY_CALM samples with almost no queue
 *   borrowed   rate reaches rpg_max_rate       unlimited  nothing is left to do
 *   borrowed   (a CNP)                         DCQCN's    dcqcn_cnp(): the network marks
 *   DCQCN's    more, and no CNP for some time  borrowed   cut: the queue is where no switch marks
 *   DCQCN's    otherwise                       DCQCN's
 *   borrowed   (DELAY_DRAIN_FIRST of them)     draining   almost nothing is outstanding; the rate
 *                                                         stays
 *   draining   (DELAY_DRAIN of them)           borrowed   as before; twice as many until the next
 *                                                         drain
 *
 * Why flows drain: one that begins behind a standing queue takes the queue for part of the path,
 * adds its own target, and so takes the others' shares. But then most of the queue is its own: when
 * it pauses, the queue empties, and the next sample shows the real path.
 *
 * Do not pass samples while the delay falls, even above the target: earlier cuts are taking effect.
 * A loss behind a queue is passed as infinite delay.
 *
 * The target is scaled by flows: the smaller a flow's part of rpg_max_rate, the more flows share
 * its bottleneck, and the longer the queue that their packets form by chance. Slow flows also yield
 * less than fast ones, which evens them out.
 */
#include "congestion/dcqcn.h"

/* The settings of the same names. They may change at any time. */
struct delay_params {
	uint32_t delay_target;	/* µs, of a flow that has the whole link */
	uint32_t delay_scaling; /* %: the target grows by this share of (sqrt(max/rate) - 1) */
	uint32_t delay_beta;	/* % */
	uint32_t delay_ai_rate; /* Mbit/s, at least 1 */
};

enum {
	DELAY_CALM = 5,		/* samples below the target before the rate grows faster */
	DELAY_CUT_MOST = 25,	/* % of the rate that one cut takes at most */
	DELAY_STEP_US = 50,	/* in which delay_ai_rate is added */
	DELAY_DRAIN_FIRST = 64, /* samples before a flow drains, doubled each time */
	DELAY_DRAINED_MOST = 9, /* doublings */
	DELAY_DRAIN = 4,	/* samples for which it drains */
	DELAY_FIRST_PART = 64,	/* of rpg_max_rate */
	DELAY_SCALE_MOST = 4	/* times delay_target */
};
#define DELAY_PERIOD_NS 10000000000ull

/* What is known of a path. All zero: nothing. */
struct delay_meter {
	uint32_t base_ns; /* the least of this period and the one before; 0: none yet; atomic */
	uint32_t period_base_ns; /* of this period */
	uint32_t last_ns;	 /* queueing delay of the last sample */
	bool falls;		 /* less than that of the one before */
	uint64_t period_ends_ns;
};

/* Of a flow; all zero at first. */
struct delay_control {
	uint32_t last_us;    /* when delay_react() was called last */
	uint16_t until;	     /* samples before it drains; 0: not set yet */
	uint8_t calm;	     /* consecutive samples with almost no queue */
	uint8_t drained : 4; /* drains so far, at most DELAY_DRAINED_MOST */
	uint8_t drains : 4;  /* samples for which it still drains */
};

/* Takes a round trip of the path, not 0. Returns its standing queueing delay, ns. */
uint32_t delay_measured(struct delay_meter *m, uint32_t round_trip_ns, uint64_t now_ns);

/* The rate of a flow whose path has not been measured, kbit/s. */
static inline uint32_t delay_first_rate(const struct dcqcn_params *limits)
{
	return __atomic_load_n(&limits->rpg_max_rate, __ATOMIC_RELAXED) * 1000ull /
	       DELAY_FIRST_PART;
}

/* The target of a flow with this rate (kbit/s; 0: unlimited), ns. */
uint32_t delay_target_ns(const struct delay_params *p, const struct dcqcn_params *limits,
			 uint32_t rate);

/* Should the flow have almost nothing outstanding, so that its queue drains? */
static inline bool delay_drains(const struct delay_control *c)
{
	return c->drains;
}

/*
 * Adapts the rate after a round trip with queueing delay `queue_ns`, in which data was acknowledged
 * at `arrived` kbit/s.
 */
void delay_react(struct dcqcn *f, struct delay_control *c, const struct delay_params *p,
		 const struct dcqcn_params *limits, uint32_t queue_ns, uint32_t arrived,
		 uint64_t now_ns);

#endif
