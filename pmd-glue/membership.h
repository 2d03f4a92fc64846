/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_MEMBERSHIP_H
#define PMD_GLUE_MEMBERSHIP_H
/*
 * The multicast groups that a port listens to, and when to inform routers and switches: the host
 * part of IGMPv3 (RFC 3376 5) and MLDv2 (RFC 3810 6), which differ only in their formats. All
 * groups are joined for any source. Sends nothing itself, has no clock: times are the caller's
 * milliseconds. Control thread.
 *
 * Joining and leaving is reported at once and, since reports may be lost, again within a second, as
 * often as the robustness says; queries are answered after a random delay, so that not all hosts
 * answer at the same time.
 */
#include <stdbool.h>
#include <stdint.h>

enum {
	MEMBERSHIP_ROBUSTNESS = 2,   /* reports of a change, unless a querier wants more */
	MEMBERSHIP_REPEAT_MS = 1000, /* most between two of them */
	MEMBERSHIP_RECORDS_MAX = 60, /* in one report: MLD's fit into 1280 bytes */
	MEMBERSHIP_LEFT_MAX = 1024,  /* left groups whose leaving is reported; others are discovered
					by the next query */
	MEMBERSHIP_GENERAL_MS = 100, /* least between two answers to general queries */
};

/* The same numbers in both protocols. */
enum membership_record_type {
	MEMBERSHIP_IS_EXCLUDE = 2, /* an answer: joined, for any source */
	MEMBERSHIP_TO_INCLUDE = 3, /* a change: left */
	MEMBERSHIP_TO_EXCLUDE = 4, /* a change: joined, for any source */
};

struct membership_record {
	uint8_t type; /* enum membership_record_type */
	uint8_t ip[16];
};

struct membership {
	uint8_t ip[16];	    /* IPv4 as ::ffff:a.b.c.d */
	uint32_t users;	    /* 0: left, which is still being reported */
	uint8_t changes;    /* reports of the last change still to send */
	uint64_t change_ms; /* when the next one is due */
	uint64_t answer_ms; /* when to answer a query for it; 0: none pending */
};

struct memberships {
	struct membership *entry;
	unsigned int count, room;
	unsigned int left;	 /* of them, without users */
	uint64_t general_ms[2];	 /* by family, [1] is IPv6: when to answer a general query; 0: none
					pending */
	uint64_t answered_ms[2]; /* when the last one was; 0: never */
	uint8_t robustness[2];	 /* 0: MEMBERSHIP_ROBUSTNESS */
	uint64_t next_ms;	 /* nothing is due before */
};

void membership_free(struct memberships *t);

/* Adds a user of a group. 0, -ENOMEM. *first: it is the first one. */
int membership_join(struct memberships *t, const uint8_t ip[16], uint64_t now_ms, bool *first);
/* Removes a user of a group that has some. True: it was the last one. */
bool membership_leave(struct memberships *t, const uint8_t ip[16], uint64_t now_ms);
/* The link has come up, perhaps to another peer: joins are reported anew. */
void membership_announce(struct memberships *t, uint64_t now_ms);

/* A query arrived. group: NULL if general. robustness: 0 if not given. delay_ms: answers are due
 * within that time. */
void membership_query(struct memberships *t, bool v6, const uint8_t *group, uint8_t robustness,
		      uint32_t delay_ms, uint64_t now_ms);

/*
 * What to report now for one family in one report (changes, or answers): fills up to
 * MEMBERSHIP_RECORDS_MAX and returns how many; 0: nothing more. Call it for both families until it
 * returns 0, which also determines when something will be due next. Cheap before next_ms.
 */
unsigned int membership_due(struct memberships *t, bool v6, uint64_t now_ms,
			    struct membership_record records[MEMBERSHIP_RECORDS_MAX]);

/* Is the group reported at all? Not if every node is in it, or if its packets do not leave the
 * node. */
bool membership_is_reported(const uint8_t ip[16]);

#endif
