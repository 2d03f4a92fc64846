/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_LINGERING_H
#define UNIT_LINGERING_H
/*
 * Descriptors whose last close waits: TCP sockets that linger, with unread data. Closing the other
 * end releases them.
 */
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LINGER_S = 120, LINGER_LEAST_MS = 60000 }; /* a shorter time has not waited for one */

/* -1: none can be made here. *other: its other end. */
static inline int lingering(int *other)
{
	static const char data[65536];
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
	struct linger linger = {.l_onoff = 1, .l_linger = LINGER_S};
	socklen_t bytes = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(listener, (struct sockaddr *)&addr, bytes) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&addr, &bytes) ||
	    connect(fd, (struct sockaddr *)&addr, bytes))
		return -1;
	*other = accept(listener, NULL, NULL);
	close(listener);
	while (send(fd, data, sizeof(data), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return fd;
}

static inline uint64_t lingering_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

#endif
