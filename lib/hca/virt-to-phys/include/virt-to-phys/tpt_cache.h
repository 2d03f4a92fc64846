/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VIRT_TO_PHYS_TPT_CACHE_H
#define VIRT_TO_PHYS_TPT_CACHE_H
/*
 * The cache of MPT or MTT entries (doc/virt-to-phys.md#tpt-cache): two ways, LRU, write-back,
 * write-allocate. The three steps of the design are three functions: look-up (tpt_take() or, for
 * readers, tpt_read()), match and update, select and replace. A refill is a write of what memory
 * holds.
 *
 * Any lcore, without locks. A set has a sequence number. Readers check it before and after: if it
 * is even and unchanged, what they read is consistent. A writer (refill, CEU write, write-back of a
 * victim) takes the set first, by making the number odd; others that find it odd retry later:
 * nothing here waits. Only the holder of a set accesses the memory (ICM) of entries that map to it,
 * which keeps cache and memory coherent.
 *
 * The holder of a set copies at most three lines (in, out, the victim's to memory), calls nothing
 * that blocks and holds no other set: it takes three DRAM accesses, about half a microsecond,
 * unless the holder is preempted. So the data path does not wait for it: the request scheduler
 * keeps the request (V2P_PENDING), to be repeated at the next poll. Only the control thread waits,
 * and a fast registration of scattered pages once it has begun to write them (windows.c).
 *
 * Headers and lines are separate: a hit costs one line of headers (four sets) and the entry's own.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/counters.h"
#include "virt-to-phys/tpt_metadata.h"

enum { TPT_WAYS = 2, TPT_VALID = 1, TPT_DIRTY = 2, TPT_TAG_SHIFT = 2, TPT_WORDS_MAX = 8 };

/* All fields are atomic. */
struct tpt_set {
	uint32_t seq;		/* odd: held */
	uint32_t tag[TPT_WAYS]; /* line number << TPT_TAG_SHIFT | TPT_VALID | TPT_DIRTY */
	uint32_t recent;	/* way used last; any reader may write it, when it changes */
};

struct tpt_cache {
	struct tpt_set *sets;
	uint64_t *lines; /* set by set, way by way; words are atomic */
	uint32_t set_mask;
	uint8_t ways;	   /* 2; 1 if there is one line in all */
	uint8_t words;	   /* of 8 bytes in a line */
	uint8_t log_group; /* entries in a line */
	const struct tpt_table *table;
	void *memory;	     /* that sets and lines lie in */
	size_t mapped_bytes; /* 0: it is EAL's */
};

enum tpt_result {
	TPT_HIT,
	TPT_MISS,
	TPT_BUSY,    /* another lcore holds the set */
	TPT_NOWHERE, /* no page of ICM is mapped there */
};

/* A set that is held: the row of the look-up. */
struct tpt_hold {
	const struct tpt_cache *cache;
	struct tpt_set *set;
	struct counters *counters; /* of the holder; NULL: nothing is counted */
	uint32_t line;
	int way; /* where the line is; -1: miss */
};

/* Makes an empty cache of `lines` (a power of two) in front of the table. A large one lies in
 * memory that the kernel may give in huge pages, if EAL has none. 0 or -ENOMEM. */
int tpt_cache_create(struct tpt_cache *c, const char *name, uint32_t lines, uint8_t words,
		     const struct tpt_table *table, int socket);
void tpt_cache_destroy(struct tpt_cache *c);

static inline uint64_t *tpt_line(const struct tpt_cache *c, uint32_t set, unsigned way)
{
	return c->lines + ((size_t)set * TPT_WAYS + way) * c->words;
}

/* The tag that a valid, dirty line has; compare with tag | TPT_DIRTY. */
static inline uint32_t tpt_tag(uint32_t line)
{
	return line << TPT_TAG_SHIFT | TPT_VALID | TPT_DIRTY;
}

/* The way that holds the line, -1: none. */
static inline int tpt_way(const struct tpt_set *s, uint32_t line)
{
	uint32_t tag = tpt_tag(line);

	if ((__atomic_load_n(&s->tag[0], __ATOMIC_ACQUIRE) | TPT_DIRTY) == tag)
		return 0;
	return (__atomic_load_n(&s->tag[1], __ATOMIC_ACQUIRE) | TPT_DIRTY) == tag ? 1 : -1;
}

static inline void tpt_used(struct tpt_set *s, uint32_t way)
{
	if (__atomic_load_n(&s->recent, __ATOMIC_RELAXED) != way)
		__atomic_store_n(&s->recent, way, __ATOMIC_RELAXED);
}

/* Reads without holding: TPT_HIT and the line, TPT_MISS, TPT_BUSY (also if it changed during the
 * read). */
enum tpt_result tpt_read(const struct tpt_cache *c, uint32_t line, uint64_t *out);

/* Look-up: takes the line's set. False: busy. True: call tpt_release() soon. */
bool tpt_take(const struct tpt_cache *c, uint32_t line, struct counters *counters,
	      struct tpt_hold *hold);
void tpt_release(struct tpt_hold *hold);

/* Match: TPT_HIT: out is the cached line; TPT_MISS: out is from memory, nothing was filled;
 * TPT_NOWHERE. */
enum tpt_result tpt_match(struct tpt_hold *hold, uint64_t *out);
/* Update: a write hit changes the line and makes it dirty. The hold is a hit. */
void tpt_update(struct tpt_hold *hold, const uint64_t *words);
/* Select and replace: a write miss (dirty) or a refill puts the line into the way that is free or
 * least recently used; a dirty victim is written back. The hold is a miss, then a hit. */
void tpt_replace(struct tpt_hold *hold, const uint64_t *words, bool dirty);

/* Write hit or write miss of a whole line. */
static inline void tpt_write(struct tpt_hold *hold, const uint64_t *words)
{
	if (hold->way >= 0)
		tpt_update(hold, words);
	else
		tpt_replace(hold, words, true);
}

/* Drops the lines of entries [first, first + count) without writing them back: their memory has
 * been unmapped. Their contents are cleared. Control thread; waits for sets that are held. */
void tpt_drop(struct tpt_cache *c, uint32_t first, uint32_t count);

#endif
