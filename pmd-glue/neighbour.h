/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_NEIGHBOUR_H
#define PMD_GLUE_NEIGHBOUR_H
/*
 * The neighbour table of one port: IP address (IPv4 as ::ffff:a.b.c.d) to MAC address. Sends
 * nothing and knows no clock: the caller passes the time and sends what neighbour_due() names.
 * Control thread only.
 *
 * Bounded: a full table forgets a failed neighbour, else the one looked up longest ago. What a
 * stranger made us learn, and nobody has looked up, replaces only its own kind.
 *
 *   state    condition                    next    why
 *   FREE     looked up                    ASKED   it is needed
 *   FREE     a question to us names it    KNOWN   RFC 826: the target learns the sender
 *   KNOWN    another MAC                  STALE   used on, but verified: whoever answers first
 *                                                 with the known one refutes it
 *   ASKED    answer                       KNOWN
 *   ASKED    NEIGHBOUR_TRIES unanswered   FAILED
 *   KNOWN    looked up, older than FRESH  STALE   used on, asked again
 *   STALE    answer, with the known MAC   KNOWN
 *   STALE    another MAC, and the known   KNOWN   it has moved
 *            one has left NEIGHBOUR_DOUBTS
 *            questions unanswered
 *   STALE    NEIGHBOUR_TRIES unanswered   FAILED
 *   FAILED   answer                       KNOWN   better late than never
 *   KNOWN, STALE, FAILED  link went down  FREE  neighbour_forget()
 *   FAILED   NEIGHBOUR_HOLD_MS over       FREE    the next lookup asks again
 */
#include <stdbool.h>
#include <stdint.h>

enum {
	NEIGHBOURS_MAX = 2048,
	/* Of them being asked for: what all programs may ask for (SHARE_neighbours) in the four
	 * seconds that a question's time touches, and a peer's requests. */
	NEIGHBOURS_ASKED_MAX = 1280,
	NEIGHBOURS_UNASKED_MAX = 256, /* of them learnt from strangers, and not looked up since */
	NEIGHBOUR_TRIES = 6,
	NEIGHBOUR_DOUBTS = 2,
	NEIGHBOUR_FIRST_WAIT_MS = 50, /* doubles with each try ... */
	NEIGHBOUR_WAIT_MS_MAX = 800,  /* ... up to this: 2.35 s in all */
	NEIGHBOUR_FRESH_MS = 30000,
	NEIGHBOUR_HOLD_MS = 1000, /* FAILED; and what was confirmed is not doubted for so long */
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
	bool unasked;	    /* learnt from a stranger's question, and not looked up since */
	uint16_t next;	    /* in its bucket: index + 1; 0: the last one */
	uint64_t learnt_ms; /* its MAC was last confirmed */
	uint64_t used_ms;   /* looked up, or created */
	uint64_t next_ms;   /* ASKED, STALE: when to ask again; FAILED: when to forget */
};

struct neighbours {
	unsigned int n_timed; /* entries in ASKED, STALE or FAILED */
	unsigned int failed;  /* times an entry went to FAILED; never reset */
	uint64_t due_ms;      /* no timer expires before */
	struct neighbour entry[NEIGHBOURS_MAX];
	uint16_t bucket[NEIGHBOURS_MAX]; /* of those that are not FREE, by address: index + 1 */
};

/*
 * 0: mac_out is set; -EAGAIN: asked or about to be; -EHOSTUNREACH: did not answer;
 * -ENOSPC: too many are waiting for an answer.
 */
int neighbour_find(struct neighbours *t, const uint8_t ip[16], uint64_t now_ms, uint8_t mac_out[6]);

/* Does ip have an entry, so that neighbour_find() would send no request for it? */
bool neighbour_has(struct neighbours *t, const uint8_t ip[16]);

/*
 * Somebody says that ip has mac. create: remember it even if it was not asked for. Returns true if
 * the table changed; false if it was known, not asked for, is still to be verified, or the table is
 * full.
 */
bool neighbour_learn(struct neighbours *t, const uint8_t ip[16], const uint8_t mac[6], bool create,
		     uint64_t now_ms);

/*
 * Steps the timers of entries *cursor onwards until one has to be asked for now, and returns it
 * (counted as asked); NULL when the table is through. Start with *cursor = 0, and go on until NULL.
 * Looks at no entry before the first timer expires: the caller may ask as often as it likes.
 */
const struct neighbour *neighbour_due(struct neighbours *t, unsigned int *cursor, uint64_t now_ms);

/* Forgets all neighbours but those being asked for. */
void neighbour_forget(struct neighbours *t);

#endif
