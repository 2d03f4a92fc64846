/* SPDX-License-Identifier: BSD-3-Clause */
/* See cm_stub.h. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "cm_stub.h"
#include "host-abi/cm_channel.h"
#include "host-abi/control.h"

#define DIE_IF(x)                                                                                  \
	do {                                                                                       \
		if (x) {                                                                           \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                    \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

enum { CONNECTIONS_MAX = 64, EVENTS_MAX = 64, COMMANDS = 32, WAIT_MS = 60000 };

struct connection {
	int fd;	     /* -1: none */
	int channel; /* -1: not yet */
	uint32_t events[EVENTS_MAX];
	unsigned int head, tail;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t thread;
static char folder[64], path[100];
static int listener = -1, kick[2];
static struct connection connections[CONNECTIONS_MAX];
static int channels, open_status;
static bool stopping, paused;
static struct {
	enum stub_way way;
	int status;
	uint32_t flags;
	uint8_t bytes[1024];
	size_t n;
} answer;
static struct stub_command last, last_of[COMMANDS];
static unsigned int empty;
static uint32_t event_id, event_counts_for;

/* ---- answers ---- */

static void reply_counting(int to, int status, uint32_t flags, const void *bytes, size_t n,
			   uint32_t counts_for)
{
	struct cm_channel_reply header = {
		.status = status, .flags = flags, .bytes = (uint32_t)n, .counts_for = counts_for};
	struct iovec iov[2] = {{.iov_base = &header, .iov_len = sizeof(header)},
			       {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	DIE_IF(sendmsg(to, &msg, MSG_NOSIGNAL) < 0);
}

static void reply(int to, int status, uint32_t flags, const void *bytes, size_t n)
{
	reply_counting(to, status, flags, bytes, n, 0);
}

static void answer_event(struct connection *c, int to)
{
	struct rdma_ucm_event_resp event = {.uid = 1, .id = event_id};
	uint32_t flags = 0;

	if (c->head == c->tail) {
		empty++;
		reply(to, -EAGAIN, 0, NULL, 0);
		return;
	}
	event.event = c->events[c->head++ % EVENTS_MAX];
	if (c->head == c->tail)
		flags = CM_CHANNEL_QUIET;
	reply_counting(to, 0, flags, &event, sizeof(event), event_counts_for);
}

/* False: the channel dies. */
static bool answer_command(int to, uint16_t room)
{
	static const uint8_t zeroes[2048];

	switch (answer.way) {
	case STUB_ANSWER:
		reply(to, answer.status, answer.flags, answer.bytes,
		      answer.n < room ? answer.n : room);
		return true;
	case STUB_NO_REPLY:
		return true;
	case STUB_DIE:
		return false;
	case STUB_SHORT_REPLY:
		send(to, zeroes, sizeof(struct cm_channel_reply) / 2, MSG_NOSIGNAL);
		return true;
	case STUB_LONG_REPLY:
		reply(to, 0, 0, zeroes, room + 8u);
		return true;
	case STUB_LYING_REPLY:
		send(to, (struct cm_channel_reply[2]){{.bytes = 8}}, 20, MSG_NOSIGNAL);
		return true;
	case STUB_ODD_STATUS:
		reply(to, 5, 0, NULL, 0);
		return true;
	}
	return true;
}

/* ---- messages ---- */

static ssize_t receive(int fd, void *message, size_t room, int *passed)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = message, .iov_len = room};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	*passed = -1;
	if (c)
		memcpy(passed, CMSG_DATA(c), sizeof(*passed));
	return n;
}

static void end(struct connection *c)
{
	shutdown(c->fd, SHUT_RDWR);
	close(c->fd);
	c->fd = -1;
	c->channel = -1;
}

