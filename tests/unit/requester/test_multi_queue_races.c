/* SPDX-License-Identifier: BSD-3-Clause */
/* MultiQueue's producer and consumer in the middle of each other's operations: before any of the
 * atomic operations of one, the other one does its own; by one thread, so that each order surely
 * comes by. */
#include "../intruder.h"
#include "context/qp_list.h"
#include "pipeline/engine.h"
#include "pipeline/message.h"

#define __atomic_load_n(...)		 (other_lcore(), __atomic_load_n(__VA_ARGS__))
#define __atomic_compare_exchange_n(...) (other_lcore(), __atomic_compare_exchange_n(__VA_ARGS__))
#include "multi_queue.h"
#undef __atomic_load_n
#undef __atomic_compare_exchange_n
#include "multi_queue_fixture.h"

static struct multi_queue *mq;
static struct mq_list sw, rd;

static void intrude(void (*f)(void), unsigned at)
{
	intruder = f;
	intrude_at = at;
}

/* Whether it has happened; then no more. */
static bool intruded(void)
{
	bool done = !intruder;

	intruder = NULL;
	return done;
}

static void put(uint32_t psn)
{
	struct sw_element x = {.psn = psn};

	sw_put(mq, &sw, &x);
}

static uint32_t take(void)
{
	struct sw_element *x = sw_head(mq, &sw);
	uint32_t psn;

	assert_non_null(x);
	psn = x->psn;
	sw_pop(mq, &sw);
	return psn;
}

static void begin(void)
{
	mq = multi_queue_make(4);
	sw = rd = (struct mq_list){0};
}

static void end(void)
{
	assert_null(sw_head(mq, &sw));
	assert_int_equal(mq_count(&sw), 0);
	assert_int_equal(mq_free_count(&mq->sw_free), 4);
	multi_queue_unmake();
}

static void put_second(void)
{
	put(2);
}

static void take_first(void)
{
	assert_int_equal(take(), 1);
}

/* One of them in the middle of the other, in each order: the second element is taken next. */
static void interrupt(void (*f)(void), void (*by)(void))
{
	unsigned at = 0;
	bool during;

	do {
		begin();
		put(1);
		intrude(by, at++);
		f();
		during = intruded();
		if (!during)
			by();
		assert_int_equal(take(), 2);
		put(3);
		assert_int_equal(take(), 3);
		end();
	} while (during);
	assert_true(at > 2);
}

/* The producer links a second element while the consumer takes the only one. */
TEST(sw_pop__a_second_one_comes)
{
	interrupt(take_first, put_second);
}

/* The consumer takes the only element while the producer links a second one behind it. */
TEST(sw_put__the_first_one_goes)
{
	interrupt(put_second, take_first);
}

static void put_packet_and_read(void)
{
	struct rd_element x = {.psn = 2, .packets = 1};

	put(1);
	rd_put(mq, &rd, &x);
}

static void put_read_and_packet(void)
{
	struct rd_element x = {.psn = 2, .packets = 1};

	rd_put(mq, &rd, &x);
	put(3);
}

/* Whatever is seen: what is older than that is seen. */
static void heads_while(void (*f)(void), uint32_t older)
{
	unsigned at = 0;
	bool during;

	do {
		struct sw_element *s;
		struct rd_element *r;
		bool some;

		begin();
		intrude(f, at++);
		some = mq_heads(mq, &sw, &rd, &s, &r);
		assert_int_equal(some, s || r);
		during = intruded();
		if (some)
			assert_int_equal(s && (!r || s->psn < r->psn) ? s->psn : r->psn, older);
		multi_queue_unmake();
	} while (during);
	assert_true(at > 4);
}

TEST(mq_heads__a_packet_and_a_read_come)
{
	heads_while(put_packet_and_read, 1);
}

TEST(mq_heads__a_read_and_a_packet_come)
{
	heads_while(put_read_and_packet, 2);
}
