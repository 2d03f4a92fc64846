/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts a daemon from a configuration, runs it, stops it. Control thread. */
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/log.h"
#include "base/shares.h"
#include "cm-thread/cm_thread.h"
#include "addition.h"
#include "change.h"
#include "cm_start.h"
#include "control/control.h"
#include "device_ops.h"
#include "lifecycle.h"
#include "pending.h"
#include "placement.h"
#include "privileges.h"
#include "removal.h"
#include "sandbox.h"
#include "show.h"
#include "sysfs_tree.h"
#include "telemetry.h"

enum {
	POLL_MS = 1,	    /* period of ports on a network, and while an HCA comes or goes */
	POLL_QUIET_MS = 10, /* period if all ports are rings and no client sent a request lately */
	POLL_REST_MS = 50,  /* the same if also all lcores rest */
	QUICK_TURNS = 50,   /* of POLL_MS after a client's request: it may need a next hop */
};

static int make_devices(struct daemon *d)
{
	for (unsigned i = 0; i < d->config.hcas; i++) {
		int ret = device_create(&d->devices[i], &d->config.hca[i], &d->pools, &d->lcores);

		if (ret)
			return ret;
		d->device_count++;
	}
	for (unsigned i = 0; i < d->device_count; i++)
		device_settle(&d->devices[i]);
	return 0;
}

/* Into the loops, which do not run yet. */
static int place_devices(struct daemon *d)
{
	int ret = 0;

	for (unsigned i = 0; i < d->device_count && !ret; i++)
		ret = placement_place(&d->lcores, &d->devices[i]);
	placement_connect(&d->lcores, d->devices, d->device_count);
	return ret;
}

/* The group that `make install` creates, for the system's daemon; "": the daemon's own. */
static const char *socket_group(const struct daemon_config *c)
{
	static const char system_group[] = "softhca";

	if (c->socket_group[0] || geteuid() != 0 || strcmp(c->socket, PATHS_SYSTEM_SOCKET) != 0)
		return c->socket_group;
	return getgrnam(system_group) ? system_group : "";
}

/* The group whose members may change the daemon: looked up once, as the daemon's filter of system
 * calls forbids loading the libraries that a look-up may need. False: there is no such group. */
static bool find_admins(const struct daemon_config *c, struct control_config *control)
{
	bool service = strcmp(c->socket, PATHS_SYSTEM_SOCKET) == 0;
	const char *name = c->admin_group[0] ? c->admin_group : service ? "softhca-admin" : "";
	const struct group *group = name[0] ? getgrnam(name) : NULL;

	control->has_admin_group = group;
	control->admin_gid = group ? group->gr_gid : 0;
	if (!group && c->admin_group[0])
		LOG(ERR, "there is no group %s", name);
	return group || !c->admin_group[0];
}

static int make_control(struct daemon *d)
{
	struct control_device devices[HCA_MAX];
	struct control_config c = {.socket_path = d->config.daemon.socket,
				   .socket_mode = d->config.daemon.socket_mode,
				   .socket_group = socket_group(&d->config.daemon),
				   .device_count = d->device_count,
				   .devices = devices,
				   .shares = d->shares,
				   .hello_timeout_ms = d->config.daemon.hello_timeout_s * 1000,
				   .cm_adopt = cm_adopt,
				   .cm_ctx = d,
				   .settings = {.read = change_read,
						.change = change_one,
						.remove = removal_ask,
						.add = addition_ask,
						.reload = change_reload_ask},
				   .settings_ctx = d,
				   .view = show_text,
				   .view_ctx = d};
	int ret = find_admins(&d->config.daemon, &c) ? 0 : -EINVAL;

	if (ret)
		return ret;
	ret = paths_make_folder_of(d->config.daemon.socket, geteuid());
	for (unsigned i = 0; i < d->device_count; i++)
		device_describe(&d->devices[i], &devices[i]);
	/* Clients' files are created before clients can connect. If another daemon listens, the
	 * tree belongs to that one, and creating the socket will fail. */
	if (!ret && !daemon_is_running(d->config.daemon.socket)) {
		sysfs_tree_make(d->config.daemon.socket, d->devices, d->device_count);
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
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool connected;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
	/* A process that listens there without accepting must not keep us waiting. */
	connected =
		connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 || errno == EAGAIN;
	close(fd);
	return connected;
}

/* The lcores have been launched: they publish their thread IDs within a moment. */
static int start_watchdog(struct daemon *d)
{
	unsigned n = 0;

	d->watched[n++] = (struct watched){
		.name = "the control thread", .thread = gettid(), .turns = &d->turns};
	for (unsigned i = 0; i < d->lcores.count; i++) {
		struct lcore_loop *l = &d->lcores.loops[i];
		struct watched *w = &d->watched[n++];
		int tid;

		while (!(tid = __atomic_load_n(&l->tid, __ATOMIC_RELAXED)))
			sched_yield();
		*w = (struct watched){.thread = tid, .turns = &l->rounds};
		snprintf(w->name, sizeof(w->name), "the lcore on CPU %u", l->cpu);
	}
	if (d->cm) {
		struct watched *w = &d->watched[n++];

		*w = (struct watched){.name = "the CM thread"};
		w->thread = cm_thread_pulse(d->cm, &w->turns);
	}
	return watchdog_start(d->watched, n);
}

/* Everything runs: gives up what only starting took. */
static void give_up_privileges(struct daemon *d)
{
	int ret;

	privileges_drop(&d->config);
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); /* sleeps of 20 us would take 70 */
	if (d->options.no_sandbox)
		return;
	ret = sandbox_enter();
	if (ret == -ENOTSUP)
		LOG(INFO, "no filter of system calls in a build with a sanitizer");
	else if (ret)
		LOG(WARNING, "no filter of system calls: %s", strerror(-ret));
}