static void serve_command(struct connection *c)
{
	struct {
		struct rdma_ucm_cmd_hdr header;
		uint8_t body[2048];
	} m;
	int to;
	ssize_t n = receive(c->fd, &m, sizeof(m), &to);

	if (n <= 0) {
		end(c);
		return;
	}
	DIE_IF(n < (ssize_t)sizeof(m.header) || n > CM_CHANNEL_BYTES_MAX || to < 0);
	if (m.header.cmd == RDMA_USER_CM_CMD_GET_EVENT) {
		answer_event(c, to);
	} else {
		last = (struct stub_command){.cmd = m.header.cmd,
					     .in = m.header.in,
					     .out = m.header.out,
					     .bytes = (size_t)n - sizeof(m.header),
					     .channel = (unsigned int)c->channel};
		memcpy(last.body, m.body, last.bytes);
		last_of[last.cmd % COMMANDS] = last;
		if (!answer_command(to, m.header.out))
			end(c);
	}
	close(to);
}

static void serve_control(struct connection *c)
{
	struct {
		struct control_header header;
		struct control_open_cm body;
	} m;
	int passed;

	if (receive(c->fd, &m, sizeof(m), &passed) != sizeof(m)) {
		end(c);
		return;
	}
	DIE_IF(m.header.type != CONTROL_OPEN_CM || m.body.version != CONTROL_VERSION);
	DIE_IF(m.body.reserved != 0 || passed >= 0);
	m.header.length = 0;
	m.header.status = open_status;
	DIE_IF(send(c->fd, &m.header, sizeof(m.header), MSG_NOSIGNAL) < 0);
	if (open_status == 0)
		c->channel = channels++;
}

static void take_connection(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	for (int i = 0; i < CONNECTIONS_MAX && fd >= 0; i++) {
		if (connections[i].fd >= 0)
			continue;
		connections[i] = (struct connection){.fd = fd, .channel = -1};
		return;
	}
	DIE_IF(fd >= 0);
}

static void *serve(void *arg)
{
	struct pollfd fds[CONNECTIONS_MAX + 2];
	char byte;

	pthread_mutex_lock(&lock);
	while (!stopping) {
		fds[0] = (struct pollfd){.fd = kick[0], .events = POLLIN};
		fds[1] = (struct pollfd){.fd = listener, .events = POLLIN};
		for (int i = 0; i < CONNECTIONS_MAX; i++)
			fds[i + 2] = (struct pollfd){.fd = paused ? -1 : connections[i].fd,
						     .events = POLLIN};
		pthread_mutex_unlock(&lock);
		poll(fds, CONNECTIONS_MAX + 2, -1);
		pthread_mutex_lock(&lock);
		if (fds[0].revents)
			recv(kick[0], &byte, 1, MSG_DONTWAIT);
		if (fds[1].revents & POLLIN && listener >= 0)
			take_connection();
		for (int i = 0; i < CONNECTIONS_MAX; i++) {
			struct connection *c = &connections[i];

			if (fds[i + 2].revents && c->fd >= 0 && c->fd == fds[i + 2].fd && !paused)
				(c->channel < 0 ? serve_control : serve_command)(c);
		}
	}
	pthread_mutex_unlock(&lock);
	return arg;
}

static void kick_it(void)
{
	DIE_IF(send(kick[1], "", 1, MSG_NOSIGNAL) < 0);
}

/* ---- for the test ---- */

const char *stub_folder(void)
{
	return folder;
}

static void listen_there(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	strcpy(addr.sun_path, path);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	DIE_IF(bind(listener, (struct sockaddr *)&addr, sizeof(addr)) || listen(listener, 16));
}

static void make_folder(const char *below)
{
	char name[200];

	snprintf(name, sizeof(name), "%s%s", path, below);
	DIE_IF(mkdir(name, 0755));
}

void stub_start(void)
{
	char name[200];

	strcpy(folder, "/tmp/softhca-cm.XXXXXX");
	DIE_IF(!mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s", folder);
	DIE_IF(setenv("SOFTHCA_SOCKET", path, 1));
	make_folder(".sysfs");
	make_folder(".sysfs/dev");
	make_folder(".sysfs/dev/infiniband");
	snprintf(name, sizeof(name), "%s.sysfs/dev/infiniband/rdma_cm", path);
	DIE_IF(symlink("/dev/null", name));
	DIE_IF(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, kick));
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		connections[i] = (struct connection){.fd = -1};
	listen_there();
	DIE_IF(pthread_create(&thread, NULL, serve, NULL));
}

