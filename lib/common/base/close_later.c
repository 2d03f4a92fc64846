/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closes descriptors in threads where a close may take any time: close_later.h. One thread closes,
 * another stands by: if descriptors wait while the first has been closing one for too long, it
 * takes over and creates a new standby. A late thread exits when its close returns, or with the
 * process; no one joins it.
 *
 * Descriptors wait in a queue of the user who sent them. A user gets no more threads than his share
 * of SHARE_closers, so others' descriptors are closed, however many of his take long.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#include "base/assert.h"
#include "base/close_later.h"
#include "base/log.h"
#include "base/shares.h"

enum { STACK_BYTES = 128 * 1024, PATIENCE_MS = 10 };

struct waiting {
	struct waiting *next;
	int fd;
};

struct owner {
	struct owner *next;
	struct share_user *user; /* NULL: descriptors of the daemon's own */
	struct waiting *first, **last;
	uint32_t closing; /* threads that close one of them */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more, late, done; /* for the closer, the standby, close_later_finish() */
	struct owner *owners;		 /* the one served last is the last one */
	uint32_t waiting;
	uint32_t closing, threads;
	uint32_t turn;	/* number of the thread that empties the queues; 0: none yet */
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

static bool close_is_late(void)
{
	return all.busy && now_ms() - all.since >= PATIENCE_MS;
}

/* Polls while descriptors are waiting. */
static void stand_by(void)
{
	while (all.turn && (!all.waiting || !close_is_late())) {
		struct timespec until;

		if (!all.waiting || !all.busy) {
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

static struct owner *close_owner_of(struct share_user *user)
{
	struct owner *o = all.owners;

	while (o && o->user != user)
		o = o->next;
	if (o)
		return o;
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->user = user;
	o->last = &o->first;
	o->next = all.owners;
	all.owners = o;
	return o;
}

static void unlink_owner(const struct owner *o)
{
	struct owner **at = &all.owners;

	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
}

/* The next user in turn who may have another thread; NULL: none. Moves him to the end. */
static struct owner *close_pick(void)
{
	struct owner *o = all.owners, **end = &all.owners;

	while (o && !(o->first && (!o->user || share_user_take(o->user, SHARE_closers, 1))))
		o = o->next;
	if (!o)
		return NULL;
	unlink_owner(o);
	while (*end)
		end = &(*end)->next;
	*end = o;
	o->next = NULL;
	return o;
}

static int take_fd(struct owner *o)
{
	struct waiting *w = o->first;
	int fd = w->fd;

	o->first = w->next;
	if (!o->first)
		o->last = &o->first;
	all.waiting--;
	free(w);
	return fd;
}

/* One of this owner's descriptors has been closed. */
static void closed(struct owner *o)
{
	all.closing--;
	o->closing--;
	if (o->user) {
		share_user_give(o->user, SHARE_closers, 1);
		share_return(o->user, SHARE_closings, 0, 1);
	}
	if (!o->closing && !o->first) {
		unlink_owner(o);
		free(o);
	}
}

static void close_next(uint32_t turn)
{
	struct owner *o;
	int fd;

	while (!(o = close_pick()))
		pthread_cond_wait(&all.more, &all.lock);
	fd = take_fd(o);
	if (!all.standby)
		add_thread();
	all.busy = true;
	all.since = now_ms();
	all.closing++;
	o->closing++;
	if (all.waiting)
		pthread_cond_signal(&all.late);
	pthread_mutex_unlock(&all.lock);
	close(fd);
	pthread_mutex_lock(&all.lock);
	closed(o);
	if (turn == all.turn)
		all.busy = false;
	else if (all.waiting)
		pthread_cond_signal(&all.more); /* his next one may have its turn now */
	if (!all.closing && !all.waiting)
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

void close_later(int fd, struct share_client *from)
{
	struct waiting *w = malloc(sizeof(*w));
	struct share_user *user = NULL;
	struct owner *o;

	ASSERT(fd >= 0);
	if (from) {
		share_add(from, SHARE_closings, 1);
		user = share_leave(from, SHARE_closings, 1);
	}
	pthread_mutex_lock(&all.lock);
	o = w ? close_owner_of(user) : NULL;
	if (o) {
		*w = (struct waiting){.fd = fd};
		*o->last = w;
		o->last = &w->next;
		all.waiting++;
	} else {
		free(w); /* without memory it stays open */
	}
	if (!all.threads)
		add_thread();
	pthread_cond_signal(all.busy ? &all.late : &all.more);
	pthread_mutex_unlock(&all.lock);
}

void close_later_socket(int fd, struct share_client *from)
{
	shutdown(fd, SHUT_RDWR);
	close_later(fd, from);
}

void close_later_stranger(int fd, struct shares *shares, const char *why)
{
	struct ucred who = {.uid = (uid_t)-1};
	socklen_t bytes = sizeof(who);
	struct share_client from;

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes);
	if (!shares || share_client_begin(shares, who.uid, who.pid, &from)) {
		close_later_socket(fd, NULL);
		return;
	}
	if (why && share_use(&from, SHARE_log_lines, 1) == 0)
		LOG(WARNING, "user %u: %s", who.uid, why);
	close_later_socket(fd, &from);
	share_client_end(&from);
}

unsigned int close_later_receive(struct msghdr *m, int *fds, unsigned int most,
				 struct share_client *from)
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
				close_later(fd, from);
		}
	}
	return count;
}

void close_later_finish(void)
{
	pthread_mutex_lock(&all.lock);
	while (all.closing || all.waiting)
		pthread_cond_wait(&all.done, &all.lock);
	pthread_mutex_unlock(&all.lock);
}
