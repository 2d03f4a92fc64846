/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager's thread against a whole HCA whose link leads back to itself. The service
 * is this file's: it notes what it is given, and does in its turn what a test asks for.
 */
#include <poll.h>
#include <sys/eventfd.h>
#include "../control/hca_test.h"
#include "../control/raw_client.h"
#include "cm-thread/cm_thread.h"

enum { WAIT_MS = 5000, MS_NS = 1000000 };

/* ---- the service that pretends ---- */

struct cm_service {
	struct cm_device device;
};

static struct cm_counters counters;
static bool no_service;
static struct {
	struct cm_service service;
	int fd;		    /* readable: it has something to do */
	int adopted;	    /* the last one; atomic */
	int adopt_rc;	    /* atomic */
	unsigned turns;	    /* atomic */
	unsigned wishes;    /* MADs to be sent in the next turn; atomic */
	uint64_t period_ns; /* of its timer, 0: none; atomic */
	unsigned busy_us;   /* a turn takes that long; atomic */
	unsigned received;  /* atomic */
	struct cm_path path;
	unsigned created, destroyed;
	unsigned added, removed; /* under the thread's lock */
	/* The device's answer in the last turn with requests */
	struct control_port_reply port;
	int gid_rc[3], source_rc, resolve_rc;
	bool gives[2]; /* queue pair GIVES, and the next one */
	unsigned peers_without;
} fake;

enum { USER = 1234, GIVES = 0xabcdef, PEER_GIVES_NONE = 0x123456 };

struct cm_service *cm_service_create(const struct cm_service_limits *limits)
{
	if (no_service) {
		errno = ENOMEM;
		return NULL;
	}
	fake.created++;
	return &fake.service;
}

void cm_service_add(struct cm_service *s, unsigned int device, const struct cm_device *d)
{
	assert_int_equal(device, 0);
	s->device = *d;
	fake.added++;
}

void cm_service_destroy(struct cm_service *s)
{
	fake.destroyed += s != NULL;
}

int cm_service_adopt(struct cm_service *s, int fd)
{
	int rc = __atomic_load_n(&fake.adopt_rc, __ATOMIC_ACQUIRE);

	assert_ptr_equal(s, &fake.service);
	if (!rc)
		__atomic_store_n(&fake.adopted, fd, __ATOMIC_RELEASE);
	return rc;
}

int cm_service_fd(const struct cm_service *s)
{
	return fake.fd;
}

/* Asks the device all it may be asked, and sends a MAD to its own address. */
static void fulfil(const struct cm_device *d)
{
	static const uint8_t mad[CM_MAD_BYTES] = "MAD";
	struct cm_path path = {.device = 0};
	uint8_t gid[16];

	d->port(d->ctx, &fake.port);
	for (unsigned i = 0; i < 3; i++)
		fake.gid_rc[i] = d->gid(d->ctx, i, gid);
	assert_int_equal(d->gid(d->ctx, UINT32_MAX, gid), -ENOENT);
	d->gid(d->ctx, 0, path.sgid);
	d->gid(d->ctx, 0, path.dgid);
	fake.source_rc = d->source(d->ctx, path.dgid);
	fake.resolve_rc = d->resolve(d->ctx, path.dgid);
	for (unsigned i = 0; i < 2; i++)
		fake.gives[i] = d->gives_credits(d->ctx, USER, GIVES + i);
	d->peer_gives_no_credits(d->ctx, USER, PEER_GIVES_NONE);
	d->send(d->ctx, &path, mad);
}

uint64_t cm_service_turn(struct cm_service *s, uint64_t now)
{
	uint64_t period = __atomic_load_n(&fake.period_ns, __ATOMIC_ACQUIRE), n;

	(void)!read(fake.fd, &n, sizeof(n));
	for (unsigned w = __atomic_exchange_n(&fake.wishes, 0, __ATOMIC_ACQ_REL); w > 0; w--)
		fulfil(&s->device);
	usleep(__atomic_load_n(&fake.busy_us, __ATOMIC_ACQUIRE));
	__atomic_add_fetch(&fake.turns, 1, __ATOMIC_RELEASE);
	return period ? now + period : UINT64_MAX;
}

void cm_service_receive(struct cm_service *s, uint64_t now, const struct cm_path *path,
			const uint8_t *mad, size_t bytes)
{
	assert_ptr_equal(s, &fake.service);
	assert_true(now > 0);
	assert_int_equal(bytes, CM_MAD_BYTES);
	assert_string_equal((const char *)mad, "MAD");
	fake.path = *path;
	__atomic_add_fetch(&fake.received, 1, __ATOMIC_RELEASE);
}

