/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: entries, overruns, held and resized, arming. */
#include "completion_fixture.h"

static void expect_taken(uint32_t first, uint32_t n)
{
	struct cqe c;

	for (uint32_t i = 0; i < n; i++) {
		assert_true(take_cqe(&c));
		assert_int_equal(c.my_qpn, first + i);
	}
	assert_false(take_cqe(&c));
}

TEST(cq_post__entry)
{
	struct cqe in = {.my_qpn = 1,
			 .remote_qpn = 2,
			 .rlid_flags = 3,
			 .imm_or_error = 4,
			 .byte_count = 5,
			 .wqe_offset = 6,
			 .opcode = 7,
			 .is_send = 1},
		   out;

	assert_false(take_cqe(&out));
	assert_true(cq_post(&completion, &counters, CQN, &in, false));
	assert_true(take_cqe(&out));
	assert_memory_equal(&in, &out, sizeof(in)); /* owner is 0: the client's */
	assert_false(take_cqe(&out));
	assert_int_equal(counter_read(&counters, COUNTER_cqes), 1);
}

TEST(cq_post__wraps)
{
	struct cqe c;

	for (uint32_t i = 0; i < 10 * ENTRIES; i++) {
		assert_true(post(i, false));
		if (i < ENTRIES / 2)
			continue;
		assert_true(take_cqe(&c));
		assert_int_equal(c.my_qpn, i - ENTRIES / 2);
	}
}

TEST(cq_post__overrun)
{
	struct eqe ev;
	struct cqe c;

	for (uint32_t i = 0; i < ENTRIES; i++)
		assert_true(post(i, false));
	assert_false(take_event(&ev));
	assert_false(post(ENTRIES, false));
	assert_int_equal(counter_read(&counters, COUNTER_cq_overruns), 1);
	assert_true(take_event(&ev));
	assert_int_equal(ev.type, EQE_CQ_ERROR);
	assert_int_equal(ev.number, CQN);
	/* The client's entries are untouched, and the queue takes none any more */
	expect_taken(0, ENTRIES);
	assert_false(post(1, false));
	assert_false(take_cqe(&c));
	assert_int_equal(counter_read(&counters, COUNTER_cq_overruns), 2);
	assert_false(take_event(&ev)); /* said once */
}

/* n of them; the number of the first. */
static bool post_burst(uint32_t first, uint32_t n, bool solicited)
{
	struct cqe entry[TRAIN_PACKETS_MAX] = {0};

	for (uint32_t i = 0; i < n; i++)
		entry[i].my_qpn = first + i;
	return cq_post_burst(&completion, &counters, CQN, entry, n, solicited);
}

TEST(cq_post_burst__in_order)
{
	uint32_t number = 0;
	struct eqe ev;

	for (uint32_t n = 1; n <= TRAIN_PACKETS_MAX; number += n, n++) {
		assert_true(post_burst(number, n, false));
		expect_taken(number, n);
	}
	assert_int_equal(counter_read(&counters, COUNTER_cqes), number);
	record.arm_solicited = 1;
	assert_true(post_burst(0, 2, false));
	completion_round(&completion, &counters);
	assert_false(take_event(&ev));
	assert_true(post_burst(2, 2, true));
	completion_round(&completion, &counters);
	assert_true(take_event(&ev));
}

/* Those for which there is room are there. */
TEST(cq_post_burst__overruns)
{
	struct eqe ev;

	for (uint32_t i = 0; i < ENTRIES - 3; i++)
		assert_true(post(i, false));
	assert_false(post_burst(ENTRIES - 3, 5, false));
	assert_int_equal(counter_read(&counters, COUNTER_cq_overruns), 1);
	assert_true(take_event(&ev));
	assert_int_equal(ev.type, EQE_CQ_ERROR);
	expect_taken(0, ENTRIES);
	assert_false(post_burst(0, 2, false));
}

/* An index that the client made up: at worst its own queue suffers. */
TEST(cq_post__hostile_consumer_index)
{
	record.consumer_index = 0x80000000;
	for (uint32_t i = 0; i < 3 * ENTRIES; i++)
		post(i, false);
	assert_true(counter_read(&counters, COUNTER_cq_overruns) > 0);
}

