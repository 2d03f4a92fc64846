/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closes descriptors in threads where that may take any time: close_later.h. One thread empties the
 * queue, another stands by: if descriptors wait while the first has been closing one for too long,
 * it takes over and creates a new standby. A late thread exits when its close returns, or with the
 * process; it is never joined.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/close_later.h"
#include "base/log.h"

enum { STACK_BYTES = 128 * 1024, PATIENCE_MS = 10 };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more, late, done; /* for the closer, the standby, close_later_finish() */
	int fd[CLOSE_LATER_MAX];	 /* a ring */
	uint32_t put, taken;		 /* free running */
	uint32_t closing, threads;
	uint32_t turn;	/* number of the thread that empties the queue; 0: none yet */
	bool busy;	/* closing ... */
	uint64_t since; /* ... since then, ms */
	bool standby;	/* there is a standby thread, or will be */
	bool warned;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER,
	 .more = PTHREAD_COND_INITIALIZER,
	 .late = PTHREAD_COND_INITIALIZER,
	 .done = PTHREAD_COND_INITIALIZER};

/* ---- with the lock held ---- */

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void *close_later_run(void *arg);

/* Adds a standby thread, with all signals blocked. */
static void add_thread(void)
{
	sigset_t none, before;
	pthread_attr_t attr;
	pthread_t thread;

	if (all.threads == CLOSE_LATER_THREADS) {
		if (!all.warned)
			LOG(WARNING, "too many descriptors from programs take long to close");
		all.warned = true;
		return;
	}
	sigfillset(&none);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &none, &before);
	if (pthread_create(&thread, &attr, close_later_run, NULL) == 0) {
		pthread_setname_np(thread, "softhca-close");
		all.threads++;
		all.standby = true;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
}

static bool is_late(void)
{
	return all.busy && now_ms() - all.since >= PATIENCE_MS;
}

/* Polls while descriptors are waiting. */
static void stand_by(void)
{
	while (all.turn && (all.put == all.taken || !is_late())) {
		struct timespec until;

		if (all.put == all.taken || !all.busy) {
			pthread_cond_wait(&all.late, &all.lock);
			continue;
		}
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += PATIENCE_MS * 1000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&all.late, &all.lock, &until);
	}
	all.standby = false;
	all.busy = false;
	all.turn++;
}

static void close_next(uint32_t turn)
{
	int fd;

	while (all.taken == all.put)
		pthread_cond_wait(&all.more, &all.lock);
	fd = all.fd[all.taken++ % CLOSE_LATER_MAX];
	if (!all.standby)
		add_thread();
	all.busy = true;
	all.since = now_ms();
	all.closing++;
	if (all.taken != all.put)
		pthread_cond_signal(&all.late);
	pthread_mutex_unlock(&all.lock);
	close(fd);
	pthread_mutex_lock(&all.lock);
	all.closing--;
	if (turn == all.turn)
		all.busy = false;
	if (!all.closing && all.taken == all.put)
		pthread_cond_broadcast(&all.done);
}

static void *close_later_run(void *arg)
{
	uint32_t turn;

	(void)arg;
	pthread_mutex_lock(&all.lock);
	for (;;) {
		stand_by();
		turn = all.turn;
		while (turn == all.turn)
			close_next(turn);
		if (all.standby)
			break;
		all.standby = true;
	}
	all.threads--;
	pthread_mutex_unlock(&all.lock);
	return NULL;
}

/* ---- the interface ---- */

void close_later(int fd)
{
	pthread_mutex_lock(&all.lock);
	if (all.put - all.taken < CLOSE_LATER_MAX)
		all.fd[all.put++ % CLOSE_LATER_MAX] = fd;
	if (!all.threads)
		add_thread();
	pthread_cond_signal(all.busy ? &all.late : &all.more);
	pthread_mutex_unlock(&all.lock);
}

void close_later_socket(int fd)
{
	shutdown(fd, SHUT_RDWR);
	close_later(fd);
}

unsigned int close_later_receive(struct msghdr *m, int *fds, unsigned int most)
{
	unsigned int count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++, count++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (count < most)
				fds[count] = fd;
			else
				close_later(fd);
		}
	}
	return count;
}

void close_later_finish(void)
{
	pthread_mutex_lock(&all.lock);
	while (all.closing || all.taken != all.put)
		pthread_cond_wait(&all.done, &all.lock);
	pthread_mutex_unlock(&all.lock);
}
