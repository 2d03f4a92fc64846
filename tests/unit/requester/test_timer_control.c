/* SPDX-License-Identifier: BSD-3-Clause */
/* TimerControl alone, in virtual time: commands in RTC_TC, expiries in TC_RRC. */
#include "engine_fixture.h"
#include "outstanding.h"
#include "requester/requester.h"
#include "rrc_work.h"
#include "timer_control.h"

#define US 1000ull
#define MS 1000000ull

static uint64_t tick_ns(void)
{
	return fx->e->settings.timer_tick_ns;
}

static void command_of(const struct qp *q, enum timer_kind kind, uint64_t ns)
{
	struct rte_mbuf *m = rte_mbuf_raw_alloc(fx->e->events);

	*timer_event_of(m) = (struct timer_event){
		.qpn = q->qpn, .timer = kind, .epoch = q->epoch, .value_ns = ns};
	fx_put(CHANNEL_RTC_TC, m);
	tc_poll(fx->e);
}

static void command(unsigned qp, enum timer_kind kind, uint64_t ns)
{
	command_of(fx->qp[qp], kind, ns);
}

/* Arms the Loss timer as RequesterTransControl does when the first packet goes out. */
static void arm_loss(unsigned qp)
{
	struct qp *q = fx->qp[qp];

	q->rtc.next_psn = psn_add(q->rtc.next_psn, 1);
	q->rtc.busy_since_ns = fx->e->now_ns;
	command(qp, TIMER_LOSS, qp_timeout_ns(q));
}

/* Takes one expiry of any QP. */
static bool take_expiry(struct timer_event *out)
{
	struct rte_mbuf *m = fx_take(CHANNEL_TC_RRC);

	if (!m)
		return false;
	*out = *timer_event_of(m);
	rte_mbuf_raw_free(m);
	return true;
}

/* Lets time pass in steps of an eighth of a tick, until an expiry or for `ns`. 0: none came. */
static uint64_t run(uint64_t ns, struct timer_event *out)
{
	uint64_t end = fx->e->now_ns + ns;

	while (fx->e->now_ns < end) {
		fx->e->now_ns += tick_ns() / 8;
		tc_poll(fx->e);
		if (take_expiry(out))
			return fx->e->now_ns;
	}
	return 0;
}

/* Nothing was to be done; then one poll. */
static void sleep_for(uint64_t ns)
{
	fx->e->now_ns += ns;
	fx->e->slept_ns += ns;
	tc_poll(fx->e);
}

static void assert_between(uint64_t t, uint64_t from, uint64_t to)
{
	if (t < from || t > to)
		fail_msg("fired at %lu, not within [%lu, %lu]", t, from, to);
}

TEST(tc_poll__set_again_moves_it)
{
	uint64_t start = fx->e->now_ns;
	struct timer_event ev;

	command(0, TIMER_RNR, MS);
	command(0, TIMER_RNR, 3 * MS);
	assert_between(run(10 * MS, &ev), start + 3 * MS, start + 3 * MS + tick_ns() * 9 / 8);
	assert_int_equal(run(10 * MS, &ev), 0);
}

/* 64 slots of 16 µs: a turn of the wheel is 1 ms. */
static struct fx_options small_wheel = {.timer_slots = 64};

TEST_OPTIONS(tc_poll__longer_than_a_turn, &small_wheel)
{
	static const uint64_t values[] = {1048576 - 16384, 1048576, 1048577, 5 * MS, 33 * MS + 7};

	for (unsigned i = 0; i < RTE_DIM(values); i++) {
		uint64_t start = fx->e->now_ns;
		struct timer_event ev;

		command(0, TIMER_RNR, values[i]);
		assert_between(run(50 * MS, &ev), start + values[i],
			       start + values[i] + tick_ns() * 9 / 8);
	}
}

