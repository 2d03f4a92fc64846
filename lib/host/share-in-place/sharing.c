/* SPDX-License-Identifier: BSD-3-Clause */
/* Shares memory of the process and makes it private again; see sharing.h. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>
#include "sharing_priv.h"

enum {
	TRIES_MAX = 16,
	KEEP_PART = 8,	       /* the reciprocal of the share of the machine's memory */
	KEEP_PARTS_MAX = 1024, /* each is a mapping, of which a process may have few */
};
#define KEEP_UNKNOWN UINT64_MAX
uint64_t sharing_keep_max = KEEP_UNKNOWN;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct sharing *sharings;

void sharing_lock(void)
{
	pthread_mutex_lock(&lock);
}

void sharing_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void sharing_lock_reset(void)
{
	pthread_mutex_init(&lock, NULL);
}

/* ---- from private to shared ---- */

static int sharing_allowed(const struct vma *v, uintptr_t at, bool write)
{
	if (v->start > at || !(v->protection & (PROT_READ | PROT_WRITE)))
		return -EFAULT;
	return write && !(v->protection & PROT_WRITE) ? -EFAULT : 0;
}

void (*sharing_progress)(uint64_t done, uint64_t all);
static uintptr_t asked, asked_end; /* what make_shared() has to share */

void sharing_reached(uintptr_t at)
{
	if (sharing_progress)
		sharing_progress((at < asked_end ? at : asked_end) - asked, asked_end - asked);
}

/* Swaps the private parts of [at, end). 0, -errno. */
static int make_shared(struct vma_reader *r, uintptr_t at, uintptr_t end, bool write)
{
	struct vma v;
	int rc = 0;

	asked = at;
	asked_end = end;
	sharing_reached(at);
	while (at < end && !rc) {
		rc = vma_find(r, at, &v) ? sharing_allowed(&v, at, write) : -EFAULT;
		if (rc || v.shared) {
			at = v.end;
			continue;
		}
		rc = swap_in(&v, at, end < v.end ? end : v.end, &at);
		vma_changed(r);
	}
	sharing_reached(end);
	return rc;
}

/* ---- pieces ---- */

static struct sharing_piece *piece_new(struct sharing *s)
{
	struct sharing_piece *more = realloc(s->pieces, (s->count + 1) * sizeof(more[0]));

	if (!more)
		return NULL;
	s->pieces = more;
	return &more[s->count++];
}

static bool continues(const struct sharing *s, const struct vma *v, uint64_t offset)
{
	const struct sharing_piece *last = s->count ? &s->pieces[s->count - 1] : NULL;

	return last && last->inode == v->inode && last->device == v->device &&
	       last->offset + last->bytes == offset;
}

/* Does the file contain all pages of the piece? Its last page may be partial. */
static int sharing_inside(const struct sharing_piece *p)
{
	const uint64_t page = 1ull << p->log_page;
	struct stat st;

	if (p->segment_bytes)
		return p->offset + p->bytes <= p->segment_bytes ? 0 : -EFAULT;
	if (fstat(p->fd, &st))
		return -EFAULT;
	return p->offset + p->bytes <= (((uint64_t)st.st_size + page - 1) & ~(page - 1)) ? 0
											 : -EFAULT;
}

/* Opens the file of a piece outside the pool, and widens the piece to its pages. */
static int piece_open(struct sharing_piece *p, const struct vma *v, bool write)
{
	uint64_t page;
	int rc = file_open(v, write, &p->fd, &p->log_page);

	p->segment_bytes = rc == -EOPNOTSUPP ? file_segment_bytes(v) : 0;
	if (rc && !p->segment_bytes)
		return rc;
	p->owned = true;
	page = 1ull << p->log_page;
	p->bytes = (p->bytes + (p->addr & (page - 1)) + page - 1) & ~(page - 1);
	p->offset &= ~(page - 1);
	p->addr &= ~(page - 1);
	return sharing_inside(p);
}

/* The part [at, end) of one shared mapping. */
static int sharing_add_piece(struct sharing *s, const struct vma *v, uintptr_t at, uintptr_t end)
{
	const uint64_t offset = v->offset + (at - v->start);
	struct sharing_piece *p;

	if (continues(s, v, offset)) {
		p = &s->pieces[s->count - 1];
		p->bytes += end - at;
		return pool_has(v) ? 0 : sharing_inside(p);
	}
	p = piece_new(s);
	if (!p)
		return -ENOMEM;
	*p = (struct sharing_piece){.addr = at,
				    .bytes = end - at,
				    .offset = offset,
				    .device = v->device,
				    .inode = v->inode,
				    .stride = pool_has(v) ? 1ull << WINDOW_LOG : 0,
				    .fd = s->writable ? pool.fd : pool.read_only_fd,
				    .log_page = 12};
	return pool_has(v) ? 0 : piece_open(p, v, s->writable);
}

