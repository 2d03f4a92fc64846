/* SPDX-License-Identifier: BSD-3-Clause */
/* Signatures of sockets. Any thread; no locks, no heap. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "marks.h"

/* setsockopt() may be ours (netlink.c). */
int marks_sign(int fd, enum signature signature)
{
	const struct linger sign = {.l_onoff = 1, .l_linger = signature};

	return (int)syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_LINGER, &sign, sizeof(sign));
}

bool marks_verify(struct marks *m, int fd, enum signature signature)
{
	struct linger sign = {0};
	socklen_t bytes = sizeof(sign);
	int error = errno;

	if (getsockopt(fd, SOL_SOCKET, SO_LINGER, &sign, &bytes) == 0 && sign.l_onoff == 1 &&
	    sign.l_linger == (int)signature)
		return true;
	errno = error;
	marks_remove(m, fd);
	return false;
}
