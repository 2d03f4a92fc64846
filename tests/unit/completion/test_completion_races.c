/* SPDX-License-Identifier: BSD-3-Clause */
/* One lcore in the middle of what another one does to the same queues: before any of the atomic
 * operations of one, the other one does its own; by one thread, so that each order surely comes by.
 * And which of those operations are omitted when there is nothing to do. */
#include <rte_lcore.h>
#include <rte_pause.h>
#include "../intruder.h"

static void seen(const void *at);
static void paused(void);
static unsigned on_lcore;

#define __atomic_load_n(...)		 (other_lcore(), __atomic_load_n(__VA_ARGS__))
#define __atomic_compare_exchange_n(...) (other_lcore(), __atomic_compare_exchange_n(__VA_ARGS__))
#define __atomic_exchange_n(at, ...)                                                               \
	(other_lcore(), seen(at), __atomic_exchange_n((at), __VA_ARGS__))
#define __atomic_store_n(at, ...) (seen(at), __atomic_store_n((at), __VA_ARGS__))
#define rte_pause()		  paused()
#define rte_lcore_id()		  on_lcore
#define reserve			  eq_reserve
#define fill			  eq_fill_entry
#include "event_queue_mgt.c"
#undef reserve
#undef fill
#include "completion_queue_mgt.c"
#include "notify.c"
#include "pending_events.c"
#undef __atomic_load_n
#undef __atomic_compare_exchange_n
#undef __atomic_exchange_n
#undef __atomic_store_n
#undef rte_pause
#include "completion_fixture.h"

enum { OTHER_CQN = 0x1009, ORDERS_MAX = 2000 };

static struct cqe other_cq[ENTRIES] __attribute__((aligned(64)));
static struct cq_record other_record;
static struct client_page other_page __attribute__((aligned(4096)));
static struct cqe backlog[ENTRIES];

/* Which words were written. */
static const void *written[64];
static unsigned writes;

static void seen(const void *at)
{
	written[writes++ % RTE_DIM(written)] = at;
}

static bool wrote(const void *at)
{
	for (unsigned i = 0; i < RTE_MIN(writes, (unsigned)RTE_DIM(written)); i++)
		if (written[i] == at)
			return true;
	return false;
}

enum { LCORE, OTHER_LCORE };

/* What the other one does, and which it is. */
static void (*of_other)(void);
static unsigned other;

static void be_other(void)
{
	on_lcore = other;
	of_other();
	on_lcore = LCORE;
}

/* One round of each. */
static void notify(void)
{
	for (unsigned i = 0; i < 2; i++) {
		on_lcore = i ? LCORE : other;
		completion_round(&completion, &counters);
	}
}

/* Whether f came by the operation of number `at`. */
static bool one_order(unsigned at, void (*f)(void))
{
	bool came_by;

	intruder = be_other;
	intrude_at = at;
	f();
	came_by = !intruder;
	if (!came_by) {
		intruder = NULL;
		be_other();
	}
	return came_by;
}

/* Runs f with `f_other` in the middle of it, in each order in turn, from the same beginning; then
 * `check`. The other one is an lcore, or a thread without a list of its own. */
static void each_order(void **state, void (*begin)(void), void (*f)(void), void (*f_other)(void),
		       void (*check)(void))
{
	static const unsigned others[] = {LCORE_ID_ANY, OTHER_LCORE};

	of_other = f_other;
	for (unsigned i = 0; i < RTE_DIM(others); i++) {
		bool came_by = true;

		other = others[i];
		for (unsigned at = 0; came_by; at++) {
			assert_true(at < ORDERS_MAX);
			fx_teardown(state);
			fx_setup(state);
			begin();
			came_by = one_order(at, f);
			check();
		}
	}
}

static void post_to(uint32_t cqn, uint32_t number)
{
	struct cqe entry = {.my_qpn = number, .opcode = 0x0a};

	assert_true(cq_post(&completion, &counters, cqn, &entry, false));
}

static void post_1(void)
{
	post_to(CQN, 1);
}

static void post_2(void)
{
	post_to(CQN, 2);
}

static void post_elsewhere(void)
{
	post_to(OTHER_CQN, 2);
}

/* Both are there, and the next one finds a place behind them. */
static void take_both(void)
{
	struct cqe c = {0};
	uint32_t sum;

	assert_true(take_cqe(&c));
	sum = c.my_qpn;
	assert_true(take_cqe(&c));
	assert_int_equal(sum + c.my_qpn, 3);
	assert_int_not_equal(sum, c.my_qpn);
	assert_false(take_cqe(&c));
	post_to(CQN, 3);
	assert_true(take_cqe(&c));
	assert_int_equal(c.my_qpn, 3);
}