static void end_all(void)
{
	if (listener >= 0)
		close(listener);
	listener = -1;
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		if (connections[i].fd >= 0)
			end(&connections[i]);
	channels = 0;
}

void stub_kill(void)
{
	pthread_mutex_lock(&lock);
	end_all();
	pthread_mutex_unlock(&lock);
	kick_it();
}

void stub_again(void)
{
	pthread_mutex_lock(&lock);
	end_all();
	unlink(path);
	listen_there();
	open_status = 0;
	paused = false;
	empty = 0;
	event_id = event_counts_for = 0;
	memset(&answer, 0, sizeof(answer));
	pthread_mutex_unlock(&lock);
	kick_it();
}

void stub_stop(void)
{
	char command[200];

	pthread_mutex_lock(&lock);
	stopping = true;
	pthread_mutex_unlock(&lock);
	kick_it();
	pthread_join(thread, NULL);
	end_all();
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	DIE_IF(system(command));
}

#define UNDER_LOCK(what)                                                                           \
	do {                                                                                       \
		pthread_mutex_lock(&lock);                                                         \
		what;                                                                              \
		pthread_mutex_unlock(&lock);                                                       \
		kick_it();                                                                         \
	} while (0)

void stub_set_open(int status)
{
	UNDER_LOCK(open_status = status);
}

void stub_set_paused(bool now)
{
	UNDER_LOCK(paused = now);
}

static void set_event_id(uint32_t id, uint32_t counts_for)
{
	event_id = id;
	event_counts_for = counts_for;
}

void stub_set_event_id(uint32_t id, uint32_t counts_for)
{
	UNDER_LOCK(set_event_id(id, counts_for));
}

static void set_answer(enum stub_way way, int status, uint32_t flags, const void *bytes, size_t n)
{
	answer.way = way;
	answer.status = status;
	answer.flags = flags;
	answer.n = n;
	if (n)
		memcpy(answer.bytes, bytes, n);
}

void stub_set_answer(enum stub_way way, int status, uint32_t flags, const void *bytes, size_t n)
{
	UNDER_LOCK(set_answer(way, status, flags, bytes, n));
}

struct stub_command stub_last(void)
{
	struct stub_command copy;

	UNDER_LOCK(copy = last);
	return copy;
}

struct stub_command stub_last_of(uint32_t cmd)
{
	struct stub_command copy;

	UNDER_LOCK(copy = last_of[cmd % COMMANDS]);
	return copy;
}

void stub_event(unsigned int channel, uint32_t event)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *c = &connections[i];

		if (c->fd < 0 || c->channel != (int)channel)
			continue;
		if (c->head == c->tail)
			DIE_IF(send(c->fd, "", 1, MSG_NOSIGNAL) != 1);
		c->events[c->tail++ % EVENTS_MAX] = event;
	}
	pthread_mutex_unlock(&lock);
}

unsigned int stub_empty(void)
{
	unsigned int n;

	UNDER_LOCK(n = empty);
	return n;
}

bool stub_wait_empty(unsigned int n)
{
	for (int i = 0; i < WAIT_MS; i++) {
		if (stub_empty() >= n)
			return true;
		usleep(1000);
	}
	return false;
}

static bool request_waits(void)
{
	bool any = false;
	char byte;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		any |= connections[i].fd >= 0 &&
		       recv(connections[i].fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
	pthread_mutex_unlock(&lock);
	return any;
}

bool stub_wait_request(void)
{
	for (int i = 0; i < WAIT_MS; i++) {
		if (request_waits())
			return true;
		usleep(1000);
	}
	return false;
}

bool stub_wait_channels(unsigned int n)
{
	for (int i = 0; i < WAIT_MS; i++) {
		unsigned int now = 0;

		pthread_mutex_lock(&lock);
		for (int k = 0; k < CONNECTIONS_MAX; k++)
			now += connections[k].fd >= 0;
		pthread_mutex_unlock(&lock);
		if (now == n)
			return true;
		usleep(1000);
	}
	return false;
}
