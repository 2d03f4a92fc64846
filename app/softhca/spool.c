/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue of blocks between a stream and the thread that writes them. See spool.h.
 *
 * Whole blocks of a file bypass the page cache, if its file system allows that: on a machine whose
 * CPUs are busy this takes a tenth of the time. If most of the queue still waits, the disk may be
 * the bottleneck, and the page cache, which is larger than the queue, may take blocks faster: then
 * they go the way that has been faster lately.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/monotonic.h"
#include "base/pcapng.h"
#include "spool.h"

enum {
	BLOCK_BYTES = 1 << 20,
	BLOCKS_MIN = 2,
	END_BLOCKS = 1,	   /* more than there should be, for the end of a file */
	ALIGNMENT = 4096,  /* of memory and file, for writes that bypass the page cache */
	PATIENCE_MS = 100, /* how long a part of a block waits for the rest */
};

struct block {
	struct block *next;
	uint8_t *bytes;
	size_t used;
	bool closed;	/* nothing will be added */
	bool ends_file; /* nor to its file */
};

struct spool {
	const char *path; /* NULL: standard output */
	pthread_t thread;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t work;
	struct block *first, *last; /* to be written; all but the last are closed */
	struct block *unused;
	unsigned int waiting, blocks_max; /* blocks */
	struct block *blocks;		  /* all */
	unsigned int allocated;		  /* of them */
	bool ended;
	int error; /* -errno */

	/* the filling thread's */
	uint64_t filled; /* bytes of the file */

	/* the writing thread's */
	int fd;
	bool may_bypass, bypasses;
	/* How long a block took, into the page cache and past it. Each block that goes the other
	 * way reduces the value by an eighth, so that the slower way is tried again. */
	uint64_t block_ns[2];
	off_t at;	/* of the first block in the file */
	size_t written; /* bytes of the first block */
};

/* ---- the writing thread ---- */

static int open_next(struct spool *s)
{
	FILE *file;

	s->bypasses = false;
	s->may_bypass = s->path != NULL;
	if (!s->path) {
		s->fd = STDOUT_FILENO;
		return 0;
	}
	file = pcapng_create(s->path);
	if (!file)
		return -errno;
	/* without the stream, in which nothing is */
	s->fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 0);
	fclose(file);
	return s->fd < 0 ? -errno : 0;
}

static int close_last(struct spool *s)
{
	int fd = s->fd;

	s->fd = -1;
	return s->path && fd >= 0 && close(fd) ? -errno : 0;
}

/* FILE becomes FILE.1, and a new one begins. */
static int turn(struct spool *s)
{
	char old[4096];
	int error = close_last(s);

	if (error)
		return error;
	if (snprintf(old, sizeof(old), "%s.1", s->path) >= (int)sizeof(old))
		return -ENAMETOOLONG;
	return rename(s->path, old) ? -errno : open_next(s);
}

static void bypass(struct spool *s, bool yes)
{
	int flags;

	if (s->bypasses == yes)
		return;
	flags = fcntl(s->fd, F_GETFL);
	if (flags >= 0 && fcntl(s->fd, F_SETFL, yes ? flags | O_DIRECT : flags & ~O_DIRECT) == 0)
		s->bypasses = yes;
	else
		s->may_bypass = false;
}

/* How the next block is written; `hurry`: most of the queue waits. */
static bool choose(struct spool *s, bool hurry)
{
	bool past = s->may_bypass && (!hurry || s->block_ns[true] <= s->block_ns[false]);

	s->block_ns[!past] -= s->block_ns[!past] / 8; /* or one stall would decide for good */
	return past;
}

/* May the failed write be tried again? */
static bool may_repeat(struct spool *s)
{
	struct pollfd out = {.fd = s->fd, .events = POLLOUT};

	if (errno == EINTR)
		return true;
	if (errno == EAGAIN)
		return poll(&out, 1, -1) >= 0 || errno == EINTR;
	if (errno != EINVAL || !s->bypasses)
		return false;
	s->may_bypass = false;
	bypass(s, false);
	return !s->bypasses;
}

/* Writes the block up to `end`. When a whole block bypasses the page cache, the write begins at a
 * multiple of ALIGNMENT, and so may repeat bytes already written. 0 or -errno. */
static int write_block(struct spool *s, const struct block *b, size_t end, bool hurry)
{
	const uint64_t begun = monotonic_ns();
	size_t from = s->written;

	bypass(s, end == BLOCK_BYTES && choose(s, hurry));
	if (s->bypasses)
		from &= ~(size_t)(ALIGNMENT - 1);
	while (from < end) {
		ssize_t n =
			s->path ? pwrite(s->fd, b->bytes + from, end - from, s->at + (off_t)from)
				: write(s->fd, b->bytes + from, end - from);

		if (n > 0)
			from += (size_t)n;
		else if (n == 0 || !may_repeat(s))
			return n ? -errno : -EIO;
	}
	if (end == BLOCK_BYTES)
		s->block_ns[s->bypasses] = monotonic_ns() - begun;
	s->written = end;
	return 0;
}

/* Under the lock, like those that follow. */
static void wait_for_work(struct spool *s)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += PATIENCE_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	/* Wait until a block is closed; a pipe also takes part of a block. */
	while (!s->ended &&
	       !(s->first && (s->first->closed || (!s->path && s->first->used > s->written)))) {
		int timed_out = 0;

		if (s->first && s->first->used > s->written)
			timed_out = pthread_cond_timedwait(&s->work, &s->lock, &until);
		else
			pthread_cond_wait(&s->work, &s->lock);
		if (timed_out)
			return;
	}
}

static void note_error(struct spool *s, int error)
{
	if (!s->error)
		s->error = error;
}