static void nothing(void)
{
}

TEST(cq_post__two_at_once)
{
	each_order(state, nothing, post_1, post_2, take_both);
}

static void two_armed(void)
{
	memset(other_cq, 0xff, sizeof(other_cq));
	assert_int_equal(cq_write(&completion, OTHER_CQN, CLIENT, other_cq, LOG, &other_record), 0);
	record.arm_next = other_record.arm_next = 1;
}

static void event_of_each(void)
{
	struct eqe ev = {0};
	uint32_t sum;

	notify();
	assert_true(take_event(&ev));
	sum = ev.number;
	assert_true(take_event(&ev));
	assert_int_equal(sum + ev.number, CQN + OTHER_CQN);
	assert_false(take_event(&ev));
}

/* Both CQs are in the list of those whose clients may want to know. */
TEST(cq_post__to_two_queues)
{
	each_order(state, two_armed, post_1, post_elsewhere, event_of_each);
}

static void hold(void)
{
	memset(backlog, 0, sizeof(backlog));
	assert_int_equal(cq_hold(&completion, CQN, backlog, ENTRIES), 0);
}

static void unhold(void)
{
	assert_int_equal(cq_release(&completion, &counters, CQN), 0);
}

static void released_both(void)
{
	unhold();
	take_both();
}

TEST(cq_post__two_into_a_backlog)
{
	each_order(state, hold, post_1, post_2, released_both);
}

static void hold_with_one(void)
{
	hold();
	post_1();
}

static void in_order(void)
{
	struct cqe c;

	for (uint32_t i = 1; i <= 2; i++) {
		assert_true(take_cqe(&c));
		assert_int_equal(c.my_qpn, i);
	}
	assert_false(take_cqe(&c));
}

TEST(cq_release__while_one_is_posted)
{
	each_order(state, hold_with_one, unhold, post_2, in_order);
}

TEST(cq_post__while_it_is_released)
{
	each_order(state, hold_with_one, post_2, unhold, in_order);
}

static void post_more_and_release(void)
{
	post_2();
	post_2();
	unhold();
}

static void four_come(void)
{
	struct cqe c;

	for (unsigned i = 0; i < 4; i++)
		assert_true(take_cqe(&c));
	assert_int_equal(counter_read(&counters, COUNTER_cq_overruns), 0);
}

/* Others fill the backlog, and it is emptied, while this one looks for a place in it. */
TEST(cq_post__overtaken_in_the_backlog)
{
	each_order(state, hold_with_one, post_1, post_more_and_release, four_come);
}

static void hold_full(void)
{
	for (uint32_t i = 0; i < ENTRIES; i++)
		post_to(CQN, i);
	hold();
}

static bool taken;

static void post_one_more(void)
{
	taken = post(9, false);
}

/* The caller gets the right answer: backlogged or lost. */
static void aside_or_lost(void)
{
	assert_int_equal(taken, counter_read(&counters, COUNTER_cq_backlogged));
	assert_int_equal(counter_read(&counters, COUNTER_cq_overruns), 1);
}

TEST(cq_post__too_many_while_it_is_released)
{
	each_order(state, hold_full, post_one_more, unhold, aside_or_lost);
}

static void (*pause_for)(void);
static unsigned pauses;

static void paused(void)
{
	pauses++;
	pause_for();
}

/* The other lcore has its place in the backlog and comes round to writing the entry. */
static void write_at_last(void)
{
	const struct cqe entry = {.my_qpn = 2, .opcode = 0x0a};

	if (pauses == 3)
		write_entry(&backlog[1], &entry, LOG_WRITTEN);
}

TEST(cq_release__waits_for_the_entry)
{
	hold_with_one();
	__atomic_add_fetch(&completion.cqs[CQN & completion.cq_mask].stop, 1, __ATOMIC_RELAXED);
	pause_for = write_at_last;
	pauses = 0;
	unhold();
	assert_int_equal(pauses, 3);
	in_order();
}

static uint32_t next_in, next_out;

static void hold_a_full_backlog(void)
{
	hold();
	for (next_in = next_out = 0; next_in < ENTRIES; next_in++)
		post_to(CQN, next_in);
}

static void write_the_last(void)
{
	const struct cqe entry = {.my_qpn = next_in - 1, .opcode = 0x0a};

	write_entry(&backlog[(next_in - 1) % ENTRIES], &entry, LOG_WRITTEN);
}