TEST(cq_post__unknown_queue)
{
	const uint32_t unknown[] = {CQN + 64, 1};
	struct cqe entry[2] = {0};

	for (int i = 0; i < 2; i++) {
		assert_false(cq_post(&completion, &counters, unknown[i], entry, false));
		assert_false(cq_accepts(&completion, unknown[i], 2));
		assert_false(cq_post_burst(&completion, &counters, unknown[i], entry, 2, false));
	}
	assert_int_equal(counter_read(&counters, COUNTER_cqes), 0);
}

static struct cqe backlog[2 * ENTRIES];

static void hold(void)
{
	memset(backlog, 0, sizeof(backlog));
	assert_int_equal(cq_hold(&completion, CQN, backlog, ENTRIES), 0);
}

TEST(cq_hold__refusals)
{
	assert_int_equal(cq_hold(&completion, 0, backlog, 2 * ENTRIES), -ENOENT);
	assert_int_equal(cq_hold(&completion, CQN + 64, backlog, 2 * ENTRIES), -ENOENT);
	assert_int_equal(cq_hold(&completion, CQN, backlog, ENTRIES - 1), -EINVAL);
	assert_int_equal(cq_release(&completion, &counters, CQN), -EINVAL);
	hold();
	assert_int_equal(cq_hold(&completion, CQN, backlog, ENTRIES), -EBUSY);
	assert_int_equal(cq_release(&completion, &counters, CQN + 64), -ENOENT);
	assert_int_equal(cq_release(&completion, &counters, CQN), 0);
	assert_int_equal(cq_release(&completion, &counters, CQN), -EINVAL);
}

/* Completions of callers that cannot wait are in the CQ when it is released, in order, and the
 * client is woken as if they had just been written. */
TEST(cq_hold__keeps_completions)
{
	struct eqe ev;
	struct cqe c;

	record.arm_solicited = 1;
	assert_true(post(0, false));
	hold();
	for (uint32_t i = 1; i < 5; i++)
		assert_true(post(i, i == 3));
	assert_true(take_cqe(&c));
	assert_false(take_cqe(&c)); /* nothing writes there */
	completion_round(&completion, &counters);
	assert_false(take_event(&ev));
	assert_int_equal(counter_read(&counters, COUNTER_cq_backlogged), 4);
	assert_int_equal(cq_release(&completion, &counters, CQN), 0);
	assert_true(post(5, false));
	for (uint32_t i = 1; i < 6; i++) {
		assert_true(take_cqe(&c));
		assert_int_equal(c.my_qpn, i);
		assert_int_equal(c.reserved2, 0);
		assert_int_equal(c.owner, 0);
	}
	completion_round(&completion, &counters);
	assert_true(take_event(&ev));
	assert_int_equal(counter_read(&counters, COUNTER_cqes), 6);
}

/* Backlogged completions wake a client armed for solicited events exactly as others do. */
TEST(cq_hold__solicited_or_not)
{
	struct eqe ev;

	record.arm_solicited = 1;
	hold();
	assert_true(post(1, false));
	assert_int_equal(cq_release(&completion, &counters, CQN), 0);
	completion_round(&completion, &counters);
	assert_false(take_event(&ev));
	hold();
	assert_true(post(2, true));
	assert_int_equal(cq_release(&completion, &counters, CQN), 0);
	completion_round(&completion, &counters);
	assert_true(take_event(&ev));
}

/* Contexts that are in the list of touched ones are not given back. */
TEST(cq_table_unlisted__until_it_is_served)
{
	const uint32_t index = CQN & (64 - 1);

	record.arm_next = 1;
	assert_true(post(1, false));
	assert_true(cq_table_unlisted(&completion, 0, 64));
	for (uint32_t i = 0; i < EQ_ENTRIES; i++)
		assert_true(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, 0x100 + i));
	completion_round(&completion, &counters);
	assert_false(cq_table_unlisted(&completion, 0, 64));
	assert_false(cq_table_unlisted(&completion, index, index + 1));
	assert_true(cq_table_unlisted(&completion, 0, index));
	assert_true(cq_table_unlisted(&completion, index + 1, 64));
	assert_int_equal(cq_remove(&completion, CQN), 0);
	completion_round(&completion, &counters);
	assert_true(cq_table_unlisted(&completion, 0, 64));
}