/* The first block has been written. */
static void free_first(struct spool *s)
{
	struct block *b = s->first;

	s->first = b->next;
	if (!s->first)
		s->last = NULL;
	s->waiting--;
	s->written = 0;
	b->next = s->unused;
	s->unused = b;
}

/* What there is of the first block. */
static void write_first(struct spool *s)
{
	struct block *b = s->first;
	size_t end = b->used;
	bool closed = b->closed, ends_file = b->ends_file, hurry = s->waiting > s->blocks_max / 2;
	int error;

	pthread_mutex_unlock(&s->lock);
	error = write_block(s, b, end, hurry);
	if (!error && ends_file)
		error = turn(s);
	pthread_mutex_lock(&s->lock);
	note_error(s, error);
	if (closed) {
		free_first(s);
		s->at = ends_file ? 0 : s->at + BLOCK_BYTES;
	}
}

static void *write_files(void *spool)
{
	struct spool *s = spool;
	int error = open_next(s);

	pthread_mutex_lock(&s->lock);
	note_error(s, error);
	while (!s->error) {
		wait_for_work(s);
		if (s->ended && !s->first)
			break;
		write_first(s);
	}
	note_error(s, close_last(s));
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- the filling thread ---- */

/* One more block of memory; NULL: there are as many as there may be, or no memory is left. */
static struct block *allocate_block(struct spool *s)
{
	struct block *b = &s->blocks[s->allocated];

	if (s->allocated == s->blocks_max + END_BLOCKS)
		return NULL;
	b->bytes = aligned_alloc(ALIGNMENT, BLOCK_BYTES);
	if (!b->bytes)
		return NULL;
	s->allocated++;
	return b;
}

/* An empty block at the end of the queue; NULL, with s->error: there is no room. */
static struct block *add_block(struct spool *s)
{
	struct block *b = s->unused;

	if (b)
		s->unused = b->next;
	else
		b = allocate_block(s);
	if (!b) {
		s->error = -ENOMEM;
		return NULL;
	}
	*b = (struct block){.bytes = b->bytes};
	if (s->last)
		s->last->next = b;
	else
		s->first = b;
	s->last = b;
	s->waiting++;
	return b;
}

/* The block that has room for more; NULL, with s->error. */
static struct block *open_block(struct spool *s)
{
	return s->last && !s->last->closed ? s->last : add_block(s);
}

/* Copies as much as there is room for. */
static size_t add_bytes(struct spool *s, const char *bytes, size_t n)
{
	size_t done = 0;

	while (done < n) {
		struct block *b = open_block(s);
		size_t part = n - done;

		if (!b)
			return done;
		if (part > BLOCK_BYTES - b->used)
			part = BLOCK_BYTES - b->used;
		memcpy(b->bytes + b->used, bytes + done, part);
		b->used += part;
		b->closed = b->used == BLOCK_BYTES;
		done += part;
	}
	return done;
}

static ssize_t on_write(void *spool, const char *bytes, size_t n)
{
	struct spool *s = spool;
	size_t done = 0;

	pthread_mutex_lock(&s->lock);
	if (!s->error)
		done = add_bytes(s, bytes, n);
	s->filled += done;
	errno = -s->error;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
	return (ssize_t)done;
}

/* For ftello() alone. */
static int on_seek(void *spool, off64_t *offset, int whence)
{
	const struct spool *s = spool;

	if (whence != SEEK_CUR || *offset != 0) {
		errno = ESPIPE;
		return -1;
	}
	*offset = (off64_t)s->filled;
	return 0;
}

/* Signals are for the thread that fills it. 0 or an errno. */
static int start_thread(struct spool *s)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&s->thread, NULL, write_files, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

static void free_spool(struct spool *s)
{
	for (unsigned int i = 0; i < s->allocated; i++)
		free(s->blocks[i].bytes);
	free(s->blocks);
	pthread_cond_destroy(&s->work);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

struct spool *spool_begin(const char *path, uint64_t bytes)
{
	struct spool *s = calloc(1, sizeof(*s));
	pthread_condattr_t clock;
	int error;

	if (!s)
		return NULL;
	s->path = path;
	s->fd = -1;
	s->blocks_max =
		bytes / BLOCK_BYTES > BLOCKS_MIN ? (unsigned int)(bytes / BLOCK_BYTES) : BLOCKS_MIN;
	s->blocks = calloc(s->blocks_max + END_BLOCKS, sizeof(*s->blocks));
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&s->work, &clock);
	pthread_condattr_destroy(&clock);
	pthread_mutex_init(&s->lock, NULL);
	error = s->blocks ? start_thread(s) : ENOMEM;
	if (!error)
		return s;
	free_spool(s);
	errno = error;
	return NULL;
}

FILE *spool_stream(struct spool *s)
{
	s->filled = 0;
	return fopencookie(s, "w", (cookie_io_functions_t){.write = on_write, .seek = on_seek});
}

bool spool_has_room(struct spool *s)
{
	bool room;

	pthread_mutex_lock(&s->lock);
	room = s->waiting < s->blocks_max;
	pthread_mutex_unlock(&s->lock);
	return room;
}

int spool_error(struct spool *s)
{
	int error;

	pthread_mutex_lock(&s->lock);
	error = s->error;
	pthread_mutex_unlock(&s->lock);
	return error;
}

void spool_turn(struct spool *s)
{
	struct block *b;

	pthread_mutex_lock(&s->lock);
	b = open_block(s);
	if (b)
		b->closed = b->ends_file = true;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
}

int spool_end(struct spool *s)
{
	int error;

	pthread_mutex_lock(&s->lock);
	if (s->last)
		s->last->closed = true;
	s->ended = true;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	error = s->error;
	free_spool(s);
	return error;
}
