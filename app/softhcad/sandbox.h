/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SANDBOX_H
#define SANDBOX_H
/* The kernel's filter of system calls for a daemon that has started. Control thread. */

/*
 * From here on all threads, present and future, may make only the system calls of sandbox.def. Any
 * other fails with EPERM and appears in the kernel's audit log; clone3 fails with ENOSYS, so that
 * libc uses clone, whose flags a filter can see. There is no way back. 0; -ENOTSUP: a build with a
 * sanitizer, whose runtime needs more; another -errno: the kernel has no filters or refuses this
 * one.
 */
int sandbox_enter(void);

#endif
