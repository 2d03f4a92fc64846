/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_WORLD_SEND_DESCRIPTORS_H
#define TESTS_WORLD_SEND_DESCRIPTORS_H
/* A message with any number of descriptors (SCM_RIGHTS), as a hostile program could send it. */
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/* As sendmsg(), without SIGPIPE. */
static inline ssize_t send_descriptors(int fd, const void *bytes, size_t n, const int *fds,
				       unsigned int count, int flags)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(64 * sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (count) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	return sendmsg(fd, &msg, flags | MSG_NOSIGNAL);
}

#endif
