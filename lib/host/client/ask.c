/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's socket: finds it, exchanges one request and its reply. Knows no context and takes no
 * lock; the preload library that shows /sys to programs links it too. Any thread.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "ask.h"
#include "base/look.h"
#include "base/monotonic.h"
#include "host-abi/cm_channel.h"
#include "host-abi/descriptor.h"
#include "softhca/softhca.h"

enum { ERRNO_MAX = 4095 };

/* Where this user's own daemon listens. */
static int own_socket(char out[ASK_PATH_BYTES])
{
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	int n;

	if (runtime && runtime[0])
		n = snprintf(out, ASK_PATH_BYTES, "%s/softhca/softhca.sock", runtime);
	else
		n = snprintf(out, ASK_PATH_BYTES, "/tmp/softhca-%u/softhca.sock",
			     (unsigned int)geteuid());
	return n >= ASK_PATH_BYTES ? -ENAMETOOLONG : 0;
}

int ask_socket_path(const char *given, char out[ASK_PATH_BYTES])
{
	if (!given)
		given = secure_getenv("SOFTHCA_SOCKET");
	/* The system's daemon if it listens, else this user's own. */
	if ((!given || !given[0]) && (geteuid() == 0 || access(SOFTHCA_SOCKET_DEFAULT, F_OK) == 0))
		given = SOFTHCA_SOCKET_DEFAULT;
	if (!given || !given[0])
		return own_socket(out);
	if (strlen(given) >= ASK_PATH_BYTES)
		return -ENAMETOOLONG;
	strcpy(out, given);
	return 0;
}

void ask_hcas(struct cm_channel_hcas *out)
{
	const char *at = secure_getenv("SOFTHCA_HCAS");

	memset(out, 0, sizeof(*out));
	for (unsigned int i = 0; at && i < CM_CHANNEL_HCAS;) {
		size_t n = strcspn(at, ", ");

		if (n > 0 && n < sizeof(out->name[0]))
			memcpy(out->name[i++], at, n);
		at = at[n] ? at + n + 1 : NULL;
	}
}

/* The owner of the folder in which the socket lies. */
static uid_t owner_of_folder(const char *socket_path)
{
	char folder[ASK_PATH_BYTES] = ".";
	const char *slash = strrchr(socket_path, '/');
	struct stat st;

	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - socket_path) + 1,
			 socket_path);
	return stat(folder, &st) ? (uid_t)-1 : st.st_uid;
}

bool ask_trusts(int fd, const char *socket_path)
{
	struct ucred who = {.uid = (uid_t)-1};
	socklen_t bytes = sizeof(who);
	char own[ASK_PATH_BYTES];

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) || who.uid == (uid_t)-1)
		return false;
	if (who.uid == 0 || who.uid == geteuid())
		return true;
	return (own_socket(own) || strcmp(socket_path, own) != 0) &&
	       who.uid == owner_of_folder(socket_path);
}

