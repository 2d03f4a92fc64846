/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHARING_ANONYMOUS_H
#define SHARING_ANONYMOUS_H
/*
 * Shared anonymous memory that can be passed on.
 *
 * What mmap(MAP_SHARED | MAP_ANONYMOUS) gives is a file in memory that nobody can open but root: a
 * process that wants to hand it to another must have had a descriptor of it from the beginning. So
 * such a mapping gets a memfd in place of the kernel's own file, before its address is known to
 * anybody. It behaves as before in every respect (both are tmpfs): over a fork, moved, grown,
 * protected, advised, dumped. The descriptor is a high one, is inherited by children as the mapping
 * is, ends at exec() as the mapping does, and is closed once nothing maps the file any more.
 *
 * Where that cannot be (no descriptor left, RLIMIT_FSIZE, too many of them) the mapping is what the
 * kernel makes of it. Any thread, also in a signal's handler; no lock, no heap, errno is kept.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* mmap() of MAP_SHARED | MAP_ANONYMOUS. */
void *anonymous_map(void *addr, size_t bytes, int protection, int flags, int fd, off_t offset);
/* Something of [at, at + bytes) has been unmapped: closes what nothing maps any more. */
void anonymous_gone(const void *at, size_t bytes);
/* What was mapped at `from` is now at `to`. */
void anonymous_moved(const void *from, size_t from_bytes, const void *to, size_t to_bytes);

/* ---- interpose.c ---- */

/* mmap() as the next library has it. */
void *next_mmap(void *addr, size_t bytes, int protection, int flags, int fd, off_t offset);

#endif
