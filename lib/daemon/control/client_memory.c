/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Client memory in the daemon: maps memory files, sealed or not, and survives whatever their owner
 * does to them.
 *
 * Accessing a page that is no longer available (file truncated, out of memory or hugepages) raises
 * SIGBUS. So does accessing a hole of the file, which otherwise would be filled with a page charged
 * to the daemon, if the kernel allows it (userfaultfd). The handler finds the mapping in a
 * lock-free table, maps zeroes in place of the page and returns: the access continues, and the
 * client loses its data. After a few such pages the whole mapping is replaced, so that a client
 * cannot use up the daemon's mappings; it then holds only a few pages at a time, so that a client
 * cannot use up the daemon's memory. The control thread disconnects the client afterwards.
 *
 * Everything except the handler: control thread.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <linux/magic.h>
#include <linux/userfaultfd.h>
#include <ucontext.h>
#include <unistd.h>
#include "client_memory.h"
#include "control_priv.h"

enum {
	RANGES_MAX = 1 << 16,
	FAULTS_BEFORE_WHOLE = 8, /* pages replaced one by one before the whole mapping is */
	SPLITS_MAX = 1024,	 /* pages replaced one by one, over all mappings */
	SPLIT_BYTES_MAX = 65536, /* larger pages are never replaced alone */
	LENT_MAX = 4,		 /* pages that a replaced mapping has at a time */
	PAGE_BYTES = 4096,
	HUGE_BYTES = 2 << 20,
	LARGE_BYTES = 1 << 30,
	REGISTERS_MAX = 31,
	WAIT_NS_MIN = 1000000, /* shorter waits do not count */
};

/* end is written last when made, first when removed; all atomic. */
struct range {
	uintptr_t start, end;
	uint64_t page_bytes; /* 0: this slot is free */
	uint64_t faults;     /* before all of it was replaced */
	uint64_t splits;     /* pages replaced one by one: two more mappings each */
	uint64_t held_up_ns; /* how long threads waited for holes in it; atomic */
	uint32_t lent;	     /* pages handed out since all of it was replaced; atomic */
	bool replaced;	     /* all of it; atomic */
	int protection;
	uid_t owner;
};
#define NOBODY ((uid_t)-1)
static struct range ranges[RANGES_MAX];
static uint32_t ranges_end;   /* one past the highest used so far; atomic */
static uint32_t ranges_first; /* no free slot below */
static uint64_t faults_total; /* atomic */
static uint64_t splits;	      /* atomic: the sum of all ranges' */
static uint32_t ranges_used, ranges_allowed;
static uint64_t held_up_total;		 /* times; atomic */
static uint64_t waits_since_ns;		 /* of the thread that was signalled; 0: none; atomic */
static __thread struct range *populated; /* what this thread is populating */
static struct sigaction others;		 /* handles faults in other memory */
static bool guarded;
static int missing_fd = -1; /* userfaultfd: missing pages raise SIGBUS; -1: they are allocated */
static uintptr_t lowest;    /* where the last piece was mapped */

/* The mapping that contains the address. Async-signal-safe. */
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

/* ---- pages that are missing ---- */

