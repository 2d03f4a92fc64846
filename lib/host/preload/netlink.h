/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRELOAD_NETLINK_H
#define PRELOAD_NETLINK_H
/* Sockets of NETLINK_RDMA, and a kernel's answers on them. Any thread; no locks, no heap. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Is it such a socket? Keeps errno. */
bool view_is_netlink(int fd);
/* write() on one: queues the answer in it. `bytes`; -1 with errno: EAGAIN (the queue is full). */
ssize_t view_write_netlink(int fd, const void *from, size_t bytes);
/* `to` is now a copy of `from` (< 0: the copy failed). Returns `to`. */
int view_netlink_copied(int from, int to);

/* What programs receive into: libmnl's MNL_SOCKET_BUFFER_SIZE. */
enum { NLDEV_ANSWER_BYTES = 4096 };

/*
 * Answers all requests in `bytes` bytes at `from`, which may hold anything. The answers, one
 * datagram of at most NLDEV_ANSWER_BYTES, go to `to`. Returns their length; what does not fit is
 * left out.
 */
size_t nldev_answer(const void *from, size_t bytes, uint8_t to[NLDEV_ANSWER_BYTES]);

#endif
