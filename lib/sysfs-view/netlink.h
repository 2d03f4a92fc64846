/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SYSFS_VIEW_NETLINK_H
#define SYSFS_VIEW_NETLINK_H
/* Sockets of NETLINK_RDMA, and what a kernel would answer there. Any thread; no locks, no heap. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
