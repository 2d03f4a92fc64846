/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of libc that change the process's mappings, in front of libc's own, in programs
 * that are linked with this library or have it preloaded. Each does what libc's does; shared
 * anonymous memory gets a file that can be passed on (anonymous.h), and private memory that lies in
 * the pool still looks private to the program: advice to drop it drops it, and what is unmapped is
 * freed. Any thread; never waits for a lock, since an allocator may be holding its own.
 *
 * Functions not found yet are replaced by the system call: an allocator may call these before any
 * constructor has run, and dlsym() may call the allocator.
 */
#undef _FILE_OFFSET_BITS /* keeps mmap() from becoming another name of mmap64() */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/mman.h>
#include "anonymous.h"
#include "sharing_priv.h"
#include "sys.h"

#define SHOWN __attribute__((visibility("default")))
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static struct {
	__typeof__(&mmap) mmap;
	__typeof__(&munmap) munmap;
	__typeof__(&mremap) mremap;
	__typeof__(&madvise) madvise;
} next;

static void __attribute__((constructor)) interpose_find_next(void)
{
	next.mmap = (__typeof__(next.mmap))dlsym(RTLD_NEXT, "mmap");
	next.munmap = (__typeof__(next.munmap))dlsym(RTLD_NEXT, "munmap");
	next.mremap = (__typeof__(next.mremap))dlsym(RTLD_NEXT, "mremap");
	next.madvise = (__typeof__(next.madvise))dlsym(RTLD_NEXT, "madvise");
}

static long result(long rc)
{
	if (rc >= 0 || rc < -4095)
		return rc;
	errno = (int)-rc;
	return -1;
}

void *next_mmap(void *addr, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (next.mmap)
		return next.mmap(addr, bytes, protection, flags, fd, offset);
	return (void *)result(
		sys6(SYS_mmap, (long)addr, (long)bytes, protection, flags, fd, (long)offset));
}

static void gone(const void *at, size_t bytes)
{
	anonymous_gone(at, bytes);
	sharing_unmapped(at, bytes);
}

/* True if something of [at, end) lies in the pool. `anew`: replaces it with fresh memory, which
 * allocators expect to read as zeroes. */
static bool in_pool(uintptr_t at, uintptr_t end, bool anew)
{
	struct vma_reader reader;
	bool found = false;
	struct vma v;

	if (pool.fd < 0 || vma_open(&reader))
		return false;
	for (; at < end && vma_find(&reader, at, &v) && v.start < end; at = v.end) {
		const uintptr_t from = v.start > at ? v.start : at, to = v.end < end ? v.end : end;

		if (!pool_has(&v))
			continue;
		found = true;
		if (anew)
			sys6(SYS_mmap, (long)from, (long)(to - from), v.protection,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
	vma_close(&reader);
	return found;
}

static uintptr_t interpose_end_of(const void *at, size_t bytes)
{
	return ((uintptr_t)at + bytes + SHARING_PAGE - 1) & ~(uintptr_t)(SHARING_PAGE - 1);
}

SHOWN void *mmap(void *addr, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	const bool shared_anonymous =
		(flags & (MAP_TYPE | MAP_ANONYMOUS)) == (MAP_SHARED | MAP_ANONYMOUS);
	void *at = (shared_anonymous ? anonymous_map : next_mmap)(addr, bytes, protection, flags,
								  fd, offset);

	if (flags & MAP_FIXED && at != MAP_FAILED)
		gone(at, bytes);
	return at;
}

SHOWN void *mmap64(void *addr, size_t bytes, int protection, int flags, int fd, off_t offset)
	__attribute__((alias("mmap")));

SHOWN int munmap(void *at, size_t bytes)
{
	int rc = next.munmap ? next.munmap(at, bytes)
			     : (int)result(sys6(SYS_munmap, (long)at, (long)bytes, 0, 0, 0, 0));

	if (rc == 0)
		gone(at, bytes);
	return rc;
}

SHOWN void *mremap(void *from, size_t from_bytes, size_t bytes, int flags, ...)
{
	va_list arguments;
	void *to, *at;

	va_start(arguments, flags);
	to = va_arg(arguments, void *); /* valid with MREMAP_FIXED only */
	va_end(arguments);
	at = next.mremap ? next.mremap(from, from_bytes, bytes, flags, to)
			 : (void *)result(sys6(SYS_mremap, (long)from, (long)from_bytes,
					       (long)bytes, flags, (long)to, 0));
	if (at == MAP_FAILED)
		return at;
	anonymous_moved(from, from_bytes, at, bytes);
	if (flags & MREMAP_DONTUNMAP)
		in_pool((uintptr_t)from, interpose_end_of(from, from_bytes), true);
	else if (interpose_end_of(from, bytes) <
		 interpose_end_of(from, from_bytes)) /* the tail is unmapped in place */
		gone((const void *)interpose_end_of(from, bytes),
		     interpose_end_of(from, from_bytes) - interpose_end_of(from, bytes));
	if (flags & MREMAP_FIXED)
		gone(at, bytes);
	return at;
}

/* ---- advice ---- */

static int next_madvise(void *at, size_t bytes, int advice)
{
	return next.madvise
		       ? next.madvise(at, bytes, advice)
		       : (int)result(sys6(SYS_madvise, (long)at, (long)bytes, advice, 0, 0, 0));
}

/* Only the kernel knows whether memory may be dropped: not if it is locked. An MR keeps the pages
 * it had, as on other HCAs. */
static int interpose_drop(void *at, size_t bytes, int advice)
{
	int rc = next_madvise(at, bytes, advice), error = errno;

	/* ENOMEM: there was a hole in the range that it dropped. */
	if ((rc == 0 || error == ENOMEM) && pool.fd >= 0) {
		if (in_pool((uintptr_t)at, interpose_end_of(at, bytes), true))
			sharing_unmapped(at, bytes);
		/* Another thread may have made it private meanwhile, with its contents. */
		next_madvise(at, bytes, advice);
	}
	errno = error;
	return rc;
}

SHOWN int madvise(void *at, size_t bytes, int advice)
{
	if (advice == MADV_DONTNEED || advice == MADV_DONTNEED_LOCKED)
		return interpose_drop(at, bytes, advice);
	/* A file's pages can only be freed immediately. */
	if (advice == MADV_FREE && in_pool((uintptr_t)at, interpose_end_of(at, bytes), false))
		return interpose_drop(at, bytes, MADV_DONTNEED);
	return next_madvise(at, bytes, advice);
}

int own_madvise(void *at, size_t bytes, int advice) __THROW
	__attribute__((alias("madvise"), visibility("hidden")));

bool interposed(void)
{
	__typeof__(&madvise) volatile theirs = madvise; /* the first in symbol order */

	return theirs == own_madvise;
}