/* Time stands still for long, as when the lcore slept: everything due fires at once. */
TEST_OPTIONS(tc_poll__time_jumps, &small_wheel)
{
	struct timer_event ev;
	unsigned fired = 0;

	for (unsigned i = 0; i < FX_QPS; i++)
		command(i, TIMER_RNR, (i + 1) * 3 * MS);
	fx->e->now_ns += 13 * MS; /* many turns */
	tc_poll(fx->e);
	while (take_expiry(&ev))
		fired++;
	assert_int_equal(fired, 4);
	fx->e->now_ns += 1000 * MS;
	tc_poll(fx->e);
	while (take_expiry(&ev))
		fired++;
	assert_int_equal(fired, FX_QPS);
	assert_false(requester_timers_armed(fx->e));
	/* and after a long rest a timer is still exact */
	fx->e->now_ns += 5000 * MS + 11;
	command(0, TIMER_RNR, MS);
	assert_true(run(MS - tick_ns(), &ev) == 0);
	assert_true(run(3 * tick_ns(), &ev) != 0);
}

static struct fx_options many = {.qps = 1 << 14};

/* 2^14 queue pairs armed one after the other: each fires once, within its tick, and no slot of the
 * wheel holds more than those that are due in the same tick. */
TEST_OPTIONS(tc_poll__many_queue_pairs, &many)
{
	static uint64_t due[1 << 14];
	static uint8_t slot[65536], fired[1 << 14];
	uint32_t count = fx->h->qps.count, mask = fx->h->qps.mask;
	struct timer_event ev;

	memset(fired, 0, sizeof(fired));
	memset(slot, 0, sizeof(slot));
	for (uint32_t i = 0; i < count; i++) { /* 33 ms: half a turn */
		struct qp *q = qp_at(&fx->h->qps, i);

		if (!q->qpn)
			fx_make_qp(q, 0x500000 | i, i);
		fx->e->now_ns += tick_ns() / 8;
		command_of(q, TIMER_RNR, 50 * MS);
		due[i] = fx->e->now_ns + 50 * MS;
		assert_true(++slot[q->tc.slot[TIMER_RNR]] <= 8);
	}
	assert_false(take_expiry(&ev));
	while (fx->e->now_ns < due[0] + 200 * MS && requester_timers_armed(fx->e)) {
		fx->e->now_ns += tick_ns();
		tc_poll(fx->e);
		while (take_expiry(&ev)) {
			uint32_t i = ev.qpn & mask;

			assert_between(fx->e->now_ns, due[i], due[i] + 2 * tick_ns());
			assert_int_equal(fired[i]++, 0);
		}
	}
	assert_false(requester_timers_armed(fx->e));
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(fired[i], 1);
}

/* Ticks for `ns`; returns how many timers they looked at. Nothing may fire. */
static uint64_t visits_within(uint64_t ns, uint64_t *most_in_a_tick)
{
	uint64_t first = fx_counter(COUNTER_timers_visited), last = first;
	struct timer_event ev;

	*most_in_a_tick = 0;
	for (uint64_t end = fx->e->now_ns + ns; fx->e->now_ns < end;) {
		uint64_t now;

		fx->e->now_ns += tick_ns();
		tc_poll(fx->e);
		now = fx_counter(COUNTER_timers_visited);
		*most_in_a_tick = RTE_MAX(*most_in_a_tick, now - last);
		last = now;
		assert_false(take_expiry(&ev));
	}
	return last - first;
}

/* Both timers of `count` queue pairs, `apart` after each other, the first one in `ns`. */
static void arm_many(uint32_t count, uint64_t ns, uint64_t apart)
{
	for (uint32_t i = 0; i < count; i++) {
		struct qp *q = qp_at(&fx->h->qps, i);

		if (!q->qpn)
			fx_make_qp(q, 0x500000 | i, i);
		command_of(q, TIMER_LOSS, ns + i * apart);
		command_of(q, TIMER_RNR, ns + i * apart);
	}
}

static void disarm_many(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		tc_stop(fx->e, qp_at(&fx->h->qps, i));
}

