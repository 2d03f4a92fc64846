/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * /dev/infiniband/rdma_cm: an open one is a channel to the daemon's connection manager
 * (host-abi/cm_channel.h). A command that the program writes is a message on it, whose reply this
 * thread waits for. Polling, closing, inheriting and O_NONBLOCK are the socket's own.
 *
 * Remembers which descriptors are channels, and what cm_ids.h needs after the daemon's death. Any
 * thread; no locks, no heap.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "ask.h"
#include "cm.h"
#include "cm_ids.h"
#include "host-abi/cm_channel.h"
#include "host-abi/descriptor.h"
#include "host-abi/sysfs.h"
#include "view.h"

/* ---- which descriptors are channels ---- */

struct marks view_cm_channels;

/* Number of the channel of a marked descriptor, from 1 on: copies have the same. */
static uint32_t channel_of[MARKS_FDS], channels; /* atomic */

static uint32_t channel_at(int fd)
{
	return __atomic_load_n(&channel_of[fd], __ATOMIC_RELAXED);
}

/* False: the descriptor's number is too high. */
static bool cm_mark(int fd, uint32_t channel)
{
	if (fd >= MARKS_FDS)
		return false;
	__atomic_store_n(&channel_of[fd], channel, __ATOMIC_RELAXED);
	return marks_add(&view_cm_channels, fd);
}

int view_cm_copied(int from, int to)
{
	if (to >= 0 && view_is_cm(from))
		cm_mark(to, channel_at(from));
	return to;
}

/* ---- paths ---- */

bool view_is_cm_path(const char *shown)
{
	size_t n = strlen(shown), tail = strlen(SYSFS_RDMA_CM);

	return n > tail && strcmp(shown + n - tail, SYSFS_RDMA_CM) == 0 && view_is_tree(shown);
}

bool view_is_cm_at(int dir, const char *path)
{
	char folder[PATH_MAX];
	size_t tail = strlen(SYSFS_DEVICE_FOLDER), n;

	if (dir == AT_FDCWD || !path || strcmp(path, strrchr(SYSFS_RDMA_CM, '/') + 1) != 0)
		return false;
	n = view_name_of(dir, folder, sizeof(folder));
	return n > tail && strcmp(folder + n - tail, SYSFS_DEVICE_FOLDER) == 0 &&
	       view_is_tree(folder);
}

/* If this machine has the kernel's device, librdmacm gets its number by netlink. */
unsigned long view_cm_device_number(void)
{
	struct stat st;

	if (syscall(SYS_newfstatat, AT_FDCWD, SYSFS_RDMA_CM, &st, 0) == 0 && S_ISCHR(st.st_mode))
		return st.st_rdev;
	return makedev(1, 3); /* as stat() says: the file is a link to /dev/null */
}

/* ---- commands ---- */

enum { NO_RESPONSE = -1, HANG_UP_MS = 100 };

/* The offset of the response pointer in a command's body. */
static int response_at(uint32_t command)
{
	switch (command) {
	case RDMA_USER_CM_CMD_CREATE_ID:
		return offsetof(struct rdma_ucm_create_id, response);
	case RDMA_USER_CM_CMD_DESTROY_ID:
	case RDMA_USER_CM_CMD_LEAVE_MCAST:
		return offsetof(struct rdma_ucm_destroy_id, response);
	case RDMA_USER_CM_CMD_QUERY_ROUTE:
	case RDMA_USER_CM_CMD_QUERY:
		return offsetof(struct rdma_ucm_query, response);
	case RDMA_USER_CM_CMD_INIT_QP_ATTR:
		return offsetof(struct rdma_ucm_init_qp_attr, response);
	case RDMA_USER_CM_CMD_GET_EVENT:
		return offsetof(struct rdma_ucm_get_event, response);
	case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
		return offsetof(struct rdma_ucm_join_ip_mcast, response);
	case RDMA_USER_CM_CMD_JOIN_MCAST:
		return offsetof(struct rdma_ucm_join_mcast, response);
	case RDMA_USER_CM_CMD_MIGRATE_ID:
		return offsetof(struct rdma_ucm_migrate_id, response);
	default:
		return NO_RESPONSE;
	}
}

/* A command in progress. */
struct command {
	struct rdma_ucm_cmd_hdr header;
	const void *body; /* header.in bytes */
	const void *option;
	size_t option_bytes;
	void *response;		       /* header.out bytes */
	struct cm_channel_reply reply; /* out */
	bool daemon_is_gone;	       /* out */
};

