/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRELOAD_MARKS_H
#define PRELOAD_MARKS_H
/*
 * Sets of descriptors that are ours. A program may close one without our notice, and its number may
 * be reused: so sockets are also signed, by an option that has no effect on a Unix socket, and that
 * copies and forks inherit. Any thread; no locks, no heap.
 */
#include <stdbool.h>
#include <stdint.h>

enum { MARKS_FDS = 1 << 16 }; /* higher ones are in no set */

struct marks {
	uint64_t bits[MARKS_FDS / 64]; /* atomic */
};

enum signature { SIGNATURE_CHANNEL = 0x7264, SIGNATURE_NETLINK = 0x6e6c };

static inline bool marks_has(const struct marks *m, int fd)
{
	return (unsigned int)fd < MARKS_FDS &&
	       (__atomic_load_n(&m->bits[fd / 64], __ATOMIC_RELAXED) >> fd % 64 & 1);
}

/* fd >= 0. False: it is too high for a set. */
static inline bool marks_add(struct marks *m, int fd)
{
	if (fd >= MARKS_FDS)
		return false;
	__atomic_fetch_or(&m->bits[fd / 64], 1ull << fd % 64, __ATOMIC_RELAXED);
	return true;
}

/* fd is a member. */
static inline void marks_remove(struct marks *m, int fd)
{
	__atomic_fetch_and(&m->bits[fd / 64], ~(1ull << fd % 64), __ATOMIC_RELAXED);
}

/* Signs a Unix socket. 0; -1 with errno. */
int marks_sign(int fd, enum signature signature);
/* Does fd, a member, still have the signature? If not, removes it. Keeps errno. */
bool marks_verify(struct marks *m, int fd, enum signature signature);

#endif
