/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion control by delay: the meter, the target, and the table of states in its header. */
#include "congestion/delay.h"
#include "test.h"

#define US 1000u
#define S  1000000000ull

enum { LINE = 40000, KBIT = 1000 };

static struct dcqcn_params limits;
static struct delay_params p;
static struct delay_control control;
static struct delay_meter meter;
static struct dcqcn f;

static int make(void **state)
{
	limits = (struct dcqcn_params){.rpg_max_rate = LINE,
				       .rpg_min_rate = 1,
				       .rpg_threshold = 5,
				       .rpg_time_reset = 55,
				       .rpg_byte_reset = 163840,
				       .rpg_ai_rate = 40,
				       .rpg_hai_rate = 400,
				       .rpg_gd = 11,
				       .rpg_min_dec_fac = 50,
				       .dce_tcp_g = 1020,
				       .dce_tcp_rtt = 55,
				       .initial_alpha_value = 1023};
	p = (struct delay_params){
		.delay_target = 20, .delay_scaling = 20, .delay_beta = 80, .delay_ai_rate = 100};
	control = (struct delay_control){0};
	meter = (struct delay_meter){0};
	f = (struct dcqcn){0};
	return 0;
}

#define TEST_P(name) TEST_WITH(name, make, NULL)

static uint32_t measured(uint32_t us)
{
	return delay_measured(&meter, us * US, 1) / US;
}

TEST_P(meter__least_round_trip_is_the_path)
{
	assert_int_equal(measured(30), 0);
	assert_int_equal(measured(12), 0);
	assert_int_equal(meter.base_ns, 12 * US);
	assert_int_equal(measured(20), 0); /* one alone may be the other end's */
	assert_int_equal(measured(50), 8);
	assert_int_equal(measured(40), 28);
}

TEST_P(meter__falls_if_clearly_less)
{
	static const struct {
		uint32_t us;
		bool falls;
	} rows[] = {{10, false}, {50, false}, {49, false}, {46, true}, {46, false}, {10, true}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		measured(rows[i].us);
		assert_int_equal(meter.falls, rows[i].falls);
	}
}

/* A path that has become longer is the path after two periods at most. */
TEST_P(meter__forgets)
{
	delay_measured(&meter, 10 * US, 1);
	for (unsigned i = 1; i < 10; i++)
		delay_measured(&meter, 30 * US, i * S);
	assert_int_equal(meter.base_ns, 10 * US);
	delay_measured(&meter, 30 * US, 10 * S + 1);
	delay_measured(&meter, 30 * US, 20 * S + 1);
	assert_int_equal(meter.base_ns, 30 * US);
}

TEST_P(target__grows_with_the_root_of_the_flows)
{
	static const struct {
		uint32_t mbps, ns;
	} rows[] = {{0, 20000},	       {LINE, 20000},	   {2 * LINE, 20000},
		    {LINE / 4, 24000}, {LINE / 16, 32000}, {LINE / 400, 80000}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_in_range(delay_target_ns(&p, &limits, rows[i].mbps * KBIT), rows[i].ns - 20,
				rows[i].ns + 20);
	p.delay_scaling = 0;
	assert_int_equal(delay_target_ns(&p, &limits, LINE / 16 * KBIT), 20000);
}

static void react(uint32_t queue_us, uint32_t arrived_mbps, uint64_t now_ns)
{
	delay_react(&f, &control, &p, &limits, queue_us * US, arrived_mbps * KBIT, now_ns);
}

TEST_P(react__nothing_below_the_target)
{
	react(20, LINE, US);
	assert_int_equal(f.rate, 0);
}

/* The rate that arrives, less four fifths of the excess, a quarter at most. */
TEST_P(react__first_cut_is_to_what_arrives)
{
	react(24, 24000, US);
	assert_true(f.lent);
	assert_in_range(f.rate, 20500 * KBIT, 21200 * KBIT);
	make(NULL);
	react(1000, 24000, US);
	assert_int_equal(f.rate, 18000 * KBIT);
	make(NULL);
	react(1000, 0, US); /* not less than half, before the cut */
	assert_int_equal(f.rate, 15000 * KBIT);
}

TEST_P(react__never_below_the_least_rate)
{
	for (unsigned i = 0; i < 100; i++)
		react(1000, 0, i * US);
	assert_int_equal(f.rate, limits.rpg_min_rate * KBIT);
}

/* In proportion to the time; faster from the sixth on; until it is as fast as the line. */
TEST_P(react__grows_back)
{
	uint64_t now_ns = 10 * S;

	react(1000, 0, now_ns);
	react(15, 0, now_ns += 25 * US);
	assert_int_equal(f.rate, 15050 * KBIT);
	react(15, 0, now_ns += 500 * US);
	assert_int_equal(f.rate, 15150 * KBIT);
	for (unsigned i = 0; i < 6; i++)
		react(0, 0, now_ns += 50 * US);
	assert_int_equal(f.rate, 15750 * KBIT);
	react(0, 0, now_ns += 50 * US);
	assert_int_equal(f.rate, 15950 * KBIT);
	for (unsigned i = 0; i < 40 && f.rate; i++)
		react(0, 0, now_ns += 50 * US);
	assert_int_equal(f.rate, 0);
	assert_false(f.lent);
}

/* After 64 samples, then 128 ... 2^15; the rate stays, unless packets are lost. Not while nothing limits it. */
TEST_P(react__drains)
{
	unsigned until = DELAY_DRAIN_FIRST;
	uint32_t rate;

	for (unsigned i = 0; i < 1000; i++)
		react(0, 0, US);
	react(1000, 24000, US);
	rate = f.rate;
	for (unsigned turn = 0; turn < 12; turn++) {
		for (unsigned i = 0; i < until; i++) {
			assert_false(delay_drains(&control));
			react(15, 0, US); /* no time passes: it does not grow */
		}
		for (unsigned i = 0; i < DELAY_DRAIN; i++) {
			assert_true(delay_drains(&control));
			react(i % 2 ? 0 : 1000, 0, US);
		}
		until = until < 1 << 15 ? 2 * until : until;
	}
	assert_int_equal(f.rate, rate);
	while (!delay_drains(&control))
		react(15, 0, US);
	delay_react(&f, &control, &p, &limits, UINT32_MAX, 0, US); /* a loss */
	assert_true(f.rate < rate);
	assert_true(delay_drains(&control));
}

/* Once a CNP has come the rate is DCQCN's; time and bytes change what delay has set not at all. */
TEST_P(react__notifications_go_first)
{
	uint32_t rate;

	react(1000, 24000, US);
	rate = f.rate;
	dcqcn_advance(&f, &limits, S);
	dcqcn_sent(&f, &limits, UINT32_MAX);
	assert_int_equal(f.rate, rate);
	dcqcn_cnp(&f, &limits, S);
	assert_false(f.lent);
	assert_in_range(f.rate, rate / 2, rate / 2 + rate / 1000);
	rate = f.rate;
	react(1000, 0, S + US);
	assert_int_equal(f.rate, rate);
	react(1000, 0,
	      S + 55 * US * (limits.rpg_threshold + 1)); /* nobody marks: it is elsewhere */
	assert_true(f.lent);
}
