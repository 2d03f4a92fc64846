/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPLETION_FIXTURE_H
#define COMPLETION_FIXTURE_H
/* A completion and event queue manager with one client, whose queues lie here. */
#include "test.h"
#include <rte_memory.h>
#include "world_eal.h"
#include "completion/completion.h"

enum { CQN = 0x4a05, CLIENT = 7, LOG = 6, ENTRIES = 1 << LOG };

static struct completion completion;
static struct counters counters; /* of a single thread */
static struct client_page page __attribute__((aligned(4096)));
static struct cqe cq[ENTRIES] __attribute__((aligned(64)));
static struct cq_record record;
static int pipes[2];
static uint32_t cq_taken, eq_taken;

TEST_GROUP(.setup = world_eal, .teardown = world_eal_end);

static inline int fx_setup(void **state)
{
	memset(&page, 0, sizeof(page));
	memset(&record, 0, sizeof(record));
	memset(&counters, 0, sizeof(counters));
	memset(cq, 0xff, sizeof(cq));
	cq_taken = eq_taken = 0;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(completion_create(&completion, 64, 64, 64), 0);
	assert_int_equal(cq_write(&completion, CQN, CLIENT, cq, LOG, &record), 0);
	eq_write(&completion, CLIENT, &page, pipes[1]);
	return 0;
}

static inline int fx_teardown(void **state)
{
	completion_destroy(&completion);
	close(pipes[0]);
	close(pipes[1]);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, fx_setup, fx_teardown)

/* The client: takes a completion; takes an event. False: there is none. */
static inline bool take_cqe(struct cqe *out)
{
	struct cqe *c = &cq[cq_taken % ENTRIES];
	uint32_t last = __atomic_load_n((uint32_t *)&c->opcode, __ATOMIC_ACQUIRE);

	if (last >> 24 & CQE_OWNER_HW)
		return false;
	*out = *c;
	__atomic_store_n((uint32_t *)&c->opcode, 0xffffffff, __ATOMIC_RELAXED);
	__atomic_store_n(&record.consumer_index, ++cq_taken, __ATOMIC_RELEASE);
	return true;
}

static inline bool take_event(struct eqe *out)
{
	const struct eqe *q = &page.eq[eq_taken % EQ_ENTRIES];
	uint8_t phase = (eq_taken / EQ_ENTRIES & 1) ^ 1;

	if (__atomic_load_n(&q->owner, __ATOMIC_ACQUIRE) != phase)
		return false;
	*out = *q;
	__atomic_store_n(&page.eq_consumer, ++eq_taken, __ATOMIC_RELEASE);
	return true;
}

static inline bool post(uint32_t number, bool solicited)
{
	struct cqe entry = {.my_qpn = number,
			    .remote_qpn = ~number,
			    .byte_count = number * 3,
			    .opcode = 0x0a,
			    .is_send = 1};

	return cq_post(&completion, &counters, CQN, &entry, solicited);
}

#endif