/* Timers far ahead cost a tick nothing, none or 2^15 of them: 8.6 s for many turns of wheel 0. */
TEST_OPTIONS(tc_poll__flat_cost_of_a_tick, &many)
{
	static const uint32_t counts[] = {0, 1 << 10, 1 << 14};

	for (unsigned i = 0; i < RTE_DIM(counts); i++) {
		uint64_t most;

		arm_many(counts[i], 4096ull << 21, 0);
		assert_int_equal(visits_within(500 * MS, &most), 0);
		disarm_many(counts[i]);
	}
	assert_false(requester_timers_armed(fx->e));
}

/* On its way to wheel 0 an entry is looked at once for each wheel, and not all of them together. */
TEST_OPTIONS(tc_poll__an_entry_costs_a_visit_for_each_wheel, &many)
{
	uint32_t count = fx->h->qps.count;
	uint64_t most, visits;

	arm_many(count, 700 * MS, 60 * US); /* for about a second; on wheels 2 and 3 */
	visits = visits_within(699 * MS, &most);
	assert_true(visits <= 2 * 3 * count);
	/* wheel 2 hands on what is due within 1 ms, 4 ms, 16 ms... */
	assert_true(most <= 2 * 2 * 64 * tick_ns() / (60 * US));
	disarm_many(count);
}

/* Seven days without a tick, as in a machine that was suspended. */
TEST(tc_poll__sleeps_for_long)
{
	uint64_t longest = 4096ull << 31, start;
	struct timer_event ev;

	command(0, TIMER_RNR, longest);
	fx->e->now_ns += 7 * 86400 * 1000 * MS;
	start = fx->e->now_ns;
	command(1, TIMER_RNR, longest); /* before it has seen how late it is */
	assert_true(take_expiry(&ev));
	assert_int_equal(ev.qpn, fx->qp[0]->qpn);
	assert_false(take_expiry(&ev));
	fx->e->now_ns = start + longest - tick_ns();
	tc_poll(fx->e);
	assert_false(take_expiry(&ev));
	assert_true(run(3 * tick_ns(), &ev) != 0);
	assert_int_equal(ev.qpn, fx->qp[1]->qpn);
}

/* The shortest tick and the least slots there are reach as far. */
static struct fx_options least_wheel = {.timer_slots = 64, .timer_tick_ns = 1024};

TEST_OPTIONS(tc_poll__longest_time_with_the_least_wheels, &least_wheel)
{
	uint64_t longest = 4096ull << 31, start = fx->e->now_ns, least = UINT64_MAX;
	struct timer_event ev;
	unsigned steps = 0;

	command(0, TIMER_RNR, longest);
	for (; least > tick_ns(); steps++) { /* half of what is left, each time */
		least = (start + longest - fx->e->now_ns) / 2;
		fx->e->now_ns += least;
		tc_poll(fx->e);
		assert_false(take_expiry(&ev));
	}
	assert_true(steps > 30);
	assert_true(run(4 * tick_ns(), &ev) != 0);
}

/* Nothing was armed for long: the first timer is not placed by the wheels' old position. */
TEST(tc_poll__first_timer_after_a_rest)
{
	uint64_t most;

	fx->e->now_ns += 1000000 * MS;
	command(0, TIMER_RNR, MS);
	assert_int_equal(visits_within(MS / 2, &most), 0);
	fx_assert_counter(timers_visited, 0);
}

/* The clock of the lcore that polls may be behind that of another one. */
TEST(tc_poll__time_goes_back)
{
	uint64_t start = fx->e->now_ns, missed_ns;
	struct timer_event ev;

	for (unsigned i = 0; i < FX_QPS; i++)
		command(i, TIMER_RNR, (i + 1) * MS);
	missed_ns = engine_missed(fx->e);
	fx->e->now_ns -= 3 * tick_ns();
	tc_poll(fx->e);
	assert_int_equal(engine_missed(fx->e), missed_ns);
	fx_assert_counter(timers_visited, 0);
	for (unsigned i = 0; i < FX_QPS; i++) {
		assert_between(run(2 * MS, &ev), start + (i + 1) * MS,
			       start + (i + 1) * MS + tick_ns() * 9 / 8);
		assert_int_equal(ev.qpn, fx->qp[i]->qpn);
	}
}

