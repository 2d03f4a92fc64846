/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHARING_STOP_H
#define SHARING_STOP_H
/*
 * Stops all other threads of the process for a moment, wherever they are.
 *
 * Why by a signal. Between copying a page and mapping the copy nobody may store into it, neither a
 * program's instruction nor the kernel on behalf of a thread's read(). Write-protection by
 * userfaultfd does both, but an ordinary user may not have it (vm.unprivileged_userfaultfd = 0),
 * and what he may have makes system calls fail with EFAULT; so does mprotect(). A signal works for
 * everybody: a thread that has arrived in our handler is in no system call. One method for all is
 * better than two, of which the one in use would be the less tested.
 *
 * Why signal 33. Threads that block all signals are common (a program whose signals are taken by
 * sigwait() blocks them everywhere). The C library keeps two real-time signals for itself that its
 * functions never block; with 33 it makes setuid() take effect in all threads. We put our handler
 * in the place of its own for the moment, pass on what is not ours (ours is queued with a value
 * that nobody else has), and put the former back. System calls are restarted where the kernel
 * restarts them at all (SA_RESTART); poll() and its kind return EINTR.
 */
#include <stdbool.h>

/*
 * Returns once no other thread runs; those that are born meanwhile are caught, too. One stop at a
 * time (the caller's lock). Until resume_others(): no malloc(), no stdio, no lock. 0; -EAGAIN: a
 * thread does not stop (10 s), all go on.
 */
int stop_others(void);
void resume_others(void);
/* Between the two: there was nobody to stop. */
bool stop_alone(void);

/* In the child of a fork: there are no others, and no workers. */
void stop_forget(void);

#endif
