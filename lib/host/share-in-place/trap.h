/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHARING_TRAP_H
#define SHARING_TRAP_H
/*
 * Catches the system call by which fork() makes the child.
 *
 * Why. What has to happen at a fork cannot happen in a handler of pthread_atfork(). Those that run
 * before are too early: only then the C library takes its locks (of the allocator, of the streams,
 * and other libraries take theirs), so whoever stopped the other threads there would wait forever
 * for a lock that one of them holds. Those that run after are too late: the C library has already
 * written into the child's memory (arenas of the allocator, descriptors of threads) and given its
 * locks back in the parent. At the system call itself all locks are held by the thread that forks.
 *
 * How. Syscall user dispatch (Linux 5.11): a system call of this thread raises SIGSYS instead.
 * Armed by the last handler that runs before the fork, disarmed by the call that makes the child;
 * what comes in between (futexes, masks of signals) is done on the thread's behalf. A call that
 * cannot be done on its behalf (a thread is born, a handler of the program returns) ends the trap.
 */
#include <stdbool.h>
#include <stdint.h>

/* The call that makes a child. */
struct trap_call {
	long number, argument[6];
	int *child_tid; /* where the child's id goes in the child, or NULL: the caller's to store */
};

struct trap_ops {
	/* In the call's place; on a stack of the trap's own, signals blocked. Makes the child by
	 * trap_fork() and returns its result, in parent and child. */
	long (*forks)(const struct trap_call *call);
	/* The trap ends before the fork; on a stack of its own. `sp`: where the thread's is. */
	void (*lost)(uintptr_t sp);
};

/* Lets nobody be trapped: for tests. */
extern bool trap_never;

/* The signals that a thread must not block while it is trapped. */
uint64_t trap_needs(void);
/* For this thread; ops must stay. One at a time (the caller's lock). False: cannot be. */
bool trap_arm(const struct trap_ops *ops);
/* Makes the child. As the system call. */
long trap_fork(const struct trap_call *call);
/* After the fork, in parent and child. Needed only after a successful trap_arm(). */
void trap_disarm(void);

/* Runs fn(arg) on a stack that is never shared: nothing is stored into the thread's meanwhile but
 * by fn itself. Signals should be blocked. Not for two threads at once. False: cannot be. */
bool trap_on_own_stack(void (*fn)(void *arg), void *arg);

#endif