/* Each has its event, however many an lcore completes into in a round. */
TEST(completion_round__many_queues)
{
	static struct cq_record records[TOUCHED_MAX + 4];
	static struct cqe rings[RTE_DIM(records)][2];
	struct cqe entry = {.opcode = 0x0a};
	struct eqe ev = {0};

	assert_int_equal(cq_remove(&completion, CQN), 0);
	for (uint32_t i = 0; i < 64; i++) {
		records[i].arm_next = i % 2;
		records[i].arm_solicited = 1;
		assert_int_equal(
			cq_write(&completion, 0x1000 + i, CLIENT, rings[i], 1, &records[i]), 0);
	}
	for (uint32_t turn = 0; turn < 2; turn++)
		for (uint32_t i = 0; i < 64; i++)
			assert_true(cq_post(&completion, &counters, 0x1000 + i, &entry,
					    turn && i % 4 == 0));
	completion_round(&completion, &counters);
	for (uint32_t raised = 0; raised < 48; raised++) {
		assert_true(take_event(&ev));
		assert_int_equal(ev.type, EQE_COMPLETION);
		assert_true(ev.number % 2 || ev.number % 4 == 0);
	}
	assert_false(take_event(&ev));
}

/* As many as the CQ has places: what is more would not have fitted there either. */
TEST(cq_hold__backlog_full)
{
	struct eqe ev;
	struct cqe c;

	hold();
	for (uint32_t i = 0; i < ENTRIES; i++)
		assert_true(post(i, false));
	assert_false(post(ENTRIES, false));
	assert_int_equal(counter_read(&counters, COUNTER_cq_overruns), 1);
	assert_true(take_event(&ev));
	assert_int_equal(ev.type, EQE_CQ_ERROR);
	assert_int_equal(cq_release(&completion, &counters, CQN), 0);
	for (uint32_t i = 0; i < ENTRIES; i++)
		assert_true(take_cqe(&c));
	assert_false(post(1, false));
	assert_false(take_event(&ev));
}

/* More than can be counted are lost, however many have been moved. */
TEST(cq_hold__too_many_to_count)
{
	struct cq *q = &completion.cqs[CQN & completion.cq_mask];

	hold();
	q->stop = CQ_STOP_HELD | CQ_STOP_BACKLOG;
	q->backlog_done = CQ_STOP_BACKLOG;
	assert_false(post(0, false));
	assert_int_equal(q->stop, CQ_STOP_HELD | CQ_STOP_BACKLOG | CQ_STOP_OVERRUN);
	assert_int_equal(cq_remove(&completion, CQN), 0);
}

/* The CQ was not empty when it was held. */
TEST(cq_release__overruns)
{
	struct eqe ev;

	assert_true(post(0, false));
	hold();
	for (uint32_t i = 0; i < ENTRIES; i++)
		assert_true(post(i, false));
	assert_int_equal(cq_release(&completion, &counters, CQN), 0);
	assert_int_equal(counter_read(&counters, COUNTER_cq_overruns), 1);
	assert_true(take_event(&ev));
	assert_int_equal(ev.type, EQE_CQ_ERROR);
	assert_false(post(1, false));
}

/* The client's part: what it has not taken goes to its place in the new buffer. */
static void bring_over(struct cqe *to, uint32_t entries)
{
	for (uint32_t i = cq_taken; i != cq_taken + ENTRIES; i++)
		if (!(cq[i % ENTRIES].owner & CQE_OWNER_HW))
			to[i % entries] = cq[i % ENTRIES];
}

