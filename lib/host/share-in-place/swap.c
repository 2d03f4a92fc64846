/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Swaps pages: private ones into the pool, and back. While pages are copied only the copying thread
 * may store: the others are stopped, and what it stores itself, into its stack or descriptor, must
 * not be among the pages. If it is, a helper thread does the copying and stops this one like any
 * other.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "sharing_priv.h"
#include "stop.h"
#include "sys.h"

#ifndef MADV_COLD
#define MADV_COLD 20
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
enum {
	HUGE_BYTES = 2 << 20,
	OURS_BYTES = 16384,
	STACK_BELOW_BYTES = 256 << 10,
	STACK_BYTES = 8 << 20
};

/* One step: [at, end) of one mapping, to or from `offset` of the pool. */
struct step {
	uintptr_t at, end;
	uint64_t offset;
	struct vma vma;
	bool out; /* back from the pool */
	int rc;
};

bool swap_is_ours(uintptr_t at, uintptr_t end)
{
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	const uintptr_t self = (uintptr_t)pthread_self();

	return (at < here + OURS_BYTES && end > here - OURS_BYTES) ||
	       (at < self + OURS_BYTES && end > self - OURS_BYTES);
}

/* Within reach of this thread's frames: a stack, though not surely this one. */
bool swap_is_stack(uintptr_t at, uintptr_t end)
{
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return at < here + STACK_BYTES && end > here - STACK_BELOW_BYTES;
}

/* ---- locked memory ---- */

/* Kilobytes locked, as the kernel counts. No stdio: other threads are stopped. */
static unsigned long locked(void)
{
	char text[4096];
	long fd = sys6(SYS_openat, AT_FDCWD, (long)"/proc/self/status", O_RDONLY | O_CLOEXEC, 0, 0,
		       0);
	long n = fd < 0 ? -1 : sys6(SYS_read, fd, (long)text, sizeof(text) - 1, 0, 0, 0);
	unsigned long kilobytes = 0;
	const char *at;

	if (fd >= 0)
		sys6(SYS_close, fd, 0, 0, 0, 0, 0);
	if (n <= 0)
		return 0;
	text[n] = 0;
	at = strstr(text, "VmLck:");
	for (at = at ? at + 6 : ""; *at && (*at < '0' || *at > '9'); at++)
		;
	for (; *at >= '0' && *at <= '9'; at++)
		kilobytes = kilobytes * 10 + (unsigned long)(*at - '0');
	return kilobytes;
}

/* Makes a request that the kernel refuses for locked memory (and for some other memory): faster
 * than reading how much is locked. */
static bool may_be_locked(uintptr_t at)
{
	return sys6(SYS_madvise, (long)at, SHARING_PAGE, MADV_COLD, 0, 0, 0) < 0;
}

static void lock_again(const struct step *s, unsigned long before)
{
	if (before && locked() < before)
		sys6(SYS_mlock, (long)s->at, (long)(s->end - s->at), 0, 0, 0, 0);
}

/* ---- the moves ---- */

/* Copies the pages into the pool and maps the copy in their place. Must store nowhere but in
 * registers and a stack that is not being swapped (the helper's or another). */
static long move_in(const struct step *s, int fd)
{
	uintptr_t at = s->at;

	while (at < s->end) {
		long n = sys6(SYS_pwrite64, fd, (long)at, (long)(s->end - at),
			      (long)(s->offset + (at - s->at)), 0, 0);

		if (n <= 0)
			return n ? n : -EFAULT;
		at += (uintptr_t)n;
	}
	return sys6(SYS_mmap, (long)s->at, (long)(s->end - s->at), s->vma.protection,
		    MAP_SHARED | MAP_FIXED, fd, (long)s->offset);
}

/* Maps fresh pages in place and fills them. They are empty in between: nothing here may read any
 * memory but this stack, which is not among them. */
