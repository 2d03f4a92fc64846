/* SPDX-License-Identifier: BSD-3-Clause */
/* Stops all other threads by a signal; see stop.h. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include "action.h"
#include "share-in-place/sharing.h"
#include "stop.h"
#include "sys.h"

enum {
	STOP_SIGNAL = 33,
	THREADS_MAX = 1 << 16,
	WORKERS_MAX = 64,
	LOOK_AGAIN_NS = 2 * 1000 * 1000, /* interval of checks that missing threads still exist */
	PATIENCE_S = 10,
};

/* A thread that was signalled to stop. */
struct slot {
	uint32_t tid;
	uint32_t stopped; /* the stop's number, once stopped; atomic, the thread writes */
	uint32_t gone;	  /* it has exited, or does not run the program's code */
};

static struct slot *slots; /* THREADS_MAX, mapped, populated on use */
static uint32_t slot_count;
static uint32_t number;	 /* of the stop; odd while one lasts; atomic, a futex */
static uint32_t arrived; /* counts threads that have stopped; atomic, a futex */

/* ---- workers ---- */

enum worker_state { WORKER_FREE, WORKER_BUSY, WORKER_SLEEPS, WORKER_HELD };
struct sharing_worker {
	uint32_t state; /* enum worker_state; atomic, a futex */
	uint32_t tid;
};
static struct sharing_worker workers[WORKERS_MAX];

static void futex_wait(uint32_t *at, uint32_t value, const struct timespec *limit)
{
	sys6(SYS_futex, (long)at, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, (long)limit, 0, 0);
}

static void futex_wake(uint32_t *at)
{
	sys6(SYS_futex, (long)at, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, 0, 0, 0);
}

