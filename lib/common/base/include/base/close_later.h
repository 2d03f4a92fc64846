/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_CLOSE_LATER_H
#define BASE_CLOSE_LATER_H
/*
 * Closes descriptors in the background. The last close of a file may block for as long as its owner
 * likes (a TCP socket that lingers, a FUSE file system), and closing a socket closes the
 * descriptors in its queue; so descriptors that a client sent, or sockets to which it may have sent
 * some, are closed by threads of this module: one, plus one for each that blocks in a close, up to
 * CLOSE_LATER_THREADS. Any thread; never blocks, except close_later_finish().
 */
#include <sys/socket.h>

enum {
	CLOSE_LATER_THREADS = 64,
	CLOSE_LATER_MESSAGE_MAX = 253, /* descriptors in one message (SCM_MAX_FD): with less room
					the kernel closes the others, and blocks */
};

struct share_client;
struct shares;

/* Control buffer for all descriptors that a message may carry. */
union close_later_control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(CLOSE_LATER_MESSAGE_MAX * sizeof(int))];
};

/* Closes fd soon; takes ownership. `from`: the client that sent it, to whose share (SHARE_closings)
 * it is charged until it is closed, even after the client's end; NULL: none. If memory runs out it
 * stays open. */
void close_later(int fd, struct share_client *from);
/* The same for a connected socket; the peer sees the shutdown at once. */
void close_later_socket(int fd, struct share_client *from);
/* The same for the socket of a process that has not become a client; the socket tells its user.
 * Logs `why`, unless it is NULL or the user's share of the log (SHARE_log_lines) is used up. shares
 * may be NULL. */
void close_later_stranger(int fd, struct shares *shares, const char *why);

/* Takes the descriptors of a message received with a close_later_control: the first `most` into
 * fds, the others are closed. Returns how many there were. */
unsigned int close_later_receive(struct msghdr *m, int *fds, unsigned int most,
				 struct share_client *from);

/* Waits until all are closed. For tests. */
void close_later_finish(void);

#endif