int daemon_start(struct daemon *d, const struct config_cpus *cpus)
{
	int ret;

	pthread_mutex_init(&d->lock, NULL);
	for (unsigned i = 0; i < HCA_MAX; i++)
		d->devices[i].kicks = d->devices[i].kick_fd = -1;
	d->shares = shares_create(privileges_user(&d->config));
	if (!d->shares)
		return -ENOMEM;
	shares_set_user_part(d->shares, d->config.daemon.user_share);
	shares_set_total(d->shares, SHARE_connections, 0, d->config.daemon.connections);
	ret = lcores_create(&d->lcores, cpus, &d->config.daemon);
	if (!ret)
		ret = pools_make(&d->pools, &d->config);
	if (!ret)
		ret = make_devices(d);
	if (!ret)
		ret = privileges_become_user(&d->config, &d->runtime);
	if (!ret)
		ret = place_devices(d);
	if (!ret)
		ret = lcores_launch(&d->lcores);
	if (!ret)
		ret = make_control(d);
	if (!ret)
		ret = telemetry_start(d); /* at once: programs that find the socket will query it */
	if (!ret)
		ret = cm_start(d);
	if (!ret)
		ret = start_watchdog(d);
	if (!ret)
		give_up_privileges(d);
	if (ret)
		daemon_stop(d);
	return ret;
}

/* Clients first: modules must release their queue pairs, which only running lcores can do. */
void daemon_stop(struct daemon *d)
{
	watchdog_stop();
	cm_thread_stop(d->cm); /* first: telemetry may be waiting for it, and it for us */
	telemetry_stop();
	if (d->shown)
		sysfs_tree_remove(d->config.daemon.socket);
	d->shown = false;
	control_destroy(d->control);
	d->control = NULL;
	cm_thread_destroy(d->cm);
	d->cm = NULL;
	lcores_stop(&d->lcores);
	for (unsigned i = d->device_count; i > 0; i--)
		device_destroy(&d->devices[i - 1]);
	pools_free(&d->pools);
	lcores_destroy(&d->lcores);
	shares_destroy(d->shares);
	d->shares = NULL;
	pthread_mutex_destroy(&d->lock);
}

/* May others than our own clients send to the ports? */
static bool has_network(const struct daemon *d)
{
	FOR_EACH_DEVICE (i, d) {
		const struct port_config *p = &d->devices[i].section->port;

		if (p->type != PORT_RING || p->capture_path[0])
			return true;
	}
	return false;
}

/* All that the control thread does between two waits. Returns the number of messages from
 * clients. */
static int daemon_take_turn(struct daemon *d)
{
	int messages = control_poll(d->control);
	bool waited_for = messages > 0 || control_has_waiting(d->control);

	removal_turn(d);
	addition_turn(d);
	if (!pending_changes(d))
		verdict_end(&d->verdicts);
	FOR_EACH_DEVICE (i, d) {
		if (device_poll(&d->devices[i]))
			control_port_changed(d->control, i, d->devices[i].link_up);
		waited_for |= port_control_waits(d->devices[i].port);
	}
	if (waited_for)
		lcores_end_rest(&d->lcores);
	lcores_sample_busy(&d->lcores);
	return messages;
}

static int until_next_turn_ms(const struct daemon *d, bool quick)
{
	if (quick || has_network(d) || pending_changes(d))
		return POLL_MS;
	return lcores_rest(&d->lcores) ? POLL_REST_MS : POLL_QUIET_MS;
}

void daemon_run(struct daemon *d, const volatile int *stop_requested,
		volatile int *reload_requested)
{
	unsigned quick = 0;

	while (!*stop_requested) {
		int timeout_ms = until_next_turn_ms(d, quick > 0);

		watchdog_glance_seldom(timeout_ms == POLL_REST_MS);
		__atomic_store_n(&d->turns, d->turns + 1, __ATOMIC_RELAXED);
		control_wait(d->control, timeout_ms, !lcores_need_this_cpu(&d->lcores));
		pthread_mutex_lock(&d->lock);
		if (*reload_requested && !pending_changes(d)) {
			*reload_requested = 0;
			change_reload(d);
		}
		if (daemon_take_turn(d) > 0)
			quick = QUICK_TURNS;
		else if (quick)
			quick--;
		pthread_mutex_unlock(&d->lock);
	}
}