struct sharing_worker *sharing_worker_enter(void)
{
	for (unsigned int i = 0; i < WORKERS_MAX; i++) {
		uint32_t expected = WORKER_FREE;

		if (__atomic_compare_exchange_n(&workers[i].state, &expected, WORKER_BUSY, false,
						__ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
			__atomic_store_n(&workers[i].tid, (uint32_t)gettid(), __ATOMIC_RELEASE);
			return &workers[i];
		}
	}
	return NULL;
}

void sharing_worker_leave(struct sharing_worker *w)
{
	if (!w)
		return;
	__atomic_store_n(&w->tid, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&w->state, WORKER_FREE, __ATOMIC_SEQ_CST);
}

void sharing_worker_sleeps(struct sharing_worker *w)
{
	if (w)
		__atomic_store_n(&w->state, WORKER_SLEEPS, __ATOMIC_SEQ_CST);
}

void sharing_worker_wakes(struct sharing_worker *w)
{
	uint32_t expected = WORKER_SLEEPS;

	while (w && !__atomic_compare_exchange_n(&w->state, &expected, WORKER_BUSY, false,
						 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
		futex_wait(&w->state, WORKER_HELD, NULL);
		expected = WORKER_SLEEPS;
	}
}

/* Holds the thread if it is a sleeping worker. */
static bool stop_hold(uint32_t tid)
{
	for (unsigned int i = 0; i < WORKERS_MAX; i++) {
		uint32_t expected = WORKER_SLEEPS;

		if (__atomic_load_n(&workers[i].tid, __ATOMIC_ACQUIRE) != tid)
			continue;
		return __atomic_compare_exchange_n(&workers[i].state, &expected, WORKER_HELD, false,
						   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
		       expected == WORKER_HELD;
	}
	return false;
}

static void release_workers(void)
{
	for (unsigned int i = 0; i < WORKERS_MAX; i++) {
		uint32_t expected = WORKER_HELD;

		if (__atomic_compare_exchange_n(&workers[i].state, &expected, WORKER_SLEEPS, false,
						__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			futex_wake(&workers[i].state);
	}
}

/* ---- the signal ---- */

static struct action former;
static bool installed;

#ifdef __x86_64__
__asm__(".text\n.globl sharing_sigreturn\n.hidden sharing_sigreturn\n.type "
	"sharing_sigreturn,@function\n"
	"sharing_sigreturn:\nmov $15, %eax\nsyscall\nhlt\n");
#endif

static void stop_pass_on(int sig, siginfo_t *info, void *context)
{
	if (former.word != (uintptr_t)SIG_DFL && former.word != (uintptr_t)SIG_IGN)
		former.handler(sig, info, context);
}

/* Reports that the thread has stopped and waits for the end of the stop. Its own stack may be among
 * the pages being swapped: nothing is stored there after the report. */
static inline __attribute__((always_inline)) void stay_stopped(uint32_t *stopped, uint32_t now)
{
#ifdef __x86_64__
	__asm__ volatile("movl %[now], (%[stopped])\n\t"
			 "lock incl (%[arrived])\n\t"
			 "movl %[futex], %%eax\n\t"
			 "movq %[arrived], %%rdi\n\t"
			 "movl %[wake], %%esi\n\t"
			 "movl $0x7fffffff, %%edx\n\t"
			 "syscall\n"
			 "1:\n\t"
			 "cmpl %[now], (%[number])\n\t"
			 "jne 2f\n\t"
			 "movl %[futex], %%eax\n\t"
			 "movq %[number], %%rdi\n\t"
			 "movl %[wait], %%esi\n\t"
			 "movl %[now], %%edx\n\t"
			 "xorl %%r10d, %%r10d\n\t"
			 "syscall\n\t"
			 "jmp 1b\n"
			 "2:"
			 :
			 : [stopped] "r"(stopped), [now] "r"(now), [arrived] "r"(&arrived),
			   [number] "r"(&number), [futex] "i"(SYS_futex),
			   [wake] "i"(FUTEX_WAKE | FUTEX_PRIVATE_FLAG),
			   [wait] "i"(FUTEX_WAIT | FUTEX_PRIVATE_FLAG)
			 : "rax", "rcx", "rdx", "rsi", "rdi", "r10", "r11", "cc", "memory");
#else
	__atomic_store_n(stopped, now, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
	futex_wake(&arrived);
	while (__atomic_load_n(&number, __ATOMIC_SEQ_CST) == now)
		futex_wait(&number, now, NULL);
#endif
}

static void on_stop(int sig, siginfo_t *info, void *context)
{
	uintptr_t which = (uintptr_t)info->si_value.sival_ptr;
	struct slot *slot = (struct slot *)which;
	uint32_t now;

	if (info->si_code != SI_QUEUE || which < (uintptr_t)slots ||
	    which >= (uintptr_t)(slots + THREADS_MAX)) {
		stop_pass_on(sig, info, context);
		return;
	}
	now = __atomic_load_n(&number, __ATOMIC_SEQ_CST);
	if (!(now & 1) || slot->tid != (uint32_t)sys6(SYS_gettid, 0, 0, 0, 0, 0, 0))
		return; /* too late */
	stay_stopped(&slot->stopped, now);
}

static void install(void)
{
	const struct action mine = {.handler = on_stop,
				    .flags = ACTION_FLAGS,
				    .restorer = RESTORER,
				    .mask = UINT64_MAX};
	struct action old = {0};

	action_set(STOP_SIGNAL, &mine, &old);
	if (old.word != (uintptr_t)on_stop)
		former = old;
	installed = true;
}

/* Only when no signal of ours can be pending: it would meet the default action. */
static void uninstall(void)
{
	if (installed)
		action_set(STOP_SIGNAL, &former, NULL);
	installed = false;
}

static long ask_to_stop(struct slot *slot, long pid)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_code = SI_QUEUE;
	info.si_pid = (pid_t)pid;
	info.si_value.sival_ptr = slot;
	return sys6(SYS_rt_tgsigqueueinfo, pid, slot->tid, STOP_SIGNAL, (long)&info, 0, 0);
}

/* ---- enumerate the threads ---- */

struct entry {
	uint64_t inode;
	int64_t offset;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

static uint32_t to_number(const char *text)
{
	uint32_t n = 0;

	while (*text >= '0' && *text <= '9')
		n = n * 10 + (uint32_t)(*text++ - '0');
	return n;
}

static bool stop_known(uint32_t tid)
{
	for (uint32_t i = 0; i < slot_count; i++)
		if (slots[i].tid == tid)
			return true;
	return false;
}

/* Signals one thread. True: it was not known before and must be waited for. */
static bool stop_signal(uint32_t tid, uint32_t self, long pid)
{
	if (tid == self || stop_known(tid) || stop_hold(tid) || slot_count == THREADS_MAX)
		return false;
	slots[slot_count] = (struct slot){.tid = tid};
	if (ask_to_stop(&slots[slot_count], pid) < 0)
		return false; /* it has just exited */
	slot_count++;
	return true;
}

/* Signals all threads not signalled yet. Returns their number, or -errno. */
static long meet_all(uint32_t self, long pid)
{
	char buffer[4096] __attribute__((aligned(8)));
	long fd = sys6(SYS_openat, AT_FDCWD, (long)"/proc/self/task",
		       O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);
	long n, met = 0;

	if (fd < 0)
		return fd;
	while ((n = sys6(SYS_getdents64, fd, (long)buffer, sizeof(buffer), 0, 0, 0)) > 0) {
		for (long at = 0; at < n;) {
			const struct entry *e = (const struct entry *)(buffer + at);
			uint32_t tid = to_number(e->name);

			met += tid && stop_signal(tid, self, pid);
			at += e->bytes;
		}
	}
	sys6(SYS_close, fd, 0, 0, 0, 0, 0);
	return n < 0 ? n : met;
}

/* Has it exited, or is it one of the kernel's threads, which io_uring and vhost put in
 * processes? */
static bool runs_no_more(uint32_t tid)
{
	enum { KERNEL_FLAGS = 0x10 | 0x4000 | 0x200000 }; /* IO_WORKER, USER_WORKER, KTHREAD */
	char path[64] = "/proc/self/task/", text[512], *at = path + strlen(path);
	char digits[12];
	int n = 0;
	long fd, got;

	for (uint32_t rest = tid; rest; rest /= 10)
		digits[n++] = (char)('0' + rest % 10);
	while (n)
		*at++ = digits[--n];
	memcpy(at, "/stat", 6);
	fd = sys6(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	if (fd < 0)
		return true;
	got = sys6(SYS_read, fd, (long)text, sizeof(text) - 1, 0, 0, 0);
	sys6(SYS_close, fd, 0, 0, 0, 0, 0);
	if (got <= 0)
		return true;
	text[got] = 0;
	/* pid (name) state ppid pgrp session tty tpgid flags: the name may hold anything */
	at = strrchr(text, ')');
	if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
		return true;
	for (n = 0; n < 7 && at; n++)
		at = strchr(at + 1, ' ');
	return at && to_number(at + 1) & KERNEL_FLAGS;
}

/* ---- waiting ---- */

static uint32_t first_missing(uint32_t from)
{
	while (from < slot_count &&
	       (slots[from].gone ||
		__atomic_load_n(&slots[from].stopped, __ATOMIC_SEQ_CST) == number))
		from++;
	return from;
}

static int64_t stop_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* Waits for all that were signalled. 0, -EAGAIN. */
static int wait_for_all(void)
{
	const struct timespec a_while = {.tv_nsec = LOOK_AGAIN_NS};
	const int64_t limit = stop_now_s() + PATIENCE_S;
	uint32_t i = 0;

	for (;;) {
		uint32_t seen = __atomic_load_n(&arrived, __ATOMIC_SEQ_CST);

		i = first_missing(i);
		if (i == slot_count)
			return 0;
		futex_wait(&arrived, seen, &a_while);
		if (seen != __atomic_load_n(&arrived, __ATOMIC_SEQ_CST))
			continue;
		for (uint32_t m = i; m < slot_count; m++)
			if (__atomic_load_n(&slots[m].stopped, __ATOMIC_SEQ_CST) != number)
				slots[m].gone = runs_no_more(slots[m].tid);
		if (stop_now_s() > limit)
			return -EAGAIN;
	}
}

/* Is this the only thread? Only then does the kernel grant this unshare(), which has no effect and
 * takes less time than looking at /proc. Where a filter of system calls forbids it, the number of
 * threads is the link count of their directory, less two. */
static bool alone(void)
{
	long rc = sys6(SYS_unshare, CLONE_THREAD, 0, 0, 0, 0, 0);
	struct stat st;

	if (rc == 0 || rc == -EINVAL)
		return rc == 0;
	return stat("/proc/self/task", &st) == 0 && st.st_nlink == 3;
}

static int stop_all(void)
{
	const uint32_t self = (uint32_t)sys6(SYS_gettid, 0, 0, 0, 0, 0, 0);
	const long pid = sys6(SYS_getpid, 0, 0, 0, 0, 0, 0);
	long met;
	int rc;

	install();
	do {
		met = meet_all(self, pid);
		if (met < 0)
			return (int)met;
		rc = wait_for_all();
		if (rc)
			return rc;
	} while (met);
	return 0;
}

int stop_others(void)
{
	int rc;

	if (alone())
		return 0;
	if (!slots) {
		void *at = mmap(NULL, THREADS_MAX * sizeof(slots[0]), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (at == MAP_FAILED)
			return -ENOMEM;
		slots = at;
	}
	slot_count = 0;
	__atomic_add_fetch(&number, 1, __ATOMIC_SEQ_CST);
	rc = stop_all();
	if (rc)
		resume_others();
	return rc;
}

bool stop_alone(void)
{
	return !(number & 1);
}

void resume_others(void)
{
	bool all = true;

	if (!(number & 1))
		return;
	for (uint32_t i = 0; i < slot_count; i++)
		all = all && (slots[i].stopped == number || slots[i].gone);
	if (all)
		uninstall();
	__atomic_add_fetch(&number, 1, __ATOMIC_SEQ_CST);
	futex_wake(&number);
	release_workers();
}

void stop_forget(void)
{
	for (unsigned int i = 0; i < WORKERS_MAX; i++)
		workers[i] = (struct sharing_worker){.state = WORKER_FREE};
	uninstall();
	number &= ~1u;
	slot_count = 0;
}
