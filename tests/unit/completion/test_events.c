/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues: entries, overruns and pending events, types, bells. */
#include "completion_fixture.h"
#include "completion_priv.h"

TEST(eq_post__wraps_and_overruns)
{
	struct eqe ev;

	for (uint32_t i = 0; i < 3 * EQ_ENTRIES; i++) {
		assert_true(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, i));
		assert_true(take_event(&ev));
		assert_int_equal(ev.number, i);
	}
	for (uint32_t i = 0; i < EQ_ENTRIES; i++)
		assert_true(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, i));
	assert_false(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, 0));
	assert_int_equal(counter_read(&counters, COUNTER_eq_overruns), 1);
	for (uint32_t i = 0; i < EQ_ENTRIES; i++) {
		assert_true(take_event(&ev));
		assert_int_equal(ev.number, i);
	}
	assert_false(take_event(&ev));
	assert_true(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, 5));
}

TEST(eq_post__nobody_there)
{
	eq_remove(&completion, CLIENT);
	assert_false(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, 5));
	assert_false(eq_post(&completion, &counters, CLIENT + 1, EQE_COMM_EST, 5));
	assert_int_equal(counter_read(&counters, COUNTER_events), 0);
	assert_int_equal(completion.pending_eqs,
			 LIST_END); /* nor is an event of no object pending */
}

static void fill_eq(void)
{
	for (uint32_t i = 0; i < EQ_ENTRIES; i++)
		assert_true(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, 0x100 + i));
}

static void fill_eq_but_one(void)
{
	for (uint32_t i = 1; i < EQ_ENTRIES; i++)
		assert_true(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, 0x100 + i));
}

static void drain_eq(void)
{
	struct eqe ev;

	while (take_event(&ev))
		;
}

/* Events that find no room come when there is some: each once for each object. */
TEST(eq_owe__comes_when_there_is_room)
{
	static const struct {
		enum eqe_type type;
		uint32_t number;
	} late[] = {{EQE_PORT_CHANGE, 0},	   {EQE_GID_CHANGE, 0},
		    {EQE_COMM_EST, 0x1001},	   {EQE_SQ_DRAINED, 0x1001},
		    {EQE_WQ_CATAS_ERROR, 0x1001},  {EQE_WQ_INVAL_REQ_ERROR, 0x1001},
		    {EQE_WQ_ACCESS_ERROR, 0x1001}, {EQE_LAST_WQE, 0x1001},
		    {EQE_PATH_MIG, 0x1001},	   {EQE_PATH_MIG_ERR, 0x1001},
		    {EQE_LAST_WQE, 0x203f},	   {EQE_SRQ_ERROR, 0x3000},
		    {EQE_SRQ_LIMIT, 0x3000},	   {EQE_CQ_ERROR, 0xfff002}};
	const unsigned n = sizeof(late) / sizeof(late[0]);
	struct eqe ev;

	fill_eq();
	for (unsigned twice = 0; twice < 2; twice++)
		for (unsigned i = 0; i < n; i++)
			assert_false(eq_post(&completion, &counters, CLIENT, late[i].type,
					     late[i].number));
	assert_int_equal(counter_read(&counters, COUNTER_eq_overruns), 2 * n);
	completion_round(&completion, &counters);
	for (uint32_t i = 0; i < EQ_ENTRIES; i++) {
		assert_true(take_event(&ev));
		assert_int_equal(ev.number, 0x100 + i);
	}
	assert_false(take_event(&ev));
	for (unsigned i = 0; i < 4; i++)
		completion_round(&completion, &counters);
	for (unsigned i = 0; i < n; i++) {
		assert_true(take_event(&ev));
		assert_int_equal(ev.type, late[i].type);
		assert_int_equal(ev.number, late[i].number);
	}
	assert_false(take_event(&ev));
	assert_int_equal(counter_read(&counters, COUNTER_events_delayed), n);
	assert_int_equal(completion.pending_eqs, UINT32_MAX); /* no more scans */
}

/* A client that makes room by and by gets all of them by and by. */
TEST(eq_owe__place_by_place)
{
	bool came[64] = {false};
	struct eqe ev = {0};

	fill_eq();
	for (uint32_t i = 0; i < 64; i++)
		eq_post(&completion, &counters, CLIENT, EQE_LAST_WQE, 0x1000 + i);
	for (unsigned i = 0; i < EQ_ENTRIES + 64; i++) {
		assert_true(take_event(&ev));
		if (ev.type == EQE_LAST_WQE) {
			assert_in_range(ev.number, 0x1000, 0x103f);
			assert_false(came[ev.number - 0x1000]);
			came[ev.number - 0x1000] = true;
		}
		completion_round(&completion, &counters);
	}
	assert_false(take_event(&ev));
	for (unsigned i = 0; i < 64; i++)
		assert_true(came[i]);
	assert_int_equal(counter_read(&counters, COUNTER_eq_overruns), 64); /* none superfluous */
}

