/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of libc that change the process's mappings, in front of libc's own: where the
 * program was linked with this library or has it preloaded. Each does what libc's does; shared
 * anonymous memory gets a file that can be passed on (anonymous.h). Any thread.
 *
 * What was not found yet is done by the system call: an allocator may call these before any
 * constructor has run, and dlsym() may call the allocator.
 */
#undef _FILE_OFFSET_BITS /* mmap() is to be mmap(), not another name of mmap64() */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/mman.h>
#include "anonymous.h"
#include "sys.h"

#define SHOWN __attribute__((visibility("default")))

static struct {
	__typeof__(&mmap) mmap;
	__typeof__(&munmap) munmap;
	__typeof__(&mremap) mremap;
} next;

static void __attribute__((constructor)) find_next(void)
{
	next.mmap = (__typeof__(next.mmap))dlsym(RTLD_NEXT, "mmap");
	next.munmap = (__typeof__(next.munmap))dlsym(RTLD_NEXT, "munmap");
	next.mremap = (__typeof__(next.mremap))dlsym(RTLD_NEXT, "mremap");
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

SHOWN void *mmap(void *addr, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	const bool shared_anonymous =
		(flags & (MAP_TYPE | MAP_ANONYMOUS)) == (MAP_SHARED | MAP_ANONYMOUS);
	void *at = (shared_anonymous ? anonymous_map : next_mmap)(
		addr, bytes, protection, flags, fd, offset);

	if (flags & MAP_FIXED && at != MAP_FAILED)
		anonymous_gone(at, bytes);
	return at;
}

SHOWN void *mmap64(void *addr, size_t bytes, int protection, int flags, int fd, off_t offset)
	__attribute__((alias("mmap")));

SHOWN int munmap(void *at, size_t bytes)
{
	int rc = next.munmap ? next.munmap(at, bytes)
			     : (int)result(sys6(SYS_munmap, (long)at, (long)bytes, 0, 0, 0, 0));

	if (rc == 0)
		anonymous_gone(at, bytes);
	return rc;
}

SHOWN void *mremap(void *from, size_t from_bytes, size_t bytes, int flags, ...)
{
	va_list arguments;
	void *to, *at;

	va_start(arguments, flags);
	to = va_arg(arguments, void *); /* means something with MREMAP_FIXED only */
	va_end(arguments);
	at = next.mremap ? next.mremap(from, from_bytes, bytes, flags, to)
			 : (void *)result(sys6(SYS_mremap, (long)from, (long)from_bytes,
				   (long)bytes, flags, (long)to, 0));
	if (at == MAP_FAILED)
		return at;
	anonymous_moved(from, from_bytes, at, bytes);
	if (flags & MREMAP_FIXED)
		anonymous_gone(at, bytes);
	return at;
}