/* Walks [at, end), which must be shared throughout. -ESTALE: it is not. */
static int sharing_walk(struct sharing *s, struct vma_reader *r, uintptr_t at, uintptr_t end,
			bool write, bool add)
{
	struct vma v;
	int rc = 0;

	while (at < end && !rc) {
		rc = vma_find(r, at, &v) ? sharing_allowed(&v, at, write) : -EFAULT;
		if (!rc && !v.shared)
			rc = -ESTALE;
		if (!rc && add)
			rc = sharing_add_piece(s, &v, at, end < v.end ? end : v.end);
		s->writable = s->writable && v.protection & PROT_WRITE;
		at = v.end;
	}
	return rc;
}

static void envelope(struct sharing *s)
{
	const struct sharing_piece *last = &s->pieces[s->count - 1];

	s->addr = s->pieces[0].addr;
	s->bytes = last->addr + last->bytes - s->addr;
	for (unsigned int i = 0; i < s->count; i++)
		if (s->pieces[i].log_page > s->log_page)
			s->log_page = s->pieces[i].log_page;
}

/* ---- users of the pool ---- */

static bool of_pool(const struct sharing_piece *p)
{
	return pool.fd >= 0 && p->inode == pool.inode && p->device == pool.device;
}

static int sharing_use(const struct sharing *s, int n)
{
	if (n > 0 && parts_reserve(s->count * 3))
		return -ENOMEM;
	for (unsigned int i = 0; i < s->count; i++) {
		const struct sharing_piece *p = &s->pieces[i];

		if (of_pool(p))
			parts_use(p->offset, p->offset + p->bytes, p->addr, n);
	}
	return 0;
}

/* Where the next part in the window begins, or the window ends. */
static uint64_t limit_of(uint32_t i)
{
	const uint64_t end = ((parts[i].begin >> WINDOW_LOG) + 1) << WINDOW_LOG;

	return i + 1 < part_count && parts[i + 1].begin < end ? parts[i + 1].begin : end;
}

static bool alone_in_window(uint32_t i)
{
	const uint64_t window = parts[i].begin >> WINDOW_LOG;

	return (i == 0 || parts[i - 1].begin >> WINDOW_LOG != window) &&
	       (i + 1 == part_count || parts[i + 1].begin >> WINDOW_LOG != window);
}

/* ---- parts without users ---- */

static void sharing_forget(uint32_t i)
{
	if (alone_in_window(i) && !parts[i].alias)
		pool_window_free(parts[i].begin & ~((1ull << WINDOW_LOG) - 1));
	part_remove(i);
}

/* Makes a part private and removes it. False: still shared, try again later. */
static bool sharing_give_back(uint32_t i)
{
	const struct part part = parts[i];

	if (!swap_out(&part, limit_of(i)))
		return false;
	sharing_forget(i);
	return true;
}

/* Frees a part that nothing maps. */
static void release(uint32_t i)
{
	swap_punch(parts[i].begin, limit_of(i));
	sharing_forget(i);
}

void sharing_reclaim(void)
{
	if (pool_lost())
		return;
	for (uint32_t i = 0; i < part_count;) {
		while (!parts[i].users && i + 1 < part_count && !parts[i + 1].users &&
		       parts[i + 1].begin == parts[i].end && limit_of(i) == parts[i].end &&
		       parts[i + 1].addr - parts[i].addr == parts[i].end - parts[i].begin) {
			const uint64_t end = parts[i + 1].end;

			part_remove(i + 1);
			part_resize(&parts[i], parts[i].begin, end);
		}
		if (parts[i].users || !sharing_give_back(i))
			i++;
	}
}

/* The program has closed the pool and gets another. Parts without users become private while they
 * are still known, lest the child of a later fork share them. */
static void part_with_lost(void)
{
	for (uint32_t i = 0; i < part_count && idle.parts; i++)
		if (!parts[i].users)
			swap_out_lost(&parts[i], limit_of(i));
	pool_forget();
}

static uint64_t keep_max(void)
{
	struct sysinfo info;

	if (sharing_keep_max == KEEP_UNKNOWN)
		sharing_keep_max = interposed() && sysinfo(&info) == 0
					   ? (uint64_t)info.totalram * info.mem_unit / KEEP_PART
					   : 0;
	return sharing_keep_max;
}

static uint32_t oldest(void)
{
	uint32_t found = UINT32_MAX;

	for (uint32_t i = 0; i < part_count; i++)
		if (!parts[i].users && (found == UINT32_MAX || parts[i].since < parts[found].since))
			found = i;
	return found;
}

static int64_t sharing_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return t.tv_sec;
}

/* Frees what was unmapped without our notice, as by the C library's free(). */
static void sharing_collect(void)
{
	static int64_t last;
	const int64_t now = sharing_now_s();

	if (!idle.parts || now == last || pool_lost())
		return;
	last = now;
	swap_mark();
	for (uint32_t i = 0; i < part_count;)
		if (parts[i].users || parts[i].mapped)
			i++;
		else
			release(i);
}

/* A child not made by fork() would share a shared stack: make it private as soon as possible. */
static void give_back_stack(void)
{
	for (uint32_t i = 0; i < part_count;) {
		const struct part *p = &parts[i];

		if (p->users || !swap_is_stack(p->addr, p->addr + (p->end - p->begin)) ||
		    pool_lost() || !sharing_give_back(i))
			i++;
	}
}