/* The client takes what is there; nearly as many complete, the last one is still to be written. */
static void take_and_add(void)
{
	uint32_t *stop = &completion.cqs[CQN & completion.cq_mask].stop, n = 0;
	struct cqe c;

	for (; take_cqe(&c); n++)
		assert_int_equal(c.my_qpn, next_out++);
	for (; n > 2; n--)
		post_to(CQN, next_in++);
	if (n == 2 && *stop & CQ_STOP_HELD) {
		__atomic_add_fetch(stop, 1, __ATOMIC_RELAXED);
		next_in++;
		pause_for = write_the_last;
	}
}

static void all_in_order(void)
{
	struct cqe c;

	while (take_cqe(&c))
		assert_int_equal(c.my_qpn, next_out++);
	assert_int_equal(next_out, next_in);
	assert_int_equal(counter_read(&counters, COUNTER_cq_overruns), 0);
}

/* The backlog is a ring: those that complete during the release take places that it has emptied. */
TEST(cq_release__while_its_backlog_goes_round)
{
	each_order(state, hold_a_full_backlog, unhold, take_and_add, all_in_order);
}

static void event_1(void)
{
	assert_true(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, 1));
}

static void event_2(void)
{
	assert_true(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, 2));
}

static void two_events(void)
{
	struct eqe ev = {0};
	uint32_t sum;

	assert_true(take_event(&ev));
	sum = ev.number;
	assert_true(take_event(&ev));
	assert_int_equal(sum + ev.number, 3);
	assert_int_not_equal(sum, ev.number);
	assert_false(take_event(&ev));
	assert_true(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, 3));
	assert_true(take_event(&ev));
	assert_int_equal(ev.number, 3);
}

TEST(eq_post__two_at_once)
{
	each_order(state, nothing, event_1, event_2, two_events);
}

static void fill_eq(uint32_t client)
{
	for (uint32_t i = 0; i < EQ_ENTRIES; i++)
		assert_true(eq_post(&completion, &counters, client, EQE_COMM_EST, 0x100 + i));
}

static void both_full(void)
{
	memset(&other_page, 0, sizeof(other_page));
	eq_write(&completion, 0, &other_page, pipes[1]);
	fill_eq(0);
	fill_eq(CLIENT);
}

static void owe_first(void)
{
	assert_false(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, 0x1001));
}

static void owe_second(void)
{
	assert_false(eq_post(&completion, &counters, CLIENT, EQE_LAST_WQE, 0x1001));
}

static void owe_elsewhere(void)
{
	assert_false(eq_post(&completion, &counters, 0, EQE_LAST_WQE, 0x1002));
}

/* Room for all, and all are written. */
static void two_come(void)
{
	eq_taken = EQ_ENTRIES;
	page.eq_consumer = other_page.eq_consumer = EQ_ENTRIES;
	for (unsigned i = 0; i < 4; i++)
		completion_round(&completion, &counters);
	assert_int_equal(counter_read(&counters, COUNTER_events_delayed), 2);
	assert_int_equal(completion.pending_eqs, LIST_END);
}

/* Of one object: its word keeps both. */
TEST(eq_owe__two_at_once)
{
	each_order(state, both_full, owe_first, owe_second, two_come);
}

/* Of two clients: both are in the list of those with pending events. */
TEST(eq_owe__to_two_clients_at_once)
{
	each_order(state, both_full, owe_first, owe_elsewhere, two_come);
}

static void one_owed(void)
{
	both_full();
	owe_first();
	eq_taken = page.eq_consumer = EQ_ENTRIES;
}

static void go(void)
{
	eq_remove(&completion, CLIENT);
}

static void nobody_is_told(void)
{
	notify();
	notify();
	assert_int_equal(completion.pending_eqs, LIST_END);
}

/* The client goes while it is served. */
TEST(completion_round__while_the_client_goes)
{
	each_order(state, one_owed, notify, go, nobody_is_told);
}

static void owe_another(void)
{
	eq_defer(&completion, CLIENT, EQE_LAST_WQE, 0x1001);
}

/* More becomes pending while the object is visited. */
TEST(eq_owe__while_it_is_paid)
{
	each_order(state, one_owed, notify, owe_another, two_come);
}

static void held_and_armed(void)
{
	hold_with_one();
	record.arm_next = 1;
}

static void serve(void)
{
	completion_round(&completion, &counters);
}

static void post_and_serve(void)
{
	post_2();
	serve();
}

