/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef POST_WAY_H
#define POST_WAY_H
/*
 * The ways in which a program posts and polls: libsofthca's calls, libibverbs' that match them. Each
 * has a queue pair of its own, connected to one on the other HCA that does nothing but receive
 * WRITEs.
 *
 * A turn of a way: post() a burst, wait until poll() has taken all of it. So at most BURST requests
 * are outstanding, and neither the send queue nor the CQ can overflow.
 */
#include <stdbool.h>
#include <stdint.h>

enum {
	BURST = 32,	    /* requests of a turn, each signaled */
	BYTES = 64,	    /* of a message */
	QUEUE = 4 * BURST,  /* entries of the send queue and of the CQ */
	EMPTY_POLLS = 4096, /* per sample: long enough for what a poll does only now and then */
};

/* How a burst is posted. */
enum form {
	FORM_LIST, /* in one call or batch */
	FORM_LIST_INLINE,
	FORM_SINGLE, /* each in one of its own */
	FORM_SINGLE_INLINE,
	FORMS
};

static inline bool form_is_single(enum form f)
{
	return f == FORM_SINGLE || f == FORM_SINGLE_INLINE;
}

static inline bool form_is_inline(enum form f)
{
	return f == FORM_LIST_INLINE || f == FORM_SINGLE_INLINE;
}

struct way {
	const char *post_calls, *poll_calls; /* as the table names them */
	uint8_t *from;			     /* BURST messages of BYTES each ... */
	const volatile uint8_t *to;	     /* ... and where they arrive */
	void *ends;			     /* the queue pairs, of the file's own type */
	/* Connects it, from `device` to `peer`. 0, or -1: said on stderr. */
	int (*open)(struct way *w, const char *device, const char *peer);
	/* Posts a burst. 0 or an error of the calls; the cycles that they took in *cycles. */
	int (*post)(const struct way *w, enum form form, uint64_t *cycles);
	/* Polls once for up to n completions. Returns how many it took, -1: one had an error. */
	int (*poll)(const struct way *w, int n, uint64_t *cycles);
	/* Polls the empty CQ EMPTY_POLLS times. Cycles of all. */
	uint64_t (*poll_empty)(const struct way *w);
};

extern struct way native_list, native_batch; /* native.c */
extern struct way verbs_list, verbs_batch;   /* verbs.c */

/* Prints "softhca-post: what: error" with errno's text and returns -1. */
int way_fail(const char *what, int error);

#endif
