/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection manager's thread: see cm_thread.h. Decides nothing: passes MADs and commands to
 * the service, and its MADs to the ports. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "base/close_later.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/monotonic.h"
#include "cm-thread/cm_thread.h"

enum {
	WATCH_SERVICE,
	WATCH_PIPE,
	WATCH_PORTS, /* one for each device from here on */
	ADOPTED_PER_TURN = 64,
	NS_PER_S = 1000000000,
	WANTED_NS = 200000000, /* after a failed try to enter, longer than till the next ... */
	GAP_US = 1000,	       /* ... the thread leaves so much time between two turns */
	PART_NS = 100000000,   /* most that the last MADs of a removed device may take */
	PART_POLL_NS = 1000000,
};

/* The control thread sets TO_OPEN and TO_REMOVE; the thread sets the others when it has done so. */
enum end_state { END_NONE, END_TO_OPEN, END_FAILED, END_SERVES, END_TO_REMOVE, END_REMOVED };

/* One device. In END_NONE and END_REMOVED the control thread owns it and may add another. */
struct end {
	struct cm_thread *thread;
	struct cm_thread_device device;
	struct cm_port *port;
	int socket;		/* its connection, until it is opened ... */
	int copy;		/* ... and a copy, to interrupt a wait for an answer */
	uint32_t state;		/* atomic: enum end_state */
	uint64_t part_until_ns; /* 0: programs and peers have not been told yet */
};

struct cm_thread {
	struct cm_thread_config config;
	struct end ends[HCA_MAX];
	pthread_t thread;
	bool created;
	int tid;	/* of the thread; 0: it has not begun; atomic */
	uint64_t turns; /* atomic */
	pthread_mutex_t lock;
	struct cm_service *service; /* lock */
	int pipe[2];		    /* sockets of new channels, from the control thread */
	uint32_t state;		    /* atomic: enum cm_thread_state */
	uint32_t stop;		    /* atomic */
	uint32_t moved;		    /* atomic: 1: the ports' GIDs have changed */
	uint64_t wanted_until_ns;   /* atomic: somebody tries to enter */
};

/* ---- the callbacks of struct cm_device ---- */

static void thread_port_of(void *ctx, struct control_port_reply *out)
{
	struct end *e = ctx;
	const struct control_device *c = &e->device.control;
	uint8_t gid[16];

	pthread_mutex_lock(e->thread->config.lock);
	c->ops.port(c->ctx, out);
	out->gid_count = 0;
	while (out->gid_count < GID_TABLE_MAX && c->ops.gid(c->ctx, out->gid_count, gid) == 0)
		out->gid_count++;
	pthread_mutex_unlock(e->thread->config.lock);
}

static int gid_of(void *ctx, uint32_t index, uint8_t gid[16])
{
	struct end *e = ctx;
	const struct control_device *c = &e->device.control;
	int rc;

	if (index >= GID_TABLE_MAX)
		return -ENOENT;
	pthread_mutex_lock(e->thread->config.lock);
	rc = c->ops.gid(c->ctx, index, gid);
	pthread_mutex_unlock(e->thread->config.lock);
	return rc;
}

static int thread_source_to(void *ctx, const uint8_t dgid[16])
{
	struct end *e = ctx;
	int rc;

	pthread_mutex_lock(e->thread->config.lock);
	rc = e->device.source(e->device.control.ctx, dgid);
	pthread_mutex_unlock(e->thread->config.lock);
	return rc;
}

static int resolve_mac(void *ctx, const uint8_t dgid[16], uint8_t mac[6])
{
	struct end *e = ctx;
	const struct control_device *c = &e->device.control;
	int rc;

	pthread_mutex_lock(e->thread->config.lock);
	rc = c->ops.resolve(c->ctx, dgid, mac);
	pthread_mutex_unlock(e->thread->config.lock);
	return rc;
}

static bool would_ask(void *ctx, const uint8_t dgid[16])
{
	struct end *e = ctx;
	const struct control_device *c = &e->device.control;
	bool yes;

	pthread_mutex_lock(e->thread->config.lock);
	yes = c->ops.would_ask && c->ops.would_ask(c->ctx, dgid);
	pthread_mutex_unlock(e->thread->config.lock);
	return yes;
}

