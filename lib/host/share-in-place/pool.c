/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool: the memfd that holds swapped pages, its windows, and its parts in use. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "sharing_priv.h"

struct pool pool = {.fd = -1, .read_only_fd = -1};
struct part *parts;
uint32_t part_count;
struct idle idle;
static uint32_t part_room;

static uint32_t next_window;   /* unused from here on */
static uint32_t *free_windows; /* used before */
static uint32_t free_count, free_room;

#define NO_WINDOW UINT64_MAX
static uint64_t common = NO_WINDOW; /* the window of small pieces */
static uint64_t common_at;	    /* where the next one goes */

#define WINDOWS (1u << (POOL_LOG - WINDOW_LOG))

/* ---- the file ---- */

bool pool_lost(void)
{
	struct stat st;

	return fstat(pool.fd, &st) || st.st_ino != pool.inode || st.st_dev != pool.device;
}

void pool_forget(void)
{
	pool = (struct pool){.fd = -1, .read_only_fd = -1};
	part_count = 0;
	idle = (struct idle){0};
	free_count = 0;
	next_window = 0;
	common = NO_WINDOW;
}

static int pool_make(void)
{
	int fd = memfd_create("softhca", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char path[64];
	struct stat st;
	int err;

	if (fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	pool.read_only_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (pool.read_only_fd >= 0 && ftruncate(fd, 1ll << POOL_LOG) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 &&
	    fstat(fd, &st) == 0) {
		pool.fd = fd;
		pool.device = st.st_dev;
		pool.inode = st.st_ino;
		return 0;
	}
	err = -errno;
	close(fd);
	if (pool.read_only_fd >= 0)
		close(pool.read_only_fd);
	pool.read_only_fd = -1;
	return err;
}

bool pool_limited(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < (1ull << POOL_LOG);
}

int pool_open(void)
{
	if (pool.fd >= 0)
		return 0;
	return pool_limited() ? -EFBIG : pool_make();
}

/* Reserves room for freeing a window later, when allocating may be impossible. */
static bool window_reserve(void)
{
	uint32_t room = free_room ? free_room * 2 : 64;
	uint32_t *more;

	if (next_window < free_room)
		return true;
	more = realloc(free_windows, room * sizeof(more[0]));
	if (!more)
		return false;
	free_windows = more;
	free_room = room;
	return true;
}

uint64_t pool_window(void)
{
	uint32_t i;

	if (free_count)
		i = free_windows[--free_count];
	else if (next_window < WINDOWS && window_reserve())
		i = next_window++;
	else
		return NO_WINDOW;
	return (uint64_t)i << WINDOW_LOG;
}

uint64_t pool_common(uint64_t bytes)
{
	uint64_t offset;

	if (common == NO_WINDOW || common_at + bytes > common + WINDOW_FILL_MAX)
		common = common_at = pool_window();
	if (common == NO_WINDOW)
		return NO_WINDOW;
	offset = common_at;
	common_at += bytes;
	return offset;
}

void pool_window_free(uint64_t offset)
{
	if (offset == common)
		common = NO_WINDOW;
	if (free_count < free_room)
		free_windows[free_count++] = (uint32_t)(offset >> WINDOW_LOG);
}

/* ---- parts ---- */

int parts_reserve(uint32_t n)
{
	uint32_t room = part_room ? part_room : 64;
	struct part *more;

	while (room - part_count < n)
		room *= 2;
	if (room == part_room)
		return 0;
	more = realloc(parts, room * sizeof(more[0]));
	if (!more)
		return -ENOMEM;
	parts = more;
	part_room = room;
	return 0;
}

/* The first part that ends after offset. */
static uint32_t part_at(uint64_t offset)
{
	uint32_t low = 0, high = part_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (parts[middle].end <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool part_alias(uint64_t offset)
{
	uint32_t i = part_at(offset);

	if (i < part_count && parts[i].begin <= offset)
		return parts[i].alias;
	return i && parts[i - 1].begin >> WINDOW_LOG == offset >> WINDOW_LOG && parts[i - 1].alias;
}

void parts_mark(uint64_t begin, uint64_t end)
{
	uint32_t i = part_at(begin);

	if (i && (i == part_count || parts[i].begin > begin) &&
	    parts[i - 1].begin >> WINDOW_LOG == begin >> WINDOW_LOG)
		parts[i - 1].mapped = true;
	for (; i < part_count && parts[i].begin < end; i++)
		parts[i].mapped = true;
}

/* Adds an idle part to the idle account (n = 1) or removes it (-1). */
static void account(const struct part *p, int n)
{
	if (p->users)
		return;
	idle.bytes += (uint64_t)n * (p->end - p->begin);
	__atomic_store_n(&idle.parts, idle.parts + (uint32_t)n, __ATOMIC_RELAXED);
}

static void pool_insert(uint32_t i, struct part part)
{
	memmove(&parts[i + 1], &parts[i], (part_count - i) * sizeof(parts[0]));
	parts[i] = part;
	part_count++;
	account(&part, 1);
}

void part_remove(uint32_t i)
{
	account(&parts[i], -1);
	part_count--;
	memmove(&parts[i], &parts[i + 1], (part_count - i) * sizeof(parts[0]));
}

void part_resize(struct part *p, uint64_t begin, uint64_t end)
{
	account(p, -1);
	p->addr += begin - p->begin;
	p->begin = begin;
	p->end = end;
	account(p, 1);
}

void part_add(uint64_t begin, uint64_t end, uintptr_t addr, bool alias)
{
	uint32_t i = part_at(begin);
	struct part *before = i ? &parts[i - 1] : NULL;

	if (before && before->end == begin && !before->users && before->alias == alias &&
	    before->addr + (before->end - before->begin) == addr &&
	    (begin & ((1ull << WINDOW_LOG) - 1)))
		part_resize(before, before->begin, end);
	else
		pool_insert(
			i, (struct part){.begin = begin, .end = end, .addr = addr, .alias = alias});
}

/* Splits the part at that offset. */
static void pool_cut(uint64_t offset)
{
	uint32_t i = part_at(offset);
	struct part upper;

	if (i == part_count || parts[i].begin >= offset)
		return;
	upper = parts[i];
	upper.addr += offset - upper.begin;
	upper.begin = offset;
	part_resize(&parts[i], parts[i].begin, offset);
	pool_insert(i + 1, upper);
}

void parts_use(uint64_t begin, uint64_t end, uintptr_t addr, int n)
{
	static uint64_t departures;
	uint64_t at = begin;
	bool alias;
	uint32_t i;

	pool_cut(begin);
	pool_cut(end);
	for (i = part_at(begin); at < end; at = parts[i++].end) {
		/* Grown by mremap(): in the pool without having been swapped. */
		alias = part_alias(at);
		if (i == part_count || parts[i].begin > at)
			pool_insert(i, (struct part){.begin = at,
						     .end = i < part_count && parts[i].begin < end
								    ? parts[i].begin
								    : end,
						     .addr = addr + (at - begin),
						     .alias = alias});
		account(&parts[i], -1);
		parts[i].users += (uint32_t)n;
		if (!parts[i].users)
			parts[i].since = ++departures;
		account(&parts[i], 1);
	}
}
