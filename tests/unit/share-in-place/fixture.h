/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHARING_FIXTURE_H
#define SHARING_FIXTURE_H
/* The other side of a sharing: maps its pieces elsewhere in the same process, as the daemon would
 * in its own. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "test.h"
#include "share-in-place/sharing.h"
#include "vma.h"

enum { PAGE = 4096 };

struct view {
	struct sharing *s;
	uint8_t *base; /* of s->addr */
	uint8_t *at;   /* of the request */
};

static inline struct view view_of(struct sharing *s, const void *addr)
{
	const int protection = s->writable ? PROT_READ | PROT_WRITE : PROT_READ;
	struct view v = {.s = s};

	v.base = mmap(NULL, s->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(v.base != MAP_FAILED);
	for (unsigned int i = 0; i < s->count; i++) {
		const struct sharing_piece *p = &s->pieces[i];

		assert_true(mmap(v.base + (p->addr - s->addr), p->bytes, protection,
				 MAP_SHARED | MAP_FIXED, p->fd, (off_t)p->offset) != MAP_FAILED);
	}
	v.at = v.base + ((uintptr_t)addr - s->addr);
	return v;
}

static inline struct view view_get(const void *addr, size_t length, bool write)
{
	struct sharing *s = NULL;

	assert_int_equal(sharing_get(addr, length, write, &s), 0);
	return view_of(s, addr);
}

static inline void view_put(struct view *v)
{
	munmap(v->base, v->s->bytes);
	sharing_put(v->s);
	*v = (struct view){0};
}

static inline struct vma vma_at(const void *addr)
{
	static struct vma_reader r;
	struct vma v;

	assert_int_equal(vma_open(&r), 0);
	assert_true(vma_find(&r, (uintptr_t)addr, &v) && v.start <= (uintptr_t)addr);
	vma_close(&r);
	return v;
}

static inline bool is_shared(const void *addr)
{
	return vma_at(addr).shared;
}

static inline void fill(uint8_t *at, size_t bytes, unsigned int seed)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(i * 7 + (i >> 8) + seed);
}

static inline void check(const uint8_t *at, size_t bytes, unsigned int seed)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i] != (uint8_t)(i * 7 + (i >> 8) + seed))
			fail_msg("byte %zu of %zu is %u", i, bytes, at[i]);
}

/* Both sides see each other's stores. */
static inline void both_ways(struct view *v, uint8_t *mine, size_t bytes, unsigned int seed)
{
	check(v->at, bytes, seed);
	fill(mine, bytes, seed + 1);
	check(v->at, bytes, seed + 1);
	fill(v->at, bytes, seed + 2);
	check(mine, bytes, seed + 2);
}

/* ---- children ---- */

/* In a child: asserts would run the rest of the tests there. */
#define CHILD_IF(wrong)                                                                            \
	do {                                                                                       \
		if (wrong)                                                                         \
			_exit(__LINE__ % 251 + 1);                                                 \
	} while (0)

static inline void wait_for(pid_t child)
{
	int status;

	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("the child ended with %#x", status);
}

/* Goes on in a child, which ends by _exit(0), and then, if it did, in the parent. */
static inline bool in_child(void)
{
	const pid_t child = fork();

	if (child != 0)
		wait_for(child);
	return child == 0;
}

#endif