/* Of two events of a QP, or of the port, one finds room, and the other waits for the next. */
TEST(eq_owe__half_of_an_object)
{
	static const struct {
		enum eqe_type first, second;
		uint32_t number;
	} rows[] = {{EQE_COMM_EST, EQE_LAST_WQE, 0x1001}, {EQE_PORT_CHANGE, EQE_GID_CHANGE, 0}};
	struct eqe ev;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fill_eq();
		eq_post(&completion, &counters, CLIENT, rows[i].first, rows[i].number);
		eq_post(&completion, &counters, CLIENT, rows[i].second, rows[i].number);
		assert_true(take_event(&ev));
		completion_round(&completion, &counters);
		assert_int_equal(counter_read(&counters, COUNTER_events_delayed), 2 * i + 1);
		drain_eq();
		completion_round(&completion, &counters);
		completion_round(&completion, &counters);
		assert_true(take_event(&ev));
		assert_int_equal(ev.type, rows[i].second);
		assert_int_equal(counter_read(&counters, COUNTER_events_delayed), 2 * i + 2);
	}
}

/* No lcore is kept for long: so many objects are looked at in one turn. */
TEST(eq_owe__a_part_at_a_time)
{
	enum { LOOK = 1024 };
	static const uint32_t came_in[] = {0x10000 + LOOK - 1, 0x10000 + LOOK,
					   0x10000 + 4 * LOOK - 1};
	static const unsigned turns[] = {1, 1, 2};
	struct eqe ev;

	completion_destroy(&completion);
	assert_int_equal(completion_create(&completion, 64, 4 * LOOK, 64), 0);
	eq_write(&completion, CLIENT, &page, pipes[1]);
	fill_eq();
	for (unsigned i = 0; i < 3; i++)
		eq_post(&completion, &counters, CLIENT, EQE_LAST_WQE, came_in[i]);
	drain_eq();
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned n = 0; n < turns[i]; n++) {
			assert_false(take_event(&ev));
			completion_round(&completion, &counters);
		}
		assert_true(take_event(&ev));
		assert_int_equal(ev.number, came_in[i]);
	}
	assert_false(take_event(&ev));
}

/* Looking for one client takes nothing from another. */
TEST(eq_owe__to_two_clients)
{
	static struct client_page other __attribute__((aligned(4096)));

	memset(&other, 0, sizeof(other));
	eq_write(&completion, CLIENT + 1, &other, pipes[1]);
	for (uint32_t i = 0; i < EQ_ENTRIES; i++)
		assert_true(eq_post(&completion, &counters, CLIENT + 1, EQE_COMM_EST, 0x100 + i));
	fill_eq();
	eq_post(&completion, &counters, CLIENT + 1, EQE_LAST_WQE, 0x1002);
	eq_post(&completion, &counters, CLIENT, EQE_LAST_WQE, 0x1001);
	drain_eq();
	for (unsigned i = 0; i < 3; i++)
		completion_round(&completion, &counters);
	assert_int_equal(counter_read(&counters, COUNTER_events_delayed), 1);
	__atomic_store_n(&other.eq_consumer, EQ_ENTRIES, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < 3; i++)
		completion_round(&completion, &counters);
	assert_int_equal(counter_read(&counters, COUNTER_events_delayed), 2);
	assert_int_equal(other.eq[0].number, 0x1002);
}

/* A new client begins with nothing to be woken for. */
TEST(eq_write__begins_anew)
{
	assert_true(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, 1));
	eq_remove(&completion, CLIENT);
	memset(&page, 0, sizeof(page));
	eq_taken = 0;
	page.waiting = 1;
	eq_write(&completion, CLIENT, &page, pipes[1]);
	completion_round(&completion, &counters);
	assert_int_equal(page.waiting, 1);
	assert_true(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, 2));
}

/* Pending events of a destroyed object or client are not reported to others. */
TEST(eq_owe__not_to_others)
{
	struct eqe ev;

	fill_eq();
	eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, 0x1005);
	eq_post(&completion, &counters, CLIENT, EQE_LAST_WQE, 0x2005); /* the same place */
	eq_post(&completion, &counters, CLIENT, EQE_LAST_WQE, 0x1006);
	eq_post(&completion, &counters, CLIENT, EQE_LAST_WQE, 0); /* taken away just now */
	eq_forget(&completion, EVENT_OF_QP, 6);
	eq_forget(&completion, EVENT_OF_QP, 7);
	drain_eq();
	completion_round(&completion, &counters);
	assert_true(take_event(&ev));
	assert_int_equal(ev.number, 0x2005);
	assert_int_equal(ev.type, EQE_LAST_WQE);
	assert_false(take_event(&ev));

	fill_eq();
	eq_post(&completion, &counters, CLIENT, EQE_LAST_WQE, 0x1007);
	eq_post(&completion, &counters, CLIENT, EQE_PORT_CHANGE, 1);
	eq_post(&completion, &counters, CLIENT, EQE_GID_CHANGE, 0);
	eq_remove(&completion, CLIENT);
	completion_round(&completion, &counters);
	assert_int_equal(completion.pending_eqs, UINT32_MAX);
	memset(&page, 0, sizeof(page));
	eq_taken = 0;
	eq_write(&completion, CLIENT, &page, pipes[1]);
	assert_true(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, 9));
	fill_eq_but_one();
	eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, 0x1008); /* makes us look */
	drain_eq();
	completion_round(&completion, &counters);
	assert_true(take_event(&ev));
	assert_int_equal(ev.number, 0x1008);
	assert_false(take_event(&ev));
}

