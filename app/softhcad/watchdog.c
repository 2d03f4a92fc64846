/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watchdog (watchdog.h). A thread writes its stack itself, in the handler of a signal that
 * nothing else uses. One that waits in the kernel without taking signals does so later, or never;
 * the log has where it waits.
 */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/log.h"
#include "base/monotonic.h"
#include "control/control.h"
#include "notify.h"
#include "watchdog.h"

enum { FRAMES_MAX = 64, FACT_BYTES = 96 };

static struct {
	struct watched *threads;
	unsigned count;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t stopping;
	bool running, stop; /* under the lock */
	bool seldom;	    /* atomic */
} dog = {.lock = PTHREAD_MUTEX_INITIALIZER, .stopping = PTHREAD_COND_INITIALIZER};

static int stack_signal(void)
{
	return SIGRTMIN + 7;
}

/* Async-signal-safe once backtrace() has been called before. */
static void write_stack(int number)
{
	void *frames[FRAMES_MAX];
	int saved = errno;

	backtrace_symbols_fd(frames, backtrace(frames, FRAMES_MAX), STDERR_FILENO);
	errno = saved;
}

static void catch_stack_signal(void)
{
	struct sigaction action = {.sa_handler = write_stack, .sa_flags = SA_RESTART};
	void *frame[1];

	backtrace(frame, 1); /* loads libgcc_s, which the handler must not */
	sigaction(stack_signal(), &action, NULL);
}

/* /proc/self/task/THREAD/NAME; -1: there is none. */
static int open_fact(pid_t thread, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)thread, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* The first line of it; "?" if it cannot be read. */
static const char *fact(pid_t thread, const char *name, char text[FACT_BYTES])
{
	int fd = open_fact(thread, name);
	ssize_t n = -1;

	if (fd >= 0) {
		n = read(fd, text, FACT_BYTES - 1);
		close(fd);
	}
	if (n <= 0)
		return "?";
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static void report(const struct watched *w)
{
	char where[FACT_BYTES], call[FACT_BYTES];

	LOG(ERR,
	    "%s (thread %d) has stood still for %u ms; system call: %s; waits in: %s; its stack:",
	    w->name, (int)w->thread, WATCHDOG_LOOKS * WATCHDOG_LOOK_MS,
	    fact(w->thread, "syscall", call), fact(w->thread, "wchan", where));
	tgkill(getpid(), w->thread, stack_signal());
}

bool watched_look(struct watched *w)
{
	uint64_t turns = __atomic_load_n(w->turns, __ATOMIC_RELAXED);

	if (turns != w->seen) {
		if (w->looks > WATCHDOG_LOOKS)
			LOG(NOTICE, "%s goes on after %u ms", w->name, w->looks * WATCHDOG_LOOK_MS);
		w->seen = turns;
		w->looks = 0;
	}
	if (w->looks++ == WATCHDOG_LOOKS)
		report(w);
	return w->looks > WATCHDOG_LOOKS;
}

/* ---- threads that a client holds up ---- */

/* For a hole in a memory file: the only thing that shmem_fault() and shmem_falloc_wait() wait
 * for. */
static bool waits_for_hole(const struct watched *w)
{
	static const char place[] = "shmem_fa";
	char where[sizeof(place) - 1];

	return pread(w->wchan, where, sizeof(where), 0) == (ssize_t)sizeof(where) &&
	       memcmp(where, place, sizeof(where)) == 0;
}

static void glance(const struct watched *w, unsigned passed_ms)
{
	if (waits_for_hole(w))
		control_thread_waits(w->thread, monotonic_ns() - passed_ms * 1000000ull);
}

/* ---- the thread ---- */

/* With the lock held. False: it is time to stop. */
static bool sleep_a_while(unsigned ms)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += ms * 1000000l;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (!dog.stop)
		pthread_cond_timedwait(&dog.stopping, &dog.lock, &until);
	return !dog.stop;
}

static unsigned glance_ms(void)
{
	return __atomic_load_n(&dog.seldom, __ATOMIC_RELAXED) ? WATCHDOG_SELDOM_MS
							      : WATCHDOG_GLANCE_MS;
}

static void *watchdog_run(void *arg)
{
	const bool fed = secure_getenv("WATCHDOG_USEC") != NULL;
	unsigned ms, passed_ms = 0; /* since the last look */

	pthread_mutex_lock(&dog.lock);
	while (sleep_a_while(ms = glance_ms())) {
		unsigned still = 0;

		for (unsigned i = 0; i < dog.count; i++)
			glance(&dog.threads[i], ms);
		passed_ms += ms;
		if (passed_ms < WATCHDOG_LOOK_MS)
			continue;
		passed_ms = 0;
		for (unsigned i = 0; i < dog.count; i++)
			still += watched_look(&dog.threads[i]);
		if (fed && !still)
			notify_service("WATCHDOG=1");
	}
	pthread_mutex_unlock(&dog.lock);
	return NULL;
}

int watchdog_start(struct watched *threads, unsigned count)
{
	sigset_t all, before;
	int ret;

	catch_stack_signal();
	dog.threads = threads;
	dog.count = count;
	dog.stop = false;
	for (unsigned i = 0; i < count; i++)
		threads[i].wchan = open_fact(threads[i].thread, "wchan");
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&dog.thread, NULL, watchdog_run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	dog.running = ret == 0;
	if (dog.running)
		pthread_setname_np(dog.thread, "softhca-watch");
	return -ret;
}

void watchdog_glance_seldom(bool seldom)
{
	__atomic_store_n(&dog.seldom, seldom, __ATOMIC_RELAXED);
}

void watchdog_stop(void)
{
	if (!dog.running)
		return;
	pthread_mutex_lock(&dog.lock);
	dog.stop = true;
	pthread_cond_signal(&dog.stopping);
	pthread_mutex_unlock(&dog.lock);
	pthread_join(dog.thread, NULL);
	for (unsigned i = 0; i < dog.count; i++)
		close(dog.threads[i].wchan); /* harmless if it is -1 */
	dog.running = false;
}