/* Entries not taken, one reserved but not written, one during the resize, one after. */
TEST(cq_resize__keeps_order)
{
	static struct cqe larger[4 * ENTRIES];
	struct cqe in = {.my_qpn = 102, .opcode = 7, .is_send = 1}, c;
	uint64_t place;

	memset(larger, 0xff, sizeof(larger));
	for (uint32_t i = 0; i < 100; i++) {
		assert_true(post(i, false));
		if (i < 90)
			assert_true(take_cqe(&c));
	}
	assert_true(post(100, false));
	assert_true(post(101, false));
	assert_int_equal(cq_place(&completion, &counters, CQN, &place), COMPLETION_READY);
	assert_int_equal(cq_resize(&completion, CQN, larger, LOG + 2), -EINVAL); /* not held */
	hold();
	assert_true(post(103, true));
	assert_int_equal(cq_resize(&completion, CQN + 64, larger, LOG + 2), -ENOENT);
	assert_int_equal(cq_resize(&completion, 0, larger, LOG + 2), -ENOENT);
	assert_int_equal(cq_resize(&completion, CQN, larger, 25), -EINVAL);
	assert_int_equal(cq_resize(&completion, CQN, larger, 3), -EBUSY); /* 13 in 8 places */
	assert_int_equal(cq_resize(&completion, CQN, larger, LOG + 2), 0);
	assert_int_equal(cq_release(&completion, &counters, CQN), 0);
	assert_int_equal(cq_fill(&completion, &counters, CQN, place, &in, false), COMPLETION_READY);
	assert_true(post(104, false));
	bring_over(larger, 4 * ENTRIES);
	for (uint32_t i = 90; i < 105; i++) {
		struct cqe *e = &larger[cq_taken % (4 * ENTRIES)];

		assert_false(e->owner & CQE_OWNER_HW);
		assert_int_equal(e->my_qpn, i);
		cq_taken++;
	}
	assert_true(larger[cq_taken % (4 * ENTRIES)].owner & CQE_OWNER_HW);
	record.consumer_index = cq_taken;
	for (uint32_t i = 0; i < 4 * ENTRIES; i++)
		assert_true(post(i, false));
	assert_false(post(0, false));
}

/* Exactly as many as are there is enough; one place fewer is not. */
TEST(cq_resize__smaller)
{
	static struct cqe smaller[ENTRIES];
	struct cqe c;

	memset(smaller, 0xff, sizeof(smaller));
	for (uint32_t i = 0; i < 30; i++)
		assert_true(post(i, false));
	for (uint32_t i = 0; i < 14; i++) /* taken since the client's index was last read */
		assert_true(take_cqe(&c));
	hold();
	assert_int_equal(cq_resize(&completion, CQN, smaller, 3), -EBUSY);
	assert_int_equal(cq_resize(&completion, CQN, smaller, 25), -EINVAL);
	assert_int_equal(cq_resize(&completion, CQN, smaller, 24), 0); /* the most */
	assert_int_equal(cq_resize(&completion, CQN, smaller, 4), 0);
	assert_int_equal(cq_release(&completion, &counters, CQN), 0);
	assert_int_equal(counter_read(&counters, COUNTER_cq_overruns), 0);
	assert_false(post(16, false)); /* full */
	assert_int_equal(smaller[16].my_qpn, UINT32_MAX);
	assert_int_equal(counter_read(&counters, COUNTER_cq_overruns), 1);
}

TEST(cq_place__step_by_step)
{
	struct cqe in = {.my_qpn = 9, .opcode = 7, .is_send = 1}, out;
	uint64_t place;

	assert_int_equal(cq_place(&completion, &counters, CQN, &place), COMPLETION_READY);
	assert_true(post(10, false)); /* behind it */
	assert_false(take_cqe(&out));
	assert_int_equal(cq_fill(&completion, &counters, CQN, place, &in, false), COMPLETION_READY);
	assert_true(take_cqe(&out));
	assert_int_equal(out.my_qpn, 9);
	assert_true(take_cqe(&out));
	assert_int_equal(out.my_qpn, 10);
}

