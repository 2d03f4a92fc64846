/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's mappings of this process, by ioctl or as text. Any thread, one reader each. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "sys.h"
#include "vma.h"

/* As the kernel's uapi/linux/fs.h has it since 6.11; older headers do not. */
struct map_query {
	uint64_t size, flags, addr;
	uint64_t start, end, vma_flags, page_bytes, offset, inode;
	uint32_t major, minor;
	uint32_t name_bytes, build_id_bytes;
	uint64_t name, build_id;
};
enum { QUERY_READABLE = 1, QUERY_WRITABLE = 2, QUERY_EXECUTABLE = 4, QUERY_SHARED = 8 };
enum { QUERY_COVERING_OR_NEXT = 16, QUERY_OF_FILES = 32 };
#define MAP_QUERY _IOWR('f', 17, struct map_query)

bool vma_only_text;

static uint64_t vma_device_of(uint64_t major, uint64_t minor, const char *path)
{
	return strncmp(path, "/SYSV", 5) == 0 ? VMA_SEGMENT : makedev(major, minor);
}

/* `which`: only mappings with these properties. */
static bool vma_query(struct vma_reader *r, uintptr_t addr, unsigned int which, struct vma *out,
		      long *rc)
{
	struct map_query q = {.size = sizeof(q),
			      .flags = QUERY_COVERING_OR_NEXT | which,
			      .addr = addr,
			      .name = (uintptr_t)out->path,
			      .name_bytes = sizeof(out->path)};

	out->path[0] = 0;
	*rc = sys6(SYS_ioctl, r->fd, MAP_QUERY, (long)&q, 0, 0, 0);
	if (*rc == -ENAMETOOLONG) {
		q.name_bytes = 0;
		q.name = 0;
		*rc = sys6(SYS_ioctl, r->fd, MAP_QUERY, (long)&q, 0, 0, 0);
	}
	if (*rc < 0)
		return false;
	out->start = q.start;
	out->end = q.end;
	out->offset = q.offset;
	out->device = vma_device_of(q.major, q.minor, out->path);
	out->inode = q.inode;
	out->page_bytes = q.page_bytes;
	out->shared = q.vma_flags & QUERY_SHARED;
	out->protection = (uint8_t)((q.vma_flags & QUERY_READABLE ? PROT_READ : 0) |
				    (q.vma_flags & QUERY_WRITABLE ? PROT_WRITE : 0) |
				    (q.vma_flags & QUERY_EXECUTABLE ? PROT_EXEC : 0));
	return true;
}

int vma_open(struct vma_reader *r)
{
	static int asks = -1; /* unknown */
	struct vma any;
	long rc =
		sys6(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);

	if (rc < 0)
		return (int)rc;
	r->fd = (int)rc;
	r->kept = false;
	r->last.end = r->begin = r->end = 0;
	if (asks < 0)
		asks = vma_query(r, 0, 0, &any, &rc) || rc == -ENOENT;
	r->asks = asks && !vma_only_text;
	return 0;
}

void vma_close(struct vma_reader *r)
{
	if (!r->kept)
		sys6(SYS_close, r->fd, 0, 0, 0, 0, 0);
}

void vma_changed(struct vma_reader *r)
{
	if (!r->asks)
		sys6(SYS_lseek, r->fd, 0, SEEK_SET, 0, 0, 0);
	r->last.end = r->begin = r->end = 0;
}

/* ---- the descriptor that is kept ---- */

/* Which file it is, since the program may close it (as programs do that become daemons) and open
 * another under its number; and whose, since the child of a fork inherits a descriptor that shows
 * its parent's mappings. A process number cannot distinguish them: in PID namespaces, both may be
 * 1. */
static struct {
	int fd; /* -1: none */
	dev_t device;
	ino_t inode;
	uint8_t *ours; /* 1; in a child 0, as the kernel clears its page there. NULL: none yet */
} kept = {.fd = -1};

static bool map_ours(void)
{
	const long page =
		sys6(SYS_mmap, 0, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page < 0 && page > -4096)
		return false;
	if (sys6(SYS_madvise, page, 1, MADV_WIPEONFORK, 0, 0, 0)) {
		sys6(SYS_munmap, page, 1, 0, 0, 0, 0);
		return false;
	}
	kept.ours = (uint8_t *)page;
	return true;
}

/* No fstat(): other threads may be stopped in the middle of binding symbols. */
static bool identify(int fd, struct stat *st)
{
	*st = (struct stat){.st_ino = 0};
	return sys6(SYS_fstat, fd, (long)st, 0, 0, 0, 0) == 0;
}

static bool kept_is_open(void)
{
	struct stat st;

	return kept.fd >= 0 && identify(kept.fd, &st) && st.st_ino == kept.inode &&
	       st.st_dev == kept.device;
}

void vma_forget(void)
{
	if (kept_is_open())
		sys6(SYS_close, kept.fd, 0, 0, 0, 0, 0);
	kept.fd = -1;
}

static int open_and_keep(struct vma_reader *r)
{
	int rc = vma_open(r);
	struct stat st;

	if (rc || !r->asks || (!kept.ours && !map_ours()) || !identify(r->fd, &st))
		return rc;
	kept.fd = r->fd;
	kept.device = st.st_dev;
	kept.inode = st.st_ino;
	*kept.ours = 1;
	r->kept = true;
	return 0;
}

