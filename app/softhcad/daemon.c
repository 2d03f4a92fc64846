/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a running daemon out of a configuration, runs it, takes it apart. Control thread; the
 * lcores run lcore_loop.c. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <rte_launch.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include "base/log.h"
#include "daemon.h"
#include "pipeline/message.h"
#include "sysfs_tree.h"

enum {
	POLL_MS = 1,	    /* turn of the ports that talk to a network */
	POLL_QUIET_MS = 10, /* turn when all ports are rings and no client asked anything lately */
	QUICK_TURNS = 50,   /* of POLL_MS after a client asked something: it may need a next hop */
	SAMPLE_NS = 1000000000, /* busy shares are measured over this */
	QUIESCE_SPINS = 64,	/* before the control thread begins to sleep */
	QUIESCE_SLEEP_US = 20,
};

static int make_devices(struct daemon *d)
{
	for (unsigned i = 0; i < d->config.hcas; i++) {
		int ret = device_create(&d->devices[i], d, &d->config.hca[i]);

		if (ret)
			return ret;
		d->device_count++;
	}
	for (unsigned i = 0; i < d->device_count; i++)
		device_settle(&d->devices[i]);
	return 0;
}

static int make_rcu(struct daemon *d)
{
	d->rcu = rte_zmalloc("rcu", rte_rcu_qsbr_get_memsize(LCORES_MAX), RTE_CACHE_LINE_SIZE);
	return d->rcu ? rte_rcu_qsbr_init(d->rcu, LCORES_MAX) : -ENOMEM;
}

/* Fills in what placement.c does not know. loops[].cpu is set. */
static int make_loops(struct daemon *d)
{
	const struct daemon_config *c = &d->config.daemon;

	for (unsigned i = 0; i < d->loop_count; i++) {
		struct lcore_loop *l = &d->loops[i];
		int ret;

		l->lcore = i + 1;
		l->thread = i;
		l->adaptive = c->poll == CONFIG_POLL_ADAPTIVE;
		l->spin_ns = c->idle_spin_us * 1000ull;
		l->sleep_ns_max = c->idle_sleep_us * 1000ull;
		l->clock = &d->clock;
		l->rcu = d->rcu;
		l->stop = &d->stop;
		ret = lcore_loop_init(l);
		if (ret)
			return ret;
	}
	return placement_apply(d);
}

static int launch_loops(struct daemon *d)
{
	for (unsigned i = 0; i < d->loop_count; i++) {
		struct lcore_loop *l = &d->loops[i];
		int ret;

		__atomic_store_n(&l->handed, LOOP_READY, __ATOMIC_RELEASE);
		ret = rte_eal_remote_launch(lcore_loop_run, l, l->lcore);
		if (ret) {
			LOG(ERR, "CPU %u: the lcore does not start: %s", l->cpu, strerror(-ret));
			return ret;
		}
		d->running++;
		LOG(INFO, "CPU %u: %u stages of %u engines, %s", l->cpu, l->stage_count,
		    l->engine_count, l->adaptive ? "adaptive" : "busy polling");
	}
	return 0;
}

static int make_control(struct daemon *d)
{
	struct control_device devices[HCA_MAX];
	const struct control_config c = {.socket_path = d->config.daemon.socket,
					 .socket_mode = d->config.daemon.socket_mode,
					 .socket_group = d->config.daemon.socket_group,
					 .device_count = d->device_count,
					 .devices = devices,
					 .cm_adopt = cm_adopt,
					 .cm_ctx = d};
	int ret = paths_make_directory_of(d->config.daemon.socket);

	for (unsigned i = 0; i < d->device_count; i++)
		device_describe(&d->devices[i], &devices[i]);
	/* What clients look at is there before they can connect. Where another daemon listens the
	 * tree is that one's, and the socket will not be had. */
	if (!ret && !daemon_is_running(d->config.daemon.socket)) {
		sysfs_tree_make(d);
		d->shown = true;
	}
	if (!ret)
		ret = control_create(&c, &d->control);
	if (ret)
		LOG(ERR, "control socket %s: %s", d->config.daemon.socket, strerror(-ret));
	else
		LOG(INFO, "control socket %s", d->config.daemon.socket);
	return ret;
}

bool daemon_is_running(const char *socket_path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool connected;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
	connected = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	close(fd);
	return connected;
}