static int thread_resolve(void *ctx, const uint8_t dgid[16])
{
	uint8_t mac[6];

	return resolve_mac(ctx, dgid, mac);
}

static unsigned int index_of(const struct end *e)
{
	return (unsigned int)(e - e->thread->ends);
}

static bool thread_gives_credits(void *ctx, uint32_t user, uint32_t qpn)
{
	const struct end *e = ctx;
	const struct cm_thread_config *c = &e->thread->config;
	bool gives;

	pthread_mutex_lock(c->lock);
	gives = c->gives_credits(c->ctx, index_of(e), user, qpn);
	pthread_mutex_unlock(c->lock);
	return gives;
}

static void thread_peer_gives_no_credits(void *ctx, uint32_t user, uint32_t qpn)
{
	const struct end *e = ctx;
	const struct cm_thread_config *c = &e->thread->config;

	pthread_mutex_lock(c->lock);
	c->peer_gives_no_credits(c->ctx, index_of(e), user, qpn);
	pthread_mutex_unlock(c->lock);
}

static void send_mad(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_BYTES])
{
	struct end *e = ctx;

	cm_port_send(e->port, monotonic_ns(), path, mad);
}

static void received(void *ctx, const struct cm_path *path, const uint8_t *mad, size_t bytes)
{
	struct end *e = ctx;

	cm_service_receive(e->thread->service, monotonic_ns(), path, mad, bytes);
}

/* ---- the thread ---- */

static void set_end(struct end *e, enum end_state state)
{
	__atomic_store_n(&e->state, state, __ATOMIC_RELEASE);
}

static enum end_state end_is(const struct end *e)
{
	return (enum end_state)__atomic_load_n(&e->state, __ATOMIC_ACQUIRE);
}

/* 0; -errno, logged unless the thread is to end. */
static int open_port(struct end *e)
{
	static const struct cm_port_ops ops = {
		.resolve = resolve_mac, .would_ask = would_ask, .receive = received};
	int fd = e->socket, rc;

	e->socket = -1;
	rc = cm_port_open(fd, e->device.control.name, (uint16_t)index_of(e), &ops, e, &e->port);
	if (rc && !__atomic_load_n(&e->thread->stop, __ATOMIC_ACQUIRE))
		LOG(ERR, "hca %s: QP 1: %s", e->device.control.name, strerror(-rc));
	return rc;
}

static void tell_service(struct end *e)
{
	struct cm_device d = {.guid = e->device.control.guid,
			      .ctx = e,
			      .port = thread_port_of,
			      .gid = gid_of,
			      .source = thread_source_to,
			      .resolve = thread_resolve,
			      .would_ask = would_ask,
			      .send = send_mad,
			      .gives_credits = thread_gives_credits,
			      .peer_gives_no_credits = thread_peer_gives_no_credits};

	memcpy(d.name, e->device.control.name, sizeof(d.name));
	cm_service_add(e->thread->service, index_of(e), &d);
}

/* The devices that have been asked for since the last turn. 0; -errno of the last one that
 * failed. */
static int open_ends(struct cm_thread *t)
{
	int failed = 0;

	for (unsigned int i = 0; i < HCA_MAX; i++) {
		struct end *e = &t->ends[i];
		int rc;

		if (end_is(e) != END_TO_OPEN)
			continue;
		rc = open_port(e);
		if (rc)
			failed = rc;
		else
			tell_service(e);
		set_end(e, rc ? END_FAILED : END_SERVES);
	}
	return failed;
}

static void adopt_channels(struct cm_thread *t)
{
	int fd;

	for (unsigned int i = 0; i < ADOPTED_PER_TURN; i++) {
		if (read(t->pipe[0], &fd, sizeof(fd)) != sizeof(fd))
			return;
		if (fd < 0) /* only a wake-up */
			continue;
		if (cm_service_adopt(t->service, fd))
			close_later_stranger(
				fd, t->config.shares,
				"no room for another channel of the connection manager");
	}
}