int vma_open_kept(struct vma_reader *r)
{
	if (vma_only_text)
		return vma_open(r);
	if (!kept.ours || !*kept.ours || !kept_is_open()) {
		vma_forget();
		return open_and_keep(r);
	}
	r->fd = kept.fd;
	r->asks = r->kept = true;
	r->last.end = r->begin = r->end = 0;
	return 0;
}

/* ---- text ---- */

static uint64_t vma_number(const char **at, const char *end, unsigned int base)
{
	uint64_t n = 0;

	for (; *at < end; (*at)++) {
		char c = **at;
		unsigned int digit = c >= '0' && c <= '9'   ? (unsigned int)(c - '0')
				     : c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a') + 10
							    : 99;

		if (digit >= base)
			break;
		n = n * base + digit;
	}
	return n;
}

/* The next character; 0: the line has ended. */
static char next(const char **at, const char *end)
{
	return *at < end ? *(*at)++ : 0;
}

/* start-end rwxp offset major:minor inode      path */
static void vma_parse(const char *at, const char *end, struct vma *out)
{
	uint64_t major, minor;
	size_t n;

	out->start = vma_number(&at, end, 16);
	next(&at, end);
	out->end = vma_number(&at, end, 16);
	next(&at, end);
	out->protection = next(&at, end) == 'r' ? PROT_READ : 0;
	out->protection |= next(&at, end) == 'w' ? PROT_WRITE : 0;
	out->protection |= next(&at, end) == 'x' ? PROT_EXEC : 0;
	out->shared = next(&at, end) == 's';
	out->page_bytes = 0;
	next(&at, end);
	out->offset = vma_number(&at, end, 16);
	next(&at, end);
	major = vma_number(&at, end, 16);
	next(&at, end);
	minor = vma_number(&at, end, 16);
	next(&at, end);
	out->inode = vma_number(&at, end, 10);
	while (at < end && *at == ' ')
		at++;
	n = (size_t)(end - at);
	if (n >= sizeof(out->path))
		n = 0;
	memcpy(out->path, at, n);
	out->path[n] = 0;
	out->device = vma_device_of(major, minor, out->path);
}

/* The next line, without its newline. False: none. */
static bool line(struct vma_reader *r, const char **at, const char **end)
{
	for (;;) {
		char *newline = memchr(r->text + r->begin, '\n', r->end - r->begin);
		long n;

		if (newline) {
			*at = r->text + r->begin;
			*end = newline;
			r->begin = (size_t)(newline + 1 - r->text);
			return true;
		}
		memmove(r->text, r->text + r->begin, r->end - r->begin);
		r->end -= r->begin;
		r->begin = 0;
		n = sys6(SYS_read, r->fd, (long)(r->text + r->end),
			 (long)(sizeof(r->text) - r->end), 0, 0, 0);
		if (n <= 0)
			return false;
		r->end += (size_t)n;
	}
}

static bool read_from(struct vma_reader *r, uintptr_t addr, struct vma *out, bool *passed)
{
	const char *at, *end;
	bool first = true;

	while (line(r, &at, &end)) {
		const char *p = at;
		uintptr_t start = vma_number(&p, end, 16);

		next(&p, end);
		if (vma_number(&p, end, 16) > addr) {
			/* The first line read may lie beyond addr. */
			*passed = first && start > addr;
			vma_parse(at, end, out);
			r->begin = (size_t)(at - r->text); /* it may be needed again */
			return true;
		}
		first = false;
	}
	*passed = false;
	return false;
}

static bool find_in_text(struct vma_reader *r, uintptr_t addr, struct vma *out)
{
	bool passed, found = r->end && read_from(r, addr, out, &passed);

	if (found && !passed)
		return true;
	vma_changed(r);
	return read_from(r, addr, out, &passed);
}

bool vma_find(struct vma_reader *r, uintptr_t addr, struct vma *out)
{
	long rc;

	if (!r->asks)
		return find_in_text(r, addr, out);
	if (addr >= r->last.end || addr < r->last.start) {
		r->last.end = 0;
		if (!vma_query(r, addr, 0, &r->last, &rc))
			return false;
	}
	*out = r->last;
	return true;
}

bool vma_find_shared(struct vma_reader *r, uintptr_t addr, struct vma *out)
{
	long rc;

	if (r->asks)
		return vma_query(r, addr, QUERY_SHARED | QUERY_OF_FILES, out, &rc);
	for (; find_in_text(r, addr, out); addr = out->end)
		if (out->shared)
			return true;
	return false;
}

uint64_t vma_page_bytes(uintptr_t start)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	char text[512];
	bool there = false;
	uint64_t kilobytes = 4;

	while (file && fgets(text, sizeof(text), file)) {
		if (strchr(text, '-') && strtoull(text, NULL, 16) == start &&
		    strchr(text, '-') < strchr(text, ' '))
			there = true;
		if (there && sscanf(text, "KernelPageSize: %lu kB", &kilobytes) == 1)
			break;
	}
	if (file)
		fclose(file);
	return kilobytes * 1024;
}
