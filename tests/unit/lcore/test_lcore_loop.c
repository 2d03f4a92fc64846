/* SPDX-License-Identifier: BSD-3-Clause */
/* An lcore's loop, with a clock of ours and stages that only remember when they were polled. */
#include <sys/timerfd.h>
#include "test.h"
#include "context/pacing.h"
#include "lcore/clock.h"

static uint64_t test_clock_ns(const struct clock *c);

static uint64_t test_due_ns(const struct pacer *p);

static int test_yield(void);

static int test_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old);

#define clock_now_ns	test_clock_ns
#define pacer_due_ns	test_due_ns
#define sched_yield	test_yield
#define timerfd_settime test_settime
#include "lcore_loop.c"
#undef clock_now_ns
#undef pacer_due_ns
#undef sched_yield
#undef timerfd_settime

enum { ROUNDS = 5 };
#define TEN_S 10000000000ull

/* How long each round lasts, and at which time its stage was polled. */
static const uint64_t lasts_ns[ROUNDS] = {1000, 20000000, 1000, 3000000000ull, 1000};
static uint64_t polled_ns[ROUNDS], slept_ns[ROUNDS];
static unsigned rounds, work;
static uint32_t stop;
static struct engine engine;
static uint64_t world_ns;

static uint64_t test_clock_ns(const struct clock *c)
{
	return world_ns;
}

/* When a limited flow may send. */
static uint64_t flow_due_ns = UINT64_MAX;

static uint64_t test_due_ns(const struct pacer *p)
{
	return flow_due_ns;
}

/* How long others run while we yield, and how often we did. */
static uint64_t yield_ns;
static unsigned yields;

static int test_yield(void)
{
	world_ns += yield_ns;
	yields++;
	return 0;
}

static unsigned alarms;

static int test_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old)
{
	alarms++;
	return timerfd_settime(fd, flags, at, old);
}

/* Where the loop's one stage finds something without being woken, if it is this one. */
static struct link_port polled_port = {.unannounced = 1};
static enum stage_id placed = STAGE_HEADER_PARSE;
static bool retries, hopes, events_wait;
static const struct engine *keeps; /* something that is not acknowledged; NULL: none does */

bool requester_is_due_soon(const struct engine *e)
{
	return retries;
}

bool responder_is_due_soon(const struct engine *e)
{
	return hopes;
}

bool requester_rests(const struct engine *e)
{
	return e != keeps;
}

bool completion_rests(const struct completion *c)
{
	return !events_wait;
}

/* Rounds that decide that time stands when the next one begins, by bit. */
static unsigned stands_in;

unsigned hca_poll_stage(struct engine *e, enum stage_id stage)
{
	e->watched = stands_in >> rounds & 1 ? WATCH_TIME_STANDS : 0;
	polled_ns[rounds] = engine_now(e);
	slept_ns[rounds] = e->slept_ns;
	world_ns += lasts_ns[rounds++];
	stop = rounds == ROUNDS;
	return work;
}

static const struct engine *asleep;

void dbp_set_asleep(struct engine *e, bool announced)
{
	asleep = announced ? e : NULL;
}

static enum dbp_crowd crowd_now;

enum dbp_crowd dbp_crowd(const struct engine *e, unsigned cpu)
{
	return crowd_now;
}

void dbp_set_cpu(struct engine *e, unsigned cpu)
{
}

void completion_round(struct completion *c, struct counters *counters)
{
}

/* One that no other lcore shares is given its time without more ado. */
static bool shared = true;

static void run(struct lcore_loop *l)
{
	size_t bytes = rte_rcu_qsbr_get_memsize(1);
	struct rte_rcu_qsbr *rcu = aligned_alloc(RTE_CACHE_LINE_SIZE, bytes);

	assert_int_equal(rte_rcu_qsbr_init(rcu, 1), 0);
	rounds = 0;
	stop = 0;
	world_ns = 5000;
	engine = (struct engine){.one_lcore = !shared, .link = &polled_port};
	engine.stage[placed].pacer = (const struct pacer *)&engine;
	l->rcu = rcu;
	l->stop = &stop;
	l->handed = LOOP_READY;
	l->stages[l->stage_count++] = (struct placed_stage){.engine = &engine, .id = placed};
	l->engines[l->engine_count++] = &engine;
	lcore_loop_run(l);
	free(rcu);
}

static void all_time_passes(void)
{
	static struct lcore_loop l;
	uint64_t at_ns = 5000;

	memset(&l, 0, sizeof(l));
	work = 1;
	run(&l);
	for (unsigned i = 0; i < ROUNDS; at_ns += lasts_ns[i++]) {
		assert_true(polled_ns[i] == at_ns);
		assert_true(slept_ns[i] == 0);
	}
}

/* The engine's time is the world's, whoever had the CPU in the middle of a round. */
TEST(lcore_loop_run__all_time_passes)
{
	all_time_passes();
	shared = false;
	all_time_passes();
	shared = true;
}

