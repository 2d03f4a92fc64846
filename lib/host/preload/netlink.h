/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRELOAD_NETLINK_H
#define PRELOAD_NETLINK_H
/* Sockets of NETLINK_RDMA, and what a kernel would answer there. Any thread; no locks, no heap. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Is it such a socket? errno stays. */
bool view_is_netlink(int fd);
/* write() on one: the answer waits in it. `bytes`; -1 with errno: EAGAIN (too many wait). */
ssize_t view_write_netlink(int fd, const void *from, size_t bytes);
/* `to` has been made a copy of `from`; < 0: it was not. Gives back `to`. */
int view_netlink_copied(int from, int to);

enum {
	NLDEV_ANSWER_BYTES = 4096
}; /* what programs receive into: libmnl's MNL_SOCKET_BUFFER_SIZE */

/*
 * Answers all requests that a program wrote: `bytes` bytes at from, which may be anything. The
 * answers, as one datagram of up to NLDEV_ANSWER_BYTES, go to `to`. Returns their bytes; what does
 * not fit is left out.
 */
size_t nldev_answer(const void *from, size_t bytes, uint8_t to[NLDEV_ANSWER_BYTES]);

#endif
