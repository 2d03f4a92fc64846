/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHARING_PRIV_H
#define SHARING_PRIV_H
/*
 * What the files of lib/host/share-in-place share. One lock for all of it, which callers of another
 * file's functions hold.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "share-in-place/sharing.h"
#include "vma.h"

enum {
	SHARING_PAGE = 4096,
	WINDOW_LOG = 40, /* bytes of the pool per swapped piece */
	POOL_LOG = 62,	 /* bytes of the pool */
};
#define SHARING_CHUNK	(64ul << 20) /* most swapped in one stop of the other threads */
#define WINDOW_FILL_MAX (1ull << (WINDOW_LOG - 1)) /* the rest is room to grow */

/* ---- pool.c: the file of swapped pages, and its parts in use ---- */

struct pool {
	int fd, read_only_fd; /* -1: none */
	uint64_t device, inode;
};
extern struct pool pool;

/* A part of the pool. Parts do not overlap and lie in order of offset. */
struct part {
	uint64_t begin, end; /* offsets in the pool; of one window */
	uintptr_t addr;	     /* where begin was first mapped */
	uint64_t since;	     /* when its last user left, in departures */
	uint32_t users;	     /* sharings with this part */
	bool mapped;	     /* as parts_mark() found */
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

/* Creates the pool unless it exists. 0, -EFBIG, -errno. */
int pool_open(void);
/* RLIMIT_FSIZE, possibly set after the pool was created: a write beyond it raises a signal. */
bool pool_limited(void);
/* Has the program closed our descriptors, as a program does that becomes a daemon? Parts with users
 * stay shared. */
bool pool_lost(void);
/* In the child of a fork. */
void pool_forget(void);
static inline bool pool_has(const struct vma *v)
{
	return pool.fd >= 0 && v->shared && v->inode == pool.inode && v->device == pool.device;
}
/* Allocates a window. Returns its offset, UINT64_MAX: none is left. */
uint64_t pool_window(void);
/* Allocates room for a small piece that will not grow, next to others: that takes fewer mappings,
 * here and at the other side. As pool_window(). */
uint64_t pool_common(uint64_t bytes);
/* Nothing maps it any more. Does not allocate: the caller may be an allocator. */
void pool_window_free(uint64_t offset);
/* Reserves room for n more parts. 0, -ENOMEM. */
int parts_reserve(uint32_t n);
/* Adds a part without users, or grows the preceding one. There is room for it. */
void part_add(uint64_t begin, uint64_t end, uintptr_t addr, bool alias);
/* Adds n to the users of [begin, end); gaps become parts. There is room for three. */
void parts_use(uint64_t begin, uint64_t end, uintptr_t addr, int n);
void part_remove(uint32_t index);
/* Marks the parts that a mapping of [begin, end), in one window, shows. */
void parts_mark(uint64_t begin, uint64_t end);
/* Changes its bounds. */
void part_resize(struct part *p, uint64_t begin, uint64_t end);
/* `alias` of the part at that offset, or of the last one before it in its window. */
bool part_alias(uint64_t offset);

/* ---- sharing.c ---- */

/* Reports that everything up to that address has been swapped. */
void sharing_reached(uintptr_t at);

/* ---- swap.c ---- */

/* Swaps the private pages of [at, end), whole pages of mapping v, as far as that extends; *next:
 * where it stopped. 0; -ESTALE: v no longer exists; -errno. */
int swap_in(const struct vma *v, uintptr_t at, uintptr_t end, uintptr_t *next);
/* Is any of [begin, end) of the pool mapped? `addr`: where to look first. */
bool swap_is_mapped(uint64_t begin, uint64_t end, uintptr_t addr);
/* Sets `mapped` of all parts in one pass over all mappings: munmap() waits for it. */
void swap_mark(void);
/* Frees [begin, end) of the pool: it reads as zeroes. */
void swap_punch(uint64_t begin, uint64_t end);
/* Makes the pages of a part private, wherever they are mapped. False: some are still shared. */
bool swap_out(const struct part *part, uint64_t limit);
/* The same for a pool that has lost its descriptor. */
void swap_out_lost(const struct part *part, uint64_t limit);
/* In the child of a fork: makes what a mapping of the pool shows private, atomically, so that
 * readers see no difference. `lost`: the pool has no descriptor. 0, -errno. */
int swap_out_child(const struct vma *v, bool lost);
/* Does [at, end) contain part of the stack that we run on now, or the thread's descriptor? */
bool swap_is_ours(uintptr_t at, uintptr_t end);
/* Does [at, end) contain part of this thread's stack, or come close to it? */
bool swap_is_stack(uintptr_t at, uintptr_t end);

/* ---- file.c ---- */

/* Returns a descriptor of a shared mapping's file, if that is in memory. *log_page: of its pages.
 * 0,
 * -EOPNOTSUPP. */
int file_open(const struct vma *v, bool write, int *fd, uint8_t *log_page);

/* Bytes of the System V segment that v shows, whole pages; 0: none. */
uint64_t file_segment_bytes(const struct vma *v);

/* ---- sharing.c ---- */

extern struct sharing *sharings;
/* Bytes that may stay shared without users; 0 (none) where interpose.c is not in effect. Tests set
 * it. */
extern uint64_t sharing_keep_max;
/* Makes parts without users private. */
void sharing_reclaim(void);
/* The program has unmapped [at, at + bytes), perhaps shared memory without users: frees it. Neither
 * waits for the lock nor allocates: the caller may be an allocator. */
void sharing_unmapped(const void *at, size_t bytes);
void sharing_lock(void);
void sharing_unlock(void);
void sharing_lock_reset(void);

/* ---- interpose.c ---- */

/* Are the program's calls of libc's functions routed through this library? */
bool interposed(void);

/* ---- fork.c ---- */

/* Called at the latest when something is first shared. */
void fork_watch(void);

#endif
