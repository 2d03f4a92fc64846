/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_LET_GO_H
#define BASE_LET_GO_H
/*
 * Descriptors that came from a stranger, or to which one may have sent descriptors: the last close
 * of a file may wait for as long as its owner likes (a TCP socket that lingers, a file system in
 * user space), and closing a socket closes what still lies in its queue. So threads of this module
 * close them: one, and another for each that waits in a close, up to LET_GO_THREADS.
 * Any thread; never waits, but for let_go_finish().
 */
#include <sys/socket.h>

enum {
	LET_GO_THREADS = 64,
	LET_GO_MOST = 65536,	   /* that wait for a thread; more stay open */
	LET_GO_MESSAGE_MOST = 253, /* descriptors in one message (SCM_MAX_FD): who has less room for
				      them lets the kernel close the others, and waits */
};

/* Room for all descriptors that a message may bring. */
union let_go_room {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(LET_GO_MESSAGE_MOST * sizeof(int))];
};

/* Closes fd, soon. It is no longer the caller's. */
void let_go(int fd);
/* The same of a connected socket, whose other end is told at once. */
void let_go_connection(int fd);

/* The descriptors of a message received with a let_go_room: the first `most` into fds, the others
 * are let go. Returns how many there were. */
unsigned int let_go_receive(struct msghdr *m, int *fds, unsigned int most);

/* Waits until all that was let go is closed. For tests. */
void let_go_finish(void);

#endif
