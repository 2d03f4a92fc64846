/* SPDX-License-Identifier: BSD-3-Clause */
/* A descriptor that travels with a message: it arrives, or none does. */
#include "test.h"
#include <sys/stat.h>
#include "host-abi/descriptor.h"

static int pair[2];

static int make(void **state)
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int unmake(void **state)
{
	close(pair[0]);
	return close(pair[1]);
}

static void send_text(int fd)
{
	char text[] = "text", more[] = "more";
	struct iovec iov[2] = {{.iov_base = text, .iov_len = 4}, {.iov_base = more, .iov_len = 4}};

	assert_int_equal(descriptor_send(pair[0], iov, 2, fd, MSG_NOSIGNAL), 8);
}

/* How many came with "textmore"; *fd: the first. */
static size_t receive_text(int *fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control;
	char text[16];
	struct iovec iov = {.iov_base = text, .iov_len = sizeof(text)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *c;

	assert_int_equal(recvmsg(pair[1], &msg, MSG_DONTWAIT), 8);
	assert_memory_equal(text, "textmore", 8);
	assert_int_equal(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC), 0);
	c = CMSG_FIRSTHDR(&msg);
	if (!c)
		return 0;
	assert_int_equal(c->cmsg_level, SOL_SOCKET);
	assert_int_equal(c->cmsg_type, SCM_RIGHTS);
	memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
}

TEST(send__with_a_descriptor)
{
	struct stat ours, theirs;
	int fd = -1;

	send_text(pair[1]);
	assert_int_equal(receive_text(&fd), 1);
	assert_int_equal(fstat(pair[1], &ours), 0); /* it stays ours */
	assert_int_equal(fstat(fd, &theirs), 0);
	assert_int_equal(theirs.st_ino, ours.st_ino);
	close(fd);
}

TEST(send__with_none)
{
	int fd;

	send_text(-1);
	assert_int_equal(receive_text(&fd), 0);
}

TEST(send__fails_as_sendmsg)
{
	struct iovec iov = {.iov_base = "a", .iov_len = 1};

	assert_int_equal(descriptor_send(-1, &iov, 1, pair[1], MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EBADF);
	while (descriptor_send(pair[0], &iov, 1, -1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1)
		;
	assert_int_equal(errno, EAGAIN);
}

TEST_GROUP(.setup = make, .teardown = unmake);