/* What belongs to one HCA leaves the loop, and nothing else. */
TEST(lcore_loop_remove__one_of_two)
{
	static struct lcore_loop l;
	static struct engine engines[2];
	static struct hca hcas[2];

	for (unsigned i = 0; i < 2; i++) {
		hcas[i].engines = engines[i].peers = &engines[i];
		for (unsigned s = 0; s < STAGE_COUNT; s++)
			lcore_loop_place(&l, &hcas[i], &engines[i], s, -1);
	}
	lcore_loop_remove(&l, &hcas[0]);
	assert_int_equal(l.stage_count, STAGE_COUNT);
	for (unsigned s = 0; s < STAGE_COUNT; s++)
		assert_ptr_equal(l.stages[s].engine, &engines[1]);
	assert_int_equal(l.engine_count, 1);
	assert_ptr_equal(l.engines[0], &engines[1]);
	assert_int_equal(l.bell_count, 1);
	assert_ptr_equal(l.bells[0], &engines[1]);
	assert_int_equal(l.hca_count, 1);
	assert_ptr_equal(l.hcas[0], &hcas[1]);
	assert_ptr_equal(l.counters[0], stage_counters(&engines[1], 0));
	lcore_loop_remove(&l, &hcas[1]);
	assert_int_equal(l.stage_count + l.engine_count + l.bell_count + l.hca_count, 0);
}

/* Clients of an HCA that is added have to ring, too. */
TEST(lcore_loop_place__while_it_sleeps)
{
	static struct lcore_loop l = {.announced = true};
	static struct hca h;
	static struct engine e;

	lcore_loop_place(&l, &h, &e, STAGE_DOORBELL_WQE, -1);
	assert_ptr_equal(asleep, &e);
}

/* While it is to stand, it does; then it continues where it stood. */
TEST(lcore_loop_run__time_stands)
{
	static struct lcore_loop l;

	work = 1;
	stands_in = 1u << 1 | 1u << 2;
	run(&l);
	stands_in = 0;
	assert_true(polled_ns[1] == 5000 + lasts_ns[0]);
	assert_true(polled_ns[2] == polled_ns[1]);
	assert_true(polled_ns[3] == polled_ns[1]);
	assert_true(polled_ns[4] == polled_ns[1] + lasts_ns[3]);
}

/* It publishes its voluntary sleep: no more than has passed, no more than it wanted. */
TEST(lcore_loop_run__reports_how_long_it_slept)
{
	static struct lcore_loop l;

	work = 0;
	assert_int_equal(lcore_loop_init(&l), 0);
	l.adaptive = true;
	l.sleep_ns_max = 80000;
	run(&l);
	/* The first round that finds nothing announces it; then 50 us, 80 us, 80 us are wanted. */
	assert_true(slept_ns[0] == 0 && slept_ns[1] == 0);
	assert_int_equal(slept_ns[2], 50000);
	assert_int_equal(slept_ns[3], 50000 + 1000);
	assert_int_equal(slept_ns[4], 50000 + 1000 + 80000);
	lcore_loop_close(&l);
}

/* At once as long as it ever does, unless there may soon be something that it is not woken for. */
TEST(lcore_loop_run__sleeps_long_where_it_is_woken)
{
	static const struct {
		enum stage_id stage;
		bool unannounced, retries, hopes;
		uint64_t slept_ns;
	} rows[] = {
		{STAGE_HEADER_PARSE, true, false, false, 50000},
		{STAGE_HEADER_PARSE, false, true, true, 80000},
		{STAGE_REQUESTER_RECV, true, true, false, 50000},
		{STAGE_REQUESTER_RECV, true, false, true, 80000},
		{STAGE_RESPONDER_EXEC, true, false, true, 50000},
		{STAGE_RESPONDER_EXEC, true, true, false, 80000},
		{STAGE_SEGMENTATION, true, true, true, 80000},
	};

	work = 0;
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct lcore_loop l = {.adaptive = true, .sleep_ns_max = 80000};

		assert_int_equal(lcore_loop_init(&l), 0);
		placed = rows[i].stage;
		polled_port.unannounced = rows[i].unannounced;
		retries = rows[i].retries;
		hopes = rows[i].hopes;
		run(&l);
		assert_int_equal(slept_ns[2], rows[i].slept_ns);
		lcore_loop_close(&l);
	}
	placed = STAGE_HEADER_PARSE;
	polled_port.unannounced = 1;
	retries = hopes = false;
}

/* Of one HCA; the first is the loop's. */
static struct engine two[2];

/* For long only if there has been nothing to do for long, and there is nothing to wait for; then it
 * has looked once more after it said so. */