/* It sends a last MAD. */
void cm_service_remove(struct cm_service *s, uint64_t now, unsigned int device)
{
	assert_int_equal(device, 0);
	fake.removed++;
	fulfil(&s->device);
}

unsigned int cm_service_ids(const struct cm_service *s, struct cm_id_info *info, unsigned int n)
{
	return 0;
}

const struct cm_counters *cm_service_counters(const struct cm_service *s)
{
	return &counters;
}

/* ---- the daemon that pretends ---- */

static pthread_mutex_t daemon_lock = PTHREAD_MUTEX_INITIALIZER;
static int silent = -1; /* our end of a control socket that is not served */

static void be_locked(void)
{
	assert_int_equal(pthread_mutex_trylock(&daemon_lock), EBUSY);
}

static void port(void *ctx, struct control_port_reply *out)
{
	be_locked();
	*out = (struct control_port_reply){.state = 4, .gid_count = 77};
}

static int gid(void *ctx, uint32_t index, uint8_t out[16])
{
	static const uint8_t own[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};

	be_locked();
	memcpy(out, own, 16);
	return index < 2 ? 0 : -ENOENT;
}

static int resolve(void *ctx, const uint8_t dgid[16], uint8_t mac[6])
{
	static const uint8_t own[6] = {2, 0, 0, 0, 0, 1};

	be_locked();
	memcpy(mac, own, 6);
	return 0;
}

static int source(void *ctx, const uint8_t dgid[16])
{
	assert_ptr_equal(ctx, &fake);
	be_locked();
	return 1;
}

static bool would_ask(void *ctx, const uint8_t dgid[16])
{
	assert_ptr_equal(ctx, &fake);
	be_locked();
	return false;
}

static bool gives_credits(void *ctx, unsigned int device, uint32_t user, uint32_t qpn)
{
	assert_ptr_equal(ctx, &daemon_lock);
	be_locked();
	assert_int_equal(device, 0);
	assert_int_equal(user, USER);
	return qpn == GIVES;
}

static void peer_gives_no_credits(void *ctx, unsigned int device, uint32_t user, uint32_t qpn)
{
	assert_ptr_equal(ctx, &daemon_lock);
	be_locked();
	assert_int_equal(device, 0);
	assert_int_equal(user, USER);
	assert_int_equal(qpn, PEER_GIVES_NONE);
	fake.peers_without++;
}

static int connect_daemon(void *ctx)
{
	return raw_connect(f.path);
}

static int connect_to_nobody(void *ctx)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	silent = pair[0];
	return pair[1];
}

static int connect_not_at_all(void *ctx)
{
	return -EMFILE;
}

static const struct cm_thread_device first = {
	.control = {.name = "hca0",
		    .guid = 0x1234,
		    .ops = {.port = port, .gid = gid, .resolve = resolve, .would_ask = would_ask},
		    .ctx = &fake},
	.source = source};

static int start_with(int (*connect_to)(void *ctx), struct cm_thread **t)
{
	const struct cm_thread_config config = {.lock = &daemon_lock,
						.devices = &first,
						.device_count = 1,
						.connect = connect_to,
						.gives_credits = gives_credits,
						.peer_gives_no_credits = peer_gives_no_credits,
						.ctx = &daemon_lock};

	return cm_thread_start(&config, t);
}

