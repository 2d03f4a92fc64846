/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens at fork(), see sharing.h: all of it in place of the system call that makes the
 * child, if that can be caught (trap.h); else in handlers of pthread_atfork(), as far as possible
 * there. The lock is held from the first to the last handler.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "action.h"
#include "sharing_priv.h"
#include "stop.h"
#include "sys.h"
#include "trap.h"

enum {
	ASIDE_MAX = 64,
	TLS_BYTES = 8192,
	FRAME_BELOW = 64 << 10,
	FRAME_ABOVE = 1 << 20,
	LOOK_AGAIN_NS = 10 * 1000 * 1000, /* interval of checks that the child lives */
};

/* Pages that both parent and child store into at once: private from before the fork until after
 * it. */
static struct vma aside[ASIDE_MAX];
static unsigned int aside_count;
static uint32_t *child_done; /* shared with the child: a futex, nonzero once it has its copies */
static int child_alive[2];   /* without a trap: a pipe that closes when it has them, or dies */
static bool active, trapped; /* something is shared; the trap was set */
static bool caught;	     /* and caught the call */
static uint64_t mask;	     /* of the forking thread */
static struct vma_reader reader;

/* ---- before ---- */

static void set_aside(uintptr_t at, uintptr_t end)
{
	struct vma v;

	if (vma_open(&reader))
		return;
	for (; at < end && aside_count < ASIDE_MAX && vma_find(&reader, at, &v); at = v.end) {
		if (v.start >= end)
			break;
		if (!pool_has(&v))
			continue;
		if (v.start < at) {
			v.offset += at - v.start;
			v.start = at;
		}
		v.end = v.end < end ? v.end : end;
		if (sys6(SYS_mmap, (long)v.start, (long)(v.end - v.start), v.protection,
			 MAP_PRIVATE | MAP_FIXED, pool.fd, (long)v.offset) >= 0)
			aside[aside_count++] = v;
	}
	vma_close(&reader);
}

static uintptr_t page_of(uintptr_t addr)
{
	return addr & ~(uintptr_t)(SHARING_PAGE - 1);
}

/* The thread's descriptor: the kernel stores there, and so does the C library. */
static void set_descriptor_aside(void)
{
	const uintptr_t self = (uintptr_t)pthread_self();

	set_aside(page_of(self - TLS_BYTES), page_of(self + TLS_BYTES));
}

/* The call cannot be caught: parent and child will both run on this thread's stack. */
static void set_stack_aside(uintptr_t sp)
{
	pthread_attr_t attr;
	void *at = NULL;
	size_t bytes = 0;

	if (pipe2(child_alive, O_CLOEXEC))
		child_alive[0] = child_alive[1] = -1;
	if (pthread_getattr_np(pthread_self(), &attr) == 0) {
		pthread_attr_getstack(&attr, &at, &bytes);
		pthread_attr_destroy(&attr);
	}
	if (sp >= (uintptr_t)at && sp < (uintptr_t)at + bytes)
		set_aside(page_of(sp - FRAME_BELOW), (uintptr_t)at + bytes);
	else /* a stack that the program made */
		set_aside(page_of(sp - FRAME_BELOW), page_of(sp + FRAME_ABOVE));
	set_descriptor_aside();
}

/* Block signals whose handlers would run between the fork and the child's copies. */
static void block_signals(void)
{
	const uint64_t all = ~(trap_needs() | signal_bit(SIGSEGV) | signal_bit(SIGBUS) |
			       signal_bit(SIGFPE) | signal_bit(SIGILL) | signal_bit(SIGTRAP));

	mask_set(&all, &mask);
}

static long fork_caught(const struct trap_call *call);

static void before_fork(void)
{
	static const struct trap_ops ops = {.forks = fork_caught, .lost = set_stack_aside};

	sharing_lock();
	if (idle.parts) /* else each child would copy them */
		sharing_reclaim();
	active = part_count != 0 && pool.fd >= 0;
	if (!active)
		return;
	aside_count = 0;
	caught = false;
	child_alive[0] = child_alive[1] = -1;
	block_signals();
	trapped = trap_arm(&ops);
	if (!trapped)
		set_stack_aside((uintptr_t)__builtin_frame_address(0));
}

/* ---- the parent ---- */

/* Marks which bytes of a page are registered, so the daemon's to write. */
static void fork_mark(uintptr_t page, uint8_t registered[SHARING_PAGE])
{
	memset(registered, 0, SHARING_PAGE);
	for (const struct sharing *s = sharings; s; s = s->next) {
		uintptr_t low = s->first > page ? s->first : page;
		uintptr_t high = s->first + s->length;

		high = high < page + SHARING_PAGE ? high : page + SHARING_PAGE;
		if (low < high)
			memset(registered + (low - page), 1, high - low);
	}
}

/* Moves the private, unregistered bytes of a page to the pool. */
static void join_page(uintptr_t page, uint64_t offset)
{
	uint8_t registered[SHARING_PAGE];
	size_t at = 0, end;

	fork_mark(page, registered);
	while (at < SHARING_PAGE) {
		end = at;
		while (end < SHARING_PAGE && registered[end] == registered[at])
			end++;
		if (!registered[at])
			sys6(SYS_pwrite64, pool.fd, (long)(page + at), (long)(end - at),
			     (long)(offset + at), 0, 0);
		at = end;
	}
}

static void join_all(void)
{
	for (unsigned int i = 0; i < aside_count; i++) {
		const struct vma *v = &aside[i];

		for (uintptr_t at = v->start; at < v->end; at += SHARING_PAGE)
			join_page(at, v->offset + (at - v->start));
		sys6(SYS_mmap, (long)v->start, (long)(v->end - v->start), v->protection,
		     MAP_SHARED | MAP_FIXED, pool.fd, (long)v->offset);
	}
	aside_count = 0;
}

