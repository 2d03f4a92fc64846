/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbour table: states and timers of neighbour.h. Control thread; sends nothing itself. */
#include <errno.h>
#include <string.h>

#include "neighbour.h"

static struct neighbour *lookup(struct neighbours *t, const uint8_t ip[16])
{
	for (unsigned int i = 0; i < NEIGHBOURS_MAX; i++) {
		struct neighbour *e = &t->entry[i];

		if (e->state != NEIGHBOUR_FREE && memcmp(e->ip, ip, 16) == 0)
			return e;
	}
	return NULL;
}

static bool is_timed(enum neighbour_state state)
{
	return state == NEIGHBOUR_ASKED || state == NEIGHBOUR_STALE || state == NEIGHBOUR_FAILED;
}

static void neighbour_enter(struct neighbours *t, struct neighbour *e, enum neighbour_state state,
			    uint64_t next_ms)
{
	t->n_timed += is_timed(state);
	t->n_timed -= is_timed(e->state);
	t->failed += state == NEIGHBOUR_FAILED;
	e->state = state;
	e->next_ms = next_ms;
}

static bool is_better(const struct neighbour *e, const struct neighbour *than)
{
	if (!than || than->state == NEIGHBOUR_FREE)
		return !than;
	return e->state == NEIGHBOUR_FREE || e->learnt_ms < than->learnt_ms;
}

/* A free entry, else the one known longest; never one that is being waited for. NULL: there is
 * none, or too many are pending already. */
static struct neighbour *make_room(struct neighbours *t, const uint8_t ip[16], bool to_ask)
{
	struct neighbour *oldest = NULL;
	unsigned int asked = 0;

	for (unsigned int i = 0; i < NEIGHBOURS_MAX; i++) {
		struct neighbour *e = &t->entry[i];

		if (e->state == NEIGHBOUR_ASKED)
			asked++;
		else if (is_better(e, oldest))
			oldest = e;
	}
	if (!oldest || (to_ask && asked >= NEIGHBOURS_ASKED_MAX))
		return NULL;
	neighbour_enter(t, oldest, NEIGHBOUR_FREE, 0);
	memset(oldest, 0, sizeof(*oldest));
	memcpy(oldest->ip, ip, 16);
	return oldest;
}

int neighbour_find(struct neighbours *t, const uint8_t ip[16], uint64_t now_ms, uint8_t mac_out[6])
{
	struct neighbour *e = lookup(t, ip);

	if (!e) {
		e = make_room(t, ip, true);
		if (!e)
			return -ENOSPC;
		e->learnt_ms = now_ms;
		neighbour_enter(t, e, NEIGHBOUR_ASKED, now_ms);
		return -EAGAIN;
	}
	switch (e->state) {
	case NEIGHBOUR_FREE:
	case NEIGHBOUR_ASKED:
		return -EAGAIN;
	case NEIGHBOUR_FAILED:
		return -EHOSTUNREACH;
	case NEIGHBOUR_KNOWN:
		if (now_ms - e->learnt_ms > NEIGHBOUR_FRESH_MS) {
			e->tries = 0;
			neighbour_enter(t, e, NEIGHBOUR_STALE, now_ms);
		}
		break;
	case NEIGHBOUR_STALE:
		break;
	}
	memcpy(mac_out, e->mac, 6);
	return 0;
}

bool neighbour_has(struct neighbours *t, const uint8_t ip[16])
{
	return lookup(t, ip) != NULL;
}

bool neighbour_learn(struct neighbours *t, const uint8_t ip[16], const uint8_t mac[6], bool create,
		     uint64_t now_ms)
{
	struct neighbour *e = lookup(t, ip);
	bool changed;

	if (!e && create)
		e = make_room(t, ip, false);
	if (!e)
		return false;
	changed = e->state != NEIGHBOUR_KNOWN && e->state != NEIGHBOUR_STALE;
	changed |= memcmp(e->mac, mac, 6) != 0;
	memcpy(e->mac, mac, 6);
	e->learnt_ms = now_ms;
	e->tries = 0;
	neighbour_enter(t, e, NEIGHBOUR_KNOWN, 0);
	return changed;
}

/* Whether to send a request for e now; expires it when its time is over. */
static bool step(struct neighbours *t, struct neighbour *e, uint64_t now_ms)
{
	uint64_t wait_ms;

	if (!is_timed(e->state) || now_ms < e->next_ms)
		return false;
	if (e->state == NEIGHBOUR_FAILED) {
		neighbour_enter(t, e, NEIGHBOUR_FREE, 0);
		return false;
	}
	if (e->tries == NEIGHBOUR_TRIES) {
		neighbour_enter(t, e, NEIGHBOUR_FAILED, now_ms + NEIGHBOUR_HOLD_MS);
		return false;
	}
	wait_ms = (uint64_t)NEIGHBOUR_FIRST_WAIT_MS << e->tries++;
	e->next_ms = now_ms + (wait_ms < NEIGHBOUR_WAIT_MS_MAX ? wait_ms : NEIGHBOUR_WAIT_MS_MAX);
	return true;
}

const struct neighbour *neighbour_due(struct neighbours *t, unsigned int *cursor, uint64_t now_ms)
{
	if (t->n_timed == 0)
		return NULL;
	while (*cursor < NEIGHBOURS_MAX) {
		struct neighbour *e = &t->entry[(*cursor)++];

		if (step(t, e, now_ms))
			return e;
	}
	return NULL;
}

void neighbour_forget(struct neighbours *t)
{
	for (unsigned int i = 0; i < NEIGHBOURS_MAX; i++) {
		struct neighbour *e = &t->entry[i];

		if (e->state != NEIGHBOUR_ASKED)
			neighbour_enter(t, e, NEIGHBOUR_FREE, 0);
	}
}
