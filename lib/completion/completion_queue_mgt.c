/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CompletionQueueMgt: reserves places in completion queues and writes entries into client memory.
 * Runs on whatever stage completes; never waits, never calls the system.
 */
#include <errno.h>
#include <stdio.h>
#include <rte_memzone.h>
#include "completion/completion.h"
#include "host-abi/wqe.h"
#include "completion_priv.h"

#define TOUCHED_END 0xffffffffu /* of the list of touched CQs */

int completion_create(struct completion *c, const char *name, uint32_t cqs, int socket)
{
	char zone_name[RTE_MEMZONE_NAMESIZE];

	snprintf(zone_name, sizeof(zone_name), "%s_cqs", name);
	*c = (struct completion){.cq_count = cqs, .cq_mask = cqs - 1, .touched = TOUCHED_END};
	c->zone = rte_memzone_reserve_aligned(zone_name, (size_t)cqs * sizeof(struct cq), socket,
		RTE_MEMZONE_SIZE_HINT_ONLY, RTE_CACHE_LINE_SIZE);
	if (!c->zone)
		return -ENOMEM;
	c->cqs = c->zone->addr;
	return 0;
}

void completion_destroy(struct completion *c)
{
	if (c->zone)
		rte_memzone_free(c->zone);
	*c = (struct completion){0};
}

int cq_write(struct completion *c, uint32_t cqn, uint32_t client, struct cqe *buffer,
	uint32_t log_entries, struct cq_record *record)
{
	struct cq *q = &c->cqs[cqn & c->cq_mask];

	if (cqn == 0 || log_entries > 24)
		return -EINVAL;
	if (q->cqn != 0)
		return -EEXIST;
	q->mask = (1u << log_entries) - 1;
	q->buffer = buffer;
	q->record = record;
	q->client = client;
	q->overrun = 0;
	q->produced = 0;
	q->consumed = 0;
	q->served_arm = 0;
	__atomic_store_n(&q->cqn, cqn, __ATOMIC_RELEASE);
	return 0;
}

int cq_remove(struct completion *c, uint32_t cqn)
{
	struct cq *q = &c->cqs[cqn & c->cq_mask];

	if (cqn == 0 || q->cqn != cqn)
		return -ENOENT;
	__atomic_store_n(&q->cqn, 0, __ATOMIC_SEQ_CST);
	return 0;
}

/* Notes that the CQ has new entries; completion_notify() looks whether its client wants to know. */
static void touch(struct completion *c, struct cq *q, bool solicited)
{
	uint32_t bits = solicited ? CQ_TOUCHED | CQ_TOUCHED_SOLICITED : CQ_TOUCHED, head, before;

	if (likely((__atomic_load_n(&q->touched, __ATOMIC_RELAXED) & bits) == bits))
		return;
	before = __atomic_fetch_or(&q->touched, bits, __ATOMIC_SEQ_CST);
	if (before & CQ_TOUCHED)
		return;
	head = __atomic_load_n(&c->touched, __ATOMIC_RELAXED);
	do {
		q->next_touched = head;
	} while (!__atomic_compare_exchange_n(&c->touched, &head, (uint32_t)(q - c->cqs), true,
		__ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

static void serve_arm(struct completion *c, struct counters *counters, struct cq *q)
{
	uint32_t touched = __atomic_exchange_n(&q->touched, 0, __ATOMIC_SEQ_CST);
	uint32_t cqn = __atomic_load_n(&q->cqn, __ATOMIC_ACQUIRE);
	uint32_t wanted =
		touched & CQ_TOUCHED_SOLICITED ? CQ_ARM_NEXT | CQ_ARM_SOLICITED : CQ_ARM_NEXT;
	uint32_t arm;

	if (!cqn)
		return;
	arm = __atomic_load_n(&q->record->arm, __ATOMIC_RELAXED);
	if (arm == q->served_arm || !(arm & wanted))
		return;
	if (eq_post(c, counters, q->client, EQE_COMPLETION, cqn))
		q->served_arm = arm;
	else
		touch(c, q, touched & CQ_TOUCHED_SOLICITED); /* when there is room again */
}

/*
 * The fence orders "entries written" before "arm read"; the client orders "arm written" before
 * "entries read": one of the two sees the other. An entry written after its CQ was taken off the
 * list puts it there again.
 */
void completion_serve_arms(struct completion *c, struct counters *counters)
{
	uint32_t index, next;

	if (likely(__atomic_load_n(&c->touched, __ATOMIC_RELAXED) == TOUCHED_END))
		return;
	if (__atomic_exchange_n(&c->serving, 1, __ATOMIC_SEQ_CST))
		return; /* another lcore is at it, or will look again in its next round */
	index = __atomic_exchange_n(&c->touched, TOUCHED_END, __ATOMIC_SEQ_CST);
	for (; index != TOUCHED_END; index = next) {
		next = c->cqs[index].next_touched;
		serve_arm(c, counters, &c->cqs[index]);
	}
	__atomic_store_n(&c->serving, 0, __ATOMIC_SEQ_CST);
}

/* Is there no room, judged by the client's index as it is now? */
static bool full(struct cq *q, uint64_t produced)
{
	uint32_t consumed = __atomic_load_n(&q->record->consumer_index, __ATOMIC_ACQUIRE);

	__atomic_store_n(&q->consumed, consumed, __ATOMIC_RELAXED);
	return (uint32_t)produced - consumed > q->mask;
}

/* Reserves a place, or fails when the client has not consumed enough. The client's index is looked
 * at only when the last one seen leaves no room. */
static bool reserve(struct cq *q, uint64_t *place)
{
	uint64_t produced = __atomic_load_n(&q->produced, __ATOMIC_RELAXED);

	do {
		uint32_t consumed = __atomic_load_n(&q->consumed, __ATOMIC_RELAXED);

		if (unlikely((uint32_t)produced - consumed > q->mask && full(q, produced)))
			return false;
	} while (!__atomic_compare_exchange_n(
		&q->produced, &produced, produced + 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	*place = produced;
	return true;
}

static bool lost(struct completion *c, struct counters *counters, struct cq *q)
{
	count(counters, COUNTER_cq_overruns);
	if (!__atomic_exchange_n(&q->overrun, 1, __ATOMIC_RELAXED))
		eq_post(c, counters, q->client, EQE_CQ_ERROR, q->cqn);
	return false;
}

bool cq_post(struct completion *c, struct counters *counters, uint32_t cqn, const struct cqe *entry,
	bool solicited)
{
	struct cq *q = &c->cqs[cqn & c->cq_mask];
	struct cqe *to;
	uint64_t place;

	if (unlikely(__atomic_load_n(&q->cqn, __ATOMIC_ACQUIRE) != cqn))
		return false;
	if (unlikely(__atomic_load_n(&q->overrun, __ATOMIC_RELAXED) || !reserve(q, &place)))
		return lost(c, counters, q);
	to = &q->buffer[place & q->mask];
	to->my_qpn = entry->my_qpn;
	to->reserved = 0;
	to->remote_qpn = entry->remote_qpn;
	to->rlid_flags = entry->rlid_flags;
	to->imm_or_error = entry->imm_or_error;
	to->byte_count = entry->byte_count;
	to->wqe_offset = entry->wqe_offset;
	/* opcode, is_send, reserved and owner: one word, written last */
	__atomic_store_n((uint32_t *)&to->opcode, entry->opcode | (uint32_t)entry->is_send << 8,
		__ATOMIC_RELEASE);
	count(counters, COUNTER_cqes);
	touch(c, q, solicited || entry->opcode == USER_INVALID);
	return true;
}
