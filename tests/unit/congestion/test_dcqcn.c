/* SPDX-License-Identifier: BSD-3-Clause */
/* The reaction point against the equations of the paper (Zhu et al., SIGCOMM 2015, 3.1). */
#include "congestion/dcqcn.h"
#include "test.h"

#define US 1000ull
#define MS 1000000ull

enum { LINE = 40000, KBIT = 1000, ALPHA_ONE = 65536 };

static struct dcqcn_params p;
static struct dcqcn f;

static int make(void **state)
{
	p = (struct dcqcn_params){.rpg_max_rate = LINE,
				  .rpg_min_rate = 1,
				  .rpg_ai_rate = 40,
				  .rpg_hai_rate = 400,
				  .rpg_threshold = 5,
				  .rpg_time_reset = 55,
				  .rpg_byte_reset = 10000000 / 64,
				  .rpg_gd = 11,
				  .rpg_min_dec_fac = 50,
				  .dce_tcp_g = 1020,
				  .dce_tcp_rtt = 55,
				  .initial_alpha_value = 1023,
				  .clamp_tgt_rate = true};
	f = (struct dcqcn){0};
	return 0;
}

#define TEST_P(name) TEST_WITH(name, make, NULL)

/* Within a thousandth, and one: integers round. */
static void near(double is, double should)
{
	double d = is > should ? is - should : should - is;

	if (d > should / 1000 + 1)
		fail_msg("%f instead of %f", is, should);
}

static double alpha(void)
{
	return (double)f.alpha / ALPHA_ONE;
}

TEST_P(cnp__first_one_halves_the_line_rate)
{
	dcqcn_cnp(&f, &p, MS);
	near(f.rate, LINE * 1000. * (1 - 1023 / 2048.));
	assert_int_equal(f.target, LINE * KBIT);
	near(f.alpha, (1020 * 1023. / 1024 + 4) / 1024 * ALPHA_ONE);
}

TEST_P(cnp__rate_to_set_on_first_cnp)
{
	p.rate_to_set_on_first_cnp = 10000;
	dcqcn_cnp(&f, &p, MS);
	assert_int_equal(f.rate, 10000 * KBIT);
	assert_int_equal(f.target, 10000 * KBIT);
	dcqcn_cnp(&f, &p, MS);
	near(f.rate, 5000 * KBIT);
}

/* R_T = R_C; R_C = R_C (1 - α/2); α = (1 - g) α + g */
TEST_P(cnp__cuts_by_half_of_alpha)
{
	static const double alphas[] = {1, .75, .5, .1, .01, 0};

	for (unsigned i = 0; i < 6; i++) {
		f = (struct dcqcn){.rate = 20000000,
				   .target = 30000000,
				   .alpha = alphas[i] * ALPHA_ONE,
				   .alpha_ns = MS};
		dcqcn_cnp(&f, &p, MS);
		near(f.rate, 20000000 * (1 - alphas[i] / 2));
		assert_int_equal(f.target, 20000000);
		near(f.alpha, (alphas[i] * 255 / 256 + 1 / 256.) * ALPHA_ONE);
	}
}

TEST_P(cnp__target_stays_unless_the_rate_has_grown)
{
	for (unsigned i = 0; i < 8; i++) {
		bool by_timer = i & 1, by_bytes = i & 2;

		p.clamp_tgt_rate = false;
		p.clamp_tgt_rate_after_time_inc = i & 4;
		f = (struct dcqcn){.rate = 20000000,
				   .target = 30000000,
				   .timer_stage = by_timer,
				   .byte_stage = by_bytes};
		dcqcn_cnp(&f, &p, 0);
		assert_int_equal(f.target, by_bytes || (by_timer && i & 4) ? 20000000 : 30000000);
	}
}

TEST_P(cnp__never_below_the_least_rate)
{
	for (unsigned i = 0; i < 100; i++)
		dcqcn_cnp(&f, &p, MS);
	assert_int_equal(f.rate, KBIT);
	p.rpg_min_rate = 100;
	dcqcn_cnp(&f, &p, MS);
	assert_int_equal(f.rate, KBIT); /* nor does a cut raise it */
}

TEST_P(cnp__one_cut_leaves_rpg_min_dec_fac)
{
	p.rpg_min_dec_fac = 80;
	dcqcn_cnp(&f, &p, MS);
	assert_int_equal(f.rate, LINE * KBIT / 100 * 80);
	p.rpg_min_dec_fac = 100;
	dcqcn_cnp(&f, &p, MS);
	assert_int_equal(f.rate, LINE * KBIT / 100 * 80);
}

TEST_P(cnp__rpg_gd_weighs_alpha)
{
	p.rpg_gd = 13; /* α/8 */
	dcqcn_cnp(&f, &p, MS);
	near(f.rate, LINE * 1000. * (1 - 1023 / 8192.));
}

/* α = (1 - g) α each 55 µs, whenever it is looked at. */
TEST_P(alpha__decays_without_cnps)
{
	for (unsigned periods = 0; periods < 2000; periods = periods * 2 + 1) {
		double should = .5, cut;

		f = (struct dcqcn){.rate = 20000000, .alpha = ALPHA_ONE / 2, .alpha_ns = MS};
		dcqcn_cnp(&f, &p, MS + periods * 55 * US + 54 * US);
		for (unsigned i = 0; i < periods; i++)
			should *= 255 / 256.;
		cut = 20000000. - f.rate;
		assert_true(cut > 10000000 * should - 400 && cut < 10000000 * should + 400);
	}
}