/* Each step waits while the CQ is held; a place stays reserved. */
TEST(cq_place__held)
{
	struct cqe in = {.my_qpn = 9, .opcode = 7, .is_send = 1}, out;
	uint64_t place, other;

	assert_int_equal(cq_place(&completion, &counters, CQN, &place), COMPLETION_READY);
	hold();
	assert_int_equal(cq_place(&completion, &counters, CQN, &other), COMPLETION_NOT_READY);
	assert_int_equal(cq_fill(&completion, &counters, CQN, place, &in, false),
			 COMPLETION_NOT_READY);
	assert_int_equal(counter_read(&counters, COUNTER_cq_not_ready), 2);
	assert_int_equal(cq_release(&completion, &counters, CQN), 0);
	assert_int_equal(cq_fill(&completion, &counters, CQN, place, &in, false), COMPLETION_READY);
	assert_true(take_cqe(&out));
}

TEST(cq_place__full_or_gone)
{
	struct cqe in = {.my_qpn = 9}, out;
	uint64_t place = 0, other;

	for (uint32_t i = 1; i < ENTRIES; i++)
		assert_true(post(i, false));
	assert_int_equal(cq_place(&completion, &counters, CQN, &place), COMPLETION_READY);
	assert_int_equal(cq_place(&completion, &counters, CQN, &other), COMPLETION_LOST);
	assert_true(take_cqe(&out)); /* room again: it accepts none all the same */
	assert_int_equal(cq_place(&completion, &counters, CQN, &other), COMPLETION_LOST);
	assert_int_equal(counter_read(&counters, COUNTER_cq_overruns), 2);
	/* a place reserved before is still written */
	assert_int_equal(cq_fill(&completion, &counters, CQN, place, &in, false), COMPLETION_READY);
	for (uint32_t i = 1; i < ENTRIES; i++)
		assert_true(take_cqe(&out));
	assert_int_equal(cq_remove(&completion, CQN), 0);
	assert_int_equal(cq_place(&completion, &counters, CQN, &place), COMPLETION_LOST);
	assert_int_equal(cq_fill(&completion, &counters, CQN, place, &in, false), COMPLETION_LOST);
}

TEST(cq_write__refusals)
{
	assert_int_equal(cq_write(&completion, 0, 0, cq, LOG, &record), -EINVAL);
	assert_int_equal(cq_write(&completion, 9, 0, cq, 25, &record), -EINVAL);
	assert_int_equal(cq_write(&completion, CQN + 64, 0, cq, LOG, &record), -EEXIST);
	assert_int_equal(cq_remove(&completion, CQN + 64), -ENOENT);
	assert_int_equal(cq_remove(&completion, 0), -ENOENT);
	assert_int_equal(cq_remove(&completion, CQN), 0);
	assert_int_equal(cq_remove(&completion, CQN), -ENOENT);
	assert_false(post(1, false));
	assert_int_equal(cq_write(&completion, CQN + 64, CLIENT, cq, 24, &record), 0);
}

/* Posts one and returns how many events it raised. */
static unsigned events_of(bool solicited, uint8_t opcode)
{
	struct cqe entry = {.opcode = opcode};
	struct eqe ev;
	unsigned n = 0;

	assert_true(cq_post(&completion, &counters, CQN, &entry, solicited));
	completion_round(&completion, &counters);
	while (take_event(&ev)) {
		assert_int_equal(ev.type, EQE_COMPLETION);
		assert_int_equal(ev.number, CQN);
		n++;
	}
	return n;
}

TEST(arm__once)
{
	assert_int_equal(events_of(false, 1), 0);
	record.arm_next = 1;
	assert_int_equal(events_of(false, 1), 1);
	assert_int_equal(events_of(false, 1), 0);
	record.arm_next = 2;
	assert_int_equal(events_of(true, 1), 1);
	assert_int_equal(events_of(true, 1), 0);
}

TEST(arm__solicited_only)
{
	record.arm_solicited = 1;
	assert_int_equal(events_of(false, 1), 0);
	assert_int_equal(events_of(true, 1), 1);
	record.arm_solicited = 2;
	assert_int_equal(events_of(false, 0xff), 1); /* errors wake always */
}