static void learn_gids(struct cm_thread *t)
{
	for (unsigned int i = 0; i < HCA_MAX; i++) {
		int rc = t->ends[i].port ? cm_port_learn_gids(t->ends[i].port) : 0;

		if (rc)
			LOG(ERR, "hca %s: connection manager: its GIDs: %s",
			    t->ends[i].device.control.name, strerror(-rc));
	}
}

/* Tells programs and peers, and closes the port once that has been sent. */
static void remove_end(struct cm_thread *t, struct end *e)
{
	uint64_t now = monotonic_ns();

	if (!e->part_until_ns) {
		cm_service_remove(t->service, now, index_of(e));
		e->part_until_ns = now + PART_NS;
	}
	if (!cm_port_finish(e->port, now) && now < e->part_until_ns)
		return;
	cm_port_close(e->port);
	e->port = NULL;
	e->part_until_ns = 0;
	set_end(e, END_REMOVED);
}

static void thread_end_turn(struct cm_thread *t, struct end *e)
{
	if (!e->port)
		return;
	if (end_is(e) == END_TO_REMOVE)
		remove_end(t, e);
	else
		cm_port_turn(e->port, monotonic_ns());
}

static uint64_t end_due(const struct end *e)
{
	if (!e->port)
		return UINT64_MAX;
	return e->part_until_ns ? monotonic_ns() + PART_POLL_NS
				: cm_port_due(e->port, monotonic_ns());
}

/* Everything between two waits. Returns when the next one must end at the latest. */
static uint64_t thread_take_turn(struct cm_thread *t)
{
	uint64_t due;

	pthread_mutex_lock(&t->lock);
	adopt_channels(t);
	open_ends(t);
	if (__atomic_exchange_n(&t->moved, 0, __ATOMIC_ACQ_REL))
		learn_gids(t);
	for (unsigned int i = 0; i < HCA_MAX; i++)
		thread_end_turn(t, &t->ends[i]);
	due = cm_service_turn(t->service, monotonic_ns());
	for (unsigned int i = 0; i < HCA_MAX; i++) {
		uint64_t next = end_due(&t->ends[i]);

		due = next < due ? next : due;
	}
	pthread_mutex_unlock(&t->lock);
	return due;
}

/* What a device that is being removed receives is of no interest. */
static int end_fd(const struct end *e)
{
	return e->port && !e->part_until_ns ? cm_port_fd(e->port) : -1;
}

/* No longer than a second: the watchdog expects turns. */
static void wait_until(struct cm_thread *t, uint64_t due_ns)
{
	struct pollfd watched[WATCH_PORTS + HCA_MAX] = {
		[WATCH_SERVICE] = {.fd = cm_service_fd(t->service), .events = POLLIN},
		[WATCH_PIPE] = {.fd = t->pipe[0], .events = POLLIN}};
	uint64_t now = monotonic_ns(), until_ns = MIN(due_ns, now + NS_PER_S),
		 left_ns = until_ns > now ? until_ns - now : 0;
	const struct timespec limit = timespec_of(left_ns);

	for (unsigned int i = 0; i < HCA_MAX; i++)
		watched[WATCH_PORTS + i] =
			(struct pollfd){.fd = end_fd(&t->ends[i]), .events = POLLIN};
	ppoll(watched, WATCH_PORTS + HCA_MAX, &limit, NULL);
}

/* A thread whose next turn is always due would otherwise let nobody in. */
static void let_in(const struct cm_thread *t)
{
	if (__atomic_load_n(&t->wanted_until_ns, __ATOMIC_RELAXED) > monotonic_ns())
		usleep(GAP_US);
}

static void set_state(struct cm_thread *t, enum cm_thread_state state)
{
	__atomic_store_n(&t->state, state, __ATOMIC_RELEASE);
}