static long move_out(const struct step *s, int fd)
{
	const size_t bytes = s->end - s->at;
	const int protection = s->vma.protection;
	const uint64_t offset = s->offset;
	const uintptr_t start = s->at, end = s->end;
	uintptr_t at = start;
	long n = sys6(SYS_mmap, (long)start, (long)bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	while (n >= 0 && at < end) {
		n = sys6(SYS_pread64, fd, (long)at, (long)(end - at), (long)(offset + (at - start)),
			 0, 0);
		if (n == 0)
			n = -EIO;
		at += n > 0 ? (uintptr_t)n : 0;
	}
	if (n < 0) /* restore the mapping */
		sys6(SYS_mmap, (long)start, (long)bytes, protection, MAP_SHARED | MAP_FIXED, fd,
		     (long)offset);
	else if (protection != (PROT_READ | PROT_WRITE))
		n = sys6(SYS_mprotect, (long)start, (long)bytes, protection, 0, 0, 0);
	return n < 0 ? n : 0;
}

void swap_punch(uint64_t begin, uint64_t end)
{
	sys6(SYS_fallocate, pool.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (long)begin,
	     (long)(end - begin), 0, 0);
}

/* With the others stopped: is the mapping still as it was? */
static bool unchanged(const struct step *s)
{
	static struct vma_reader reader;
	struct vma v;
	bool same;

	if (vma_open_kept(&reader))
		return false;
	same = vma_find(&reader, s->at, &v) && v.start <= s->at && v.end >= s->end &&
	       v.protection == s->vma.protection && v.shared == s->vma.shared &&
	       v.inode == s->vma.inode && (!v.shared || v.offset + (s->at - v.start) == s->offset);
	vma_close(&reader);
	return same;
}

static void *step_run(void *arg)
{
	struct step *s = arg;
	unsigned long before;
	long rc;

	s->rc = stop_others();
	if (s->rc)
		return NULL;
	s->rc = -ESTALE;
	if (stop_alone() || unchanged(s)) {
		before = may_be_locked(s->at) ? locked() : 0;
		rc = s->out ? move_out(s, pool.fd) : move_in(s, pool.fd);
		s->rc = rc < 0 ? (int)rc : 0;
		if (!s->rc)
			lock_again(s, before);
	}
	resume_others();
	return NULL;
}

static int do_step(struct step *s)
{
	pthread_t helper;

	if (!swap_is_ours(s->at, s->end)) {
		step_run(s);
		return s->rc;
	}
	if (pthread_create(&helper, NULL, step_run, s))
		return -EAGAIN;
	pthread_join(helper, NULL);
	return s->rc;
}

/* The main thread's stack cannot grow down past a swapped lowest page: leave it some room below. */
static void keep_stack_growing(const struct vma *v)
{
	volatile uint8_t *below = (volatile uint8_t *)(v->start - STACK_BELOW_BYTES);
	struct rlimit limit;

	if (strcmp(v->path, "[stack]") == 0 && getrlimit(RLIMIT_STACK, &limit) == 0 &&
	    v->end - v->start + 2 * STACK_BELOW_BYTES < limit.rlim_cur)
		(void)*below;
}

static uintptr_t lower(uintptr_t a, uintptr_t b)
{
	return a < b ? a : b;
}

static bool is_alias(const struct vma *v)
{
	return v->inode && !(v->protection & PROT_WRITE);
}

/* The heap and .data are not grown by mremap(), so they need no window. */
static bool swap_stays(const struct step *s, uintptr_t end)
{
	return end - s->at < HUGE_BYTES && !is_alias(&s->vma) &&
	       (s->vma.inode || strcmp(s->vma.path, "[heap]") == 0);
}

int swap_in(const struct vma *v, uintptr_t at, uintptr_t end, uintptr_t *next)
{
	struct step s = {.at = at, .vma = *v};
	uint64_t window, limit, huge;
	bool small;
	int rc;

	if (v->inode && !v->page_bytes)
		s.vma.page_bytes = vma_page_bytes(v->start);
	if (strncmp(s.vma.path, "[v", 2) == 0)
		return -EFAULT; /* the kernel's own pages */
	if (pool_limited())
		return -EFBIG;
	keep_stack_growing(&s.vma);
	huge = s.vma.page_bytes > SHARING_PAGE ? s.vma.page_bytes : SHARING_PAGE;
	s.at &= ~(huge - 1);
	end = lower((end + huge - 1) & ~(huge - 1), s.vma.end);
	end = lower(end, s.at + WINDOW_FILL_MAX);
	small = swap_stays(&s, end);
	rc = parts_reserve(1);
	if (!rc)
		s.offset = small ? pool_common(end - s.at) : pool_window();
	if (rc || s.offset == UINT64_MAX)
		return -ENOMEM;
	window = s.offset;
	limit = small ? s.offset + (end - s.at) : window + (1ull << WINDOW_LOG);
	if (!small)
		s.offset += s.at & (HUGE_BYTES - 1); /* aligns huge pages in both */
	*next = at;
	while (s.at < end) {
		s.end = lower(end, s.at + (SHARING_CHUNK > huge ? SHARING_CHUNK : huge));
		rc = do_step(&s);
		if (rc)
			break;
		part_add(s.offset, s.offset + (s.end - s.at), s.at, is_alias(&s.vma));
		s.offset += s.end - s.at;
		*next = s.at = s.end;
		sharing_reached(s.at);
	}
	if (rc) /* what the last step copied */
		swap_punch(s.offset, limit);
	if (*next == at && !small)
		pool_window_free(window);
	return rc == -ESTALE && *next != at ? 0 : rc;
}

/* ---- out ---- */

/* For constants and code, perhaps our own: map the same pool pages privately, then make each page a
 * copy. Contents are the same at all times, so no one need be stopped. */
static long move_out_alias(const struct step *s, int fd)
{
	const long bytes = (long)(s->end - s->at);
	long rc = sys6(SYS_mmap, (long)s->at, bytes, s->vma.protection | PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_FIXED, fd, (long)s->offset);

	if (rc < 0)
		return rc;
	if (sys6(SYS_madvise, (long)s->at, bytes, MADV_POPULATE_WRITE, 0, 0, 0) < 0)
		for (uintptr_t at = s->at; at < s->end; at += SHARING_PAGE)
			touch(at);
	if (s->vma.protection != (PROT_READ | PROT_WRITE))
		sys6(SYS_mprotect, (long)s->at, bytes, s->vma.protection, 0, 0, 0);
	return 0;
}

static int step_out(struct step *s, bool alias)
{
	unsigned long before;
	int rc;

	if (!alias) {
		s->out = true;
		return do_step(s);
	}
	if (!unchanged(s))
		return -ESTALE;
	before = locked();
	rc = (int)move_out_alias(s, pool.fd);
	lock_again(s, before);
	return rc;
}

/* ---- out, in the child of a fork ---- */

/* Reads [offset, end) of the pool to `to`, which is empty. 0, -errno. */
static long swap_read_all(uintptr_t to, uint64_t offset, uint64_t end)
{
	uint64_t at = offset;

	while (at < end) {
		long begin = sys6(SYS_lseek, pool.fd, (long)at, SEEK_DATA, 0, 0, 0);
		long stop = begin < 0 ? begin : sys6(SYS_lseek, pool.fd, begin, SEEK_HOLE, 0, 0, 0);
		long n;

		if (begin == -ENXIO || (uint64_t)begin >= end)
			return begin < 0 && begin != -ENXIO ? begin : 0;
		if (stop < 0)
			return stop;
		stop = (uint64_t)stop < end ? stop : (long)end;
		n = sys6(SYS_pread64, pool.fd, (long)(to + ((uint64_t)begin - offset)),
			 stop - begin, begin, 0, 0);
		if (n <= 0)
			return n ? n : -EIO;
		at = (uint64_t)(begin + n);
	}
	return 0;
}

/* Copies everything there, AddressSanitizer's red zones included. */
static void __attribute__((no_sanitize("address")))
copy_all(uintptr_t to, uintptr_t from, size_t bytes)
{
#ifdef __x86_64__
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
	for (size_t i = 0; i < bytes; i += 8)
		*(volatile uint64_t *)(to + i) = *(const volatile uint64_t *)(from + i);
#endif
}

int swap_out_child(const struct vma *v, bool lost)
{
	const long at = (long)v->start, bytes = (long)(v->end - v->start);
	long copy = sys6(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	long rc;

	if (copy < 0)
		return (int)copy;
	if (lost || swap_read_all((uintptr_t)copy, v->offset, v->offset + (uint64_t)bytes) < 0) {
		if (!(v->protection & PROT_READ))
			sys6(SYS_mprotect, at, bytes, PROT_READ | v->protection, 0, 0, 0);
		copy_all((uintptr_t)copy, v->start, (size_t)bytes);
	}
	rc = sys6(SYS_mprotect, copy, bytes, v->protection, 0, 0, 0);
	if (!rc)
		rc = sys6(SYS_mremap, copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at, 0);
	return rc < 0 ? (int)rc : 0;
}

/* ---- out, wherever it is mapped ---- */

/* Makes what a mapping shows of [begin, end) of the pool private. Returns the bytes, or -errno. */
static int64_t out_of(const struct vma *v, uint64_t begin, uint64_t end, bool alias)
{
	uint64_t low = v->offset > begin ? v->offset : begin;
	uint64_t high = v->offset + (v->end - v->start);
	struct step s = {.vma = *v, .offset = low};
	int rc = 0;

	high = high < end ? high : end;
	if (low >= high)
		return 0;
	s.at = v->start + (low - v->offset);
	for (uintptr_t last = s.at + (high - low); s.at < last && !rc; s.at = s.end) {
		s.end = lower(last, s.at + SHARING_CHUNK);
		rc = step_out(&s, alias);
		s.offset += s.end - s.at;
	}
	return rc ? rc : (int64_t)(high - low);
}

/* Visits the mappings from `from` on, all of them or only while they are the pool's. Returns bytes
 * made private, or -errno. */
static int64_t sweep(uintptr_t from, bool all, const struct part *part, uint64_t limit)
{
	static struct vma_reader reader;
	struct vma v;
	int64_t n, sum = vma_open_kept(&reader);

	if (sum)
		return sum;
	while (vma_find(&reader, from, &v)) {
		if (!pool_has(&v) && !all)
			break;
		n = pool_has(&v) ? out_of(&v, part->begin, limit, part->alias) : 0;
		if (n < 0 || (n == 0 && !all)) {
			sum = n < 0 ? n : sum;
			break;
		}
		sum += n;
		from = v.end;
	}
	vma_close(&reader);
	return sum;
}

static bool shows(const struct vma *v, uint64_t begin, uint64_t end)
{
	return pool_has(v) && v->offset < end && v->offset + (v->end - v->start) > begin;
}

bool swap_is_mapped(uint64_t begin, uint64_t end, uintptr_t addr)
{
	static struct vma_reader reader;
	struct vma v;
	bool mapped;

	if (vma_open_kept(&reader))
		return true; /* assume so */
	mapped = vma_find(&reader, addr, &v) && shows(&v, begin, end);
	for (uintptr_t at = 0; !mapped && vma_find_shared(&reader, at, &v); at = v.end)
		mapped = shows(&v, begin, end);
	vma_close(&reader);
	return mapped;
}

void swap_mark(void)
{
	static struct vma_reader reader;
	struct vma v;
	const bool blind = vma_open_kept(&reader); /* then assume that all are */

	for (uint32_t i = 0; i < part_count; i++)
		parts[i].mapped = blind;
	if (blind)
		return;
	for (uintptr_t at = 0; vma_find_shared(&reader, at, &v); at = v.end)
		if (pool_has(&v))
			parts_mark(v.offset, v.offset + (v.end - v.start));
	vma_close(&reader);
}

/* Replaces what v shows of [begin, end) by a copy; the other threads are stopped. */
static void copy_out(struct vma v, uint64_t begin, uint64_t end)
{
	const uint64_t low = v.offset > begin ? v.offset : begin;

	if (v.offset + (v.end - v.start) > end)
		v.end = v.start + (end - v.offset);
	v.start += low - v.offset;
	v.offset = low;
	if (!swap_is_ours(v.start, v.end))
		swap_out_child(&v, true);
}

void swap_out_lost(const struct part *part, uint64_t limit)
{
	static struct vma_reader reader;
	struct vma v;

	if (stop_others())
		return;
	if (vma_open_kept(&reader) == 0) {
		for (uintptr_t at = 0; vma_find_shared(&reader, at, &v); at = v.end)
			if (shows(&v, part->begin, limit))
				copy_out(v, part->begin, limit);
		vma_close(&reader);
	}
	resume_others();
}

bool swap_out(const struct part *part, uint64_t limit)
{
	int64_t n = sweep(part->addr, false, part, limit);

	/* Not where it was: moved by mremap(), or unmapped. */
	for (int i = 0;
	     i < 8 && (n == -ESTALE || (n >= 0 && (uint64_t)n < part->end - part->begin)); i++) {
		n = sweep(0, true, part, limit);
		if (n >= 0)
			break;
	}
	if (n >= 0)
		swap_punch(part->begin, limit);
	return n >= 0;
}
