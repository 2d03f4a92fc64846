/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Client memory in the daemon: maps sealed memfds and survives what their owner does to them.
 *
 * A page that cannot be had any more (no memory, no hugepage left) kills its reader with SIGBUS.
 * The handler finds the mapping in a table that needs no lock, puts zeroes in the place of the page
 * and returns: the access goes on, what it reads or writes is the client's loss. After a few such
 * pages the whole mapping is replaced, so that a client cannot use up the daemon's mappings. The
 * control thread disconnects the client afterwards.
 *
 * Everything but the handler: control thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "control_priv.h"

enum {
	RANGES_MAX = 1 << 16,
	FAULTS_BEFORE_WHOLE = 8, /* pages replaced one by one before all of the mapping is */
	PAGE_BYTES = 4096,
};
#define POPULATE_BYTES_MAX (64ull << 20)

/* end is written last when made, first when removed; all atomic. */
struct range {
	uintptr_t start, end;
	uint64_t page_bytes;
	uint64_t faults;
};
static struct range ranges[RANGES_MAX];
static uint32_t ranges_end;   /* one past the highest ever used; atomic */
static uint32_t ranges_first; /* no free place below */
static uint64_t faults_total; /* atomic */
static struct sigaction previous;

/* Async-signal-safe. Whose address is it? */
static struct range *range_of(uintptr_t addr)
{
	uint32_t n = __atomic_load_n(&ranges_end, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++) {
		uintptr_t end = __atomic_load_n(&ranges[i].end, __ATOMIC_ACQUIRE);

		if (addr < end && addr >= __atomic_load_n(&ranges[i].start, __ATOMIC_ACQUIRE))
			return &ranges[i];
	}
	return NULL;
}

/* Async-signal-safe. */
static bool replace(struct range *r, uintptr_t addr)
{
	uint64_t nth = __atomic_add_fetch(&r->faults, 1, __ATOMIC_RELAXED);
	uintptr_t from = addr & ~(uintptr_t)(r->page_bytes - 1);
	size_t bytes = r->page_bytes;

	if (nth > FAULTS_BEFORE_WHOLE) {
		from = r->start;
		bytes = r->end - r->start;
	}
	__atomic_add_fetch(&faults_total, 1, __ATOMIC_RELAXED);
	return mmap((void *)from, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
		       0) != MAP_FAILED;
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	int saved = errno;
	struct range *r = range_of((uintptr_t)info->si_addr);

	if (!r || !replace(r, (uintptr_t)info->si_addr)) {
		/* Not ours: the access is repeated under the handler that was there before. */
		sigaction(SIGBUS, &previous, NULL);
		if (info->si_code <= 0) /* sent, not a fault: nothing would repeat it */
			raise(sig);
	}
	errno = saved;
}

int memory_guard(void)
{
	struct sigaction mine = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO}, old;

	sigemptyset(&mine.sa_mask);
	if (sigaction(SIGBUS, &mine, &old))
		return -errno;
	if (!(old.sa_flags & SA_SIGINFO) || old.sa_sigaction != on_sigbus)
		previous = old;
	return 0;
}

static int range_add(const struct mapping *m, uint64_t page_bytes, uint32_t *index)
{
	uint32_t i = ranges_first;

	while (i < RANGES_MAX && ranges[i].end)
		i++;
	if (i == RANGES_MAX)
		return -ENOSPC;
	ranges[i].page_bytes = page_bytes;
	ranges[i].faults = 0;
	__atomic_store_n(&ranges[i].start, (uintptr_t)m->base, __ATOMIC_RELEASE);
	__atomic_store_n(&ranges[i].end, (uintptr_t)m->base + m->bytes, __ATOMIC_RELEASE);
	if (i >= ranges_end)
		__atomic_store_n(&ranges_end, i + 1, __ATOMIC_RELEASE);
	ranges_first = i + 1;
	*index = i;
	return 0;
}

/* What the descriptor must be, whoever made it. NULL, or what is wrong. */
static const char *memfd_wrong(int fd, uint64_t bytes, unsigned int flags, uint64_t *page_bytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	int wanted = F_SEAL_SHRINK | F_SEAL_GROW | (flags & MEMORY_SEAL_SEALED ? F_SEAL_SEAL : 0);
	struct stat st;

	if (seals < 0)
		return "not a memfd";
	if ((seals & wanted) != wanted)
		return "not sealed against shrinking and growing";
	if (fstat(fd, &st))
		return "cannot be asked for its size";
	if (bytes == 0 || (uint64_t)st.st_size != bytes)
		return "of another size than said";
	*page_bytes = st.st_blksize > PAGE_BYTES ? (uint64_t)st.st_blksize : PAGE_BYTES;
	if (*page_bytes & (*page_bytes - 1) || bytes % *page_bytes)
		return "not a whole number of pages";
	return NULL;
}

int memory_map(int fd, uint64_t bytes, unsigned int flags, struct mapping *m, const char **why)
{
	uint64_t page_bytes;
	void *at;
	int rc;

	*why = memfd_wrong(fd, bytes, flags, &page_bytes);
	if (*why)
		return -EINVAL;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		*why = "cannot be mapped";
		return -errno;
	}
	*m = (struct mapping){.base = at, .bytes = bytes};
	rc = range_add(m, page_bytes, &m->range);
	if (rc) {
		*why = "one too many";
		munmap(at, bytes);
		*m = (struct mapping){0};
		return rc;
	}
	madvise(at, bytes, MADV_DONTDUMP);
#ifdef MADV_POPULATE_WRITE
	/* Saves the data path its page faults. Failing is allowed: then they come one by one. */
	if (bytes <= POPULATE_BYTES_MAX)
		madvise(at, bytes, MADV_POPULATE_WRITE);
#endif
	return 0;
}

void memory_unmap(struct mapping *m)
{
	if (!m->base)
		return;
	/* First forget the range: the address may be somebody else's as soon as it is free. */
	__atomic_store_n(&ranges[m->range].end, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ranges[m->range].start, 0, __ATOMIC_SEQ_CST);
	munmap(m->base, m->bytes);
	if (m->range < ranges_first)
		ranges_first = m->range;
	*m = (struct mapping){0};
}

uint64_t memory_faults(const struct mapping *m)
{
	return m->base ? __atomic_load_n(&ranges[m->range].faults, __ATOMIC_RELAXED) : 0;
}

uint64_t memory_faults_total(void)
{
	return __atomic_load_n(&faults_total, __ATOMIC_RELAXED);
}
