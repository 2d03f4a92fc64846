/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHARING_ANONYMOUS_H
#define SHARING_ANONYMOUS_H
/*
 * Shared anonymous memory that can be passed on.
 *
 * What mmap(MAP_SHARED | MAP_ANONYMOUS) returns is a memory file that only root can open: a process
 * that wants to pass it on must have had its descriptor from the beginning. So such a mapping gets
 * a memfd instead of the kernel's own file, before anyone knows its address. It behaves as before
 * in every respect (both are tmpfs): when forked, moved, grown, protected, advised, dumped. The
 * descriptor is a high one, is inherited by children and closed by exec() like the mapping, and is
 * closed once nothing maps the file.
 *
 * Where that is impossible (out of descriptors, RLIMIT_FSIZE, too many mappings) the mapping is the
 * kernel's. Any thread, also in signal handlers; no lock, no heap, errno is preserved.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* mmap() of MAP_SHARED | MAP_ANONYMOUS. */
void *anonymous_map(void *addr, size_t bytes, int protection, int flags, int fd, off_t offset);
/* Something of [at, at + bytes) has been unmapped: closes files that nothing maps any more. */
void anonymous_gone(const void *at, size_t bytes);
/* What was mapped at `from` is now at `to`. */
void anonymous_moved(const void *from, size_t from_bytes, const void *to, size_t to_bytes);

/* ---- interpose.c ---- */

/* mmap() of the next library. */
void *next_mmap(void *addr, size_t bytes, int protection, int flags, int fd, off_t offset);

#endif
