/* SPDX-License-Identifier: BSD-3-Clause */
/* The wheel on which limited flows wait, and the time that their packets take. */
#include "context/pacing.h"
#include "engine_fixture.h"

#define US 1000ull
#define MS 1000000ull

enum { QPS = 5 };

static struct pacer pacer;
static struct qp qps[QPS];
static struct qp_table table = {.qps = qps};

static int make(void **state)
{
	memset(qps, 0, sizeof(qps));
	for (unsigned i = 0; i < QPS; i++)
		qps[i].index = i;
	pacer_init(&pacer, &table, offsetof(struct qp, rtc.flow));
	return 0;
}

#define TEST_PACER(name) TEST_WITH(name, make, NULL)

static void wait_until(unsigned i, uint64_t ns, uint64_t now_ns)
{
	qps[i].rtc.flow.next_ns = ns;
	pacer_wait(&pacer, &qps[i], now_ns);
}

static void taken(uint64_t now_ns, int first, int second)
{
	int expected[] = {first, second, -1};

	for (unsigned i = 0; i < 3 && (i == 0 || expected[i - 1] >= 0); i++)
		assert_ptr_equal(pacer_take(&pacer, now_ns),
				 expected[i] < 0 ? NULL : &qps[expected[i]]);
}

TEST_PACER(wheel__each_in_its_time)
{
	wait_until(0, 10 * US, 0);
	wait_until(1, 500 * US, 0);
	wait_until(2, 20 * US, 0);
	taken(9 * US, -1, -1);
	taken(12 * US, 0, -1);
	taken(19 * US, -1, -1);
	taken(22 * US, 2, -1);
	taken(499 * US, -1, -1);
	taken(502 * US, 1, -1);
	assert_int_equal(pacer.waiting, 0);
}

/* Whenever within a slot that is: who is taken in time is due. */
TEST_PACER(wheel__never_early_within_its_reach)
{
	for (uint64_t ns = 5 * MS; ns < 5 * MS + 3 * PACING_SLOT_NS; ns += 7) {
		wait_until(0, ns, 5 * MS - 100 * US);
		for (uint64_t now = 5 * MS - 100 * US;; now += 100) {
			if (!pacer_take(&pacer, now))
				continue;
			assert_true(flow_due(&qps[0].rtc.flow, now));
			assert_true(now < ns + 2 * PACING_SLOT_NS + 100);
			break;
		}
	}
}

TEST_PACER(wheel__when_to_look_again)
{
	assert_true(pacer_due_ns(&pacer) == UINT64_MAX);
	wait_until(1, 5 * MS, 5 * MS - 100 * US);
	wait_until(0, 5 * MS - 50 * US, 5 * MS - 100 * US);
	assert_in_range(pacer_due_ns(&pacer), 5 * MS - 50 * US, 5 * MS - 50 * US + PACING_SLOT_NS);
	assert_null(pacer_take(&pacer, pacer_due_ns(&pacer) - 1));
	assert_ptr_equal(pacer_take(&pacer, pacer_due_ns(&pacer)), &qps[0]);
	assert_in_range(pacer_due_ns(&pacer), 5 * MS, 5 * MS + PACING_SLOT_NS);
}

/* Farther than the wheel reaches: it looks in between. */
TEST_PACER(wheel__long_waits_go_round)
{
	unsigned looks = 0;

	wait_until(0, 10 * MS, 0);
	for (uint64_t now = 0; !flow_due(&qps[0].rtc.flow, now); now += US) {
		if (!pacer_take(&pacer, now))
			continue;
		assert_true(++looks <= 11);
		pacer_wait(&pacer, &qps[0], now);
	}
	assert_true(looks >= 9);
}

TEST_PACER(wheel__after_a_pause_all_are_there)
{
	unsigned n = 0;

	for (unsigned i = 0; i < QPS; i++)
		wait_until(i, 50 * (i + 1) * US, 0);
	while (pacer_take(&pacer, 3600 * 1000 * MS))
		n++;
	assert_int_equal(n, QPS);
	wait_until(0, 3600 * 1000 * MS + 5 * US, 3600 * 1000 * MS);
	taken(3600 * 1000 * MS + 8 * US, 0, -1);
}

TEST_PACER(wheel__once_and_left)
{
	wait_until(0, 10 * US, 0);
	wait_until(0, 10 * US, 0);
	wait_until(1, 10 * US, 0);
	assert_int_equal(pacer.waiting, 2);
	pacer_leave(&pacer, &qps[0]);
	pacer_leave(&pacer, &qps[0]);
	assert_int_equal(pacer.waiting, 1);
	taken(12 * US, 1, -1);
}

/* 1000 Mbit/s: a byte is 8 ns. A late round is made up for, within bounds. */
TEST_PACER(flow__time_of_its_packets)
{
	struct qp_flow f = {.cc = {.rate = 1000000}};
	const struct dcqcn_params p = {.rpg_byte_reset = UINT32_MAX, .rpg_max_rate = 40000};
	uint32_t bytes = 2 * (1000 + PACING_HEADER_BYTES);

	flow_sent(&f, &p, 2, 2000, MS);
	assert_int_equal(f.next_ns, MS - PACING_SLACK_NS + 8 * bytes);
	flow_sent(&f, &p, 2, 2000, MS);
	assert_int_equal(f.next_ns, MS - PACING_SLACK_NS + 16 * bytes);
	assert_int_equal(flow_burst_bytes(&f, 1024), PACING_BURST_PACKETS * 1024);
	f.cc.rate = 120000;
	assert_int_equal(flow_burst_bytes(&f, 1024), 1500);
	f.cc.rate = 1000;
	assert_int_equal(flow_burst_bytes(&f, 1024), 1024);
}

/* Several CNPs since the last round are one. */
TEST_PACER(flow__takes_cnps_once)
{
	struct dcqcn_params p = {.rpg_max_rate = 40000,
				 .rate_to_set_on_first_cnp = 40000,
				 .initial_alpha_value = 1023,
				 .rpg_gd = 11,
				 .dce_tcp_rtt = 55,
				 .rpg_time_reset = 55};
	struct qp_flow *f = &qps[0].rtc.flow;

	flow_take_cnps(f, &qps[0], &p, MS);
	assert_int_equal(f->cc.rate, 0);
	qps[0].hp.cnps = 3;
	flow_take_cnps(f, &qps[0], &p, MS);
	flow_take_cnps(f, &qps[0], &p, MS);
	assert_int_equal(f->cc.rate, 40000000);
	qps[0].hp.cnps++; /* it has sent nothing since */
	flow_take_cnps(f, &qps[0], &p, MS);
	assert_int_equal(f->cc.rate, 40000000);
	p.rpg_byte_reset = UINT32_MAX;
	flow_sent(f, &p, 1, 1000, MS);
	flow_take_cnps(f, &qps[0], &p, MS);
	assert_int_equal(f->cc.rate, 40000000);
	qps[0].hp.cnps++;
	flow_take_cnps(f, &qps[0], &p, MS);
	assert_true(f->cc.rate < 21000000);
}