int daemon_start(struct daemon *d)
{
	int ret;

	pthread_mutex_init(&d->lock, NULL);
	clock_start(&d->clock);
	ret = pools_make(d);
	if (!ret)
		ret = make_devices(d);
	if (!ret)
		ret = make_rcu(d);
	if (!ret)
		ret = make_loops(d);
	if (!ret)
		ret = launch_loops(d);
	if (!ret)
		ret = make_control(d);
	if (!ret)
		ret = telemetry_start(d); /* at once: who finds the socket asks it */
	if (!ret)
		ret = cm_start(d);
	if (ret)
		daemon_stop(d);
	return ret;
}

/* Clients go first: the modules must let go of their queue pairs, and only running lcores can. */
void daemon_stop(struct daemon *d)
{
	cm_thread_stop(d->cm); /* first: telemetry may be waiting for it, and it for us */
	telemetry_stop();
	if (d->shown)
		sysfs_tree_remove(d);
	d->shown = false;
	control_destroy(d->control);
	d->control = NULL;
	cm_thread_destroy(d->cm);
	d->cm = NULL;
	__atomic_store_n(&d->stop, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < d->running; i++)
		lcore_loop_wake(&d->loops[i]);
	for (unsigned i = 0; i < d->running; i++) {
		rte_eal_wait_lcore(d->loops[i].lcore);
		if (__atomic_load_n(&d->loops[i].handed, __ATOMIC_ACQUIRE) != LOOP_ENDED)
			LOG(ERR, "CPU %u: the lcore did not come back", d->loops[i].cpu);
	}
	for (unsigned i = d->device_count; i > 0; i--)
		device_destroy(&d->devices[i - 1]);
	for (unsigned i = 0; i < d->loop_count; i++)
		lcore_loop_close(&d->loops[i]);
	rte_free(d->rcu);
	pools_free(d);
	pthread_mutex_destroy(&d->lock);
}

static void wait_quiescent(struct daemon *d)
{
	uint64_t token = rte_rcu_qsbr_start(d->rcu);

	for (unsigned i = 0; i < d->running; i++)
		lcore_loop_wake(&d->loops[i]);
	for (unsigned spins = 0; !rte_rcu_qsbr_check(d->rcu, token, false); spins++) {
		if (spins > QUIESCE_SPINS) /* an lcore may need our CPU to get there */
			usleep(QUIESCE_SLEEP_US);
	}
}

void daemon_quiesce(void *ctx)
{
	struct daemon *d = ctx;

	/* The end of the round that each lcore was in, and of the next. */
	wait_quiescent(d);
	wait_quiescent(d);
}

static void sample_busy(struct daemon *d)
{
	uint64_t now_ns = clock_now_ns(&d->clock), passed_ns = now_ns - d->sampled_ns;

	if (passed_ns < SAMPLE_NS)
		return;
	for (unsigned i = 0; i < d->loop_count; i++) {
		uint64_t busy_ns = __atomic_load_n(&d->loops[i].busy_ns, __ATOMIC_RELAXED);

		d->busy_permille[i] = (busy_ns - d->sampled_busy_ns[i]) * 1000 / passed_ns;
		d->sampled_busy_ns[i] = busy_ns;
	}
	d->sampled_ns = now_ns;
}

/* Does somebody beside our own clients ask the ports things? */
static bool has_network(const struct daemon *d)
{
	for (unsigned i = 0; i < d->device_count; i++) {
		const struct port_config *p = &d->devices[i].section->port;

		if (p->type != PORT_RING || p->capture_path[0])
			return true;
	}
	return false;
}

/* All that the control thread does between two waits. Returns how many messages it had from
 * clients. */
static int take_turn(struct daemon *d)
{
	int messages = control_poll(d->control, 0);

	for (unsigned i = 0; i < d->device_count; i++)
		device_poll(&d->devices[i], i);
	sample_busy(d);
	return messages;
}

void daemon_run(struct daemon *d, const volatile int *stop_requested)
{
	struct pollfd control = {.fd = control_fd(d->control), .events = POLLIN};
	bool network = has_network(d);
	unsigned quick = 0;

	while (!*stop_requested) {
		poll(&control, 1, network || quick ? POLL_MS : POLL_QUIET_MS);
		pthread_mutex_lock(&d->lock);
		if (take_turn(d) > 0)
			quick = QUICK_TURNS;
		else if (quick)
			quick--;
		pthread_mutex_unlock(&d->lock);
	}
}
