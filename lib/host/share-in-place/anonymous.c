/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared anonymous memory gets a file that has a descriptor; see anonymous.h. */
#include "anonymous.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include "sys.h"
#include "vma.h"

#define HUGE_SIZE                                                                                  \
	(0x3fu                                                                                     \
	 << 26) /* the bits that tell it, of mmap()'s flags and memfd_create()'s             \
		       */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum {
	FILES_MAX = 256,
	FD_LOWEST = 4096, /* out of programs' way, where the limit permits */
};

enum file_state { FILE_FREE, FILE_BUSY, FILE_USED };
struct file {
	uint32_t state; /* enum file_state; atomic; BUSY: owned by the thread that set it */
	int fd;
	uint64_t device, inode;
	/* Its mappings lie in between, among others: where to look first. Atomic. */
	uintptr_t start, end;
};
static struct file files[FILES_MAX];
static uint32_t files_end; /* one past the highest ever used; atomic */

/* ---- the table ---- */

static bool file_take(struct file *f, uint32_t expected)
{
	return __atomic_compare_exchange_n(&f->state, &expected, FILE_BUSY, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static void give(struct file *f, enum file_state state)
{
	__atomic_store_n(&f->state, state, __ATOMIC_RELEASE);
}

static bool maps(const struct file *f, struct vma_reader *r, uintptr_t from, uintptr_t to)
{
	struct vma v;

	while (from < to && vma_find(r, from, &v) && v.start < to) {
		if (v.inode == f->inode && v.device == f->device)
			return true;
		from = v.end;
	}
	return false;
}

static bool is_mapped(const struct file *f)
{
	struct vma_reader reader;
	bool mapped;

	if (vma_open(&reader))
		return true; /* assume so */
	mapped = maps(f, &reader, f->start, f->end) || maps(f, &reader, 0, UINTPTR_MAX);
	vma_close(&reader);
	return mapped;
}

/* The program may have closed the descriptor and reused its number. */
static bool anonymous_is_ours(const struct file *f)
{
	struct stat st;

	return fstat(f->fd, &st) == 0 && st.st_ino == f->inode && st.st_dev == f->device;
}

static void close_unless_mapped(struct file *f)
{
	if (!file_take(f, FILE_USED))
		return;
	if (is_mapped(f)) {
		give(f, FILE_USED);
		return;
	}
	if (anonymous_is_ours(f))
		sys6(SYS_close, f->fd, 0, 0, 0, 0, 0);
	give(f, FILE_FREE);
}

static struct file *take_free(void)
{
	for (uint32_t i = 0; i < FILES_MAX; i++) {
		if (!file_take(&files[i], FILE_FREE))
			continue;
		if (i >= __atomic_load_n(&files_end, __ATOMIC_RELAXED))
			__atomic_store_n(&files_end, i + 1, __ATOMIC_RELEASE);
		return &files[i];
	}
	return NULL;
}

static void anonymous_remember(int fd, const struct stat *st, const void *at, size_t bytes)
{
	struct file *f = take_free();

	if (!f) { /* some may have been unmapped without our notice */
		for (uint32_t i = 0; i < FILES_MAX; i++)
			close_unless_mapped(&files[i]);
		f = take_free();
	}
	if (!f) {
		sys6(SYS_close, fd, 0, 0, 0, 0, 0);
		return;
	}
	f->fd = fd;
	f->device = st->st_dev;
	f->inode = st->st_ino;
	f->start = (uintptr_t)at;
	f->end = (uintptr_t)at + bytes;
	give(f, FILE_USED);
}

static bool meets(const struct file *f, const void *at, size_t bytes)
{
	return __atomic_load_n(&f->state, __ATOMIC_RELAXED) == FILE_USED &&
	       (uintptr_t)at < __atomic_load_n(&f->end, __ATOMIC_RELAXED) &&
	       (uintptr_t)at + bytes > __atomic_load_n(&f->start, __ATOMIC_RELAXED);
}

void anonymous_gone(const void *at, size_t bytes)
{
	const uint32_t n = __atomic_load_n(&files_end, __ATOMIC_ACQUIRE);
	int error = errno;

	for (uint32_t i = 0; i < n; i++)
		if (meets(&files[i], at, bytes))
			close_unless_mapped(&files[i]);
	errno = error;
}

void anonymous_moved(const void *from, size_t from_bytes, const void *to, size_t to_bytes)
{
	const uint32_t n = __atomic_load_n(&files_end, __ATOMIC_ACQUIRE);
	const uintptr_t start = (uintptr_t)to, end = start + to_bytes;

	for (uint32_t i = 0; i < n; i++) {
		struct file *f = &files[i];

		if (!meets(f, from, from_bytes ? from_bytes : 1))
			continue;
		if (start < __atomic_load_n(&f->start, __ATOMIC_RELAXED))
			__atomic_store_n(&f->start, start, __ATOMIC_RELAXED);
		if (end > __atomic_load_n(&f->end, __ATOMIC_RELAXED))
			__atomic_store_n(&f->end, end, __ATOMIC_RELAXED);
	}
}

/* ---- the file ---- */

static int moved_up(int fd)
{
	struct rlimit limit;
	long up = fd;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		up = sys6(SYS_fcntl, fd, F_DUPFD_CLOEXEC,
			  (long)(limit.rlim_cur / 2 < FD_LOWEST ? limit.rlim_cur / 2 : FD_LOWEST),
			  0, 0, 0);
	if (up != fd)
		sys6(SYS_close, fd, 0, 0, 0, 0, 0);
	return (int)up;
}

/* Creates a file of at least `bytes`, whole pages. Returns a descriptor, or a negative number. */
static int anonymous_make_file(size_t bytes, int flags, struct stat *st)
{
	const unsigned int huge =
		flags & MAP_HUGETLB ? MFD_HUGETLB | ((unsigned int)flags & HUGE_SIZE) : 0;
	struct rlimit limit;
	struct statfs fs;
	int fd;

	fd = memfd_create("shared-anonymous", MFD_CLOEXEC | huge);
	fd = fd < 0 ? fd : moved_up(fd);
	if (fd < 0)
		return fd;
	if (fstatfs(fd, &fs) == 0 && getrlimit(RLIMIT_FSIZE, &limit) == 0) {
		bytes = (bytes + (size_t)fs.f_bsize - 1) & ~((size_t)fs.f_bsize - 1);
		/* Beyond the limit ftruncate() raises a signal. */
		if (bytes <= limit.rlim_cur && ftruncate(fd, (off_t)bytes) == 0 &&
		    fstat(fd, st) == 0)
			return fd;
	}
	sys6(SYS_close, fd, 0, 0, 0, 0, 0);
	return -ENOMEM;
}

/* The kernel reserves huge pages when they are mapped, so map only once. */
static void *map_huge(void *addr, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	struct stat st;
	int file = anonymous_make_file(bytes, flags, &st);
	void *at = MAP_FAILED;

	if (file >= 0)
		at = next_mmap(addr, bytes, protection, flags & ~MAP_ANONYMOUS, file, 0);
	if (at != MAP_FAILED) {
		anonymous_remember(file, &st, at, (size_t)st.st_size);
		return at;
	}
	if (file >= 0)
		sys6(SYS_close, file, 0, 0, 0, 0, 0);
	return next_mmap(addr, bytes, protection, flags, fd, offset);
}

static bool anonymous_replace(void *at, size_t bytes, int protection, int flags)
{
	struct stat st;
	int file = anonymous_make_file(bytes, 0, &st);

	if (file < 0)
		return false;
	flags &= ~(MAP_ANONYMOUS | MAP_FIXED_NOREPLACE);
	if (next_mmap(at, bytes, protection, flags | MAP_FIXED, file, 0) != MAP_FAILED) {
		anonymous_remember(file, &st, at, bytes);
		return true;
	}
	sys6(SYS_close, file, 0, 0, 0, 0, 0);
	return false;
}

/* The kernel's own mapping comes first: it decides whether, where and how, and it remains if no
 * file can be created. */
static void *map_small(void *addr, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	void *at = next_mmap(addr, bytes, protection, flags & ~MAP_POPULATE, fd, offset);

	if (at != MAP_FAILED && !anonymous_replace(at, bytes, protection, flags) &&
	    flags & MAP_POPULATE)
		madvise(at, bytes, MADV_POPULATE_WRITE);
	return at;
}

void *anonymous_map(void *addr, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	int error = errno;
	void *at = (flags & MAP_HUGETLB ? map_huge : map_small)(addr, bytes, protection, flags, fd,
								offset);

	if (at != MAP_FAILED)
		errno = error;
	return at;
}