static int set_up(struct cm_thread *t)
{
	const struct cm_service_limits limits = {.shares = t->config.shares};
	struct cm_service *service = cm_service_create(&limits);
	int rc;

	if (!service) {
		LOG(ERR, "connection manager: %s", strerror(errno));
		return -ENOMEM;
	}
	pthread_mutex_lock(&t->lock);
	t->service = service;
	rc = open_ends(t);
	pthread_mutex_unlock(&t->lock);
	return rc;
}

/* Unpublishes the service, then destroys it; it may still send while that happens. */
static void take_down(struct cm_thread *t)
{
	struct cm_service *service = t->service;

	pthread_mutex_lock(&t->lock);
	t->service = NULL;
	pthread_mutex_unlock(&t->lock);
	cm_service_destroy(service);
	for (unsigned int i = 0; i < HCA_MAX; i++) {
		cm_port_close(t->ends[i].port);
		t->ends[i].port = NULL;
	}
}

static bool stopping(const struct cm_thread *t)
{
	return __atomic_load_n(&t->stop, __ATOMIC_ACQUIRE);
}

static void *cm_thread_run(void *arg)
{
	struct cm_thread *t = arg;
	bool works;

	__atomic_store_n(&t->tid, gettid(), __ATOMIC_RELAXED);
	works = set_up(t) == 0;
	set_state(t, works ? CM_THREAD_RUNS : CM_THREAD_FAILED);
	while (works && !stopping(t)) {
		uint64_t due = thread_take_turn(t);

		__atomic_store_n(&t->turns, t->turns + 1, __ATOMIC_RELAXED);
		let_in(t);
		/* Check again: the turn may have consumed the wake-up. */
		if (!stopping(t))
			wait_until(t, due);
	}
	take_down(t);
	return NULL;
}

/* ---- called by the control thread ---- */

/* From then on the thread may open it. */
static int connect_port(struct cm_thread *t, unsigned int i, const struct cm_thread_device *device)
{
	struct end *e = &t->ends[i];

	e->device = *device;
	e->socket = t->config.connect(t->config.ctx);
	if (e->socket < 0)
		return e->socket;
	e->copy = fcntl(e->socket, F_DUPFD_CLOEXEC, 0);
	if (e->copy < 0)
		return -errno;
	set_end(e, END_TO_OPEN);
	return 0;
}

static int connect_ports(struct cm_thread *t)
{
	int rc = 0;

	for (unsigned int i = 0; i < t->config.device_count && !rc; i++)
		rc = connect_port(t, i, &t->config.devices[i]);
	return rc;
}

/* The control thread handles all signals but those sent to this thread: real-time signals. */
static int create_thread(struct cm_thread *t)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
		sigdelset(&all, s);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&t->thread, NULL, cm_thread_run, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!rc) {
		t->created = true;
		pthread_setname_np(t->thread, "softhca-cm");
	}
	return rc;
}

int cm_thread_start(const struct cm_thread_config *config, struct cm_thread **out)
{
	struct cm_thread *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return -ENOMEM;
	t->config = *config;
	t->pipe[0] = t->pipe[1] = -1;
	pthread_mutex_init(&t->lock, NULL);
	for (unsigned int i = 0; i < HCA_MAX; i++)
		t->ends[i] = (struct end){.thread = t, .socket = -1, .copy = -1};
	rc = pipe2(t->pipe, O_NONBLOCK | O_CLOEXEC) ? -errno : 0;
	if (!rc)
		rc = connect_ports(t);
	if (!rc)
		rc = create_thread(t);
	if (rc) {
		cm_thread_destroy(t);
		return rc;
	}
	*out = t;
	return 0;
}

enum cm_thread_state cm_thread_state(const struct cm_thread *t)
{
	return (enum cm_thread_state)__atomic_load_n(&t->state, __ATOMIC_ACQUIRE);
}

int cm_thread_pulse(const struct cm_thread *t, const uint64_t **turns)
{
	*turns = &t->turns;
	return __atomic_load_n(&t->tid, __ATOMIC_RELAXED);
}

int cm_thread_adopt(struct cm_thread *t, int fd)
{
	if (cm_thread_state(t) == CM_THREAD_FAILED)
		return -ENODEV;
	return write(t->pipe[1], &fd, sizeof(fd)) == sizeof(fd) ? 0 : -EUSERS;
}

