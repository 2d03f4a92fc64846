/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRELOAD_CM_H
#define PRELOAD_CM_H
/* Descriptors that stand for an open /dev/infiniband/rdma_cm. Any thread; no locks, no heap. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "marks.h"

extern struct marks view_cm_channels; /* descriptors that have been channels */

/* Is it a channel? Nearly free for other descriptors. Keeps errno. */
static inline bool view_is_cm(int fd)
{
	return marks_has(&view_cm_channels, fd) &&
	       marks_verify(&view_cm_channels, fd, SIGNATURE_CHANNEL);
}

/* `to` is now a copy of `from` (< 0: the copy failed). Returns `to`. */
int view_cm_copied(int from, int to);

/* Does a path in the tree name the device? Does `path`, relative to the directory dir? */
bool view_is_cm_path(const char *shown);
bool view_is_cm_at(int dir, const char *path);

/*
 * Opens the device. Returns a descriptor; VIEW_NOT_SPECIAL: with these flags it is an ordinary
 * file; -1 with errno: ENOENT (no daemon), ENODEV (it has died, is of another version, or has no
 * connection manager), EACCES, EMFILE, ENFILE, ENOMEM.
 */
int view_open_cm(int flags);

/*
 * write() on a channel: executes a command. Returns n; -1 with errno of the command, or: EINVAL
 * (not a command), ENODEV (the daemon has died), EMFILE, ENFILE; of GET_EVENT, which waits: EAGAIN
 * (no event, O_NONBLOCK), EINTR. After the daemon's death GET_EVENT returns DEVICE_REMOVAL for each
 * identifier that is bound to a device, DESTROY_ID works, and after the last event the descriptor
 * never polls as readable.
 */
ssize_t view_write_cm(int fd, const void *from, size_t n);

/* The device does not support read(). */
static inline int view_read_cm(void)
{
	errno = EINVAL;
	return -1;
}

/* The device number for stat(). */
unsigned long view_cm_device_number(void);

#endif
