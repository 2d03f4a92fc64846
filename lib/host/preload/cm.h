/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRELOAD_CM_H
#define PRELOAD_CM_H
/* Descriptors that stand for an open /dev/infiniband/rdma_cm. Any thread; no locks, no heap. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { VIEW_CM_FDS = 1 << 16 }; /* higher ones are none */

extern uint64_t view_cm_marks[VIEW_CM_FDS / 64]; /* atomic: they were channels once */

/* Is this marked one still a channel? If not, the mark goes. fd: below VIEW_CM_FDS. errno stays. */
bool view_cm_signed(int fd);

/* Is it a channel? Costs nothing for nearly all. */
static inline bool view_is_cm(int fd)
{
	return (unsigned int)fd < VIEW_CM_FDS &&
	       (__atomic_load_n(&view_cm_marks[fd / 64], __ATOMIC_RELAXED) >> fd % 64 & 1) &&
	       view_cm_signed(fd);
}

/* `to` has been made a copy of `from`; < 0: it was not. Gives back `to`. */
int view_cm_copied(int from, int to);

/* Is a path into the tree the device? Is `path`, below the folder that is open as dir? */
bool view_is_cm_path(const char *shown);
bool view_is_cm_at(int dir, const char *path);

/*
 * Opens the device. A descriptor; VIEW_NOT_SPECIAL: with these flags it is a file like any other;
 * -1 with errno: ENOENT (no daemon), ENODEV (it has gone, is of another version, or without a
 * connection manager), EACCES, EMFILE, ENFILE, ENOMEM.
 */
int view_open_cm(int flags);

/*
 * write() on a channel: does a command. n; -1 with errno of the command, or: EINVAL (no command),
 * ENODEV (the daemon has gone), EMFILE, ENFILE; of GET_EVENT, which waits for one: EAGAIN (none,
 * O_NONBLOCK), EINTR. When the daemon has gone GET_EVENT gives DEVICE_REMOVAL of each identifier
 * that is on a device, DESTROY_ID works, and after the last event the descriptor never polls as
 * readable.
 */
ssize_t view_write_cm(int fd, const void *from, size_t n);

/* read(): the device has none. */
static inline int view_read_cm(void)
{
	errno = EINVAL;
	return -1;
}

/* What stat() says of the device. */
unsigned long view_cm_device_number(void);

#endif