/* Parts may have lost their users. They stay swapped, up to a limit: memory is often registered
 * again, and copying it back costs as much as copying it here. */
static void settle(void)
{
	const uint64_t max = keep_max();

	if (!max) {
		sharing_reclaim();
		return;
	}
	if (!idle.parts)
		return;
	give_back_stack();
	sharing_collect();
	while ((idle.bytes > max || idle.parts > KEEP_PARTS_MAX) && !pool_lost() &&
	       sharing_give_back(oldest()))
		;
}

/* Frees [from, to) of a part that is still mapped, unless that range is mapped elsewhere: a mapping
 * that grows there again must find zeroes. */
static void free_within(const struct part *p, uintptr_t from, uintptr_t to)
{
	const uintptr_t start = p->addr, end = start + (p->end - p->begin);
	const uint64_t begin = p->begin + (from > start ? from - start : 0);
	const uint64_t stop = p->end - (end > to ? end - to : 0);

	if (stop - begin < p->end - p->begin &&
	    !swap_is_mapped(begin, stop, start + (begin - p->begin)))
		swap_punch(begin, stop);
}

static bool idle_within(const struct part *p, uintptr_t from, uintptr_t to)
{
	return !p->users && p->addr < to && p->addr + (p->end - p->begin) > from;
}

static bool any_idle_within(uintptr_t from, uintptr_t to)
{
	for (uint32_t i = 0; i < part_count; i++)
		if (idle_within(&parts[i], from, to))
			return true;
	return false;
}

static void free_unmapped(uintptr_t from, uintptr_t to)
{
	swap_mark();
	for (uint32_t i = 0; i < part_count;) {
		if (idle_within(&parts[i], from, to)) {
			if (!parts[i].mapped) {
				release(i);
				continue;
			}
			free_within(&parts[i], from, to);
		}
		i++;
	}
}

void sharing_unmapped(const void *at, size_t bytes)
{
	const uintptr_t from = (uintptr_t)at;
	const uintptr_t to = (from + bytes + SHARING_PAGE - 1) & ~(uintptr_t)(SHARING_PAGE - 1);
	int error = errno;

	if (!__atomic_load_n(&idle.parts, __ATOMIC_RELAXED) || pthread_mutex_trylock(&lock))
		return;
	if (any_idle_within(from, to) && !pool_lost())
		free_unmapped(from, to);
	pthread_mutex_unlock(&lock);
	errno = error;
}

/* ---- sharings ---- */

static void link_it(struct sharing *s)
{
	s->next = sharings;
	if (s->next)
		s->next->prev = s;
	sharings = s;
}

static void unlink_it(struct sharing *s)
{
	if (s->next)
		s->next->prev = s->prev;
	if (s->prev)
		s->prev->next = s->next;
	else
		sharings = s->next;
}

static int share(struct sharing *s, bool write)
{
	const uintptr_t at = s->first & ~(uintptr_t)(SHARING_PAGE - 1);
	const uintptr_t end =
		(s->first + s->length + SHARING_PAGE - 1) & ~(uintptr_t)(SHARING_PAGE - 1);
	static struct vma_reader reader;
	int rc = vma_open_kept(&reader);

	if (rc)
		return rc;
	rc = -ESTALE;
	/* Other threads may change the mappings at any moment. */
	for (int i = 0; i < TRIES_MAX && rc == -ESTALE; i++) {
		vma_changed(&reader);
		rc = make_shared(&reader, at, end, write);
		s->writable = true;
		if (!rc)
			rc = sharing_walk(s, &reader, at, end, write, false);
		if (!rc)
			rc = sharing_walk(s, &reader, at, end, write, true);
		if (rc) {
			sharing_close_files(s);
			s->count = 0;
		}
	}
	vma_close(&reader);
	if (rc)
		return rc == -ESTALE ? -EFAULT : rc;
	envelope(s);
	return sharing_use(s, 1);
}

int sharing_get(const void *addr, size_t length, bool write, struct sharing **out)
{
	const uintptr_t first = (uintptr_t)addr;
	struct sharing *s;
	int rc;

	if (length == 0 || first + length < first || first + length > UINTPTR_MAX - SHARING_PAGE)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->first = first;
	s->length = length;
	fork_watch();
	sharing_lock();
	if (pool.fd >= 0 && pool_lost())
		part_with_lost();
	rc = pool_open();
	if (!rc)
		rc = share(s, write);
	if (!rc)
		link_it(s);
	else
		settle();
	sharing_collect();
	sharing_unlock();
	if (rc) {
		sharing_close_files(s);
		free(s->pieces);
		free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void sharing_close_files(struct sharing *s)
{
	for (unsigned int i = 0; i < s->count; i++) {
		struct sharing_piece *p = &s->pieces[i];

		if (p->owned && p->fd >= 0) {
			close(p->fd);
			p->fd = -1;
		}
	}
}

void sharing_put(struct sharing *s)
{
	if (!s)
		return;
	sharing_lock();
	unlink_it(s);
	sharing_use(s, -1);
	settle();
	sharing_unlock();
	sharing_close_files(s);
	free(s->pieces);
	free(s);
}
