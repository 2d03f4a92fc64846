/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHARING_SHARING_H
#define SHARING_SHARING_H
/*
 * Makes any memory of this process shareable with another, in place: whatever a pointer of the
 * program refers to. There is one state per process, however many contexts and devices use it. Any
 * thread may call. Nothing here knows of the daemon.
 *
 * Memory that is private to the process (heap, mmap, .data, stacks, private file mappings) is
 * swapped: its pages move into the pool (one memfd per process, sealed against shrinking and
 * growing, sparse, 2^62 bytes long) and are mapped shared at the same addresses. Each swapped piece
 * has a window of 2^40 bytes of the pool to itself, so that a mapping grown by mremap() grows into
 * empty space, neither past the end of the file nor into another's pages. Memory that is shared
 * already is passed on as it is; if it is anonymous it must have been mapped through this library's
 * mmap() (interpose.c), or the process must be root's.
 *
 * What the program notices
 *  - Contents and protection stay the same. Whole pages are shared, so objects next to registered
 *    ones are also reachable by the daemon, but not by peers.
 *  - No store of another thread is lost: other threads are stopped while pages are copied (stop.h).
 *    System calls in which they sleep continue or return EINTR, as after any signal.
 *  - Pages that are no longer shared stay in the pool for the next registration, since copying them
 *    back costs as much as copying them here: at most an eighth of the machine's memory and 1024
 *    pieces. The oldest become private again first; all do before a fork(), those of a stack at
 *    once. What the program unmaps is freed with it; what the C library unmaps (free() of large
 *    memory) is freed by the next call here after a second. Nothing is kept in programs where this
 *    library's functions do not come before libc's (interpose.c).
 *  - Descriptors of the pool stay open, as does one of /proc/self/maps where the kernel can be
 *    asked for a single mapping. The program may close them.
 *  - Memory that the program has moved is found; what it has unmapped or mapped anew is not
 *    touched.
 *  - MADV_DONTNEED, MADV_FREE and MREMAP_DONTUNMAP give fresh pages, while an MR keeps the pages it
 *    had, as on any HCA. Other madvise() flags and memory policies are lost; mlock is repeated.
 *  - Private huge pages (MAP_HUGETLB) become ordinary ones for good; shared ones stay as they are.
 *  - Pages pinned by the kernel or another driver (O_DIRECT, io_uring buffers, another RDMA device)
 *    stay with it: what it writes there later is not seen.
 *  - fork(): the child has its own copy of everything, as of the moment of the fork (see below).
 *
 * fork(). A child must not share memory with its parent that the program believes to be private,
 * and the parent must continue sharing with the daemon. So the child makes all its pool memory
 * private before it runs anything else, and no thread of the parent runs meanwhile: the system call
 * that makes the child is caught (trap.h says how, and why there), the other threads are stopped,
 * and parent and child stay on separate stacks until the child has its copies. The child gets
 * all pages as they were at the fork; what its C library stores for it comes later. The cost is
 * copying all shared memory while the parent waits (about 1 s of CPU time per GB), and nothing if
 * nothing is shared. A child that cannot copy exits (127), since it would otherwise store into its
 * parent's memory. vfork() and posix_spawn() need nothing; a raw clone() without CLONE_VM, or
 * _Fork(), shares the pages, including those that are only kept.
 *  - The thread descriptor is private in both from before the call, since the kernel stores there.
 *    Afterwards its unregistered bytes return to the pool. The CPU number in it (rseq) may be stale
 *    until the thread's next interruption.
 *  - A thread that does not stop (10 s, as in vfork() of a program that does not start) runs on,
 *    and the child may or may not have what it stores meanwhile.
 *  - A debugger sees a SIGSYS for each fork (gdb: handle SIGSYS nostop noprint).
 *
 * Where the call cannot be caught (before Linux 5.11, not on x86-64, or if a handler that runs
 * before the fork creates a thread), handlers of pthread_atfork() do what they can:
 *  - Other threads run on: the child may or may not have what they store before it has copied.
 *  - The thread's stack is private in both from before the fork until after it (MAP_PRIVATE of the
 *    same pool pages, so no contents move). Afterwards registered bytes are taken from the pool,
 *    where the daemon may have written, the others from the parent's copies. So frames in
 *    registered bytes are lost: do not fork() on a stack that is registered as a whole.
 *  - Before the child's first handler runs, its C library has written into its parent's memory
 *    where that is shared: into the allocator's arenas and descriptors of other threads. If memory
 *    next to either is registered, the parent may die of one of malloc's assertions.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

/* The part of the shared memory that lies in one file. */
struct sharing_piece {
	uintptr_t addr;
	size_t bytes;
	uint64_t offset; /* of addr in the file */
	uint64_t device, inode;
	/* 0: a file. Else `inode` is the id of a System V segment of this size, which the other
	 * side has to attach: it has no descriptor, and `device` is the same for all. */
	uint64_t segment_bytes;
	/* The next memory that is swapped will lie this many bytes further on in the file, or
	 * behind what lies there already; 0: the file is not the pool. */
	uint64_t stride;
	int fd;	    /* -1: none, or closed */
	bool owned; /* sharing_close_files() closes it; else it is the pool's */
	uint8_t log_page;
};

/* The result of sharing_get(). Pages [addr, addr + bytes) hold the requested range; pieces are in
 * order and without gaps. Read only. */
struct sharing {
	uintptr_t addr;
	size_t bytes;
	bool writable;	  /* the process may write all of it; descriptors are writable */
	uint8_t log_page; /* of the largest pages */
	unsigned int count;
	struct sharing_piece *pieces;

	/* private to the module */
	uintptr_t first;
	size_t length;
	struct sharing *next, *prev;
};

/*
 * Shares [addr, addr + length). `write`: the other side may write, too. *out is the caller's until
 * sharing_put(). 0; -EINVAL (no bytes, beyond the address space); -EFAULT (not mapped, not
 * readable, or not writable with `write`); -EOPNOTSUPP (a shared mapping of a file on disk or of a
 * device, or shared memory, not a System V segment, whose file is found neither by map_files
 * (root), nor among the descriptors, nor by its path); -EAGAIN (a thread does not stop); -EFBIG
 * (RLIMIT_FSIZE);
 * -ENOMEM; -errno of memfd_create() and open().
 */
int sharing_get(const void *addr, size_t length, bool write, struct sharing **out);

/* sharing_get() calls it with the number of requested bytes that it has shared: 0 at first, then
 * after each 64 MiB or less that it had to copy, and all of them at the end, even if it fails. The
 * module is locked during the call; other threads run. Set it before memory is shared; NULL: no
 * reports. */
extern void (*sharing_progress)(uint64_t done, uint64_t all);

/* Closes descriptors other than the pool's, once the other side has them. */
void sharing_close_files(struct sharing *s);

/* Ends the sharing. Memory in no other sharing may become private again. NULL is allowed. */
void sharing_put(struct sharing *s);

/*
 * A thread of the library that only sleeps in poll() need not be stopped: it registers with
 * sharing_worker_enter() (false: no room, it is stopped like any other), calls
 * sharing_worker_sleeps() before and sharing_worker_wakes() after, and touches only its own stack
 * in between. _wakes() waits while pages are being swapped.
 */
struct sharing_worker;
struct sharing_worker *sharing_worker_enter(void);
void sharing_worker_leave(struct sharing_worker *w);
void sharing_worker_sleeps(struct sharing_worker *w);
void sharing_worker_wakes(struct sharing_worker *w);

#endif