static void new_service(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.adopted = -1;
	fake.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

#define wait_until(condition)                                                                      \
	do {                                                                                       \
		int left_ms = WAIT_MS;                                                             \
		while (!(condition) && left_ms-- > 0)                                              \
			poll(NULL, 0, 1);                                                          \
		assert_true(condition);                                                            \
	} while (0)

static struct cm_thread *start_thread(void)
{
	struct cm_thread *t = NULL;

	new_service();
	assert_int_equal(start_with(connect_daemon, &t), 0);
	wait_until(cm_thread_state(t) != CM_THREAD_STARTING);
	assert_int_equal(cm_thread_state(t), CM_THREAD_RUNS);
	return t;
}

static const struct cm_service *enter(struct cm_thread *t)
{
	const struct cm_service *service;

	while (!cm_thread_try_enter(t, &service))
		usleep(100);
	return service;
}

static void end_thread(struct cm_thread *t)
{
	cm_thread_stop(t);
	assert_int_equal(fake.destroyed, fake.created);
	cm_thread_stop(t);
	assert_null(enter(t));
	cm_thread_leave(t);
	cm_thread_destroy(t);
	close(fake.fd);
}

static void wake(void)
{
	uint64_t one = 1;

	assert_int_equal(write(fake.fd, &one, sizeof(one)), sizeof(one));
}

static unsigned turns(void)
{
	return __atomic_load_n(&fake.turns, __ATOMIC_ACQUIRE);
}

/* ---- tests ---- */

TEST(turn__mads_go_out_and_come_in)
{
	const struct cm_port_counters *c;
	struct cm_thread *t = start_thread();
	const char *device;

	__atomic_store_n(&fake.wishes, 3, __ATOMIC_RELEASE);
	wake();
	wait_until(__atomic_load_n(&fake.received, __ATOMIC_ACQUIRE) == 3);
	assert_non_null(enter(t));
	assert_int_equal(fake.path.dgid[15], 1);
	assert_int_equal(fake.port.state, 4);
	assert_int_equal(fake.port.gid_count, 2);
	assert_int_equal(fake.gid_rc[1], 0);
	assert_int_equal(fake.gid_rc[2], -ENOENT);
	assert_int_equal(fake.source_rc, 1);
	assert_int_equal(fake.resolve_rc, 0);
	assert_true(fake.gives[0] && !fake.gives[1]);
	assert_int_equal(fake.peers_without, 3);
	c = cm_thread_port(t, 0, &device);
	assert_string_equal(device, "hca0");
	assert_int_equal(c->sent, 3);
	assert_int_equal(c->received, 3);
	cm_thread_leave(t);
	end_thread(t);
}

TEST(turn__when_it_is_due_and_not_else)
{
	struct cm_thread *t = start_thread();
	unsigned before;

	wait_until(turns() > 0);
	poll(NULL, 0, 20); /* the events of the start */
	before = turns();
	poll(NULL, 0, 100);
	assert_int_equal(turns(), before);
	__atomic_store_n(&fake.period_ns, 2 * MS_NS, __ATOMIC_RELEASE);
	wake();
	wait_until(turns() > before + 10);
	end_thread(t);
}

/* QP 1 is closed when the last MAD has been sent; the service goes on. */
TEST(remove__a_device)
{
	struct cm_thread *t = start_thread();
	const char *device;

	assert_false(cm_thread_remove(t, 0));
	wait_until(cm_thread_remove(t, 0));
	assert_true(cm_thread_remove(t, 0));
	assert_non_null(enter(t));
	assert_int_equal(fake.removed, 1);
	assert_int_equal(fake.received, 0);
	assert_null(cm_thread_port(t, 0, &device));
	assert_string_equal(device, "hca0");
	cm_thread_leave(t);
	cm_thread_moved(t);
	end_thread(t);
	assert_true(cm_thread_remove(NULL, 0));
}

/* As often as it is removed; not while QP 1 is somebody else's. */
TEST(add__a_device_again)
{
	struct cm_thread *t = start_thread(), *second = NULL;
	const char *name;
	int rc;

	assert_int_equal(cm_thread_added(t, 0), 0);
	for (unsigned i = 2; i < 5; i++) {
		wait_until(cm_thread_remove(t, 0));
		assert_int_equal(cm_thread_added(t, 0), -EIO);
		assert_int_equal(cm_thread_add(t, 0, &first), 0);
		wait_until(cm_thread_added(t, 0) != -EAGAIN);
		assert_int_equal(cm_thread_added(t, 0), 0);
		assert_non_null(enter(t));
		assert_int_equal(fake.added, i);
		assert_non_null(cm_thread_port(t, 0, &name));
		cm_thread_leave(t);
	}
	wait_until(cm_thread_remove(t, 0));
	assert_int_equal(start_with(connect_daemon, &second), 0);
	wait_until(cm_thread_state(second) == CM_THREAD_RUNS);
	assert_int_equal(cm_thread_add(t, 0, &first), 0);
	wait_until((rc = cm_thread_added(t, 0)) != -EAGAIN);
	assert_int_equal(rc, -EIO);
	wait_until(cm_thread_remove(t, 0));
	cm_thread_stop(second);
	cm_thread_destroy(second);
	end_thread(t);
	assert_int_equal(cm_thread_add(NULL, 0, &first), 0);
	assert_int_equal(cm_thread_added(NULL, 0), 0);
	assert_true(fixture_wait_clients(&f, 0));
}

/* Views get in between two turns, though each is due at once. */
TEST(enter__while_it_is_always_busy)
{
	struct cm_thread *t = start_thread();
	const struct cm_service *service;
	unsigned tries = 0;

	__atomic_store_n(&fake.busy_us, 5000, __ATOMIC_RELEASE);
	__atomic_store_n(&fake.period_ns, 1, __ATOMIC_RELEASE);
	wake();
	wait_until(turns() > 5);
	while (!cm_thread_try_enter(t, &service) && tries++ < 40)
		usleep(500);
	assert_true(tries < 40);
	cm_thread_leave(t);
	end_thread(t);
}

TEST(adopt__the_service_has_it)
{
	struct cm_thread *t = start_thread();
	int pair[2];
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(cm_thread_adopt(t, pair[1]), 0);
	wait_until(__atomic_load_n(&fake.adopted, __ATOMIC_ACQUIRE) == pair[1]);
	/* no room: its other end is notified */
	__atomic_store_n(&fake.adopt_rc, -EUSERS, __ATOMIC_RELEASE);
	assert_int_equal(cm_thread_adopt(t, pair[1]), 0);
	assert_int_equal(recv(pair[0], &byte, 1, 0), 0);
	close(pair[0]);
	end_thread(t);
}

TEST(start__fails_where_there_is_a_qp_1)
{
	struct cm_thread *t = start_thread(), *second = NULL;

	assert_int_equal(start_with(connect_daemon, &second), 0);
	wait_until(cm_thread_state(second) == CM_THREAD_FAILED);
	assert_int_equal(cm_thread_adopt(second, 0), -ENODEV);
	cm_thread_stop(second);
	cm_thread_destroy(second);
	assert_int_equal(fake.added, 1);
	end_thread(t);
	assert_true(fixture_wait_clients(&f, 0));
}

TEST(start__fails_without_a_service)
{
	struct cm_thread *t = NULL;

	new_service();
	no_service = true;
	assert_int_equal(start_with(connect_daemon, &t), 0);
	wait_until(cm_thread_state(t) != CM_THREAD_STARTING);
	assert_int_equal(cm_thread_state(t), CM_THREAD_FAILED);
	no_service = false;
	assert_int_equal(fake.created, 0);
	end_thread(t);
}

TEST(start__needs_a_connection)
{
	struct cm_thread *t = NULL;
	unsigned descriptors;

	descriptors = fixture_descriptors();
	new_service();
	assert_int_equal(start_with(connect_not_at_all, &t), -EMFILE);
	assert_null(t);
	close(fake.fd);
	assert_int_equal(fixture_descriptors(), descriptors);
}

/* The control thread ends it while it waits for an answer; channels that it has not taken are
 * closed. */
TEST(stop__while_nobody_answers)
{
	struct cm_thread *t = NULL;
	unsigned descriptors;
	int pair[2];
	char byte;

	descriptors = fixture_descriptors();
	new_service();
	assert_int_equal(start_with(connect_to_nobody, &t), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(cm_thread_adopt(t, fcntl(pair[1], F_DUPFD_CLOEXEC, 0)), 0);
	close(pair[1]);
	assert_int_equal(cm_thread_state(t), CM_THREAD_STARTING);
	end_thread(t);
	assert_int_equal(recv(pair[0], &byte, 1, 0), 0);
	close(pair[0]);
	close(silent);
	assert_int_equal(fixture_descriptors(), descriptors);
}

static void *stops(void *t)
{
	cm_thread_stop(t);
	return NULL;
}

/* The thread is about to take what is to wake it from the pipe, and has looked whether to stop. */
TEST(stop__in_the_middle_of_a_turn)
{
	struct cm_thread *t = start_thread();
	const struct cm_service *other;
	pthread_t stopper;

	enter(t);
	assert_false(cm_thread_try_enter(t, &other)); /* its lock is held */
	wake();
	usleep(20000);
	assert_int_equal(pthread_create(&stopper, NULL, stops, t), 0);
	usleep(20000);
	cm_thread_leave(t);
	assert_int_equal(pthread_join(stopper, NULL), 0);
	end_thread(t);
}

TEST(stop__leaves_nothing)
{
	unsigned descriptors;

	end_thread(start_thread());
	assert_true(fixture_wait_clients(&f, 0));
	descriptors = fixture_descriptors();
	for (int i = 0; i < 5; i++)
		end_thread(start_thread());
	assert_true(fixture_wait_clients(&f, 0));
	assert_int_equal(fixture_descriptors(), descriptors);
	cm_thread_stop(NULL);
	cm_thread_destroy(NULL);
}
