/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_ABI_DESCRIPTOR_H
#define HOST_ABI_DESCRIPTOR_H
/*
 * How a descriptor travels with a message, by SCM_RIGHTS: on the control socket (control.h) and on
 * the connection manager's channels (cm_channel.h). Any thread; no heap, no lock.
 */
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Sends the message in `parts` parts with the descriptor fd, which stays the caller's; -1: none. As
 * sendmsg(): bytes, or -1 with errno. */
static inline ssize_t descriptor_send(int socket, struct iovec *iov, size_t parts, int fd,
				      int flags)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = parts};

	if (fd >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	return sendmsg(socket, &msg, flags);
}

#endif