/* Three neighbours in a slot, two of them taken off in any order: the third fires. */
TEST(tc_stop__in_any_order)
{
	for (unsigned first = 0; first < 3; first++)
		for (unsigned second = 0; second < 3; second++) {
			struct timer_event ev;

			if (first == second)
				continue;
			for (unsigned i = 0; i < 3; i++)
				command(i, TIMER_RNR, MS);
			tc_stop(fx->e, fx->qp[first]);
			tc_stop(fx->e, fx->qp[second]);
			tc_stop(fx->e, fx->qp[second]); /* has none: nothing happens */
			assert_true(run(2 * MS, &ev) != 0);
			assert_int_equal(ev.qpn, fx->qp[3 - first - second]->qpn);
			assert_int_equal(run(2 * MS, &ev), 0);
			assert_false(requester_timers_armed(fx->e));
		}
}

/* ---- the Loss timer's looks ---- */

/* The timeout is turned off, or the queue pair fails, while the timer runs. */
TEST(loss_due__no_timer_any_more)
{
	struct timer_event ev;

	arm_loss(0);
	fx->qp[0]->timeout = 0;
	assert_int_equal(run(5 * MS, &ev), 0);
	assert_int_equal(requester_timers_armed(fx->e), 1); /* to look whether it must give way */
	tc_stop(fx->e, fx->qp[0]);
	arm_loss(1);
	fx->qp[1]->state = QP_ERR;
	assert_int_equal(run(5 * MS, &ev), 0);
	assert_false(requester_timers_armed(fx->e));
}

/* ---- the time that timers go by ---- */

static void set_rnr(uint64_t ns)
{
	tc_poll(fx->e);
	command(0, TIMER_RNR, ns);
}

/* The same of two engines, which have polled up to now. */
static void pass_time(uint64_t ns)
{
	fx->e->now_ns += ns;
	for (unsigned i = 0; i < 2; i++)
		fx->e->peers[i].heard_ns = fx->e->now_ns;
	tc_poll(fx->e);
}

/* Time passes as far as the port was looked at, at the queues of all engines. */
TEST_OPTIONS(let_time_pass__not_before_the_port_was_looked_at,
	     (&(struct fx_options){.engines = 2, .name = "let_time_pass__port"}))
{
	struct timer_event ev;

	fx->e->peers[1].heard_ns = fx->e->heard_ns = fx->e->now_ns;
	set_rnr(MS);
	fx->e->now_ns += 20 * MS;
	for (unsigned i = 0; i < 2; i++) {
		tc_poll(fx->e);
		assert_false(take_expiry(&ev));
		fx->e->peers[i].heard_ns = fx->e->now_ns;
	}
	tc_poll(fx->e);
	assert_true(take_expiry(&ev));
	assert_int_equal(ev.timer, TIMER_RNR);
}

/* An engine that sleeps for want of work keeps the time of the others, but misses none of it; those
 * of another HCA do not matter. */
TEST_OPTIONS(let_time_pass__sleep_of_another_engine_is_not_missed,
	     (&(struct fx_options){.engines = 2, .name = "let_time_pass__sleep"}))
{
	struct engine *e = fx->e;
	uint64_t missed_ns;

	for (e->count = 1; e->count <= 2; e->count++) {
		pass_time(US);
		missed_ns = engine_missed(e);
		e->peers[1].slept_ns += MS;
		pass_time(MS);
		missed_ns += e->count == 1 ? MS - tick_ns() : 0;
		assert_int_equal(engine_missed(e), missed_ns);
	}
	e->count = 2;
}

/* And as far as the answers have been taken that had come by then, and none is held back; not those
 * that come since. */
TEST(let_time_pass__not_before_the_answers_were_taken)
{
	struct rrc *c = fx->e->rrc;
	struct timer_event ev;

	set_rnr(MS);
	fx_fill(CHANNEL_HP_RRC, 253);
	fx->e->now_ns += 20 * MS;
	for (unsigned i = 0; i < 2; i++) {
		tc_poll(fx->e);
		assert_false(take_expiry(&ev));
		rte_pktmbuf_free(fx_take(CHANNEL_HP_RRC));
		fx_fill(CHANNEL_HP_RRC, 252);
	}
	c->holds = 1;
	tc_poll(fx->e);
	assert_false(take_expiry(&ev));
	c->holds = 0;
	tc_poll(fx->e);
	assert_true(take_expiry(&ev));
}

