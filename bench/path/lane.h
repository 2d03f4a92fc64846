/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PATH_LANE_H
#define PATH_LANE_H
/*
 * The soak's book-keeping: one lane is one direction of one queue pair. Operation n of a lane owns
 * slot n % LANE_WINDOW of the requester ("mine": what it sends, or what a READ returns) and of the
 * other side ("theirs": where a WRITE lands, or what a READ fetches); the k-th operation that takes
 * a receive lands in receive slot k % LANE_WINDOW. A slot is used again when all completions of its
 * operation were seen and its data checked.
 */
#include <stdint.h>
#include "session.h"

enum {
	LANE_WINDOW = 8,
	LANE_OFFSETS = 64, /* data begin at a random byte of the slot's first line */
	LANE_BYTES_MAX = 1 << 20,
	LANE_SLOT_BYTES = LANE_BYTES_MAX + LANE_OFFSETS,
	LANE_REGION_BYTES = LANE_WINDOW * LANE_SLOT_BYTES,
	LANE_WORDS_BYTES = 64, /* words that atomics change */
	LANE_AREA_BYTES = (3 * LANE_REGION_BYTES + LANE_WORDS_BYTES) / 2, /* session's half */
};

struct lane_op {
	enum kind kind;
	uint32_t size, offset;
	uint64_t key;
	uint64_t expected; /* atomics: the value that must be found */
	uint64_t operand;
	unsigned left; /* completions still to come; 0: the slot is free */
};

struct lane {
	struct session *s;
	uint32_t qp;
	unsigned direction;
	struct side *source_side, *sink_side;
	struct end *source, *sink;
	struct lane_op ops[LANE_WINDOW];
	uint64_t posted, completed;
	uint64_t takers, received;	      /* operations that take a receive: posted, received */
	uint64_t taker[LANE_WINDOW];	      /* their numbers */
	uint64_t receives;		      /* receive requests posted */
	uint64_t compared, added;	      /* what the two words must hold */
	uint64_t per_kind[KIND_COUNT], bytes; /* completed */
};

void lane_init(struct lane *l, struct session *s, uint32_t qp, unsigned direction);

/* Posts receive requests up to the window. 0 or -1. */
int lane_post_receives(struct lane *l);

/* Posts up to n random operations in one chain; *random is the generator's state. How many, or -1.
 */
int lane_post(struct lane *l, unsigned n, uint64_t *random);

/* A completion of the source's CQ, of the sink's CQ: checked against what was posted. 0 or -1. */
int lane_completed(struct lane *l, const struct softhca_wc *wc);
int lane_received(struct lane *l, const struct softhca_wc *wc);

/* After the last completion: do the words hold what was added and swapped? 0 or -1. */
int lane_check_words(const struct lane *l);

#endif
