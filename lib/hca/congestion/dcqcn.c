/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DCQCN's reaction point: see the header. Any stage that sends. Integers throughout, so that every
 * machine and every run of a test computes the same.
 */
#include "rate.h"

enum {
	ALPHA_ONE = 65536, /* α = 1 */
	ALPHA_SHIFT = 6,   /* log2 of ALPHA_ONE / 1024 */
	STEPS_MAX = 64,	   /* expiries of the timer in one call */
	STAGES_MAX = UINT8_MAX,
};

static void dcqcn_set_rate(struct dcqcn *f, uint64_t rate)
{
	__atomic_store_n(&f->rate, (uint32_t)rate, __ATOMIC_RELAXED);
}

/* (g/1024)^n, in 1/2^32. */
static uint64_t power(uint32_t g, uint64_t n)
{
	uint64_t result = 1ull << 32, factor = (uint64_t)g << 22;

	for (; n; n >>= 1) {
		if (n & 1)
			result = result * factor >> 32;
		factor = factor * factor >> 32;
	}
	return result;
}

static void decay(struct dcqcn *f, const struct dcqcn_params *p, uint64_t now_ns)
{
	uint64_t period_ns = 1000ull * SETTING(p, dce_tcp_rtt), periods;

	if (now_ns < f->alpha_ns + period_ns)
		return;
	periods = (now_ns - f->alpha_ns) / period_ns;
	f->alpha = (uint32_t)(f->alpha * power(SETTING(p, dce_tcp_g), periods) >> 32);
	f->alpha_ns += periods * period_ns;
}

static void start_over(struct dcqcn *f, const struct dcqcn_params *p, uint64_t now_ns)
{
	f->timer_ns = now_ns + 1000ull * SETTING(p, rpg_time_reset);
	f->alpha_ns = now_ns;
	f->timer_stage = f->byte_stage = 0;
	f->bytes = 0;
}

static bool moves_target(const struct dcqcn *f, const struct dcqcn_params *p)
{
	return SETTING(p, clamp_tgt_rate) || f->byte_stage ||
	       (f->timer_stage && SETTING(p, clamp_tgt_rate_after_time_inc));
}

static void dcqcn_cut(struct dcqcn *f, const struct dcqcn_params *p)
{
	uint64_t rate = f->rate, g = SETTING(p, dce_tcp_g);
	uint64_t least = max64(rate * SETTING(p, rpg_min_dec_fac) / 100,
			       (uint64_t)SETTING(p, rpg_min_rate) * KBIT);
	uint64_t less = min64(rate, rate * f->alpha >> (SETTING(p, rpg_gd) + ALPHA_SHIFT));

	if (moves_target(f, p))
		f->target = f->rate;
	dcqcn_set_rate(f, min64(rate, max64(rate - less, max64(least, 1))));
	f->alpha = (uint32_t)((f->alpha * g >> 10) + ((1024 - g) << ALPHA_SHIFT));
}

void dcqcn_cnp(struct dcqcn *f, const struct dcqcn_params *p, uint64_t now_ns)
{
	uint32_t first = SETTING(p, rate_to_set_on_first_cnp);

	if (f->lent) {
		f->lent = false;
		f->alpha = SETTING(p, initial_alpha_value) << ALPHA_SHIFT;
		f->target = f->rate;
		dcqcn_cut(f, p);
	} else if (f->rate) {
		decay(f, p, now_ns);
		dcqcn_cut(f, p);
	} else {
		f->alpha = SETTING(p, initial_alpha_value) << ALPHA_SHIFT;
		f->target = (first ? first : SETTING(p, rpg_max_rate)) * KBIT;
		dcqcn_set_rate(f, f->target);
		if (!first)
			dcqcn_cut(f, p);
	}
	start_over(f, p, now_ns);
}

/* The timer or the byte counter has expired. */
static void increase(struct dcqcn *f, const struct dcqcn_params *p)
{
	uint64_t target = f->target, rate;
	uint32_t threshold = SETTING(p, rpg_threshold);

	if (f->timer_stage > threshold && f->byte_stage > threshold)
		target += (uint64_t)SETTING(p, rpg_hai_rate) * KBIT;
	else if (f->timer_stage >= threshold || f->byte_stage >= threshold)
		target += (uint64_t)SETTING(p, rpg_ai_rate) * KBIT;
	target = min64(target, rate_of_line(p));
	rate = (f->rate + target + 1) / 2;
	f->target = (uint32_t)target;
	dcqcn_set_rate(f, rate_is_line(p, rate) ? 0 : rate);
}

static void count_stage(uint8_t *stage)
{
	if (*stage < STAGES_MAX)
		++*stage;
}

void dcqcn_advance(struct dcqcn *f, const struct dcqcn_params *p, uint64_t now_ns)
{
	for (unsigned i = 0; f->rate && !f->lent && i < STEPS_MAX && f->timer_ns <= now_ns; i++) {
		f->timer_ns += 1000ull * SETTING(p, rpg_time_reset);
		count_stage(&f->timer_stage);
		increase(f, p);
	}
}

void dcqcn_sent(struct dcqcn *f, const struct dcqcn_params *p, uint32_t bytes)
{
	uint64_t period = 64ull * SETTING(p, rpg_byte_reset), sent = (uint64_t)f->bytes + bytes;

	if (f->rate && !f->lent && sent >= period) {
		sent = 0;
		count_stage(&f->byte_stage);
		increase(f, p);
	}
	f->bytes = (uint32_t)min64(sent, UINT32_MAX);
}

void dcqcn_lend(struct dcqcn *f, uint32_t rate)
{
	f->lent = rate != 0;
	dcqcn_set_rate(f, rate);
}