/* From now on queue pair 0 waits for an answer, and knows its round trip: until its probe, ns. */
static uint64_t wait_with_a_round_trip(void)
{
	struct qp *q = fx->qp[0];

	q->timeout = 14; /* 67 ms */
	q->rrc.srtt_ns = 100 * US;
	q->rtc.next_psn = psn_add(q->rtc.next_psn, 1);
	q->rtc.busy_since_ns = fx->e->now_ns;
	command(0, TIMER_LOSS, tick_ns());
	return qp_probe_ns(fx->e, q);
}

/* It is exactly time for a probe. */
TEST(loss_due__probe_on_time)
{
	struct timer_event ev;

	sleep_for(wait_with_a_round_trip());
	assert_true(take_expiry(&ev));
	assert_int_equal(ev.expiry, TIMER_PROBE);
}

/* While others have the CPU there are no polls, and a peer may not have it either: that time does
 * not count towards a probe, but all of it counts for the transport timer. */
TEST(loss_due__no_probe_for_time_that_was_missed)
{
	struct qp *q = fx->qp[0];
	uint64_t probe, again;
	struct timer_event ev;

	tc_poll(fx->e);
	probe = wait_with_a_round_trip();
	for (unsigned i = 1; i <= 3; i++) {
		fx->e->now_ns += 10 * MS;
		tc_poll(fx->e);
		assert_int_equal(engine_missed(fx->e), i * (10 * MS - tick_ns()));
		assert_false(take_expiry(&ev));
	}
	again = run(10 * MS, &ev); /* a tick of each look counts */
	assert_int_equal(ev.expiry, TIMER_PROBE);
	assert_between(again, q->rtc.busy_since_ns + 30 * MS + probe - 3 * tick_ns(),
		       q->rtc.busy_since_ns + 30 * MS + probe - tick_ns());
	fx->e->now_ns += 10 * MS; /* the same from probe to probe, and from progress on */
	tc_poll(fx->e);
	assert_false(take_expiry(&ev));
	qp_progress(fx->e, q);
	again = fx->e->now_ns + probe;
	assert_between(run(10 * MS, &ev), again, again + 2 * tick_ns());
	assert_int_equal(ev.expiry, TIMER_PROBE);
	fx->e->now_ns += 10 * MS;
	tc_poll(fx->e);
	assert_false(take_expiry(&ev));
	fx->e->now_ns += 60 * MS;
	tc_poll(fx->e);
	assert_true(take_expiry(&ev));
	assert_int_equal(ev.expiry, TIMER_EXPIRED);
}

/* No room for a probe: it comes with the next tick, not after another wait. */
TEST(loss_due__probe_without_room)
{
	struct timer_event ev;

	wait_with_a_round_trip();
	fx_fill(CHANNEL_TC_RRC, 0);
	sleep_for(2 * MS);
	fx_unfill(CHANNEL_TC_RRC);
	assert_true(run(3 * tick_ns(), &ev) != 0);
	assert_int_equal(ev.expiry, TIMER_PROBE);
}

/* None while the RNR timer runs. */
TEST(loss_due__no_probe_in_an_rnr_wait)
{
	struct qp *q = fx->qp[0];
	struct timer_event ev;

	q->rrc.rnr_waiting = 1;
	wait_with_a_round_trip();
	assert_int_equal(run(20 * MS, &ev), 0);
	q->rrc.rnr_waiting = 0;
	assert_true(run(3 * MS, &ev) != 0);
	assert_int_equal(ev.expiry, TIMER_PROBE);
}

/* As long as no round trip is known the entry looks for one, less and less often; it is not looked
 * at before its time when one is. */