static bool means_gone(int error)
{
	return error == EPIPE || error == ECONNRESET || error == ENOTCONN || error == EDESTADDRREQ;
}

/* Never EAGAIN: O_NONBLOCK concerns only events. */
static int send_command(int fd, struct command *c, int reply_to)
{
	struct iovec iov[3] = {
		{.iov_base = &c->header, .iov_len = sizeof(c->header)},
		{.iov_base = (void *)(uintptr_t)c->body, .iov_len = c->header.in},
		{.iov_base = (void *)(uintptr_t)c->option, .iov_len = c->option_bytes}};
	struct pollfd room = {.fd = fd, .events = POLLOUT};

	while (descriptor_send(fd, iov, 3, reply_to, MSG_NOSIGNAL) < 0) {
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			poll(&room, 1, -1);
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static int cm_receive_reply(int from, struct command *c)
{
	struct {
		struct cm_channel_reply header;
		uint8_t bytes[CM_CHANNEL_BYTES_MAX - sizeof(struct cm_channel_reply)];
	} reply;
	ssize_t n;

	do
		n = recv(from, &reply, sizeof(reply), 0);
	while (n < 0 && errno == EINTR);
	if (n < (ssize_t)sizeof(reply.header) ||
	    (size_t)n != sizeof(reply.header) + reply.header.bytes ||
	    reply.header.bytes > c->header.out || reply.header.status > 0)
		return -ENODEV;
	c->reply = reply.header;
	if (reply.header.bytes && !c->response)
		return -EFAULT;
	if (reply.header.bytes)
		memcpy(c->response, reply.bytes, reply.header.bytes);
	return reply.header.status;
}

/* No event is pending in the channel: drain the byte that announces one. */
static void make_quiet(int fd)
{
	char byte;

	(void)!recv(fd, &byte, sizeof(byte), MSG_DONTWAIT);
}

/* Returns 0 or -errno: the daemon's answer, or why there is none. Cancellation is disabled while
 * the thread has descriptors, or an event that no one else has seen. */
static int cm_command_run(int fd, struct command *c)
{
	int pair[2], rc, cancel;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	rc = send_command(fd, c, pair[1]);
	close(pair[1]); /* only the daemon's is left: its close is the daemon's death */
	c->daemon_is_gone = means_gone(-rc);
	if (!rc)
		rc = cm_receive_reply(pair[0], c);
	else if (c->daemon_is_gone)
		rc = -ENODEV;
	close(pair[0]);
	if (c->reply.flags & CM_CHANNEL_QUIET)
		make_quiet(fd);
	if (!rc)
		cm_ids_learn(channel_at(fd), &c->header, c->body, &c->reply, c->response);
	pthread_setcancelstate(cancel, NULL);
	return rc;
}

/* ---- opening ---- */

/* What open() of a device returns when its driver is missing or fails. */
static int open_error(int rc)
{
	switch (rc) {
	case -ENOENT:
	case -EACCES:
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
		return -rc;
	case -EUSERS:
		return EMFILE;
	default:
		return ENODEV;
	}
}

static int choose_hcas(int fd)
{
	struct cm_channel_hcas hcas;
	struct command c = {.header = {.cmd = CM_COMMAND_USE_HCAS, .in = sizeof(hcas)},
			    .body = &hcas};

	ask_hcas(&hcas);
	return hcas.name[0][0] ? cm_command_run(fd, &c) : 0;
}

static int make_channel(int fd, int flags)
{
	const struct control_open_cm in = {.version = CONTROL_VERSION};
	int rc = ask(fd, CONTROL_OPEN_CM, &in, sizeof(in), NULL, 0, -1, NULL);

	if (rc)
		return rc;
	if (marks_sign(fd, SIGNATURE_CHANNEL))
		return -errno;
	if (flags & O_NONBLOCK && fcntl(fd, F_SETFL, O_NONBLOCK))
		return -errno;
	if (!(flags & O_CLOEXEC) && fcntl(fd, F_SETFD, 0))
		return -errno;
	if (!cm_mark(fd, __atomic_add_fetch(&channels, 1, __ATOMIC_RELAXED)))
		return -EMFILE;
	return choose_hcas(fd);
}

int view_open_cm(int flags)
{
	int fd, rc, cancel;

	if (flags & (O_PATH | O_DIRECTORY) || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return VIEW_NOT_SPECIAL;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	fd = ask_connect(NULL);
	rc = fd < 0 ? fd : make_channel(fd, flags);
	if (rc && fd >= 0)
		close(fd);
	pthread_setcancelstate(cancel, NULL);
	errno = rc ? open_error(rc) : errno;
	return rc ? -1 : fd;
}

/* ---- events ---- */

/* Channels that a thread waits for: the first one waits in recv(), which a signal may restart, as
 * with the kernel's device; but a datagram wakes only one such thread. */
static uint64_t waited_for[MARKS_FDS / 64]; /* atomic */

/* -EAGAIN, -EBADF, -EINTR, -ENODEV; 0: try again. */
static int wait_in_poll(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int flags = fcntl(fd, F_GETFL);
	int n = poll(&p, 1, flags < 0 || flags & O_NONBLOCK ? 0 : -1);

	if (n < 0)
		return -errno;
	if (n == 0)
		return -EAGAIN;
	if (p.revents & POLLNVAL)
		return -EBADF;
	return p.revents & POLLIN ? 0 : -ENODEV;
}

static int wait_in_recv(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, sizeof(byte), MSG_PEEK);

	if (n > 0)
		return 0;
	return n == 0 || means_gone(errno) ? -ENODEV : -errno;
}

static int wait_for_event(int fd)
{
	uint64_t *word = &waited_for[fd / 64], bit = 1ull << fd % 64;
	bool first = !(__atomic_fetch_or(word, bit, __ATOMIC_ACQUIRE) & bit);
	int rc = first ? wait_in_recv(fd) : wait_in_poll(fd);

	if (first)
		__atomic_fetch_and(word, ~bit, __ATOMIC_RELEASE);
	return rc;
}

/*
 * The channel's daemon has died, and the program knows. The descriptor would poll as readable for
 * ever, so it is replaced by a socket that never is.
 */
static void fall_silent(int fd)
{
	int flags = fcntl(fd, F_GETFL), type = 0, silent;
	socklen_t bytes = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) || type != SOCK_SEQPACKET)
		return;
	silent = socket(AF_UNIX,
			SOCK_DGRAM | SOCK_CLOEXEC |
				(flags > 0 && flags & O_NONBLOCK ? SOCK_NONBLOCK : 0),
			0);
	if (silent < 0)
		return;
	if (marks_sign(silent, SIGNATURE_CHANNEL) == 0)
		syscall(SYS_dup3, silent, fd, fcntl(fd, F_GETFD) == FD_CLOEXEC ? O_CLOEXEC : 0);
	close(silent);
}

