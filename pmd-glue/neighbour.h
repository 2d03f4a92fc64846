/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_NEIGHBOUR_H
#define PMD_GLUE_NEIGHBOUR_H
/*
 * The neighbour table of one port: IP address (IPv4 as ::ffff:a.b.c.d) to MAC address. Sends
 * nothing and knows no clock: the caller passes the time and sends what neighbour_due() names.
 * Control thread only. Bounded: a full table forgets the entry learnt longest ago.
 *
 *   state    condition                    next    why
 *   FREE     looked up                    ASKED   it is needed
 *   FREE     a question to us names it    KNOWN   RFC 826: the target learns the sender
 *   ASKED    answer                       KNOWN
 *   ASKED    NEIGHBOUR_TRIES unanswered   FAILED
 *   KNOWN    looked up, older than FRESH  STALE   used on, asked again
 *   STALE    answer                       KNOWN
 *   STALE    NEIGHBOUR_TRIES unanswered   FAILED
 *   FAILED   answer                       KNOWN   better late than never
 *   KNOWN, STALE, FAILED  link went down  FREE  neighbour_forget()
 *   FAILED   NEIGHBOUR_HOLD_MS over       FREE    the next lookup asks again
 */
#include <stdbool.h>
#include <stdint.h>

enum {
	NEIGHBOURS_MAX = 256,
	NEIGHBOURS_ASKED_MAX = 192, /* of them: the others stay for those that are known */
	NEIGHBOUR_TRIES = 6,
	NEIGHBOUR_FIRST_WAIT_MS = 50, /* doubles with each try ... */
	NEIGHBOUR_WAIT_MS_MAX = 800,  /* ... up to this: 2.35 s in all */
	NEIGHBOUR_FRESH_MS = 30000,
	NEIGHBOUR_HOLD_MS = 1000,
};

enum neighbour_state {
	NEIGHBOUR_FREE,
	NEIGHBOUR_ASKED,
	NEIGHBOUR_KNOWN,
	NEIGHBOUR_STALE,
	NEIGHBOUR_FAILED,
};

struct neighbour {
	uint8_t ip[16];
	uint8_t mac[6];
	uint8_t tries; /* questions sent since it was last known */
	enum neighbour_state state;
	uint64_t learnt_ms;
	uint64_t next_ms; /* ASKED, STALE: when to ask again; FAILED: when to forget */
};

struct neighbours {
	unsigned int n_timed; /* entries in ASKED, STALE or FAILED */
	unsigned int failed;  /* times an entry went to FAILED; never reset */
	struct neighbour entry[NEIGHBOURS_MAX];
};

/*
 * 0: mac_out is set; -EAGAIN: asked or about to be; -EHOSTUNREACH: did not answer;
 * -ENOSPC: too many are waiting for an answer.
 */
int neighbour_find(struct neighbours *t, const uint8_t ip[16], uint64_t now_ms, uint8_t mac_out[6]);

/* Does ip have an entry, so that neighbour_find() would send no request for it? */
bool neighbour_has(struct neighbours *t, const uint8_t ip[16]);

/*
 * ip has mac. create: remember it even if it was not asked for. Returns true if the table changed;
 * false if it was known, not asked for, or the table is full.
 */
bool neighbour_learn(struct neighbours *t, const uint8_t ip[16], const uint8_t mac[6], bool create,
		     uint64_t now_ms);

/*
 * Steps the timers of entries *cursor onwards until one has to be asked for now, and returns it
 * (counted as asked); NULL when the table is through. Start with *cursor = 0.
 */
const struct neighbour *neighbour_due(struct neighbours *t, unsigned int *cursor, uint64_t now_ms);

/* Forgets everybody but those who are being asked for. */
void neighbour_forget(struct neighbours *t);

#endif
