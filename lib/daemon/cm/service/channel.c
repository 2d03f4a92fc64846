/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channels: sockets of programs, polled by epoll. A message is a command and carries the socket for
 * the reply; nothing of it is trusted. A program that does not take its replies or its wake-up byte
 * loses them: no one waits for it. Runs in the CM thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include "base/close_later.h"
#include "base/monotonic.h"
#include "channel.h"
#include "commands.h"
#include "events.h"
#include "lifetime.h"

int cm_service_adopt(struct cm_service *s, int fd)
{
	struct ucm_channel *ch;
	struct epoll_event ev = {.events = EPOLLIN};
	struct ucred peer = {.pid = 0, .uid = (uid_t)-1};
	socklen_t bytes = sizeof(peer);
	int rc;

	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return -ENOMEM;
	ev.data.ptr = ch;
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes);
	rc = share_client_begin(s->shares, peer.uid, peer.pid, &ch->shares);
	if (!rc)
		rc = share_take(&ch->shares, SHARE_cm_channels, 1);
	if (!rc && epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev))
		rc = -ENOMEM;
	if (rc) {
		share_client_end(&ch->shares);
		free(ch);
		return rc;
	}
	ch->service = s;
	ch->fd = fd;
	ch->pid = peer.pid;
	ch->user = peer.uid;
	LIST_INIT(&ch->ids);
	TAILQ_INIT(&ch->events);
	LIST_INSERT_HEAD(&s->channels, ch, of_service);
	return 0;
}

static void destroy_ids(struct ucm_channel *ch)
{
	while (!LIST_EMPTY(&ch->ids))
		ucm_id_destroy(LIST_FIRST(&ch->ids));
}

void ucm_channel_close(struct ucm_channel *ch)
{
	struct cm_service *s = ch->service;

	destroy_ids(ch);
	ASSERT(TAILQ_EMPTY(&ch->events) && !share_held(&ch->shares, SHARE_cm_ids));
	LIST_REMOVE(ch, of_service);
	/* The program may still have a copy: closing alone would leave it in the epoll set. */
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, ch->fd, NULL);
	close_later_socket(ch->fd, &ch->shares);
	share_client_end(&ch->shares);
	free(ch);
}

/* ---- a message ---- */

struct message {
	uint8_t bytes[CM_CHANNEL_BYTES_MAX];
	size_t length;
	bool cut;	       /* longer than any command, or too many descriptors */
	int fd;		       /* the first one; -1: none came */
	unsigned int fd_count; /* received */
};

/* 1: received; 0: none pending; -1: the channel has ended. */
static int channel_receive(struct ucm_channel *ch, struct message *m)
{
	union close_later_control control;
	struct iovec iov = {.iov_base = m->bytes, .iov_len = sizeof(m->bytes)};
	struct msghdr h = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(ch->fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	m->fd = -1;
	m->fd_count = 0;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	m->fd_count = close_later_receive(&h, &m->fd, 1, &ch->shares);
	m->length = (size_t)n;
	m->cut = h.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
	/* An empty message looks like end-of-file; it is not a command. */
	return n || m->fd_count || m->cut ? 1 : -1;
}

/* Reply only to the kind of socket that the library creates: a daemon must not write to others. */
static bool may_reply_to(int fd)
{
	int domain = 0, type = 0;
	socklen_t bytes = sizeof(int);

	/* A descriptor that is not a socket has neither. */
	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes);
	getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes);
	return domain == AF_UNIX && type == SOCK_SEQPACKET;
}

static void channel_reply(struct ucm_channel *ch, int fd, struct cm_channel_reply *head,
			  const void *body)
{
	struct iovec iov[2] = {{.iov_base = head, .iov_len = sizeof(*head)},
			       {.iov_base = (void *)(uintptr_t)body, .iov_len = head->bytes}};
	struct msghdr h = {.msg_iov = iov, .msg_iovlen = 2};
	bool quiet = ch->woken && TAILQ_EMPTY(&ch->events);

	if (quiet)
		head->flags |= CM_CHANNEL_QUIET;
	if (sendmsg(fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		ch->service->counters.reply_lost++;
	else if (quiet)
		ch->woken = false;
}

static void channel_answer(struct ucm_channel *ch, struct message *m)
{
	struct cm_service *s = ch->service;
	struct ucm_call call = {.channel = ch};
	struct ucm_largest response;
	struct cm_channel_reply head = {0};

	if (m->fd_count != 1 || !may_reply_to(m->fd)) {
		s->counters.command_malformed++;
		head.status = -EBADF;
		if (!may_reply_to(m->fd))
			return;
	} else if (m->cut) {
		s->counters.command_malformed++;
		head.status = -EMSGSIZE;
	} else {
		head.status = ucm_run(&call, m->bytes, m->length, &response, &head.bytes);
		head.flags = call.flags;
		head.counts_for = call.counts_for;
		s->counters.command++;
		s->counters.command_refused += head.status && head.status != -EAGAIN;
	}
	channel_reply(ch, m->fd, &head, &response);
}

/* Receives a command and answers it. As channel_receive(). */
static int channel_serve_one(struct ucm_channel *ch)
{
	struct message m;
	int got = share_use(&ch->shares, SHARE_closings, 0) ? -1 : channel_receive(ch, &m);

	if (got <= 0)
		return got;
	channel_answer(ch, &m);
	if (m.fd_count)
		close_later(m.fd, &ch->shares);
	return got;
}

void ucm_channel_serve(struct ucm_channel *ch)
{
	int got = 1;

	for (int i = 0; got && i < UCM_COMMANDS_PER_TURN; i++) {
		uint64_t begun;

		if (share_use(&ch->shares, SHARE_cm_us, 1)) {
			ch->service->held_up = true;
			break;
		}
		begun = monotonic_ns();
		got = channel_serve_one(ch);
		if (got < 0)
			destroy_ids(ch); /* charged to the user: it may take long */
		share_spend(&ch->shares, SHARE_cm_us, (monotonic_ns() - begun) / 1000);
		if (got < 0) {
			ucm_channel_close(ch);
			return;
		}
	}
	/* Retry a wake-up byte that found no room. */
	if (!TAILQ_EMPTY(&ch->events))
		ucm_channel_wake(ch);
}