/* No answer: is the daemon dying? Its descriptors close one after another. */
static bool hangs_up(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, HANG_UP_MS) == 1;
}

/* 0: reports an identifier's device as removed; -ENODEV: all are reported. */
static int get_removal(int fd, struct command *c)
{
	struct rdma_ucm_event_resp event;
	uint32_t channel = channel_at(fd);
	bool found = c->response && cm_ids_removal(channel, &event);

	if (found)
		memcpy(c->response, &event,
		       c->header.out < sizeof(event) ? c->header.out : sizeof(event));
	if (!found || !cm_ids_removal_waits(channel))
		fall_silent(fd);
	return found ? 0 : -ENODEV;
}

/*
 * Another thread has closed the descriptor while this one was about to wait. With the kernel's
 * device a write() that has begun holds the file: it waits for an event that will not come, until a
 * signal or the end of the process.
 */
static int wait_for_signal(int flags)
{
	if (flags & O_NONBLOCK)
		return -EAGAIN;
	pause();
	return -EINTR;
}

static int get_event(int fd, struct command *c)
{
	int flags = fcntl(fd, F_GETFL), rc;

	for (;;) {
		rc = cm_command_run(fd, c);
		if (rc == -ENODEV && !c->daemon_is_gone)
			c->daemon_is_gone = hangs_up(fd);
		if (rc != -EAGAIN)
			break;
		rc = wait_for_event(fd);
		if (rc == -EBADF)
			return wait_for_signal(flags);
		if (rc == -ENODEV)
			c->daemon_is_gone = true;
		if (rc)
			break;
	}
	return c->daemon_is_gone ? get_removal(fd, c) : rc;
}