/* Runs on a stack that is none of those pages. */
static void join_stopped(void *arg)
{
	int rc = stop_others();

	(void)arg;
	join_all();
	if (!rc)
		resume_others();
}

static void wait_for_pipe(void)
{
	char byte;

	if (child_alive[0] < 0)
		return;
	close(child_alive[1]);
	while (read(child_alive[0], &byte, 1) < 0 && errno == EINTR)
		;
	close(child_alive[0]);
}

static void after_fork(void)
{
	int err = errno;

	if (active) {
		if (trapped)
			trap_disarm();
		if (!caught) {
			wait_for_pipe();
			if (aside_count)
				trap_on_own_stack(join_stopped, NULL);
		}
		mask_set(&mask, NULL);
	}
	errno = err;
	sharing_unlock();
}

/* ---- the child ---- */

/* Must not continue: the child would store into its parent's memory. */
static void abort_child(void)
{
	static const char why[] = "softhca: a forked child cannot copy its memory, exiting\n";

	sys6(SYS_write, 2, (long)why, sizeof(why) - 1, 0, 0, 0);
	sys6(SYS_exit_group, 127, 0, 0, 0, 0, 0);
}

/* No memory for a copy: unmap it, as a child that only starts a program may not need it. */
static bool unmap_lost(const struct vma *v)
{
	return sys6(SYS_mmap, (long)v->start, (long)(v->end - v->start), PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) < 0;
}

/* Makes all shared pool memory private, or unmaps it. */
static void part_with_all(void)
{
	const bool lost = pool_lost();
	uintptr_t at = 0;
	struct vma v;

	if (!lost) /* to have a descriptor to open maps with */
		sys6(SYS_close, pool.read_only_fd, 0, 0, 0, 0, 0);
	if (vma_open(&reader))
		abort_child();
	for (; vma_find_shared(&reader, at, &v); at = v.end)
		if (pool_has(&v) && swap_out_child(&v, lost) && unmap_lost(&v))
			abort_child();
	vma_close(&reader);
}

/* Touches every page of a private mapping, so that each becomes a copy. */
static void own(const struct vma *v)
{
	const long bytes = (long)(v->end - v->start);

	if (!(v->protection & PROT_WRITE))
		sys6(SYS_mprotect, (long)v->start, bytes, PROT_READ | PROT_WRITE, 0, 0, 0);
	for (uintptr_t at = v->start; at < v->end; at += SHARING_PAGE)
		touch(at);
	if (!(v->protection & PROT_WRITE))
		sys6(SYS_mprotect, (long)v->start, bytes, v->protection, 0, 0, 0);
}

static void own_all(void)
{
	for (unsigned int i = 0; i < aside_count; i++)
		own(&aside[i]);
	part_with_all();
}

static void in_child(void)
{
	if (active && !caught)
		own_all();
	stop_forget();
	vma_forget();
	sharing_lock_reset();
	if (!active)
		return;
	if (trapped)
		trap_disarm();
	if (!pool_lost())
		close(pool.fd);
	pool_forget();
	if (child_alive[0] >= 0) {
		close(child_alive[0]);
		close(child_alive[1]);
	}
	mask_set(&mask, NULL);
}

/* ---- in place of the call ---- */

/* A word shared with the child, in which it reports that it has its copies. */
static bool word_open(void)
{
	long at = sys6(SYS_mmap, 0, SHARING_PAGE, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	child_done = at < 0 ? NULL : (uint32_t *)at;
	return child_done;
}

static void word_close(void)
{
	sys6(SYS_munmap, (long)child_done, SHARING_PAGE, 0, 0, 0, 0);
}

static bool is_alive(long pid)
{
	siginfo_t info;
	long rc;

	info.si_pid = 0;
	rc = sys6(SYS_waitid, P_PID, pid, (long)&info, WEXITED | WNOWAIT | WNOHANG | __WALL, 0, 0);
	return rc == 0 && info.si_pid == 0;
}

static void wait_for_word(long pid)
{
	const struct timespec a_while = {.tv_nsec = LOOK_AGAIN_NS};

	while (!__atomic_load_n(child_done, __ATOMIC_SEQ_CST) && is_alive(pid))
		sys6(SYS_futex, (long)child_done, FUTEX_WAIT, 0, (long)&a_while, 0, 0);
}

/* The child's first steps. All threads of its parent wait. */
static void start_child(const struct trap_call *call)
{
	own_all();
	if (call->child_tid)
		*call->child_tid = (int)sys6(SYS_gettid, 0, 0, 0, 0, 0, 0);
	__atomic_store_n(child_done, 1, __ATOMIC_SEQ_CST);
	sys6(SYS_futex, (long)child_done, FUTEX_WAKE, 1, 0, 0, 0);
	word_close();
}

/* No thread of the parent runs until the child has its copies, so they show the moment of the fork,
 * and what the C library stores into them afterwards is the child's alone. A thread that does not
 * stop breaks only the first of these guarantees. */
static long fork_caught(const struct trap_call *call)
{
	long pid;
	int rc;

	caught = true;
	if (!word_open())
		return -ENOMEM;
	rc = stop_others();
	set_descriptor_aside();
	pid = trap_fork(call);
	if (pid == 0) {
		start_child(call);
		return 0;
	}
	if (pid > 0)
		wait_for_word(pid);
	word_close();
	join_all();
	if (!rc)
		resume_others();
	return pid;
}

/* As early as possible: handlers of libraries loaded later then run outside ours in the parent, and
 * after ours in the child. */
static void __attribute__((constructor)) fork_install(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

void fork_watch(void)
{
	/* Called only so that a static library's constructor is linked. */
}
