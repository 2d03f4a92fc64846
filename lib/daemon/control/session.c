/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A session's messages: receives one, checks its form, runs it, replies. A malformed one ends the
 * session. Nothing here waits: a request that cannot be answered yet is kept, and the session reads
 * no further until it is. Control thread.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/close_later.h"
#include "session.h"
#include "users.h"
#include "host-abi/descriptor.h"

enum { RETRY_NS_MIN = 1000000 };

static void session_close_all(struct descriptors *d, struct share_client *from)
{
	for (unsigned int i = 0; i < d->count; i++)
		close_later(d->fd[i], from);
	d->count = 0;
}

static void take_descriptors(struct msghdr *msg, struct descriptors *d, struct share_client *from)
{
	unsigned int n = close_later_receive(msg, d->fd, MESSAGE_FDS_MAX, from);

	d->count = n < MESSAGE_FDS_MAX ? n : MESSAGE_FDS_MAX;
	d->truncated = n > MESSAGE_FDS_MAX || msg->msg_flags & MSG_CTRUNC;
}

/* Bytes received; 0: the client has disconnected; -EAGAIN: nothing there; -errno. */
static ssize_t session_receive(struct client *client, struct message *m, struct descriptors *d)
{
	union close_later_control control;
	struct iovec iov = {.iov_base = m, .iov_len = sizeof(*m)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(client->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	take_descriptors(&msg, d, &client->shares);
	return msg.msg_flags & MSG_TRUNC ? -EMSGSIZE : n;
}

/* NULL, or what is wrong with the form of a message of n bytes. */
static const char *malformed(const struct client *client, const struct message *m, size_t n,
			     const struct descriptors *d)
{
	const struct control_header *h = &m->header;

	if (n < sizeof(*h))
		return "shorter than a header";
	if (h->type == 0 || h->type >= CONTROL_TYPE_END)
		return "of unknown type";
	if (h->status != 0 || h->reserved != 0)
		return "with a header that is not a request's";
	if (h->length != n - sizeof(*h) || h->length != request_rows[h->type].body_bytes)
		return "of wrong length";
	if (d->truncated || d->count != request_rows[h->type].fds)
		return "with a wrong number of descriptors";
	if (!(control_when(h->type) &
	      (client->device ? CONTROL_AFTER_HELLO : CONTROL_BEFORE_HELLO)))
		return "out of order: HELLO is the first, once";
	return NULL;
}

static bool session_reply(struct client *client, const struct control_header *request, int status,
			  const void *body, uint32_t bytes, int fd)
{
	struct control_header header = {
		.type = request->type, .status = status, .length = status ? 0 : bytes};
	struct iovec iov[2] = {{.iov_base = &header, .iov_len = sizeof(header)},
			       {.iov_base = (void *)(uintptr_t)body, .iov_len = header.length}};

	/* A client that waits for its replies always has room for one. */
	return descriptor_send(client->fd, iov, 2, status ? -1 : fd, MSG_DONTWAIT | MSG_NOSIGNAL) ==
	       (ssize_t)(sizeof(header) + header.length);
}

/* Where its refusals are counted: at its HCA, or at the first one before it has said HELLO. */
static struct counters *refusals_of(const struct client *client)
{
	const struct device *d = client->device ? client->device : device_first(client->control);

	return &d->config.hca->counters;
}

/* Only these wait: for the data path, for a neighbour, for the connection manager, or until
 * mappings are gone. From any other request -EAGAIN is a system call's and final. */
static bool may_wait(uint32_t type)
{
	switch (type) {
	case CONTROL_HELLO:
	case CONTROL_ADD_PIECE:
	case CONTROL_ADD_PIECES:
	case CONTROL_ADD_SEGMENT:
	case CONTROL_CREATE_QP:
	case CONTROL_MODIFY_QP:
	case CONTROL_RESOLVE:
	case CONTROL_VIEW:
	case CONTROL_REMOVE_HCA:
	case CONTROL_ADD_HCA:
	case CONTROL_RELOAD:
		return true;
	default:
		return false;
	}
}

/* Runs client->request. -EAGAIN: it must be asked again; else it has been answered. */
static int session_run(struct client *client, const int *fds)
{
	const struct control_header *h = &client->request.header;
	const struct request_row *row = &request_rows[h->type];
	uint8_t body[CONTROL_BYTES_MAX] __attribute__((aligned(8))) = {0};
	struct call call = {.client = client,
			    .body = client->request.body,
			    .reply = body,
			    .fds = fds,
			    .reply_fd = -1};
	int rc = row->run(&call);

	if (rc == -EAGAIN && may_wait(h->type))
		return rc;
	if (rc == -EAGAIN)
		rc = -ENOMEM;
	if (rc) {
		count(refusals_of(client), COUNTER_control_refused);
		user_note_refusal(client->user, client->control->turn_begun_ns);
	}
	if (!session_reply(client, h, rc, call.text ? call.text : (const void *)body,
			   call.text ? call.text_bytes : row->reply_bytes, call.reply_fd)) {
		CLIENT_LOG(client, INFO, "does not take its replies");
		client_lost(client);
	}
	if (client->handed_over)
		client_lost(client);
	if (call.reply_fd >= 0)
		close(call.reply_fd);
	return 0;
}

/* ---- requests that wait ---- */

static void wait_from(struct client *client, uint64_t now)
{
	struct control *c = client->control;

	client->retry_ns = now + ((uint64_t)RETRY_NS_MIN << client->wait);
	TAILQ_INSERT_TAIL(&c->waiting[client->wait], client, of_waiting);
}

static void start_waiting(struct client *client, struct descriptors *with)
{
	client->waits_with = *with;
	with->count = 0;
	client->pending = true;
	client->control->pending++;
	client->wait = 0;
	wait_from(client, control_now_ns());
	control_rearm(client, false);
}

void session_forget(struct client *client)
{
	if (!client->pending)
		return;
	TAILQ_REMOVE(&client->control->waiting[client->wait], client, of_waiting);
	session_close_all(&client->waits_with, &client->shares);
	client->pending = false;
	client->control->pending--;
}

/* A request waits longer each time, so that a client with many requests costs little. If its user
 * had used up his time, it waits as long once more. */
static unsigned int session_retry(struct client *client, uint64_t now)
{
	bool may = !client->gone && users_may_serve(client);
	uint64_t begun = may ? control_now_ns() : 0;
	int rc = may ? session_run(client, client->waits_with.fd) : -EAGAIN;

	if (may)
		users_charge(client, begun);
	if (rc != -EAGAIN) {
		session_forget(client);
		control_rearm(client, true);
		return 1;
	}
	TAILQ_REMOVE(&client->control->waiting[client->wait], client, of_waiting);
	if (may && client->wait < RETRY_WAITS - 1)
		client->wait++;
	wait_from(client, now);
	return 0;
}

unsigned int sessions_retry(struct control *c)
{
	uint64_t now = c->pending ? control_now_ns() : 0;
	unsigned int n = 0;
	struct client *client;

	for (unsigned int wait = 0; c->pending && wait < RETRY_WAITS; wait++)
		while ((client = TAILQ_FIRST(&c->waiting[wait])) && client->retry_ns <= now)
			n += session_retry(client, now);
	return n;
}

/* ---- the turn of a session ---- */

bool session_has_request(const struct client *client)
{
	int bytes = 0;

	return ioctl(client->fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

/* One message. False: there is none, or the session is over. */
static bool session_serve_one(struct client *client)
{
	struct descriptors d = {.count = 0};
	const char *wrong;
	ssize_t n;

	/* Its descriptors would have to be closed, and too many of its user's are being closed. */
	if (share_use(&client->shares, SHARE_closings, 0)) {
		CLIENT_LOG(client, INFO,
			   "too many of its user's descriptors are being closed, disconnected");
		client_lost(client);
		return false;
	}
	n = session_receive(client, &client->request, &d);
	if (n == -EAGAIN)
		return false;
	if (n == 0 || (n < 0 && n != -EMSGSIZE)) {
		client_lost(client);
		session_close_all(&d, &client->shares);
		return false;
	}
	user_check_backlog(client);
	wrong = n < 0 ? "too long" : malformed(client, &client->request, (size_t)n, &d);
	if (wrong) {
		CLIENT_LOG(client, WARNING, "sent a message %s", wrong);
		count(&device_first(client->control)->config.hca->counters,
		      COUNTER_control_malformed);
		client_lost(client);
	} else {
		client->ticket = 0;
		if (session_run(client, d.fd) == -EAGAIN)
			start_waiting(client, &d);
	}
	session_close_all(&d, &client->shares);
	return !client->gone && !client->pending;
}

unsigned int session_serve(struct client *client)
{
	const uint64_t arrived_ns = control_now_ns();
	unsigned int n = 0;
	bool more = true;

	while (more && n < MESSAGES_PER_TURN && !client->gone && !client->pending &&
	       users_may_serve(client)) {
		uint64_t begun = control_now_ns();

		more = session_serve_one(client);
		users_charge(client, begun);
		n += more;
	}
	if (n)
		users_note_answer(client, arrived_ns);
	return n;
}