TEST(loss_due__looks_for_a_round_trip)
{
	uint64_t first = FIRST_LOOK_TICKS * tick_ns(), start = fx->e->now_ns, now;
	struct qp *q = fx->qp[0];
	struct timer_event ev;

	fx->e->settings.first_probe_us = 0;
	q->timeout = 16; /* 268 ms */
	q->rtc.next_psn = psn_add(q->rtc.next_psn, 1);
	q->rtc.busy_since_ns = start;
	command(0, TIMER_LOSS, first);
	for (unsigned i = 1; i <= 6; i++) {
		assert_int_equal(
			run(q->tc.deadline_ns[TIMER_LOSS] + 2 * tick_ns() - fx->e->now_ns, &ev), 0);
		now = q->tc.deadline_ns[TIMER_LOSS];
		assert_between(now - start, first * ((1 << i) - 1), first * ((2 << i) + i));
	}
	q->rrc.srtt_ns = 20 * MS;
	assert_int_equal(run(q->tc.deadline_ns[TIMER_LOSS] + 2 * tick_ns() - fx->e->now_ns, &ev),
			 0);
	assert_true(q->tc.deadline_ns[TIMER_LOSS] == start + qp_probe_ns(fx->e, q));
}

/* A command or an entry of a destroyed queue pair has no effect. */
TEST(tc_stop__takes_entries_off)
{
	struct timer_event ev;

	for (unsigned i = 0; i < 3; i++) { /* neighbours in one slot */
		command(i, TIMER_RNR, MS);
		arm_loss(i);
	}
	tc_stop(fx->e, fx->qp[1]);
	assert_int_equal(fx->qp[1]->tc.armed[TIMER_LOSS] | fx->qp[1]->tc.armed[TIMER_RNR], 0);
	fx->e->now_ns += 10 * MS;
	tc_poll(fx->e);
	for (unsigned n = 0; n < 4; n++) {
		assert_true(take_expiry(&ev));
		assert_int_not_equal(ev.qpn, fx->qp[1]->qpn);
	}
	assert_false(take_expiry(&ev));
}

TEST(tc_poll__stale_commands)
{
	struct qp old = *fx->qp[0];

	old.epoch++;
	command_of(&old, TIMER_RNR, MS);
	old = *fx->qp[0];
	old.qpn += 64;
	command_of(&old, TIMER_RNR, MS);
	assert_false(requester_timers_armed(fx->e));
}

TEST(tc_poll__output_full)
{
	struct timer_event ev;

	command(0, TIMER_RNR, 100 * US);
	arm_loss(1);
	fx_fill(CHANNEL_TC_RRC, 0);
	fx->e->now_ns += 3 * MS;
	tc_poll(fx->e);
	assert_true(requester_timers_armed(fx->e));
	fx_unfill(CHANNEL_TC_RRC);
	assert_true(run(4 * tick_ns(), &ev) != 0);
	assert_true(take_expiry(&ev) || run(4 * tick_ns(), &ev) != 0);
}

/* If one lcore polls all stages, it keeps up to 32 events, and takes those first. */
TEST(tc_poll__spare_events)
{
	struct rte_mempool *pool = fx->e->events;
	unsigned free_before = rte_mempool_avail_count(pool);

	fx->e->one_lcore = true;
	for (unsigned i = 0; i < 100; i++) {
		arm_loss(0);
		assert_int_equal(requester_spare_events(fx->e), RTE_MIN(i + 1, 32u));
	}
	assert_int_equal(rte_mempool_avail_count(pool), free_before - 32);
	assert_true(timer_set(fx->e, CHANNEL_RTC_TC, fx->qp[0], TIMER_LOSS, MS));
	assert_int_equal(requester_spare_events(fx->e), 31);
	assert_int_equal(rte_mempool_avail_count(pool), free_before - 32);
	tc_poll(fx->e);
	assert_int_equal(requester_spare_events(fx->e), 32);
}

TEST(tc_poll__no_buffer)
{
	struct timer_event ev;

	command(0, TIMER_RNR, 100 * US);
	fx_exhaust(fx->e->events, 0);
	fx->e->now_ns += MS;
	tc_poll(fx->e);
	assert_false(take_expiry(&ev));
	fx_refill();
	assert_true(run(4 * tick_ns(), &ev) != 0);
}
