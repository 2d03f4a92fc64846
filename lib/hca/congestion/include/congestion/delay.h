/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONGESTION_DELAY_H
#define CONGESTION_DELAY_H
/*
 * Congestion control by delay, for networks that mark nothing, in the manner of Swift (Kumar et al.,
 * Swift: Delay is Simple and Effective for Congestion Control in the Datacenter, SIGCOMM 2020): a
 * round trip that takes longer than it can take is time in queues; a flow slows down while that is
 * more than a target.
 *
 * The meter makes queueing delay out of round trips. The least of the last ten to twenty seconds is
 * the path without queues: propagation, each hop's store and forward, and what the other end always
 * takes. That is the scaling by hops. The rest of a sample is queues, but also whatever kept the
 * other end from answering once: so the smaller one of two samples in a row counts.
 *
 * The control keeps the rate of a flow where DCQCN does (struct dcqcn), and borrows it from there:
 *
 *   state       sample of queueing delay        next        what happens
 *   unlimited   more than the target            borrowed    cut, from rpg_max_rate
 *   borrowed    more than the target            borrowed    cut: rate = what arrives of it, but no less than
 *                                                           half; rate -= rate·delay_beta·(1 - target/delay)
 *   borrowed    not more                        borrowed    rate += delay_ai_rate for each DELAY_STEP_US; up to
 *                                                           16 times that after DELAY_CALM samples with next to
 *                                                           no queue
 *   borrowed    rate reaches rpg_max_rate       unlimited   nothing is left to do
 *   borrowed    (a CNP)                         DCQCN's     dcqcn_cnp(): the network speaks itself
 *   DCQCN's     more, and no CNP for some time  borrowed    cut: the queue is where nobody marks
 *   DCQCN's     otherwise                       DCQCN's
 *   borrowed    (DELAY_DRAIN_FIRST of them)     draining    next to nothing is outstanding; the rate stays
 *   draining    (DELAY_DRAIN of them)           borrowed    as before; twice as many until it drains again
 *
 * Why it drains: a flow that begins behind a queue which never empties takes the queue for a part of the
 * path, adds a target of its own, and so takes the others' shares. But then most of the queue is its own,
 * and goes when it pauses, and the next sample shows the path as it is.
 *
 * While the delay falls, though above the target, no sample should be handed in: earlier cuts do their
 * work. A loss behind a queue is handed in as an endless delay.
 *
 * The target is scaled by flows: the less a flow has of rpg_max_rate, the more share its bottleneck,
 * and the longer is the queue that their packets make by chance. So slow flows also yield less than
 * fast ones, which makes them even.
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
	DELAY_DRAINED_MOST = 9, /* so often */
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
	uint8_t calm;	     /* samples with next to no queue, in a row */
	uint8_t drained : 4; /* times, at most DELAY_DRAINED_MOST */
	uint8_t drains : 4;  /* samples for which it still drains */
};

/* A round trip of the path has taken that long, not 0. Returns its standing queueing delay, ns. */
uint32_t delay_measured(struct delay_meter *m, uint32_t round_trip_ns, uint64_t now_ns);

/* The rate of a flow whose path nobody knows yet, kbit/s. */
static inline uint32_t delay_first_rate(const struct dcqcn_params *limits)
{
	return __atomic_load_n(&limits->rpg_max_rate, __ATOMIC_RELAXED) * 1000ull /
	       DELAY_FIRST_PART;
}

/* The most queueing delay of a flow with that rate, kbit/s, 0: unlimited; ns. */
uint32_t delay_target_ns(const struct delay_params *p, const struct dcqcn_params *limits,
			 uint32_t rate);

/* The flow shall have next to nothing outstanding, so that its queues drain. */
static inline bool delay_drains(const struct delay_control *c)
{
	return c->drains;
}

/*
 * A round trip with that queueing delay has ended, in which `arrived` kbit/s were acknowledged.
 */
void delay_react(struct dcqcn *f, struct delay_control *c, const struct delay_params *p,
		 const struct dcqcn_params *limits, uint32_t queue_ns, uint32_t arrived,
		 uint64_t now_ns);

#endif
