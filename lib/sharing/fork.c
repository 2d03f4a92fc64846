/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens at fork(), see sharing.h: handlers of pthread_atfork(). The lock is held from the
 * first to the last of them.
 */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "sharing_priv.h"
#include "stop.h"
#include "sys.h"

enum { ASIDE_MAX = 64, TLS_BYTES = 8192, FRAME_BELOW = 64 << 10, FRAME_ABOVE = 1 << 20 };

/* Pages that parent and child both run on: private from before the fork until after it. */
static struct vma aside[ASIDE_MAX];
static unsigned int aside_count;
static int child_done[2]; /* a pipe: ends when the child has its copies, or is dead; -1: none */
static bool active;
static struct vma_reader reader;

/* ---- before ---- */

static void set_aside(uintptr_t at, uintptr_t end)
{
	struct vma v;

	if (vma_open(&reader))
		return;
	for (; at < end && aside_count < ASIDE_MAX && vma_find(&reader, at, &v); at = v.end) {
		if (v.start >= end)
			break;
		if (!pool_has(&v))
			continue;
		if (v.start < at) {
			v.offset += at - v.start;
			v.start = at;
		}
		v.end = v.end < end ? v.end : end;
		if (sys6(SYS_mmap, (long)v.start, (long)(v.end - v.start), v.protection,
			    MAP_PRIVATE | MAP_FIXED, pool.fd, (long)v.offset) >= 0)
			aside[aside_count++] = v;
	}
	vma_close(&reader);
}

static uintptr_t page_of(uintptr_t addr)
{
	return addr & ~(uintptr_t)(SHARING_PAGE - 1);
}

/* This thread's stack, and its descriptor with what is local to the thread. */
static void set_aside_ours(void)
{
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	const uintptr_t self = (uintptr_t)pthread_self();
	pthread_attr_t attr;
	void *at = NULL;
	size_t bytes = 0;

	if (pthread_getattr_np(pthread_self(), &attr) == 0) {
		pthread_attr_getstack(&attr, &at, &bytes);
		pthread_attr_destroy(&attr);
	}
	if (here >= (uintptr_t)at && here < (uintptr_t)at + bytes)
		set_aside(page_of(here - FRAME_BELOW), (uintptr_t)at + bytes);
	else /* a stack of the program's own making */
		set_aside(page_of(here - FRAME_BELOW), page_of(here + FRAME_ABOVE));
	set_aside(page_of(self - TLS_BYTES), page_of(self + TLS_BYTES));
}

static void before_fork(void)
{
	sharing_lock();
	active = part_count != 0 && pool.fd >= 0;
	if (!active)
		return;
	aside_count = 0;
	if (pipe2(child_done, O_CLOEXEC))
		child_done[0] = child_done[1] = -1;
	set_aside_ours();
}

/* ---- the parent ---- */

/* Which bytes of a page are registered: they are the daemon's to write. */
static void mark(uintptr_t page, uint8_t registered[SHARING_PAGE])
{
	memset(registered, 0, SHARING_PAGE);
	for (const struct sharing *s = sharings; s; s = s->next) {
		uintptr_t low = s->first > page ? s->first : page;
		uintptr_t high = s->first + s->length;

		high = high < page + SHARING_PAGE ? high : page + SHARING_PAGE;
		if (low < high)
			memset(registered + (low - page), 1, high - low);
	}
}

/* The private bytes of a page that are not registered go to the pool. */
static void join_page(uintptr_t page, uint64_t offset)
{
	uint8_t registered[SHARING_PAGE];
	size_t at = 0, end;

	mark(page, registered);
	while (at < SHARING_PAGE) {
		end = at;
		while (end < SHARING_PAGE && registered[end] == registered[at])
			end++;
		if (!registered[at])
			sys6(SYS_pwrite64, pool.fd, (long)(page + at), (long)(end - at),
				(long)(offset + at), 0, 0);
		at = end;
	}
}

/* A helper thread: the others, whose stack this may be, are stopped. */
static void *join(void *arg)
{
	int rc = stop_others();

	(void)arg;
	for (unsigned int i = 0; i < aside_count; i++) {
		const struct vma *v = &aside[i];

		for (uintptr_t at = v->start; at < v->end; at += SHARING_PAGE)
			join_page(at, v->offset + (at - v->start));
		sys6(SYS_mmap, (long)v->start, (long)(v->end - v->start), v->protection,
			MAP_SHARED | MAP_FIXED, pool.fd, (long)v->offset);
	}
	if (!rc)
		resume_others();
	return NULL;
}

static void wait_for_child(void)
{
	char byte;

	if (child_done[0] < 0)
		return;
	close(child_done[1]);
	while (read(child_done[0], &byte, 1) < 0 && errno == EINTR)
		;
	close(child_done[0]);
}

static void after_fork(void)
{
	pthread_t helper;
	int err = errno;

	if (active) {
		wait_for_child();
		if (aside_count && pthread_create(&helper, NULL, join, NULL) == 0)
			pthread_join(helper, NULL);
	}
	errno = err;
	sharing_unlock();
}

/* ---- the child ---- */

/* Everything of the pool that is still shared becomes private, or goes. */
static void part_with_all(void)
{
	uintptr_t at = 0;
	struct vma v;

	if (vma_open(&reader))
		return;
	for (; vma_find(&reader, at, &v); at = v.end)
		if (pool_has(&v) && swap_out_alone(v.start, v.end - v.start, v.offset, v.protection,
					    part_alias(v.offset)))
			mmap((void *)v.start, v.end - v.start, PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	vma_close(&reader);
}

/* Each page that is private by name becomes so in deed. */
static void own(const struct vma *v)
{
	const long bytes = (long)(v->end - v->start);

	if (!(v->protection & PROT_WRITE))
		sys6(SYS_mprotect, (long)v->start, bytes, PROT_READ | PROT_WRITE, 0, 0, 0);
	for (uintptr_t at = v->start; at < v->end; at += SHARING_PAGE)
		touch(at);
	if (!(v->protection & PROT_WRITE))
		sys6(SYS_mprotect, (long)v->start, bytes, v->protection, 0, 0, 0);
}

static void in_child(void)
{
	stop_forget();
	sharing_lock_reset();
	if (!active)
		return;
	for (unsigned int i = 0; i < aside_count; i++)
		own(&aside[i]);
	part_with_all();
	close(pool.fd);
	close(pool.read_only_fd);
	pool_forget();
	if (child_done[0] >= 0) {
		close(child_done[0]);
		close(child_done[1]);
	}
}

/* As early as possible: handlers of libraries that come later then run outside of ours in the
 * parent, and after ours in the child. */
static void __attribute__((constructor)) watch(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

void fork_watch(void)
{
	/* Called so that a static library's constructor is linked. */
}
