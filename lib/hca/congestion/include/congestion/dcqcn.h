/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONGESTION_DCQCN_H
#define CONGESTION_DCQCN_H
/*
 * DCQCN's reaction point (Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM
 * 2015): the rate of one flow. A flow starts unlimited. The first CNP limits it, and every CNP cuts
 * its rate; then the timer and the byte counter raise the rate until it reaches that of the line,
 * and the flow is unlimited again.
 *
 *   state      event                      next       what happens
 *   unlimited  CNP                        limited    rate = target = the line's; cut
 *   limited    CNP                        limited    target = rate; rate -= rate·α/2;
 *                                                    α = (1-g)α + g; timer, byte counter and both
 *                                                    stages start over
 *   limited    dce_tcp_rtt without a CNP  limited    α = (1-g)α
 *   limited    timer or byte counter      limited    a stage more; by the stages T (timer), B
 *                                                    (bytes):
 *     max(T,B) < F: fast recovery                      rate = (rate + target) / 2
 *     else: additive increase                          target += rpg_ai_rate; rate as above
 *     min(T,B) > F: hyper increase                     target += rpg_hai_rate; rate as above
 *   limited    rate reaches rpg_max_rate  unlimited  nothing is left to do
 *   any        dcqcn_lend()               lent       another sets the rate
 *   lent       CNP                        limited    as the first one, from that rate
 *
 * Nothing runs by itself: the sender of the flow calls dcqcn_advance() before it sends and
 * dcqcn_sent() afterwards. A flow has one sender, so one stage.
 */
#include <stdbool.h>
#include <stdint.h>

/* The settings of the same names, which are mlxconfig's. They may change at any time. */
struct dcqcn_params {
	uint32_t rpg_max_rate, rpg_min_rate; /* Mbit/s */
	uint32_t rate_to_set_on_first_cnp;   /* Mbit/s; 0: cut from rpg_max_rate */
	uint32_t rpg_ai_rate, rpg_hai_rate;  /* Mbit/s */
	uint32_t rpg_threshold;		     /* F */
	uint32_t rpg_time_reset;	     /* µs, at least 1 */
	uint32_t rpg_byte_reset;	     /* 64 bytes, at least 1 */
	uint32_t rpg_gd;	      /* log2 of what the cut α·1024 is divided by; 11: α/2 */
	uint32_t rpg_min_dec_fac;     /* % of the rate that one cut leaves at least */
	uint32_t dce_tcp_g;	      /* (1 - g) · 1024 */
	uint32_t dce_tcp_rtt;	      /* µs, at least 1 */
	uint32_t initial_alpha_value; /* α · 1024 */
	bool clamp_tgt_rate; /* each cut sets the target; else only the first after the byte
				counter let the rate grow, */
	bool clamp_tgt_rate_after_time_inc; /* or the timer */
};

struct dcqcn {
	uint32_t rate;	   /* kbit/s; 0: unlimited; atomic: telemetry reads it */
	uint32_t target;   /* kbit/s */
	uint32_t alpha;	   /* 1/65536 */
	uint32_t bytes;	   /* sent since the byte counter expired */
	uint64_t alpha_ns; /* up to when alpha has been decayed */
	uint64_t timer_ns; /* when the timer expires */
	uint8_t timer_stage, byte_stage;
	bool lent; /* another module (delay.h) sets the rate: neither time nor bytes change it */
};

/* A CNP has come. */
void dcqcn_cnp(struct dcqcn *f, const struct dcqcn_params *p, uint64_t now_ns);

/* Applies the timer's expiries up to now_ns, in bounded time: after a long pause it takes several
 * calls to catch up. */
void dcqcn_advance(struct dcqcn *f, const struct dcqcn_params *p, uint64_t now_ns);

/* `bytes` more have been sent. */
void dcqcn_sent(struct dcqcn *f, const struct dcqcn_params *p, uint32_t bytes);

/* Another module has set the rate, kbit/s, and will set it until a CNP comes; 0: the flow is
 * unlimited again. */
void dcqcn_lend(struct dcqcn *f, uint32_t rate);

/* Has a limited flow had no CNP for more than rpg_threshold periods of the timer? */
static inline bool dcqcn_is_quiet(const struct dcqcn *f, const struct dcqcn_params *p)
{
	return f->timer_stage > __atomic_load_n(&p->rpg_threshold, __ATOMIC_RELAXED);
}

/* How long `bytes` take at the rate of a limited flow. */
static inline uint64_t dcqcn_ns(const struct dcqcn *f, uint32_t bytes)
{
	return (uint64_t)bytes * 8 * 1000000 / f->rate;
}

#endif
