/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_LET_GO_H
#define BASE_LET_GO_H
/*
 * Closes descriptors in the background. The last close of a file may block for as long as its owner
 * likes (a TCP socket that lingers, a FUSE file system), and closing a socket closes the
 * descriptors in its queue; so descriptors that a client sent, or sockets to which it may have sent
 * some, are closed by threads of this module: one, plus one for each that blocks in a close, up to
 * LET_GO_THREADS. Any thread; never blocks, except let_go_finish().
 */
#include <sys/socket.h>

enum {
	LET_GO_THREADS = 64,
	LET_GO_MOST = 65536,	   /* most that wait for a thread; further ones stay open */
	LET_GO_MESSAGE_MOST = 253, /* descriptors in one message (SCM_MAX_FD): with less room
					the kernel closes the others, and blocks */
};

/* Control buffer for all descriptors that a message may carry. */
union let_go_room {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(LET_GO_MESSAGE_MOST * sizeof(int))];
};

/* Closes fd soon. The caller gives it up. */
void let_go(int fd);
/* The same for a connected socket; the peer sees the shutdown at once. */
void let_go_connection(int fd);

/* Takes the descriptors of a message received with a let_go_room: the first `most` into fds, the
 * others are closed. Returns how many there were. */
unsigned int let_go_receive(struct msghdr *m, int *fds, unsigned int most);

/* Waits until all are closed. For tests. */
void let_go_finish(void);

#endif