/* Armed for any and for solicited ones, in either order: any completion draws the event, the only
 * one. */
TEST(arm__the_stronger_stays)
{
	record.arm_next = 1;
	assert_int_equal(events_of(false, 0), 1);
	record.arm_next = 2;
	record.arm_solicited = 1;
	assert_int_equal(events_of(false, 1), 1);
	assert_int_equal(events_of(true, 1), 0);
	record.arm_solicited = 2; /* alone */
	assert_int_equal(events_of(false, 1), 0);
	assert_int_equal(events_of(true, 1), 1);
}

/* One place is one place. */
TEST(cq_post__last_place)
{
	struct cqe c;

	for (uint32_t i = 0; i < ENTRIES; i++)
		assert_true(post(i, false));
	for (uint32_t i = 0; i < 2 * ENTRIES; i++) {
		assert_true(take_cqe(&c));
		assert_true(post(ENTRIES + i, false)); /* full again */
	}
	assert_false(post(0, false));
}

TEST(cq_hold__keeps_a_burst)
{
	assert_true(post(0, false));
	hold();
	assert_true(post_burst(1, 5, false));
	expect_taken(0, 1);
	assert_int_equal(cq_release(&completion, &counters, CQN), 0);
	expect_taken(1, 5);
}

/* Completions of an overrun CQ are lost while it is held, as before. */
TEST(cq_hold__after_an_overrun)
{
	for (uint32_t i = 0; i <= ENTRIES; i++)
		post(i, false);
	hold();
	assert_false(post(7, false));
	assert_int_equal(counter_read(&counters, COUNTER_cq_backlogged), 0);
	assert_int_equal(counter_read(&counters, COUNTER_cq_overruns), 2);
	assert_int_equal(cq_release(&completion, &counters, CQN), 0);
	assert_false(post(8, false)); /* and stays overrun */
}

TEST(cq_hold__sizes_of_backlogs)
{
	assert_int_equal(cq_hold(&completion, CQN, backlog, CQ_STOP_BACKLOG + 1), -EINVAL);
	assert_int_equal(cq_hold(&completion, CQN, backlog, CQ_STOP_BACKLOG), 0);
	assert_int_equal(cq_release(&completion, &counters, 0), -ENOENT);
	assert_int_equal(cq_release(&completion, &counters, CQN), 0);
}

/* A CQ destroyed since raises no event. */
TEST(arm__of_a_queue_that_has_gone)
{
	struct eqe ev;

	record.arm_next = 1;
	assert_true(post(1, false));
	assert_int_equal(cq_remove(&completion, CQN), 0);
	completion_round(&completion, &counters);
	assert_false(take_event(&ev));
}

/* No room for the event: it comes when there is some, and only if it is still what was armed for.
 */
TEST(arm__waits_for_room)
{
	struct eqe ev;

	for (uint32_t i = 0; i < EQ_ENTRIES; i++)
		assert_true(eq_post(&completion, &counters, CLIENT, EQE_COMM_EST, i));
	record.arm_solicited = 1;
	assert_true(post(1, true));
	completion_round(&completion, &counters);
	completion_round(&completion, &counters);
	for (uint32_t i = 0; i < EQ_ENTRIES; i++)
		assert_true(take_event(&ev));
	assert_false(take_event(&ev));
	completion_round(&completion, &counters);
	assert_true(take_event(&ev));
	assert_int_equal(ev.type, EQE_COMPLETION);
	assert_int_equal(ev.number, CQN);
	completion_round(&completion, &counters);
	assert_false(take_event(&ev));
}

/* Pages of address space in use. */
static size_t mapped(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	size_t pages = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%zu", &pages), 1);
	fclose(f);
	return pages;
}

TEST(completion_destroy__gives_its_address_space_back)
{
	static struct completion c;
	size_t before;

	mapped(); /* it has what it needs itself */
	before = mapped();
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(completion_create(&c, 1 << 16, 1 << 16, 1 << 16), 0);
		assert_true(mapped() > before);
		completion_destroy(&c);
		assert_int_equal(mapped(), before);
	}
}
