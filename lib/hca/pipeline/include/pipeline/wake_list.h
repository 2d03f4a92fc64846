/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_WAKE_LIST_H
#define PIPELINE_WAKE_LIST_H
/*
 * Wake lists: how a module wakes another one for a parked QP, and how the control thread makes the
 * modules notice a change of state. (The hardware polls contexts instead.) Not a channel: it
 * carries no message, and each QP is in it at most once per target, so it can neither overflow nor
 * allocate.
 *
 * Many posters, one consumer (the stage of the target module). Lock-free: a stack of QP indices
 * linked through the QPs.
 */
#include <stdint.h>
#include <stdbool.h>

enum wake_target { WAKE_WS, WAKE_RTC, WAKE_RRC, WAKE_EE, WAKE_COUNT };

#define WAKE_END 0xffffffffu

struct wake_list {
	uint32_t head; /* QP index or WAKE_END; atomic */
	uint8_t pad[60];
} __attribute__((aligned(64)));

/* The link in a QP, one for each target. */
struct wake_link {
	uint32_t next;
	uint32_t posted; /* atomic: 1 while in the list */
};

static inline void wake_list_init(struct wake_list *l)
{
	__atomic_store_n(&l->head, WAKE_END, __ATOMIC_RELEASE);
}

/* Puts the QP with that index on the list unless it is there. Any thread. The consumer that takes
 * the QP sees everything that the caller wrote before. */
static inline void wake_post(struct wake_list *l, struct wake_link *link, uint32_t index)
{
	uint32_t head;

	if (__atomic_exchange_n(&link->posted, 1, __ATOMIC_SEQ_CST))
		return;
	head = __atomic_load_n(&l->head, __ATOMIC_RELAXED);
	do {
		link->next = head;
	} while (!__atomic_compare_exchange_n(&l->head, &head, index, true, __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
}

static inline bool wake_list_empty(const struct wake_list *l)
{
	return __atomic_load_n(&l->head, __ATOMIC_RELAXED) == WAKE_END;
}

/* Takes the whole list: the first index or WAKE_END. Consumer only. Walk it with wake_next(). */
static inline uint32_t wake_take(struct wake_list *l)
{
	if (wake_list_empty(l))
		return WAKE_END;
	return __atomic_exchange_n(&l->head, WAKE_END, __ATOMIC_SEQ_CST);
}

/* Releases one taken link (it may be posted again from now on) and returns the next index. Read the
 * QP only after this. */
static inline uint32_t wake_next(struct wake_link *link)
{
	uint32_t next = link->next;

	__atomic_store_n(&link->posted, 0, __ATOMIC_SEQ_CST);
	return next;
}

#endif
