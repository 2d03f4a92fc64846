/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERDICT_H
#define VERDICT_H
/*
 * The outcomes of changes that take longer than the turn in which they were requested: an HCA that
 * is added, a file that is read again. Each has a ticket, by which a waiting client finds its own
 * verdict, whatever others have requested since. Control thread.
 */
#include <stdint.h>

enum { VERDICTS = 16, VERDICT_BYTES = 480 };

struct verdict {
	uint32_t ticket; /* 0: nobody waits for it */
	int error;
	char text[VERDICT_BYTES];
};

struct verdicts {
	uint32_t tickets;	       /* given out */
	struct verdict going;	       /* the change that goes on: one at a time */
	struct verdict over[VERDICTS]; /* the last ones, by ticket */
};

/* A change begins that will be described by `text` if nothing fails. Its ticket, never 0. */
uint32_t verdict_begin(struct verdicts *v, const char *text);
/* Part of the change that goes on, if any, has failed; the first failure counts. */
void verdict_fail(struct verdicts *v, int error, const char *text);
/* The change that goes on, if any, is over. */
void verdict_end(struct verdicts *v);
/* The verdict, with its text. 0; -EAGAIN: it goes on; another -errno: it failed, or (-EIO) so many
 * others have been asked for since that it has been forgotten. */
int verdict_of(const struct verdicts *v, uint32_t ticket, char *text, unsigned bytes);

#endif
