/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NETLINK_RDMA sockets, in front of libc's functions (LD_PRELOAD): iproute2's `rdma` uses them to
 * list devices. A kernel without RDMA has no such protocol, one with RDMA does not know our
 * devices. So the program gets a datagram socket connected to itself: a request is answered within
 * the call that sends it, and the answer waits in the socket's own queue. Polling, closing and
 * inheriting need no help. Any thread; no locks, no heap.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>
#include "marks.h"
#include "netlink.h"
#include "next.h"

enum { REQUEST_BYTES = 4096 };

static struct marks sockets; /* descriptors that have been such sockets */

bool view_is_netlink(int fd)
{
	return marks_has(&sockets, fd) && marks_verify(&sockets, fd, SIGNATURE_NETLINK);
}

int view_netlink_copied(int from, int to)
{
	if (to >= 0 && view_is_netlink(from))
		marks_add(&sockets, to);
	return to;
}

/* ---- opening ---- */

/* The kernel chooses a unique name. */
static int connect_to_itself(int fd)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	socklen_t bytes = sizeof(name);

	if (syscall(SYS_bind, fd, &name, sizeof(name.sun_family)) ||
	    syscall(SYS_getsockname, fd, &name, &bytes) || syscall(SYS_connect, fd, &name, bytes))
		return -1;
	return marks_sign(fd, SIGNATURE_NETLINK);
}

static int open_ours(int flags)
{
	int fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_DGRAM | flags, 0);

	if (fd < 0)
		return -1;
	if (connect_to_itself(fd) || !marks_add(&sockets, fd)) {
		close(fd);
		errno = EMFILE;
		return -1;
	}
	return fd;
}

SHOWN int socket(int domain, int type, int protocol)
{
	if (__builtin_expect(domain == AF_NETLINK && protocol == NETLINK_RDMA, 0))
		return open_ours(type & (SOCK_CLOEXEC | SOCK_NONBLOCK));
	return NEXT(socket)(domain, type, protocol);
}

/* ---- names and options ---- */

static const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

static void copy_name(const struct sockaddr_nl *name, void *to, socklen_t *bytes)
{
	memcpy(to, name, *bytes < sizeof(*name) ? *bytes : sizeof(*name));
	*bytes = sizeof(*name);
}

SHOWN int bind(int fd, const struct sockaddr *to, socklen_t bytes)
{
	return view_is_netlink(fd) ? 0 : NEXT(bind)(fd, to, bytes);
}

SHOWN int connect(int fd, const struct sockaddr *to, socklen_t bytes)
{
	return view_is_netlink(fd) ? 0 : NEXT(connect)(fd, to, bytes);
}

SHOWN int getsockname(int fd, struct sockaddr *restrict to, socklen_t *restrict bytes)
{
	struct sockaddr_nl own = kernel;

	if (!view_is_netlink(fd))
		return NEXT(getsockname)(fd, to, bytes);
	own.nl_pid = (uint32_t)getpid();
	copy_name(&own, to, bytes);
	return 0;
}

SHOWN int setsockopt(int fd, int level, int option, const void *value, socklen_t bytes)
{
	return level == SOL_NETLINK && view_is_netlink(fd)
		       ? 0
		       : NEXT(setsockopt)(fd, level, option, value, bytes);
}

/* ---- requests ---- */

/* The answer to what the program sends. Never blocks: a full queue is EAGAIN. */
static ssize_t answer(int fd, const void *from, size_t bytes)
{
	uint8_t to[NLDEV_ANSWER_BYTES];
	size_t n = nldev_answer(from, bytes, to);

	if (n && syscall(SYS_sendto, fd, to, n, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0) < 0)
		return -1;
	return (ssize_t)bytes;
}

ssize_t view_write_netlink(int fd, const void *from, size_t bytes)
{
	return answer(fd, from, bytes);
}

static ssize_t answer_vector(int fd, const struct iovec *part, size_t count)
{
	uint8_t all[REQUEST_BYTES];
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		if (part[i].iov_len > sizeof(all) - n) {
			errno = EMSGSIZE;
			return -1;
		}
		memcpy(all + n, part[i].iov_base, part[i].iov_len);
		n += part[i].iov_len;
	}
	return answer(fd, all, n);
}

SHOWN ssize_t send(int fd, const void *from, size_t bytes, int flags)
{
	return view_is_netlink(fd) ? answer(fd, from, bytes) : NEXT(send)(fd, from, bytes, flags);
}

SHOWN ssize_t sendto(int fd, const void *from, size_t bytes, int flags, const struct sockaddr *to,
		     socklen_t to_bytes)
{
	return view_is_netlink(fd) ? answer(fd, from, bytes)
				   : NEXT(sendto)(fd, from, bytes, flags, to, to_bytes);
}

SHOWN ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	return view_is_netlink(fd) ? answer_vector(fd, m->msg_iov, m->msg_iovlen)
				   : NEXT(sendmsg)(fd, m, flags);
}

SHOWN ssize_t writev(int fd, const struct iovec *part, int count)
{
	return view_is_netlink(fd) ? answer_vector(fd, part, (size_t)count)
				   : NEXT(writev)(fd, part, count);
}

/* ---- answers appear to come from the kernel ---- */

SHOWN ssize_t recvfrom(int fd, void *restrict to, size_t bytes, int flags,
		       struct sockaddr *restrict from, socklen_t *restrict from_bytes)
{
	bool ours = from && view_is_netlink(fd);
	ssize_t n =
		NEXT(recvfrom)(fd, to, bytes, flags, ours ? NULL : from, ours ? NULL : from_bytes);

	if (ours && n >= 0)
		copy_name(&kernel, from, from_bytes);
	return n;
}

SHOWN ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	socklen_t room = m->msg_namelen;
	ssize_t n = NEXT(recvmsg)(fd, m, flags);

	if (n >= 0 && m->msg_name && view_is_netlink(fd)) {
		m->msg_namelen = room;
		copy_name(&kernel, m->msg_name, &m->msg_namelen);
	}
	return n;
}
