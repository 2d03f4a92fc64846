/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHARING_STOP_H
#define SHARING_STOP_H
/*
 * Stops all other threads of the process for a moment, wherever they are.
 *
 * Why by a signal. Between copying a page and mapping the copy nothing may store into it, neither
 * an instruction of the program nor the kernel on behalf of a thread's read(). Write protection by
 * userfaultfd would prevent both, but ordinary users may not have it
 * (vm.unprivileged_userfaultfd = 0), and the form that they may have makes system calls fail with
 * EFAULT; so does mprotect(). A signal works for everyone: a thread in our handler is in no system
 * call. One method for all is better than two, one of which would be tested less.
 *
 * Why signal 33. Many threads block all signals (a program that takes signals by sigwait() blocks
 * them everywhere). The C library reserves two real-time signals that its functions never block; it
 * uses 33 to make setuid() take effect in all threads. We replace its handler for the moment, pass
 * on signals that are not ours (ours are queued with a value that no one else uses), and restore it
 * afterwards. System calls are restarted where the kernel restarts them at all (SA_RESTART); poll()
 * and its kind return EINTR.
 */
#include <stdbool.h>

/*
 * Returns once no other thread runs, including those created meanwhile. One stop at a time (the
 * caller's lock). Until resume_others(): no malloc(), no stdio, no lock. 0; -EAGAIN: a thread does
 * not stop (10 s), and all continue.
 */
int stop_others(void);
void resume_others(void);
/* Between the two: was there no other thread? */
bool stop_alone(void);

/* In the child of a fork: there are no other threads, and no workers. */
void stop_forget(void);

#endif