/* Also destroys identifiers of a daemon that has died. */
static int destroy(int fd, struct command *c)
{
	struct rdma_ucm_destroy_id in;
	struct rdma_ucm_destroy_id_resp out;
	int rc;

	if (c->header.in < offsetof(struct rdma_ucm_destroy_id, reserved))
		return -EINVAL;
	/* Before the daemon reuses its number. */
	memcpy(&in, c->body, offsetof(struct rdma_ucm_destroy_id, reserved));
	out.events_reported = cm_ids_destroyed(channel_at(fd), in.id);
	rc = cm_command_run(fd, c);
	if (rc != -ENODEV || (!c->daemon_is_gone && !hangs_up(fd)))
		return rc;
	if (c->header.out < sizeof(out) || !c->response)
		return -ENOSPC;
	memcpy(c->response, &out, sizeof(out));
	return 0;
}

/* ---- commands that need several messages ---- */

/* The identifier's former channel trades it for a ticket, with which the new one claims it. */
static int migrate(int fd, struct command *c)
{
	const struct rdma_ucm_migrate_id *in = c->body;
	struct cm_channel_ticket ticket = {0};
	struct rdma_ucm_destroy_id give;
	struct rdma_ucm_migrate_id take;
	struct command release = {
		.header = {.cmd = CM_COMMAND_RELEASE_ID, .in = sizeof(give), .out = sizeof(ticket)},
		.body = &give,
		.response = &ticket,
	};
	int from, rc;

	if (c->header.in < sizeof(*in))
		return -EINVAL;
	memcpy(&take, in, sizeof(take));
	from = (int)take.fd;
	if (!view_is_cm(from))
		return fcntl(from, F_GETFD) < 0 ? -EBADF : -EINVAL;
	give = (struct rdma_ucm_destroy_id){.id = take.id};
	rc = cm_command_run(from, &release);
	if (rc)
		return rc;
	take.id = (uint32_t)ticket.ticket;
	take.fd = (uint32_t)(ticket.ticket >> 32);
	c->body = &take;
	rc = cm_command_run(fd, c);
	if (!rc)
		cm_ids_moved(give.id, channel_at(fd));
	if (c->reply.flags & CM_CHANNEL_QUIET_THERE)
		make_quiet(from);
	return rc;
}

static int set_option(int fd, struct command *c)
{
	struct rdma_ucm_set_option in;

	if (c->header.in < sizeof(in))
		return -EINVAL;
	memcpy(&in, c->body, sizeof(in));
	if (in.optlen > CM_CHANNEL_BYTES_MAX - sizeof(c->header) - c->header.in)
		return -EINVAL;
	c->option = (const void *)(uintptr_t)in.optval;
	c->option_bytes = in.optlen;
	return cm_command_run(fd, c);
}

/* ---- writes of the program ---- */

/* 0; -EINVAL: not a command. */
static int cm_command_parse(struct command *c, const uint8_t *from, size_t n)
{
	uint64_t response;
	int at;

	if (n < sizeof(c->header))
		return -EINVAL;
	memcpy(&c->header, from, sizeof(c->header));
	if (c->header.in > n - sizeof(c->header) ||
	    c->header.in > CM_CHANNEL_BYTES_MAX - sizeof(c->header))
		return -EINVAL;
	c->body = from + sizeof(c->header);
	at = response_at(c->header.cmd);
	if (at == NO_RESPONSE)
		return 0;
	if (at + sizeof(response) > c->header.in)
		return -EINVAL;
	memcpy(&response, from + sizeof(c->header) + at, sizeof(response));
	c->response = (void *)(uintptr_t)response;
	return 0;
}

ssize_t view_write_cm(int fd, const void *from, size_t n)
{
	struct command c = {.header = {0}};
	int error = errno, rc = from ? cm_command_parse(&c, from, n) : -EFAULT;

	if (rc)
		;
	else if (c.header.cmd == RDMA_USER_CM_CMD_GET_EVENT)
		rc = get_event(fd, &c);
	else if (c.header.cmd == RDMA_USER_CM_CMD_DESTROY_ID)
		rc = destroy(fd, &c);
	else if (c.header.cmd == RDMA_USER_CM_CMD_MIGRATE_ID)
		rc = migrate(fd, &c);
	else if (c.header.cmd == RDMA_USER_CM_CMD_SET_OPTION)
		rc = set_option(fd, &c);
	else
		rc = cm_command_run(fd, &c);
	errno = rc ? -rc : error;
	return rc ? -1 : (ssize_t)n;
}
