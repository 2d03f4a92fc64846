/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHARING_TRAP_H
#define SHARING_TRAP_H
/*
 * Catches the system call by which fork() makes the child.
 *
 * Why. What has to happen at a fork cannot happen in a handler of pthread_atfork(). Handlers that
 * run before the fork are too early: the C library takes its locks (of the allocator, of streams)
 * only afterwards, as do other libraries, so stopping the other threads there would deadlock on a
 * lock that one of them holds. Handlers that run after it are too late: the C library has already
 * written into the child's memory (arenas of the allocator, thread descriptors) and released its
 * locks in the parent. At the system call itself the forking thread holds all locks.
 *
 * How. Syscall user dispatch (Linux 5.11): a system call of this thread raises SIGSYS instead. The
 * last handler before the fork arms it, the call that makes the child disarms it; calls in between
 * (futexes, signal masks) are made on the thread's behalf. A call that cannot be (creating a
 * thread, returning from a signal handler of the program) ends the trap.
 */
#include <stdbool.h>
#include <stdint.h>

/* The call that makes a child. */
struct trap_call {
	long number, argument[6];
	int *child_tid; /* where the caller stores the child's id, in the child; or NULL */
};

struct trap_ops {
	/* Runs in place of the call, on the trap's stack, with signals blocked. Makes the child by
	 * trap_fork() and returns its result, in parent and child. */
	long (*forks)(const struct trap_call *call);
	/* The trap ends before the fork; runs on a separate stack. `sp`: the thread's. */
	void (*lost)(uintptr_t sp);
};

/* Disables the trap: for tests. */
extern bool trap_never;

/* The signals that a thread must not block while it is trapped. */
uint64_t trap_needs(void);
/* Arms it for this thread; ops must stay valid. One at a time (caller's lock). False:
 * unsupported. */
bool trap_arm(const struct trap_ops *ops);
/* Makes the child; returns as the system call does. */
long trap_fork(const struct trap_call *call);
/* After the fork, in parent and child. Needed only after a successful trap_arm(). */
void trap_disarm(void);

/* Runs fn(arg) on a stack that is never shared: only fn itself stores into the thread's. Signals
 * should be blocked. Not for two threads at once. False: unsupported. */
bool trap_on_own_stack(void (*fn)(void *arg), void *arg);

#endif