int ask_connect(const char *socket_path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd, rc;

	_Static_assert(sizeof(addr.sun_path) == ASK_PATH_BYTES, "a path that an address holds");
	rc = ask_socket_path(socket_path, addr.sun_path);
	if (rc)
		return rc;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		rc = -errno;
	else if (!ask_trusts(fd, addr.sun_path))
		rc = -EPERM;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static ssize_t ask_send_request(int fd, const struct control_header *h, const void *body,
				int passed)
{
	struct iovec iov[2] = {{.iov_base = (void *)(uintptr_t)h, .iov_len = sizeof(*h)},
			       {.iov_base = (void *)(uintptr_t)body, .iov_len = h->length}};
	ssize_t n;

	do
		n = descriptor_send(fd, iov, 2, passed, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n;
}

static ssize_t ask_receive_reply(int fd, struct control_header *h, void *body, size_t room,
				 int *passed, int flags)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov[2] = {{.iov_base = h, .iov_len = sizeof(*h)},
			       {.iov_base = body, .iov_len = room}};
	struct msghdr msg = {.msg_iov = iov,
			     .msg_iovlen = 2,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *c;
	ssize_t n;

	do
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return n;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len >= CMSG_LEN(sizeof(int)))
		memcpy(passed, CMSG_DATA(c), sizeof(*passed));
	return n;
}

/* Receives the reply if it comes soon. Returns as ask_receive_reply() does: -1 with EAGAIN if it
 * does not. */
static ssize_t look_for_reply(int fd, struct control_header *h, void *body, size_t room,
			      int *passed, struct look *look)
{
	uint64_t before, now = monotonic_ns();
	bool more = look_pays(look, now);
	ssize_t n = -1;

	errno = EAGAIN;
	while (more) {
		n = ask_receive_reply(fd, h, body, room, passed, MSG_DONTWAIT);
		if (n >= 0 || errno != EAGAIN)
			break;
		sched_yield();
		before = now;
		now = monotonic_ns();
		more = look_again(look, before, now);
	}
	return n;
}

/* Is it a reply to that type of request, in a message of n bytes? */
static bool ask_well_formed(const struct control_header *h, ssize_t n, enum control_type type)
{
	return n >= (ssize_t)sizeof(*h) && h->type == type && h->status <= 0 &&
	       h->status >= -ERRNO_MAX && h->length == (size_t)n - sizeof(*h) &&
	       (h->status == 0 || h->length == 0);
}

/* Sends the request and receives the answer into `room`. Returns the bytes of the answer; -errno as
 * ask(). *got: the descriptor that came with it, or -1. Preserves errno, so that a program's
 * clean-up after an error does not hide that error. */
static int ask_exchange(int fd, enum control_type type, const void *body, uint32_t bytes,
			void *answer, size_t room, int passed, int *got, struct look *look)
{
	const struct control_header request = {.type = type, .length = bytes};
	struct control_header header = {.type = CONTROL_TYPE_NONE};
	const int error = errno;
	ssize_t n = -1;

	*got = -1;
	look_begin(look, monotonic_ns());
	if (ask_send_request(fd, &request, body, passed) >= 0) {
		n = look_for_reply(fd, &header, answer, room, got, look);
		if (n < 0 && errno == EAGAIN)
			n = ask_receive_reply(fd, &header, answer, room, got, 0);
		if (n < 0 && errno == EAGAIN)
			return -ETIMEDOUT;
	}
	errno = error;
	look_end(look, monotonic_ns());
	if (!ask_well_formed(&header, n, type))
		return -ENOTCONN;
	return header.status ? header.status : (int)header.length;
}

int ask_looking(int fd, enum control_type type, const void *body, uint32_t bytes, void *reply,
		uint32_t reply_bytes, int passed, int *passed_out, struct look *look)
{
	uint8_t answer[CONTROL_BYTES_MAX];
	int got,
		n = ask_exchange(fd, type, body, bytes, answer, sizeof(answer), passed, &got, look);

	if (n >= 0 && n != (int)reply_bytes)
		n = -ENOTCONN;
	if (n > 0)
		memcpy(reply, answer, reply_bytes);
	if (got >= 0 && (!passed_out || n == -ENOTCONN)) {
		close(got);
		got = -1;
	}
	if (passed_out)
		*passed_out = got;
	return n > 0 ? 0 : n;
}

int ask(int fd, enum control_type type, const void *body, uint32_t bytes, void *reply,
	uint32_t reply_bytes, int passed, int *passed_out)
{
	struct look never = {0};

	return ask_looking(fd, type, body, bytes, reply, reply_bytes, passed, passed_out, &never);
}

int ask_text(int fd, enum control_type type, const void *body, uint32_t bytes, char *text,
	     size_t room)
{
	struct look never = {0};
	int got, n = ask_exchange(fd, type, body, bytes, text, room, -1, &got, &never);

	if (got >= 0)
		close(got);
	return n;
}
