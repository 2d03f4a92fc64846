/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion control by delay: see the header. Stages requester_recv (the meter) and
 * segmentation. */
#include "congestion/delay.h"
#include "rate.h"

enum {
	FAST_MOST = 16, /* times delay_ai_rate */
};

static uint32_t min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* ---- the meter ---- */

static void set_base(struct delay_meter *m, uint32_t ns)
{
	__atomic_store_n(&m->base_ns, ns, __ATOMIC_RELAXED);
}

uint32_t delay_measured(struct delay_meter *m, uint32_t round_trip_ns, uint64_t now_ns)
{
	uint32_t before = m->last_ns;

	if (!m->base_ns || now_ns >= m->period_ends_ns) {
		set_base(m, m->base_ns ? m->period_base_ns : round_trip_ns);
		m->period_base_ns = round_trip_ns;
		m->period_ends_ns = now_ns + DELAY_PERIOD_NS;
	}
	m->period_base_ns = min32(m->period_base_ns, round_trip_ns);
	set_base(m, min32(m->base_ns, round_trip_ns));
	m->last_ns = round_trip_ns - m->base_ns;
	m->falls = m->last_ns < before - before / 16;
	return min32(before, m->last_ns);
}

/* ---- the target ---- */

/* The largest integer whose square is at most `square`. */
static uint32_t root(uint64_t square)
{
	uint32_t r = 0;

	for (uint32_t bit = 1u << 31; bit; bit >>= 1)
		if ((uint64_t)(r | bit) * (r | bit) <= square)
			r |= bit;
	return r;
}

uint32_t delay_target_ns(const struct delay_params *p, const struct dcqcn_params *limits,
			 uint32_t rate)
{
	uint64_t ns = 1000ull * SETTING(p, delay_target), most = rate_of_line(limits), more;

	if (!rate || rate >= most)
		return (uint32_t)ns;
	more = root((most << 16) / rate) - (1u << 8); /* in 1/256 */
	more = ns * SETTING(p, delay_scaling) * more / (100 << 8);
	return (uint32_t)min64(ns + more, DELAY_SCALE_MOST * ns);
}

/* ---- the control ---- */

static void delay_set_rate(struct dcqcn *f, const struct dcqcn_params *limits, uint64_t rate)
{
	uint64_t least = max64((uint64_t)SETTING(limits, rpg_min_rate) * KBIT, 1);

	least = min64(least, rate_of_line(limits));
	dcqcn_lend(f, rate_is_line(limits, rate) ? 0 : (uint32_t)max64(rate, least));
}

/* The rate at which a flow's packets arrive is its share of the bottleneck; a little less lets the
 * queue shrink. */
static uint64_t delay_cut(const struct delay_params *p, uint64_t rate, uint64_t queue_ns,
			  uint64_t target_ns, uint64_t arrived)
{
	uint64_t part = SETTING(p, delay_beta) * 1024 / 100 * (queue_ns - target_ns) / queue_ns;
	uint64_t share = min64(rate, max64(arrived, rate / 2));

	return share - (share * min64(part, DELAY_CUT_MOST * 1024 / 100) >> 10);
}

/* Raises the rate in proportion to the time, and ever faster while there is almost no queue. */
static uint64_t delay_grow(const struct delay_params *p, const struct delay_control *c,
			   uint64_t rate, uint32_t us)
{
	uint64_t steps = c->calm > DELAY_CALM ? min32(c->calm - DELAY_CALM, FAST_MOST) : 1;
	uint64_t parts = min32(us, DELAY_STEP_US);

	return rate + steps * SETTING(p, delay_ai_rate) * KBIT * parts / DELAY_STEP_US;
}

/* Counts a sample. Does the flow drain during it? */
static bool is_draining(struct delay_control *c)
{
	if (c->drains) {
		c->drains--;
		return true;
	}
	if (!c->until)
		c->until = (uint16_t)(DELAY_DRAIN_FIRST << c->drained);
	if (--c->until)
		return false;
	c->drained += c->drained < DELAY_DRAINED_MOST;
	c->drains = DELAY_DRAIN;
	return true;
}

void delay_react(struct dcqcn *f, struct delay_control *c, const struct delay_params *p,
		 const struct dcqcn_params *limits, uint32_t queue_ns, uint32_t arrived,
		 uint64_t now_ns)
{
	uint32_t now_us = (uint32_t)(now_ns / 1000), us = now_us - c->last_us, target_ns;
	uint64_t rate;

	dcqcn_advance(f, limits, now_ns);
	rate = f->rate ? f->rate : rate_of_line(limits);
	target_ns = delay_target_ns(p, limits, f->rate);
	c->last_us = now_us;
	if (f->lent && queue_ns != UINT32_MAX && is_draining(c))
		return;
	if (queue_ns > target_ns) {
		c->calm = 0;
		if (f->rate && !f->lent && !dcqcn_is_quiet(f, limits))
			return;
		delay_set_rate(f, limits, delay_cut(p, rate, queue_ns, target_ns, arrived));
	} else if (f->lent) {
		c->calm = queue_ns > target_ns / 2 ? 0 : (uint8_t)min32(c->calm + 1u, UINT8_MAX);
		delay_set_rate(f, limits, delay_grow(p, c, rate, us));
	}
}