/* The client's index is garbage: nothing spins, nothing is written elsewhere. */
TEST(eq_owe__hostile_consumer_index)
{
	fill_eq();
	eq_post(&completion, &counters, CLIENT, EQE_LAST_WQE, 0x1007);
	page.eq_consumer = 0x80000000;
	for (unsigned i = 0; i < 8; i++)
		completion_round(&completion, &counters);
	assert_int_equal(counter_read(&counters, COUNTER_events_delayed), 0);
}

TEST(eq_has_room__when_it_takes_events)
{
	assert_true(eq_has_room(&completion, CLIENT));
	assert_false(eq_has_room(&completion, CLIENT + 1)); /* no such client */
	fill_eq_but_one();
	assert_true(eq_has_room(&completion, CLIENT));
	assert_true(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, 1));
	assert_false(eq_has_room(&completion, CLIENT));
}

/* Their source raises them again, or they concern the whole device: nothing stays pending. */
TEST(eq_owe__of_no_object)
{
	fill_eq();
	eq_post(&completion, &counters, CLIENT, EQE_COMPLETION, 0x1001);
	eq_post(&completion, &counters, CLIENT, EQE_LOCAL_CATAS_ERROR, 0x1001);
	assert_int_equal(completion.pending_eqs, LIST_END);
}

/* The client takes no events of that type any more. */
TEST(eq_owe__of_a_type_not_taken)
{
	struct eqe ev;

	fill_eq();
	eq_post(&completion, &counters, CLIENT, EQE_PORT_CHANGE, 1);
	eq_post(&completion, &counters, CLIENT, EQE_LAST_WQE, 0x1001);
	eq_map(&completion, CLIENT, 1u << EQE_COMM_EST);
	drain_eq();
	completion_round(&completion, &counters);
	assert_false(take_event(&ev));
	assert_int_equal(counter_read(&counters, COUNTER_events_delayed), 0);
	assert_int_equal(counter_read(&counters, COUNTER_events_unmapped), 2);
}

TEST(eq_map__types)
{
	struct eqe ev;

	eq_map(&completion, CLIENT, 1u << EQE_LAST_WQE);
	assert_false(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, 1));
	assert_int_equal(counter_read(&counters, COUNTER_events_unmapped), 1);
	assert_true(eq_post(&completion, &counters, CLIENT, EQE_LAST_WQE, 2));
	assert_true(eq_post(&completion, &counters, CLIENT, EQE_COMPLETION, 3)); /* always */
	assert_true(take_event(&ev));
	assert_int_equal(ev.number, 2);
	assert_true(take_event(&ev));
	assert_int_equal(ev.number, 3);
	assert_false(take_event(&ev));
}

/* Only a client that says that it sleeps is woken, once. */
TEST(completion_round__wakes_a_waiting_client)
{
	uint64_t got[4];

	record.arm_next = 1;
	assert_true(post(1, false));
	completion_round(&completion, &counters);
	page.waiting = 1;
	record.arm_next = 2;
	assert_true(post(2, false));
	completion_round(&completion, &counters);
	assert_int_equal(page.waiting, 0);
	completion_round(&completion, &counters);
	assert_int_equal(read(pipes[0], got, sizeof(got)), 8);
}

/* A client's bell rings, whatever its place in the list. */
TEST(completion_round__each_client)
{
	static const uint32_t others[] = {CLIENT + 1, 0, CLIENTS_MAX - 1};
	static struct client_page other __attribute__((aligned(4096)));
	uint64_t got[4];

	for (unsigned i = 0; i < 3; i++) {
		memset(&other, 0, sizeof(other));
		eq_write(&completion, others[i], &other, pipes[1]);
		other.waiting = page.waiting = 1;
		assert_true(eq_post(&completion, &counters, others[i], EQE_COMM_EST, 1));
		assert_true(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, 1));
		completion_round(&completion, &counters);
		assert_int_equal(other.waiting, 0);
		assert_int_equal(page.waiting, 0);
		assert_int_equal(read(pipes[0], got, sizeof(got)), 16);
		eq_remove(&completion, others[i]);
	}
}

/* It disconnected between the event and the bell. */
TEST(completion_round__client_that_has_gone)
{
	page.waiting = 1;
	assert_true(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, 1));
	eq_remove(&completion, CLIENT);
	completion_round(&completion, &counters);
	assert_int_equal(page.waiting, 1);
}