static int missing_open(void)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_SHMEM |
					     UFFD_FEATURE_MISSING_HUGETLBFS};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0)
		return fd;
	LOG(WARNING,
	    "pages that programs register but never touched are charged to the daemon: "
	    "the kernel allows no userfaultfd (%s)",
	    strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

/* From now on no access allocates a page of this memory. Async-signal-safe. False: errno. */
static bool catch_missing(uintptr_t start, uint64_t bytes)
{
	struct uffdio_register in = {.range = {.start = start, .len = bytes},
				     .mode = UFFDIO_REGISTER_MODE_MISSING};

	return ioctl(missing_fd, UFFDIO_REGISTER, &in) == 0;
}

/* Gives a replaced mapping a page for a while. Async-signal-safe. */
static void lend(struct range *r, uintptr_t start, uintptr_t end, uintptr_t addr)
{
	struct uffdio_zeropage page = {
		.range = {.start = addr & ~(uintptr_t)(PAGE_BYTES - 1), .len = PAGE_BYTES}};

	if (__atomic_add_fetch(&r->lent, 1, __ATOMIC_RELAXED) % LENT_MAX == 0)
		madvise((void *)start, end - start, MADV_DONTNEED);
	/* On error the access faults again, or succeeds. */
	ioctl(missing_fd, UFFDIO_ZEROPAGE, &page);
}

/* ---- SIGBUS ---- */

/* Async-signal-safe. False: the address is no longer in the range, which is being removed. The
 * start is read first, since it is removed last. */
static bool memory_replace(struct range *r, uintptr_t addr)
{
	uintptr_t start = __atomic_load_n(&r->start, __ATOMIC_ACQUIRE);
	uintptr_t end = __atomic_load_n(&r->end, __ATOMIC_ACQUIRE);
	uintptr_t page = addr & ~(uintptr_t)(r->page_bytes - 1);
	bool whole;
	uint64_t nth;

	if (addr < start || addr >= end)
		return false;
	if (__atomic_load_n(&r->replaced, __ATOMIC_ACQUIRE)) {
		lend(r, start, end, addr);
		return true;
	}
	nth = __atomic_add_fetch(&r->faults, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&faults_total, 1, __ATOMIC_RELAXED);
	whole = nth > FAULTS_BEFORE_WHOLE || r->page_bytes > SPLIT_BYTES_MAX ||
		__atomic_load_n(&splits, __ATOMIC_RELAXED) >= SPLITS_MAX;
	if (!whole) {
		/* The file may report larger pages than its mapping allows: no more than is
		 * mapped. */
		if (start < page)
			start = page;
		if (end - page > r->page_bytes)
			end = page + r->page_bytes;
		__atomic_add_fetch(&r->splits, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&splits, 1, __ATOMIC_RELAXED);
	}
	if (mmap((void *)start, end - start, r->protection,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED)
		return false;
	if (whole && missing_fd >= 0 && catch_missing(start, end - start))
		__atomic_store_n(&r->replaced, true, __ATOMIC_RELEASE);
	return true;
}

static int libc_sigaction(int sig, const struct sigaction *new, struct sigaction *old)
{
	static __typeof__(&sigaction) next; /* found before any handler needs it */

	if (!next)
		next = (__typeof__(next))dlsym(RTLD_NEXT, "sigaction");
	return next(sig, new, old);
}

/*
 * Replaces libc's for the whole process: other handlers of SIGBUS see only what is not a client's.
 * While EAL maps a hugepage, its handler jumps back into the thread that maps; if it caught a
 * client's fault on an lcore, two threads would run on one stack.
 */
__attribute__((visibility("default"))) int sigaction(int sig, const struct sigaction *new,
						     struct sigaction *old)
{
	const struct sigaction before = others;

	if (sig != SIGBUS || !guarded)
		return libc_sigaction(sig, new, old);
	if (new)
		others = *new;
	if (old)
		*old = before;
	return 0;
}

static void on_other_memory(int sig, siginfo_t *info, void *context)
{
	if (others.sa_handler == SIG_DFL || others.sa_handler == SIG_IGN) {
		libc_sigaction(SIGBUS, &others, NULL); /* for the access, which is repeated */
		if (info->si_code <= 0) /* sent, not a fault: nothing would repeat it */
			raise(sig);
	} else if (others.sa_flags & SA_SIGINFO) {
		others.sa_sigaction(sig, info, context);
	} else {
		others.sa_handler(sig);
	}
}

static void blame(struct range *r, uint64_t ns)
{
	__atomic_add_fetch(&r->held_up_ns, ns, __ATOMIC_RELAXED);
	__atomic_add_fetch(&held_up_total, 1, __ATOMIC_RELEASE);
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	const struct wait wait = wait_begin();
	struct range *r = range_of((uintptr_t)info->si_addr);
	int saved = errno;
	uint64_t ns;

	if (!r || !memory_replace(r, (uintptr_t)info->si_addr))
		on_other_memory(sig, info, context);
	ns = wait_ns(&wait);
	if (r && ns)
		blame(r, ns);
	errno = saved;
}

/* ---- waits ---- */

/* How often this thread has slept in the kernel. */
static long switches(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nvcsw;
}

struct wait wait_begin(void)
{
	return (struct wait){control_now_ns(), switches()};
}

uint64_t wait_ns(const struct wait *w)
{
	const uint64_t ns = control_now_ns() - w->since_ns;

	return ns >= WAIT_NS_MIN && switches() != w->switches ? ns : 0;
}

/* ---- holes ---- */

/*
 * A thread that touches a page while its owner punches a hole waits in the kernel until the whole
 * hole is punched. The kernel does not tell which page that is. But a thread that is signalled
 * meanwhile handles the signal as soon as it continues, before it touches the page again: then one
 * of its registers points to the page, and the page is missing. If the owner has already brought it
 * back, the owner is known only if all registers that point to clients' memory point to one user's.
 */

static int question_signal(void)
{
	return SIGRTMIN + 6;
}

/* Returns their number; 0 on other architectures. */
static unsigned int registers_of(const ucontext_t *u, uintptr_t reg[REGISTERS_MAX])
{
	unsigned int n = 0;

#if defined(__x86_64__)
	for (; n <= REG_RSP; n++)
		reg[n] = (uintptr_t)u->uc_mcontext.gregs[n];
#elif defined(__aarch64__)
	for (; n < REGISTERS_MAX; n++)
		reg[n] = (uintptr_t)u->uc_mcontext.regs[n];
#endif
	return n;
}

static bool page_missing(uintptr_t at)
{
	unsigned char there;

	return mincore((void *)(at & ~(uintptr_t)(PAGE_BYTES - 1)), PAGE_BYTES, &there) == 0 &&
	       !(there & 1);
}

/* One of these mappings if one user owns all of them, else NULL. */
static struct range *range_of_one_owner(struct range *const *r, unsigned int n)
{
	struct range *one = NULL;

	for (unsigned int i = 0; i < n; i++) {
		if (!r[i] || r[i]->owner == NOBODY)
			continue;
		if (one && one->owner != r[i]->owner)
			return NULL;
		one = r[i];
	}
	return one;
}

/* Does one of these mappings end there, or just before? Then the address is the end of a copy. */
static bool end_there(struct range *const *r, unsigned int n, uintptr_t at)
{
	for (unsigned int i = 0; i < n; i++)
		if (r[i] && at - __atomic_load_n(&r[i]->end, __ATOMIC_RELAXED) < PAGE_BYTES)
			return true;
	return false;
}

static void blame_registers(const ucontext_t *u, uint64_t ns)
{
	uintptr_t reg[REGISTERS_MAX];
	struct range *all[REGISTERS_MAX], *r[REGISTERS_MAX], *one;
	unsigned int n = registers_of(u, reg);
	bool missing = false;

	for (unsigned int i = 0; i < n; i++) {
		all[i] = range_of(reg[i]);
		r[i] = all[i] && page_missing(reg[i]) ? all[i] : NULL;
		missing |= r[i] != NULL;
	}
	for (unsigned int i = 0; i < n; i++) {
		bool again = false;

		for (unsigned int k = 0; k < i; k++)
			again |= r[k] == r[i];
		if (r[i] && !again && !end_there(r, n, reg[i]))
			blame(r[i], ns);
	}
	one = missing ? NULL : range_of_one_owner(all, n);
	if (one)
		blame(one, ns);
}

static void on_question(int sig, siginfo_t *info, void *context)
{
	uint64_t since_ns = __atomic_exchange_n(&waits_since_ns, 0, __ATOMIC_RELAXED);
	int saved = errno;

	if (!since_ns)
		return;
	if (populated) /* the page may be back, and the registers belong to a system call */
		blame(populated, control_now_ns() - since_ns);
	else
		blame_registers(context, control_now_ns() - since_ns);
	errno = saved;
}

void control_thread_waits(pid_t thread, uint64_t since_ns)
{
	uint64_t none = 0;

	if (!__atomic_compare_exchange_n(&waits_since_ns, &none, since_ns, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return;
	if (tgkill(getpid(), thread, question_signal()))
		__atomic_store_n(&waits_since_ns, 0, __ATOMIC_RELAXED);
}

uint64_t memory_held_up_ns(const struct mapping *m)
{
	return m->base ? __atomic_exchange_n(&ranges[m->range].held_up_ns, 0, __ATOMIC_RELAXED) : 0;
}

uint64_t memory_held_up_total(void)
{
	return __atomic_load_n(&held_up_total, __ATOMIC_ACQUIRE);
}

int memory_guard(void)
{
	struct sigaction mine = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO}, old;
	struct sigaction question = {.sa_sigaction = on_question,
				     .sa_flags = SA_SIGINFO | SA_RESTART};

	sigemptyset(&mine.sa_mask);
	sigemptyset(&question.sa_mask);
	if (libc_sigaction(SIGBUS, &mine, &old) ||
	    libc_sigaction(question_signal(), &question, NULL))
		return -errno;
	if (!(old.sa_flags & SA_SIGINFO) || old.sa_sigaction != on_sigbus)
		others = old;
	if (!guarded)
		missing_fd = missing_open();
	guarded = true;
	return 0;
}

/* Each range is a kernel mapping, and their number per process is limited: half of them
 * are left for everything else, and for ranges that are split. */
uint32_t memory_ranges_max(void)
{
	unsigned long most = 0;
	FILE *file;

	if (ranges_allowed)
		return ranges_allowed;
	file = fopen("/proc/sys/vm/max_map_count", "re");
	if (file) {
		if (fscanf(file, "%lu", &most) != 1)
			most = 0;
		fclose(file);
	}
	if (most < 2)
		most = 65530; /* the kernel's default */
	ranges_allowed = most / 2 < RANGES_MAX ? (uint32_t)(most / 2) : RANGES_MAX;
	return ranges_allowed;
}

static int range_add(uint8_t *base, uint64_t bytes, uint64_t page_bytes, int protection,
		     uint32_t *index)
{
	uint32_t i = ranges_first;

	while (i < RANGES_MAX && ranges[i].page_bytes)
		i++;
	if (i == RANGES_MAX || ranges_used >= memory_ranges_max())
		return -ENOSPC;
	ranges_used++;
	ranges[i].page_bytes = page_bytes;
	ranges[i].faults = ranges[i].splits = ranges[i].held_up_ns = 0;
	ranges[i].lent = 0;
	ranges[i].replaced = false;
	ranges[i].protection = protection;
	ranges[i].owner = NOBODY;
	__atomic_store_n(&ranges[i].start, (uintptr_t)base, __ATOMIC_RELEASE);
	__atomic_store_n(&ranges[i].end, (uintptr_t)base + bytes, __ATOMIC_RELEASE);
	if (i >= ranges_end)
		__atomic_store_n(&ranges_end, i + 1, __ATOMIC_RELEASE);
	ranges_first = i + 1;
	*index = i;
	return 0;
}

void memory_set_owner(const struct mapping *m, uid_t uid)
{
	ranges[m->range].owner = uid;
}

void memory_unguard(uint32_t range)
{
	/* The end first: the address may be reused as soon as it is free. */
	__atomic_store_n(&ranges[range].end, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ranges[range].start, 0, __ATOMIC_SEQ_CST);
}

void memory_forget(uint32_t range)
{
	struct range *r = &ranges[range];

	r->page_bytes = 0;
	__atomic_sub_fetch(&splits, __atomic_load_n(&r->splits, __ATOMIC_RELAXED),
			   __ATOMIC_RELAXED);
	ranges_used--;
	if (range < ranges_first)
		ranges_first = range;
}

/* Checks a descriptor, whoever created it. NULL, or what is wrong. */
static const char *memfd_wrong(int fd, uint64_t bytes, unsigned int flags, uint64_t *page_bytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	int wanted = F_SEAL_SHRINK | F_SEAL_GROW | (flags & MEMORY_SEAL_SEALED ? F_SEAL_SEAL : 0);
	struct statfs fs;
	struct stat st;

	if (seals < 0)
		return "not a memfd";
	if ((seals & wanted) != wanted)
		return "not sealed against shrinking and growing";
	if (fstat(fd, &st) || fstatfs(fd, &fs))
		return "cannot be asked for its size";
	if (bytes == 0 || (uint64_t)st.st_size != bytes)
		return "of another size than said";
	/* Not st_blksize: there tmpfs reports its transparent huge pages, which are only a hint. */
	*page_bytes = fs.f_type == HUGETLBFS_MAGIC ? (uint64_t)fs.f_bsize : PAGE_BYTES;
	if (*page_bytes & (*page_bytes - 1) || bytes % *page_bytes)
		return "not a whole number of pages";
	return NULL;
}

void memory_populate(const struct mapping *m, uint64_t offset, uint64_t bytes)
{
	enum { PAGES = 512 };
	uint64_t end = (offset + bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
	unsigned char there[PAGES];

	if (!m->reports_residence)
		return;
	populated = &ranges[m->range];
	for (uint64_t at = offset & ~(uint64_t)(PAGE_BYTES - 1); at < end;
	     at += PAGES * PAGE_BYTES) {
		uint64_t n = (end - at) / PAGE_BYTES < PAGES ? (end - at) / PAGE_BYTES : PAGES;

		if (mincore(m->base + at, n * PAGE_BYTES, there))
			break;
		for (uint64_t i = 0, last; i < n; i = last + 1) {
			for (last = i; last < n && there[last] & 1; last++)
				;
			/* Failing is allowed: then they come one by one. Reads enter sixteen pages
			 * of a memory file with one fault, writable as the mapping is; writes
			 * one. */
			if (last > i)
				madvise(m->base + at + i * PAGE_BYTES, (last - i) * PAGE_BYTES,
					MADV_POPULATE_READ);
		}
	}
	populated = NULL;
}

/* To a process that may not write a file, the kernel reports all of its pages as present. */
static bool reports_residence(int fd)
{
	return syscall(SYS_faccessat2, fd, "", W_OK, AT_EACCESS | AT_EMPTY_PATH) == 0;
}

/* Guards what was mapped. 0; -ENOSPC: it is unmapped. */
int memory_adopt(void *at, uint64_t bytes, uint64_t page_bytes, int protection, struct mapping *m,
		 const char **why)
{
	int rc;

	*m = (struct mapping){.base = at, .bytes = bytes, .page_bytes = page_bytes};
	rc = range_add(m->base, bytes, page_bytes, protection, &m->range);
	if (rc) {
		*why = "one too many";
		munmap(at, bytes);
		*m = (struct mapping){0};
		return rc;
	}
	madvise(at, bytes, MADV_DONTDUMP);
	return 0;
}

/* The same for a file, of which pages may be missing. 0, or -errno: it is unmapped. */
static int mapped_file(int fd, void *at, uint64_t bytes, uint64_t page_bytes, int protection,
		       struct mapping *m, const char **why)
{
	int rc;

	if (missing_fd >= 0 && !catch_missing((uintptr_t)at, bytes)) {
		rc = -errno;
		*why = "not to be guarded";
		munmap(at, bytes);
		return rc;
	}
	rc = memory_adopt(at, bytes, page_bytes, protection, m, why);
	if (!rc)
		m->reports_residence = reports_residence(fd);
	return rc;
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
		return mapping_errno();
	}
	rc = mapped_file(fd, at, bytes, page_bytes, PROT_READ | PROT_WRITE, m, why);
	if (!rc)
		memory_populate(m, 0, bytes);
	return rc;
}

/* The file must be in memory: one on a disk or of a driver could make the data path wait, or do
 * anything else that its file system decides. It need not fill its last page. NULL, or what is
 * wrong. */
static const char *piece_wrong(int fd, uint64_t offset, uint64_t bytes, uint64_t *page_bytes)
{
	struct statfs fs;
	struct stat st;
	uint64_t end;

	/* The kernel itself answers this call: on another file system a user's process might have
	 * to, and might never do so. */
	if (fcntl(fd, F_GET_SEALS) < 0)
		return "not a file in memory";
	if (fstatfs(fd, &fs) || fstat(fd, &st))
		return "nothing that has a file system";
	if (!S_ISREG(st.st_mode) || (fs.f_type != TMPFS_MAGIC && fs.f_type != HUGETLBFS_MAGIC))
		return "not a file in memory";
	*page_bytes = fs.f_type == HUGETLBFS_MAGIC ? (uint64_t)fs.f_bsize : PAGE_BYTES;
	if (*page_bytes < PAGE_BYTES || *page_bytes & (*page_bytes - 1))
		return "of odd pages";
	if ((offset | bytes) & (*page_bytes - 1))
		return "not a whole number of pages";
	end = ((uint64_t)st.st_size + *page_bytes - 1) & ~(*page_bytes - 1);
	if (offset > end || bytes > end - offset)
		return "beyond its file's end";
	return NULL;
}

/* Address space for `bytes`, its address congruent to `offset` modulo `align`. NULL: none. */
static uint8_t *range_reserve(uint64_t bytes, uint64_t offset, uint64_t align)
{
	const uint64_t slack = align - PAGE_BYTES;
	uint64_t before;
	uint8_t *at = mmap(NULL, bytes + slack, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	before = (offset - (uintptr_t)at) & (align - 1);
	if (before)
		munmap(at, before);
	if (before < slack)
		munmap(at + before + bytes, slack - before);
	return at + before;
}

/* The kernel catches missing pages of a shared mapping only if we may write the file. Memory that
 * is only read looks the same in a private mapping. */
static int flags_of(int protection)
{
	return (protection & PROT_WRITE ? MAP_SHARED : MAP_PRIVATE) | MAP_NORESERVE;
}

/* Maps just below the last piece, where there is often room. NULL: there is none, or the address
 * would be wrong. */
static uint8_t *map_below(int fd, uint64_t offset, uint64_t bytes, uint64_t align, int protection)
{
	uintptr_t at = lowest - bytes;
	void *got;

	if (lowest <= bytes || (at ^ offset) & (align - 1))
		return NULL;
	got = mmap((void *)at, bytes, protection, flags_of(protection) | MAP_FIXED_NOREPLACE, fd,
		   (off_t)offset);
	if (got == (void *)at)
		return got;
	if (got != MAP_FAILED) /* before Linux 4.17 */
		munmap(got, bytes);
	return NULL;
}

/* Maps wherever there is room. 0, -errno. */
static int map_anywhere(int fd, uint64_t offset, uint64_t bytes, uint64_t align, int protection,
			uint8_t **base, const char **why)
{
	int rc;

	*why = "too large for the daemon's addresses";
	*base = range_reserve(bytes, offset, align);
	if (!*base)
		return -ENOMEM;
	*why = "not to be mapped so";
	if (mmap(*base, bytes, protection, flags_of(protection) | MAP_FIXED, fd, (off_t)offset) !=
	    MAP_FAILED)
		return 0;
	rc = mapping_errno();
	munmap(*base, bytes);
	return rc;
}

int memory_map_piece(int fd, uint64_t offset, uint64_t bytes, bool read_only, struct mapping *m,
		     const char **why)
{
	const int protection = read_only ? PROT_READ : PROT_READ | PROT_WRITE;
	uint64_t page_bytes;
	uint64_t align = bytes < LARGE_BYTES ? HUGE_BYTES : LARGE_BYTES;
	uint8_t *base;
	int rc = 0;

	*why = piece_wrong(fd, offset, bytes, &page_bytes);
	if (*why)
		return -EINVAL;
	align = align > page_bytes ? align : page_bytes;
	/* Huge pages are not reserved: if there are none, the client loses, as with any page. */
	base = map_below(fd, offset, bytes, align, protection);
	if (!base)
		rc = map_anywhere(fd, offset, bytes, align, protection, &base, why);
	if (rc)
		return rc;
	lowest = (uintptr_t)base;
	return mapped_file(fd, base, bytes, page_bytes, protection, m, why);
}

void memory_unmap(struct mapping *m)
{
	if (!m->base)
		return;
	memory_unguard(m->range);
	munmap(m->base, m->bytes);
	memory_forget(m->range);
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