TEST(sleep_or_rest__rests_where_nothing_is_missed)
{
	static const struct {
		uint64_t idle_ns;
		bool unannounced;
		const struct engine *keeps;
		bool events_wait, ended;
		uint64_t slept_ns[2]; /* in two calls */
	} rows[] = {
		{LOOP_REST_AFTER_NS - 1, false, NULL, false, false, {80000, 80000}},
		{LOOP_REST_AFTER_NS, true, NULL, false, false, {50000, 80000}},
		{LOOP_REST_AFTER_NS, false, &two[0], false, false, {80000, 80000}},
		{LOOP_REST_AFTER_NS, false, &two[1], false, false, {80000, 80000}},
		{LOOP_REST_AFTER_NS, false, NULL, true, false, {80000, 80000}},
		{LOOP_REST_AFTER_NS, false, NULL, false, false, {0, LOOP_REST_NS}},
		{LOOP_REST_AFTER_NS, false, NULL, false, true, {0, 0}},
	};
	static struct hca h = {.engines = two, .config.engines = 2};

	two[0] = two[1] = (struct engine){.link = &polled_port};
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct lcore_loop l = {.sleep_ns_max = 80000,
				       .stages = {{&two[0], STAGE_HEADER_PARSE}},
				       .stage_count = 1,
				       .hcas = {&h},
				       .hca_count = 1,
				       .now_ns = TEN_S,
				       .idle_since_ns = TEN_S - rows[i].idle_ns,
				       .asleep = LOOP_ASLEEP};

		assert_int_equal(lcore_loop_init(&l), 0);
		polled_port.unannounced = rows[i].unannounced;
		keeps = rows[i].keeps;
		events_wait = rows[i].events_wait;
		for (unsigned call = 0; call < 2; call++) {
			l.slept_ns = 0;
			sleep_or_rest(&l);
			assert_int_equal(l.slept_ns, rows[i].slept_ns[call]);
			if (rows[i].ended)
				lcore_loop_end_rest(&l); /* before it sleeps */
		}
		lcore_loop_close(&l);
	}
	polled_port.unannounced = 1;
	keeps = NULL;
	events_wait = false;
}

/* Set only if none goes off in time. */
TEST(set_alarm__seldom)
{
	static const struct {
		uint64_t now_ns, within_ns;
		unsigned alarms;
	} rows[] = {{1000, 80000, 1}, {2000, 80000, 1}, {3000, 78000, 1}, {4000, 50000, 2}};
	struct lcore_loop l = {0};

	assert_int_equal(lcore_loop_init(&l), 0);
	alarms = 0;
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		world_ns = rows[i].now_ns;
		set_alarm(&l, rows[i].within_ns);
		assert_int_equal(alarms, rows[i].alarms);
	}
	lcore_loop_close(&l);
}

/* Until a flow whose rate is limited may send; not at all if that is soon. */
TEST(lcore_loop_run__sleeps_until_a_flow_is_due)
{
	static const struct {
		uint64_t due_ns, slept_ns;
	} rows[] = {{TEN_S, 80000}, {20007000 + 60000, 60000}, {20007000 + 40000, 0}};

	work = 0;
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct lcore_loop l = {0};

		assert_int_equal(lcore_loop_init(&l), 0);
		l.adaptive = true;
		l.sleep_ns_max = 80000;
		flow_due_ns = rows[i].due_ns;
		run(&l);
		assert_in_range(slept_ns[4] - slept_ns[3], rows[i].slept_ns,
				rows[i].slept_ns ? rows[i].slept_ns + CLOCK_GRAIN_NS : 0);
		lcore_loop_close(&l);
	}
	flow_due_ns = UINT64_MAX;
}

/* It sleeps at once only where somebody really wants its CPU, and yields only while it would
 * spin. */
TEST(lcore_loop_run__leaves_its_cpu_to_clients)
{
	static const struct {
		enum dbp_crowd crowd;
		bool adaptive;
		uint64_t spin_ns, yield_ns;
		bool sleeps, yields;
	} rows[] = {
		{CROWD_NONE, true, TEN_S, 3000000, false, false},
		{CROWD_NONE, true, 0, 3000000, true, false},
		{CROWD_YIELDS, true, TEN_S, 3000000, false, true},
		{CROWD_YIELDS, true, 0, 3000000, true, false},
		{CROWD_SPINS, true, TEN_S, 3000000, true, true},
		{CROWD_SPINS, true, TEN_S, 1000, false, true},
		{CROWD_SPINS, false, TEN_S, 3000000, false, false},
	};

	work = 0;
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct lcore_loop l = {.bells = {&engine}, .bell_count = 1};

		assert_int_equal(lcore_loop_init(&l), 0);
		l.adaptive = rows[i].adaptive;
		l.spin_ns = rows[i].spin_ns;
		l.sleep_ns_max = 80000;
		crowd_now = rows[i].crowd;
		yield_ns = rows[i].yield_ns;
		yields = 0;
		run(&l);
		assert_int_equal(l.sleeps > 0, rows[i].sleeps);
		assert_int_equal(yields > 0, rows[i].yields);
		lcore_loop_close(&l);
	}
	crowd_now = CROWD_NONE;
}

/* 1.5 s of a second, as a round ended that had begun in the one before. */
TEST(lcore_loop_busy_permille__at_most_all_of_the_time)
{
	struct lcore_loop l = {.busy_ns = 1500000000};
	uint64_t sampled_ns = 0;

	assert_int_equal(lcore_loop_busy_permille(&l, &sampled_ns, 1000000000), 1000);
	l.busy_ns += 250000000;
	assert_int_equal(lcore_loop_busy_permille(&l, &sampled_ns, 1000000000), 750);
	assert_int_equal(lcore_loop_busy_permille(&l, &sampled_ns, 1000000000), 0);
}