static void wake_up(const struct cm_thread *t)
{
	const int wake = -1;

	if (write(t->pipe[1], &wake, sizeof(wake)) < 0) /* full: it wakes anyway */
		LOG(DEBUG, "the connection manager has channels to take");
}

void cm_thread_moved(struct cm_thread *t)
{
	if (!t)
		return;
	__atomic_store_n(&t->moved, 1, __ATOMIC_RELEASE);
	wake_up(t);
}

static void close_sockets(struct end *e)
{
	if (e->socket >= 0)
		close(e->socket);
	if (e->copy >= 0)
		close(e->copy);
	e->socket = e->copy = -1;
}

int cm_thread_add(struct cm_thread *t, unsigned int i, const struct cm_thread_device *device)
{
	struct end *e = t ? &t->ends[i] : NULL;
	int rc;

	if (!t)
		return 0;
	if (cm_thread_state(t) == CM_THREAD_FAILED)
		return -ENODEV;
	rc = connect_port(t, i, device);
	if (rc)
		close_sockets(e);
	else
		wake_up(t);
	return rc;
}

int cm_thread_added(const struct cm_thread *t, unsigned int i)
{
	if (!t)
		return 0;
	switch (end_is(&t->ends[i])) {
	case END_TO_OPEN:
		return -EAGAIN;
	case END_SERVES:
	case END_TO_REMOVE:
		return 0;
	case END_NONE:
	case END_FAILED:
	case END_REMOVED:
		break;
	}
	return -EIO;
}

bool cm_thread_remove(struct cm_thread *t, unsigned int i)
{
	struct end *e = t ? &t->ends[i] : NULL;

	if (!t || cm_thread_state(t) == CM_THREAD_FAILED)
		return true;
	switch (end_is(e)) {
	case END_SERVES:
		set_end(e, END_TO_REMOVE);
		wake_up(t);
		return false;
	case END_TO_OPEN:
	case END_TO_REMOVE:
		return false;
	case END_NONE:
	case END_FAILED:
	case END_REMOVED:
		break;
	}
	close_sockets(e);
	return true;
}

void cm_thread_stop(struct cm_thread *t)
{
	if (!t || !t->created)
		return;
	__atomic_store_n(&t->stop, 1, __ATOMIC_SEQ_CST);
	/* It may be waiting for an answer that will never come. */
	for (unsigned int i = 0; i < HCA_MAX; i++)
		shutdown(t->ends[i].copy, SHUT_RDWR); /* -1, if there is none, is refused */
	wake_up(t);
	pthread_join(t->thread, NULL);
	t->created = false;
}

/* Channels that it has not taken before its end. */
static void close_channels(struct cm_thread *t)
{
	int fd;

	while (t->pipe[0] >= 0 && read(t->pipe[0], &fd, sizeof(fd)) == sizeof(fd))
		if (fd >= 0)
			close_later_stranger(fd, t->config.shares, NULL);
}

void cm_thread_destroy(struct cm_thread *t)
{
	if (!t)
		return;
	close_channels(t);
	for (unsigned int i = 0; i < HCA_MAX; i++)
		close_sockets(&t->ends[i]);
	for (unsigned int i = 0; i < 2; i++)
		if (t->pipe[i] >= 0)
			close(t->pipe[i]);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* ---- for views ---- */

bool cm_thread_try_enter(struct cm_thread *t, const struct cm_service **service)
{
	if (pthread_mutex_trylock(&t->lock)) {
		__atomic_store_n(&t->wanted_until_ns, monotonic_ns() + WANTED_NS, __ATOMIC_RELAXED);
		return false;
	}
	*service = t->service;
	return true;
}

void cm_thread_leave(struct cm_thread *t)
{
	pthread_mutex_unlock(&t->lock);
}

const struct cm_port_counters *cm_thread_port(const struct cm_thread *t, unsigned int i,
					      const char **device)
{
	*device = t->ends[i].device.control.name;
	return t->ends[i].port ? cm_port_counters(t->ends[i].port) : NULL;
}