/* After a cut from 40 to 20 Gbit/s: 30, 35, 37.5, 38.75. */
TEST_P(timer__fast_recovery_halves_the_distance)
{
	double distance;

	dcqcn_cnp(&f, &p, MS);
	distance = f.target - f.rate;
	for (unsigned i = 1; i < 5; i++) {
		dcqcn_advance(&f, &p, MS + i * 55 * US - 1);
		near(f.target - f.rate, distance);
		dcqcn_advance(&f, &p, MS + i * 55 * US);
		distance /= 2;
		near(f.target - f.rate, distance);
		assert_int_equal(f.target, LINE * KBIT);
	}
}

static void set(double rate, double target, unsigned timer_stage, unsigned byte_stage)
{
	f = (struct dcqcn){.rate = rate * 1000,
			   .target = target * 1000,
			   .timer_ns = MS,
			   .timer_stage = timer_stage,
			   .byte_stage = byte_stage};
}

/* Which of the three phases, by both stages; the event itself is one more. */
TEST_P(stages__choose_the_phase)
{
	for (unsigned t = 0; t < 9; t++) {
		for (unsigned b = 0; b < 9; b++) {
			unsigned after = t + 1;
			double more = after > 5 && b > 5 ? 400 : after < 5 && b < 5 ? 0 : 40;

			set(10000, 20000, t, b);
			dcqcn_advance(&f, &p, MS);
			near(f.target, (20000 + more) * 1000);
			near(f.rate, (10000 + 20000 + more) / 2 * 1000);
			set(10000, 20000, b, t);
			dcqcn_sent(&f, &p, 10000000);
			near(f.target, (20000 + more) * 1000);
			near(f.rate, (10000 + 20000 + more) / 2 * 1000);
		}
	}
}

TEST_P(bytes__count_from_the_last_expiry_or_cnp)
{
	dcqcn_cnp(&f, &p, MS);
	dcqcn_sent(&f, &p, 9999999);
	assert_int_equal(f.byte_stage, 0);
	dcqcn_sent(&f, &p, 1);
	assert_int_equal(f.byte_stage, 1);
	dcqcn_sent(&f, &p, 9999999);
	dcqcn_cnp(&f, &p, MS);
	assert_int_equal(f.byte_stage, 0);
	dcqcn_sent(&f, &p, 9999999);
	assert_int_equal(f.byte_stage, 0);
}

TEST_P(timer__a_cnp_starts_it_over)
{
	dcqcn_cnp(&f, &p, MS);
	dcqcn_cnp(&f, &p, MS + 30 * US);
	dcqcn_advance(&f, &p, MS + 84 * US);
	assert_int_equal(f.timer_stage, 0);
	dcqcn_advance(&f, &p, MS + 85 * US);
	assert_int_equal(f.timer_stage, 1);
}

TEST_P(release__at_the_line_rate)
{
	uint64_t now = MS;
	uint32_t before = 0;

	dcqcn_cnp(&f, &p, now);
	while (f.rate) {
		before = f.rate;
		dcqcn_advance(&f, &p, now += 55 * US);
		assert_true(now < 2 * MS);
	}
	assert_true(before < LINE * KBIT);
	dcqcn_advance(&f, &p, now + MS); /* it stays so */
	dcqcn_sent(&f, &p, UINT32_MAX);
	assert_int_equal(f.rate, 0);
}

/* An hour's pause is caught up with, a bounded piece at a time. */
TEST_P(advance__long_pause)
{
	unsigned calls = 0;

	set(1, 1, 0, 0);
	while (f.rate && calls++ < 1000)
		dcqcn_advance(&f, &p, 3600 * 1000 * MS);
	assert_int_equal(f.rate, 0);
	assert_true(calls > 1 && calls < 64);
}

/* Neither settings nor times out of the ordinary divide by 0 or overflow. */
TEST_P(params__extremes)
{
	static const struct dcqcn_params most = {400000, 400000,  400000,     400000, 400000,
						 255,	 1000000, UINT32_MAX, 15,     100,
						 1023,	 1000000, 1023,	      true,   true};
	static const struct dcqcn_params least = {1,  1, 0, 1, 1, 1,	 1,    1,
						  10, 0, 0, 1, 1, false, false};
	const struct dcqcn_params *all[] = {&most, &least};

	for (unsigned i = 0; i < 2; i++) {
		f = (struct dcqcn){0};
		for (uint64_t now = MS; now < UINT64_MAX / 4; now *= 3) {
			dcqcn_cnp(&f, all[i], now);
			assert_true(f.rate >= 1 && f.rate <= 400000000 && f.alpha <= ALPHA_ONE);
			assert_true(dcqcn_ns(&f, UINT32_MAX) < 1ull << 62);
			dcqcn_sent(&f, all[i], UINT32_MAX);
			dcqcn_advance(&f, all[i], now);
		}
	}
	assert_true(alpha() <= 1);
}