static void release_and_serve(void)
{
	unhold();
	serve();
}

static void told_once(void)
{
	struct eqe ev;

	notify();
	in_order();
	assert_true(take_event(&ev));
	assert_false(take_event(&ev));
	assert_true(cq_table_unlisted(&completion, 0, 64));
}

/* Both have completed into the CQ, and serve it: one raises the event. */
TEST(completion_round__two_serve_one_queue)
{
	each_order(state, held_and_armed, post_and_serve, release_and_serve, told_once);
	each_order(state, held_and_armed, release_and_serve, post_and_serve, told_once);
}

static void both_post(void)
{
	record.arm_next = 1;
	post_1();
	on_lcore = other;
	post_2();
	on_lcore = LCORE;
}

static void both_post_without_room(void)
{
	both_post();
	fill_eq(CLIENT);
}

static void told_when_there_is_room(void)
{
	struct eqe ev;

	notify();
	assert_false(completion_rests(&completion));
	assert_true(take_event(&ev));
	for (unsigned i = 0; i < 2; i++)
		notify();
	while (take_event(&ev) && ev.type != EQE_COMPLETION)
		;
	assert_int_equal(ev.type, EQE_COMPLETION);
	assert_false(take_event(&ev));
	assert_true(completion_rests(&completion));
}

static void arm_again(void)
{
	struct eqe ev;

	record.arm_next++;
	serve();
	while (take_event(&ev) && ev.type != EQE_COMPLETION)
		;
	record.arm_next++;
}

static void told_again(void)
{
	struct eqe ev;

	post_1();
	notify();
	notify();
	while (take_event(&ev))
		assert_int_equal(ev.type == EQE_COMPLETION, ev.number == CQN);
	assert_int_equal((uint32_t)completion.cqs[CQN & completion.cq_mask].served,
			 record.arm_next);
}

/* The event that one cannot write is written later, by whoever. */
TEST(completion_round__two_serve_without_room)
{
	each_order(state, both_post_without_room, serve, serve, told_when_there_is_room);
	each_order(state, both_post_without_room, serve, arm_again, told_again);
}

/* One lcore at a time serves what is common: the others do not wait. */
TEST(completion_round__one_serves)
{
	struct eqe ev;

	record.arm_next = 1;
	on_lcore = LCORE_ID_ANY;
	post_1();
	completion.serving = 1;
	notify();
	assert_false(take_event(&ev));
	completion.serving = 0;
	notify();
	assert_true(take_event(&ev));
}

/* Lcores with CQs of their own write no common line. */
TEST(cq_post__leaves_common_lines_alone)
{
	two_armed();
	writes = 0;
	post_1();
	post_1();
	on_lcore = OTHER_LCORE;
	post_elsewhere();
	on_lcore = LCORE;
	assert_true(writes < RTE_DIM(written));
	assert_false(wrote(&completion.touched));
	assert_false(wrote(&completion.serving));
	assert_int_equal(completion.own[LCORE].count, 1);
	assert_int_equal(completion.own[OTHER_LCORE].count, 1);
	serve();
	assert_int_equal(completion.own[LCORE].count, 0);
	assert_int_equal(completion.own[OTHER_LCORE].count, 1);
	other = OTHER_LCORE;
	event_of_each();
}

/* Without work nothing is written: other cores keep their cache lines. */
TEST(completion_round__leaves_lines_alone)
{
	writes = 0;
	notify();
	assert_int_equal(writes, 0);
	on_lcore = LCORE_ID_ANY;
	post_1();
	on_lcore = LCORE;
	writes = 0;
	notify();
	assert_true(wrote(&completion.touched));
	assert_false(wrote(&completion.pending_eqs));
	fill_eq(CLIENT);
	owe_first();
	writes = 0;
	notify();
	assert_true(wrote(&completion.pending_eqs));
	assert_false(wrote(&completion.touched));
}

/* A page is allocated for an object with a pending event, and for no other. */
TEST(eq_owe__touches_no_other_objects)
{
	const uint64_t *word = completion.pending[EVENT_OF_QP].word;

	both_full();
	owe_elsewhere();
	other_page.eq_consumer = EQ_ENTRIES;
	writes = 0;
	eq_forget(&completion, EVENT_OF_QP, 1);
	assert_int_equal(writes, 0);
	notify();
	assert_true(wrote(&word[2]));
	assert_false(wrote(&word[0]));
	assert_false(wrote(&word[1]));
	assert_int_equal(counter_read(&counters, COUNTER_events_delayed), 1);
}
