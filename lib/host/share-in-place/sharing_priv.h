/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHARING_PRIV_H
#define SHARING_PRIV_H
/*
 * What the files of lib/host/share-in-place share. One lock for all of it: whoever calls a function of another
 * file holds it.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "share-in-place/sharing.h"
#include "vma.h"

enum {
	SHARING_PAGE = 4096,
	WINDOW_LOG = 40, /* bytes of the pool for each piece that is swapped */
	POOL_LOG = 62,	 /* bytes of the pool */
};
#define SHARING_CHUNK	(64ul << 20) /* most that is swapped in one stop of the other threads */
#define WINDOW_FILL_MAX (1ull << (WINDOW_LOG - 1)) /* the rest is for growing */

/* ---- pool.c: the file that swapped pages are in, and what of it is in use ---- */

struct pool {
	int fd, read_only_fd; /* -1: there is none */
	uint64_t device, inode;
};
extern struct pool pool;

/* A part of the pool. Parts do not overlap and lie in order of offset. */
struct part {
	uint64_t begin, end; /* offsets in the pool; of one window */
	uintptr_t addr;	     /* where begin was mapped at first */
	uint64_t since;	     /* when its last user left: counts such departures */
	uint32_t users;	     /* sharings that it belongs to */
	bool mapped;	     /* as far as parts_mark() was told */
	bool alias;	     /* constants or code: private again by a private mapping of the pool */
};
extern struct part *parts;
extern uint32_t part_count;

/* Parts without users. */
struct idle {
	uint64_t bytes;
	uint32_t parts; /* also read without the lock; atomic */
};
extern struct idle idle;

/* Makes the pool unless it is there. 0, -EFBIG, -errno. */
int pool_open(void);
/* RLIMIT_FSIZE, which may come later than the pool: beyond it what writes sends a signal. */
bool pool_limited(void);
/* Has the program closed our descriptors, as daemons close all? What has users stays shared. */
bool pool_lost(void);
/* In the child of a fork. */
void pool_forget(void);
static inline bool pool_has(const struct vma *v)
{
	return pool.fd >= 0 && v->shared && v->inode == pool.inode && v->device == pool.device;
}
/* A window that nothing uses: its offset. UINT64_MAX: none is left. */
uint64_t pool_window(void);
/* Room for a small piece that will not grow, next to other ones: few mappings, here and at the
 * other side. As pool_window(). */
uint64_t pool_common(uint64_t bytes);
/* Nothing maps it any more. Does not allocate: an allocator may be unmapping. */
void pool_window_free(uint64_t offset);
/* Room for n more parts. 0, -ENOMEM. */
int parts_reserve(uint32_t n);
/* A new part without users, or the growth of the one before. There is room for it. */
void part_add(uint64_t begin, uint64_t end, uintptr_t addr, bool alias);
/* Adds n to the users of [begin, end); what is in no part becomes one. There is room for three. */
void parts_use(uint64_t begin, uint64_t end, uintptr_t addr, int n);
void part_remove(uint32_t index);
/* Marks those that [begin, end) of one window shows, or their growth. */
void parts_mark(uint64_t begin, uint64_t end);
/* Other borders. */
void part_resize(struct part *p, uint64_t begin, uint64_t end);
/* Does the part at that offset, or the last before it in its window, say so? */
bool part_alias(uint64_t offset);

/* ---- swap.c ---- */

/* Swaps private pages of [at, end), whole pages of mapping v as far as it goes; *next: where it
 * ended. 0; -ESTALE: v is no more; -errno. */
int swap_in(const struct vma *v, uintptr_t at, uintptr_t end, uintptr_t *next);
/* Is something of [begin, end) of the pool mapped anywhere? `addr`: where to look first. */
bool swap_is_mapped(uint64_t begin, uint64_t end, uintptr_t addr);
/* Sets `mapped` of all parts, by one look at all mappings: munmap() waits for it. */
void swap_mark(void);
/* Frees [begin, end) of the pool: it reads as zeroes. */
void swap_punch(uint64_t begin, uint64_t end);
/* Makes the pages of a part private, wherever they are mapped. False: some are still shared. */
bool swap_out(const struct part *part, uint64_t limit);
/* The same where the pool has no descriptor any more. */
void swap_out_lost(const struct part *part, uint64_t limit);
/* In the child of a fork: what a mapping of the pool shows becomes private, at one blow: what
 * reads it meanwhile sees no difference. `lost`: the pool has no descriptor any more. 0,
 * -errno. */
int swap_out_child(const struct vma *v, bool lost);
/* Is something of [at, end) the stack that we run on now, or the thread's descriptor? */
bool swap_is_ours(uintptr_t at, uintptr_t end);
/* Does something of [at, end) lie in this thread's stack, or close to it? */
bool swap_is_stack(uintptr_t at, uintptr_t end);

/* ---- file.c ---- */

/* A descriptor of the file of a shared mapping, if it lies in memory. *log_page: of its pages. 0,
 * -EOPNOTSUPP. */
int file_open(const struct vma *v, bool write, int *fd, uint8_t *log_page);

/* Of the System V segment that it shows, whole pages; 0: it shows none. */
uint64_t file_segment_bytes(const struct vma *v);

/* ---- sharing.c ---- */

extern struct sharing *sharings;
/* Bytes that may stay shared without users; 0: none, as where interpose.c is not in effect. Tests
 * set it. */
extern uint64_t sharing_keep_max;
/* Makes private what has no users. */
void sharing_reclaim(void);
/* The program has unmapped [at, at + bytes), perhaps shared memory without users: frees it. Neither
 * waits for the lock nor allocates: whoever calls may be an allocator. */
void sharing_unmapped(const void *at, size_t bytes);
void sharing_lock(void);
void sharing_unlock(void);
void sharing_lock_reset(void);

/* ---- interpose.c ---- */

/* Does what the program calls by the names of libc's functions come by here? */
bool interposed(void);

/* ---- fork.c ---- */

/* Once, when something is shared for the first time at the latest. */
void fork_watch(void);

#endif
