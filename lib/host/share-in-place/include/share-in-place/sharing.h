/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHARING_SHARING_H
#define SHARING_SHARING_H
/*
 * Makes memory of this process shareable with another, in place: what any pointer of the program
 * points to. One state for the whole process, however many contexts and devices use it; any thread
 * may call; nothing here knows of the daemon.
 *
 * Memory that is private to the process (heap, mmap, .data, stacks, private file mappings) is
 * swapped: its pages move into a file in memory (the pool: one memfd for the process, sealed
 * against shrinking and growing, 2^62 bytes of which only what is used exists) and are mapped
 * shared at the same addresses. Each swapped piece has a window of 2^40 bytes of the pool to
 * itself: a mapping that is grown by mremap() grows into emptiness, neither past the end of the
 * file nor into another's pages. Memory that is shared already is passed on as it is; if it is
 * anonymous it must have been mapped through this library's mmap() (interpose.c), or root asks.
 *
 * What the program sees of it
 *  - contents and protection stay; whole pages are shared, so objects beside the registered ones
 *    are reachable for the daemon, too, but not for peers.
 *  - no store of another thread is lost: those threads are stopped for the moment in which pages
 *    are copied (stop.h). System calls in which they sleep go on or return EINTR, as with any
 *    signal.
 *  - pages that nobody shares any more stay in the pool for the next time, since copying them back
 *    takes as long as copying them here: an eighth of the machine's memory at most, and 1024
 *    pieces; the oldest become private again first, and all of them do before a fork(), and those
 *    of a stack at once. What the program unmaps is freed with it; where the C library unmaps for
 *    it (free() of large memory), with the next call here after a second. Nothing is kept where
 *    this library's functions do not stand in front of libc's (interpose.c).
 *  - what the program has moved is found; what it has unmapped or mapped anew is left alone.
 *  - MADV_DONTNEED, MADV_FREE and MREMAP_DONTUNMAP give fresh pages, and an MR keeps those that
 *    it had, as on any HCA. Other flags of madvise() and memory policies are lost; mlock is done
 *    again.
 *  - private huge pages (MAP_HUGETLB) become ordinary ones, and stay so; shared ones stay.
 *  - pages that the kernel or another driver has pinned (O_DIRECT, io_uring buffers, another RDMA
 *    device) stay with it: what it writes there later is not seen.
 *  - fork(): the child has its own copy of everything, made at the time of the fork (see below).
 *
 * fork(). A child must not share memory with its parent that the program takes for private; and
 * the parent must go on sharing with the daemon. So the child makes all pool memory that it has
 * private before anything else of it runs, and no thread of the parent runs meanwhile: the system
 * call that makes the child is caught (trap.h says how and why there), the other threads are
 * stopped, parent and child stay on a stack of their own until the child has its copies. What it
 * gets is what was there at the fork, in all pages; what its C library stores for it comes after.
 * This costs the copying of all shared memory while the parent stands (about 1 s of a processor
 * per GB), and nothing where nothing is shared. A child that cannot copy ends itself (127): to go
 * on would be to store into its parent's memory. vfork() and posix_spawn() need nothing; a raw
 * clone() without CLONE_VM, or _Fork(), shares the pages, those that are kept, too.
 *  - the thread's descriptor is private in both from before the call, since the kernel stores
 *    there. Afterwards its bytes that are not registered go back to the pool. Which processor it
 *    runs on (rseq) may be out of date there until its next interruption.
 *  - a thread that does not stop (10 s, as in vfork() of a program that does not start) goes on,
 *    and what it stores meanwhile may be in the child or not.
 *  - a debugger sees a SIGSYS for each fork (gdb: handle SIGSYS nostop noprint).
 *
 * Where calls cannot be caught (before Linux 5.11, other processors than x86-64, or a handler that
 * runs before the fork creates a thread), handlers of pthread_atfork() do what they can:
 *  - other threads run on: what they store before the child has copied may be in the child or not.
 *  - the thread's stack is private in both from before the fork until after it (MAP_PRIVATE of the
 *    same pool pages: no content changes hands). Afterwards registered bytes are taken from the
 *    pool, where the daemon may have written, the others from the parent's copies. So frames that
 *    live in registered bytes are lost: no fork() then on a stack that is registered as a whole.
 *  - before the child's first handler its C library has written into its parent's memory where
 *    that is shared: into arenas of the allocator and descriptors of other threads. If a thread
 *    registered what lies beside either, the parent may end with an assertion of malloc's.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

/* One file's part of the memory asked for. */
struct sharing_piece {
	uintptr_t addr;
	size_t bytes;
	uint64_t offset; /* of addr in the file */
	uint64_t device, inode;
	/* 0: a file. Else `inode` is the number of a System V segment of so many bytes, which the
	 * other side has to attach: it has no descriptor, and `device` is the same for all. */
	uint64_t segment_bytes;
	int fd;	    /* -1: there is none, or no more */
	bool owned; /* to be closed by sharing_close_files(); else it is the pool's */
	uint8_t log_page;
};

/* What sharing_get() gave. Pages [addr, addr + bytes) hold what was asked for; pieces lie in order
 * and without gaps. Read only. */
struct sharing {
	uintptr_t addr;
	size_t bytes;
	bool writable;	  /* the process itself may write all of it; descriptors may be written */
	uint8_t log_page; /* of the largest pages */
	unsigned int count;
	struct sharing_piece *pieces;

	/* the module's */
	uintptr_t first;
	size_t length;
	struct sharing *next, *prev;
};

/*
 * Shares [addr, addr + length). `write`: the other side shall write, too. *out is the caller's
 * until sharing_put(). 0; -EINVAL (no bytes, beyond the address space); -EFAULT (not mapped, not
 * readable, or not writable with `write`); -EOPNOTSUPP (a shared mapping of a file on a disk or of
 * a device, or shared memory whose file cannot be found: not by map_files (root), nor among the
 * descriptors, nor by its path, and that is no System V segment); -EAGAIN (a thread does not stop);
 * -EFBIG (RLIMIT_FSIZE); -ENOMEM; -errno of memfd_create() and open().
 */
int sharing_get(const void *addr, size_t length, bool write, struct sharing **out);

/* Closes descriptors that are not the pool's: the other side has them now. */
void sharing_close_files(struct sharing *s);

/* Nobody else uses it any more. What no other sharing covers may become private again. NULL is
 * allowed. */
void sharing_put(struct sharing *s);

/*
 * A thread of the library that sleeps in poll() and does nothing else need not be stopped: it
 * declares itself with sharing_worker_enter() (false: no room, it is stopped like any other),
 * calls sharing_worker_sleeps() before and sharing_worker_wakes() after, and touches nothing but
 * its own stack in between. _wakes() waits while pages are being swapped.
 */
struct sharing_worker;
struct sharing_worker *sharing_worker_enter(void);
void sharing_worker_leave(struct sharing_worker *w);
void sharing_worker_sleeps(struct sharing_worker *w);
void sharing_worker_wakes(struct sharing_worker *w);

#endif
