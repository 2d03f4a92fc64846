/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbour table: states and timers of neighbour.h. Control thread; sends nothing itself. */
#include <errno.h>
#include <string.h>

#include "neighbour.h"

static uint16_t *bucket_of(struct neighbours *t, const uint8_t ip[16])
{
	uint64_t half[2];

	memcpy(half, ip, sizeof(half));
	return &t->bucket[((half[0] * 31 + half[1]) * 0x9e3779b97f4a7c15) >> 32 &
			  (NEIGHBOURS_MAX - 1)];
}

static struct neighbour *neighbour_lookup(struct neighbours *t, const uint8_t ip[16])
{
	for (uint16_t i = *bucket_of(t, ip); i; i = t->entry[i - 1].next)
		if (memcmp(t->entry[i - 1].ip, ip, 16) == 0)
			return &t->entry[i - 1];
	return NULL;
}

static void neighbour_link(struct neighbours *t, struct neighbour *e)
{
	uint16_t *bucket = bucket_of(t, e->ip);

	e->next = *bucket;
	*bucket = (uint16_t)(e - t->entry + 1);
}

static void neighbour_unlink(struct neighbours *t, const struct neighbour *e)
{
	uint16_t *at = bucket_of(t, e->ip);

	while (*at != e - t->entry + 1)
		at = &t->entry[*at - 1].next;
	*at = e->next;
}

static bool is_timed(enum neighbour_state state)
{
	return state == NEIGHBOUR_ASKED || state == NEIGHBOUR_STALE || state == NEIGHBOUR_FAILED;
}

/* Notes that a timer expires at at_ms. */
static void note_due(struct neighbours *t, uint64_t at_ms)
{
	if (at_ms < t->due_ms)
		t->due_ms = at_ms;
}

static void neighbour_enter(struct neighbours *t, struct neighbour *e, enum neighbour_state state,
			    uint64_t next_ms)
{
	t->n_timed += is_timed(state);
	t->n_timed -= is_timed(e->state);
	t->failed += state == NEIGHBOUR_FAILED;
	if (e->state == NEIGHBOUR_FREE && state != NEIGHBOUR_FREE)
		neighbour_link(t, e);
	else if (e->state != NEIGHBOUR_FREE && state == NEIGHBOUR_FREE)
		neighbour_unlink(t, e);
	e->state = state;
	e->next_ms = next_ms;
	if (is_timed(state))
		note_due(t, next_ms);
}

/* The better one to replace: free, failed, else looked up longest ago. */
static struct neighbour *worse(struct neighbour *a, struct neighbour *b)
{
	static const uint8_t rank[] = {[NEIGHBOUR_FREE] = 0,
				       [NEIGHBOUR_FAILED] = 1,
				       [NEIGHBOUR_ASKED] = 2,
				       [NEIGHBOUR_KNOWN] = 2,
				       [NEIGHBOUR_STALE] = 2};

	if (!a || rank[a->state] != rank[b->state])
		return !a || rank[b->state] < rank[a->state] ? b : a;
	return b->used_ms < a->used_ms ? b : a;
}

/* What there is to replace, leaving alone what is being asked for. */
struct census {
	struct neighbour *any, *unasked; /* the one to replace: of all, of those learnt unasked */
	unsigned int n_asked, n_unasked;
};

static struct census survey(struct neighbours *t)
{
	struct census c = {.any = NULL};

	for (unsigned int i = 0; i < NEIGHBOURS_MAX; i++) {
		struct neighbour *e = &t->entry[i];

		if (e->state == NEIGHBOUR_ASKED) {
			c.n_asked++;
			continue;
		}
		c.any = worse(c.any, e);
		if (e->state != NEIGHBOUR_FREE && e->unasked) {
			c.n_unasked++;
			c.unasked = worse(c.unasked, e);
		}
	}
	return c;
}

/* An entry for a neighbour to ask for, or for one that a stranger names. NULL: there is none. */
static struct neighbour *neighbour_make_room(struct neighbours *t, const uint8_t ip[16],
					     bool to_ask)
{
	const struct census c = survey(t);
	struct neighbour *e = c.any;

	if (to_ask && c.n_asked >= NEIGHBOURS_ASKED_MAX)
		return NULL;
	if (!to_ask && (c.n_unasked >= NEIGHBOURS_UNASKED_MAX || !e || e->state != NEIGHBOUR_FREE))
		e = c.unasked;
	if (!e)
		return NULL;
	neighbour_enter(t, e, NEIGHBOUR_FREE, 0);
	memset(e, 0, sizeof(*e));
	memcpy(e->ip, ip, 16);
	e->unasked = !to_ask;
	return e;
}

int neighbour_find(struct neighbours *t, const uint8_t ip[16], uint64_t now_ms, uint8_t mac_out[6])
{
	struct neighbour *e = neighbour_lookup(t, ip);

	if (!e) {
		e = neighbour_make_room(t, ip, true);
		if (!e)
			return -ENOSPC;
		e->learnt_ms = e->used_ms = now_ms;
		neighbour_enter(t, e, NEIGHBOUR_ASKED, now_ms);
		return -EAGAIN;
	}
	e->used_ms = now_ms;
	e->unasked = false;
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
	return neighbour_lookup(t, ip) != NULL;
}

/* A new MAC is not believed while the known one answers: an unsolicited claim only makes us ask. */
static bool is_doubtful(struct neighbours *t, struct neighbour *e, const uint8_t mac[6],
			uint64_t now_ms)
{
	bool known = e->state == NEIGHBOUR_KNOWN;

	if ((!known && e->state != NEIGHBOUR_STALE) || memcmp(e->mac, mac, 6) == 0)
		return false;
	if (known && now_ms - e->learnt_ms >= NEIGHBOUR_HOLD_MS) {
		e->tries = 0;
		neighbour_enter(t, e, NEIGHBOUR_STALE, now_ms);
	}
	return known || e->tries <= NEIGHBOUR_DOUBTS;
}

bool neighbour_learn(struct neighbours *t, const uint8_t ip[16], const uint8_t mac[6], bool create,
		     uint64_t now_ms)
{
	struct neighbour *e = neighbour_lookup(t, ip);
	bool changed;

	if (!e && create) {
		e = neighbour_make_room(t, ip, false);
		if (e)
			e->used_ms = now_ms;
	}
	if (!e || is_doubtful(t, e, mac, now_ms))
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
static bool neighbour_step(struct neighbours *t, struct neighbour *e, uint64_t now_ms)
{
	uint64_t wait_ms;

	if (!is_timed(e->state))
		return false;
	if (now_ms < e->next_ms) {
		note_due(t, e->next_ms);
		return false;
	}
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
	note_due(t, e->next_ms);
	return true;
}

const struct neighbour *neighbour_due(struct neighbours *t, unsigned int *cursor, uint64_t now_ms)
{
	if (*cursor == 0) {
		if (t->n_timed == 0 || now_ms < t->due_ms)
			return NULL;
		t->due_ms = UINT64_MAX; /* the pass finds it anew */
	}
	while (*cursor < NEIGHBOURS_MAX) {
		struct neighbour *e = &t->entry[(*cursor)++];

		if (neighbour_step(t, e, now_ms))
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
