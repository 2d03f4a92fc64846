/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket: listens, accepts, and serves each session in turn. One thread polls the
 * listener and each client's connection. Never waits for a client. Control thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/close_later.h"
#include "base/monotonic.h"
#include "pieces.h"
#include "segments.h"
#include "session.h"
#include "teardown.h"
#include "users.h"

enum {
	HELLO_TIMEOUT_MS = 30000,
	TURN_NS_MAX = NS_IN_S / 10, /* what a turn counts for in control.attended_ns */
};

uint64_t control_now_ns(void)
{
	return monotonic_ns();
}

static int watch_connection(struct client *client)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = client};

	return epoll_ctl(client->user->epoll, EPOLL_CTL_ADD, client->fd, &ev) ? -errno : 0;
}

/* A copy of it may exist, here or elsewhere: closing alone would leave it in the set. */
void control_unwatch(struct client *client)
{
	epoll_ctl(client->user->epoll, EPOLL_CTL_DEL, client->fd, NULL);
}

/* A client that waits for an answer is not read, only watched for its end. */
void control_rearm(struct client *client, bool readable)
{
	struct epoll_event ev = {.events = EPOLLRDHUP | (readable ? EPOLLIN : 0),
				 .data.ptr = client};

	epoll_ctl(client->user->epoll, EPOLL_CTL_MOD, client->fd, &ev);
}

/* ---- the listening socket ---- */

/* Is there a listener at that address? */
static bool control_in_use(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool used = fd >= 0 && (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 ||
				errno == EAGAIN); /* it does not accept */

	if (fd >= 0)
		close(fd);
	return used;
}

/* Sets who may connect; no one can before it listens. */
static int set_access(const char *path, unsigned int mode, const char *group)
{
	const struct group *g;

	if (group && group[0]) {
		g = getgrnam(group);
		if (!g) {
			LOG(ERR, "there is no group %s", group);
			return -EINVAL;
		}
		if (chown(path, -1, g->gr_gid))
			return -errno;
	}
	return chmod(path, mode) ? -errno : 0;
}

static int bind_and_listen(int fd, const struct sockaddr_un *addr,
			   const struct control_config *config)
{
	int rc = 0;
	struct stat st;

	if (control_in_use(addr)) {
		LOG(ERR, "another daemon listens on %s", addr->sun_path);
		return -EADDRINUSE;
	}
	if (lstat(addr->sun_path, &st) == 0 && S_ISSOCK(st.st_mode))
		unlink(addr->sun_path);
	if (bind(fd, (const struct sockaddr *)addr, sizeof(*addr)))
		rc = -errno;
	if (!rc)
		rc = set_access(addr->sun_path, config->socket_mode, config->socket_group);
	if (!rc && listen(fd, 128))
		rc = -errno;
	if (rc)
		LOG(ERR, "cannot listen on %s: %s", addr->sun_path, strerror(-rc));
	return rc;
}

static void spare_open(struct control *c)
{
	c->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int listen_at(struct control *c, const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int rc;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -EINVAL;
	strcpy(addr.sun_path, path);
	c->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->listener < 0)
		return -errno;
	rc = bind_and_listen(c->listener, &addr, &c->config);
	if (rc)
		return rc;
	strcpy(c->socket_path, path);
	spare_open(c);
	return 0;
}

/* ---- devices ---- */

static int device_open(struct device *d, const struct control_device *config)
{
	const struct hca *h = config->hca;

	if (!h || !config->ceu || !config->ops.port || !config->ops.gid || !config->ops.resolve)
		return -EINVAL;
	d->config = *config;
	if (table_create(&d->qps, h->qps.count, h->qps.count, QPN_BITS, 0) ||
	    table_create(&d->cqs, h->completion.cq_count, h->completion.cq_count, CQN_BITS, 0) ||
	    table_create(&d->srqs, h->srqs.count, h->srqs.count, QPN_BITS, 0) ||
	    table_create(&d->mrs, h->v2p.mpts, h->v2p.mpts, 32, KEY_TAG_BITS) ||
	    table_create(&d->pds, 256, 1u << 20, 32, 0) ||
	    mtt_space_create(&d->mtts, h->v2p.mtt.entries_max))
		return -ENOMEM;
	d->qps.reserved = CONTROL_GSI_QPN;
	return 0;
}

void device_close(struct device *d)
{
	table_destroy(&d->qps);
	table_destroy(&d->cqs);
	table_destroy(&d->srqs);
	table_destroy(&d->mrs);
	table_destroy(&d->pds);
	mtt_space_destroy(&d->mtts);
}

/* The totals that only the machine knows. */
static void set_totals(struct control *c)
{
	shares_set_total(c->shares, SHARE_mappings, 0, memory_ranges_max());
	if (!shares_total(c->shares, SHARE_registered_bytes, 0))
		shares_set_total(c->shares, SHARE_registered_bytes, 0,
				 (uint64_t)sysconf(_SC_PHYS_PAGES) *
					 (uint64_t)sysconf(_SC_PAGESIZE));
}

int control_add_device(struct control *c, unsigned int i, const struct control_device *config)
{
	struct device *d = &c->devices[i];
	int rc = device_open(d, config);

	if (rc) {
		device_close(d);
		*d = (struct device){.config.hca = NULL};
		return rc;
	}
	if (i >= c->device_count)
		c->device_count = i + 1;
	shares_set_total(c->shares, SHARE_keys, i, d->mrs.max);
	shares_set_total(c->shares, SHARE_mtts, i, d->mtts.entries);
	shares_set_total(c->shares, SHARE_cqs, i, d->cqs.max);
	shares_set_total(c->shares, SHARE_srqs, i, d->srqs.max);
	shares_set_total(c->shares, SHARE_qps, i, d->qps.max);
	control_debug_changed(c); /* its time may have to stand, too */
	return 0;
}

static int control_listen(struct control *c)
{
	int rc;

	for (unsigned int i = 0; i < c->config.device_count; i++) {
		rc = control_add_device(c, i, &c->config.devices[i]);
		if (rc)
			return rc;
	}
	c->config.devices = NULL;
	set_totals(c);
	rc = memory_guard();
	if (rc || !c->config.socket_path)
		return rc;
	return listen_at(c, c->config.socket_path);
}

int control_create(const struct control_config *config, struct control **out)
{
	struct control *c;
	int rc;

	if (config->device_count == 0 || config->device_count > HCA_MAX || !config->devices)
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->config = *config;
	c->listener = c->spare = -1;
	c->owner = geteuid();
	TAILQ_INIT(&c->users);
	TAILQ_INIT(&c->ended);
	TAILQ_INIT(&c->long_turns);
	TAILQ_INIT(&c->long_deferred);
	for (unsigned int i = 0; i < RETRY_WAITS; i++)
		TAILQ_INIT(&c->waiting[i]);
	if (!c->config.socket_mode)
		c->config.socket_mode = 0666;
	c->shares = config->shares ? config->shares : shares_create(c->owner);
	c->own_shares = !config->shares;
	rc = c->shares ? control_listen(c) : -ENOMEM;
	if (rc) {
		control_destroy(c);
		return rc;
	}
	*out = c;
	return 0;
}

void control_set_hello_timeout(struct control *c, unsigned int ms)
{
	c->config.hello_timeout_ms = ms;
}

/* ---- clients ---- */

int control_adopt(struct control *c, int fd)
{
	struct ucred who = {.pid = -1, .uid = (uid_t)-1};
	socklen_t bytes = sizeof(who);
	struct client *client;
	int rc;

	client = calloc(1, sizeof(*client));
	if (!client)
		return -ENOMEM;
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes);
	rc = share_client_begin(c->shares, who.uid, who.pid, &client->shares);
	if (!rc && share_use(&client->shares, SHARE_held_up_ms, 0))
		rc = -EBUSY;
	if (!rc && (share_use(&client->shares, SHARE_closings, 0) ||
		    share_take(&client->shares, SHARE_connections, 1)))
		rc = -EUSERS;
	if (rc) {
		share_client_end(&client->shares);
		free(client);
		return rc;
	}
	client->control = c;
	client->fd = fd;
	client->bell = client->kick = -1;
	client->id = ++c->connections;
	client->begun_ns = control_now_ns();
	client->silent_ns = c->attended_ns;
	client->pid = who.pid;
	client->uid = who.uid;
	client->own = who.pid == getpid();
	client->same_ipc = segments_same_namespace(who.pid);
	/* The capabilities are those of what the process executes by now, which may be a setuid
	 * program: only a superuser who connected has the rights that they stand for. */
	client->ipc_owner = who.uid == 0 && segments_all_allowed(who.pid);
	rc = user_add_client(client);
	if (!rc) {
		rc = watch_connection(client);
		if (rc)
			user_remove_client(client);
	}
	if (rc) {
		share_client_end(&client->shares);
		free(client);
		return rc;
	}
	client->next = c->clients;
	if (client->next)
		client->next->prev = client;
	c->clients = client;
	c->client_count++;
	LOG(DEBUG, "client %u: pid %d, user %u, connected", client->id, (int)who.pid,
	    (unsigned int)who.uid);
	users_charge(client, client->begun_ns);
	return 0;
}

void client_end(struct client *client)
{
	struct control *c = client->control;
	uint64_t begun;

	if (client->handed_over) {
		LOG(DEBUG, "client %u: pid %d: the connection manager's", client->id,
		    (int)client->pid);
	} else {
		LOG(DEBUG, "client %u: pid %d has gone, leaving %u queue pairs", client->id,
		    (int)client->pid, client->counts[OBJECT_QP]);
		if (client->device) /* others have only looked */
			count(&client->device->config.hca->counters, COUNTER_clients_gone);
	}
	if (c->answered == client)
		c->answered = NULL;
	begun = control_now_ns();
	client_teardown(client);
	users_charge(client, begun);
	session_forget(client);
	if (client->gone)
		TAILQ_REMOVE(&c->ended, client, of_ended);
	else
		control_unwatch(client);
	if (client->handed_over)
		close_later(client->fd, &client->shares);
	else
		close_later_socket(client->fd, &client->shares);
	if (client->next)
		client->next->prev = client->prev;
	if (client->prev)
		client->prev->next = client->next;
	else
		c->clients = client->next;
	c->client_count--;
	user_remove_client(client);
	share_client_end(&client->shares);
	free(client);
}

/* No descriptor is left: a client that stayed in the backlog would wait for ever, and keep us from
 * sleeping. */
static void refuse_one(struct control *c)
{
	int fd;

	close(c->spare);
	fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		close_later_stranger(fd, c->shares, "no descriptor for another client");
	spare_open(c);
}

static void accept_clients(struct control *c)
{
	if (c->spare < 0) /* the one refused last may not be closed yet */
		spare_open(c);
	if (c->spare < 0)
		return;
	for (unsigned int i = 0; i < MESSAGES_PER_TURN; i++) {
		int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), rc;

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE)
				refuse_one(c);
			return;
		}
		rc = control_adopt(c, fd);
		if (rc)
			close_later_stranger(
				fd, c->shares,
				rc == -EBUSY ? "refused, as threads wait too long for its holes"
					     : "no room for another client");
	}
}

/* ---- memory that failed ---- */

static bool memory_failed(const struct client *client)
{
	if (memory_faults(&client->page) || memory_faults(&client->capture))
		return true;
	for (const struct object *o = client->objects[OBJECT_PIECE]; o; o = o->next)
		if (memory_faults(&((const struct piece *)o)->mapping))
			return true;
	return false;
}

/* A client whose memory had disappeared no longer shares what it believes: disconnects it. */
static void look_for_faults(struct control *c)
{
	uint64_t total = memory_faults_total();

	if (total == c->sigbus_seen)
		return;
	count_n(&device_first(c)->config.hca->counters, COUNTER_client_sigbus,
		total - c->sigbus_seen);
	c->sigbus_seen = total;
	for (struct client *client = c->clients; client; client = client->next) {
		if (!memory_failed(client))
			continue;
		CLIENT_LOG(client, WARNING, "its memory has gone, disconnected");
		client_lost(client);
	}
}

/* ---- holes that clients punch into their memory ---- */

static bool has_time(struct client *client)
{
	return share_fits(&client->shares, SHARE_held_up_ms, 0, false);
}

static bool is_charged(const struct control *c, uint32_t uid)
{
	return c->contended && uid != 0 && uid != c->owner;
}

void user_waited(struct control *c, struct share_user *u, uint32_t uid, uint64_t ns)
{
	if (ns && is_charged(c, uid))
		share_user_spend(u, SHARE_waited_ms, ns / NS_IN_MS);
}

void client_waited(struct client *client, uint64_t ns)
{
	user_waited(client->control, client->shares.user, client->uid, ns);
}

void client_held_up(struct client *client, uint64_t ns)
{
	struct control *c = client->control;
	bool had_time = has_time(client);

	if (!ns)
		return;
	count(&device_first(c)->config.hca->counters, COUNTER_client_held_up);
	CLIENT_LOG(client, WARNING, "held up a thread for %u ms by punching holes into its memory",
		   (unsigned int)(ns / NS_IN_MS));
	if (!is_charged(c, client->uid))
		return;
	share_spend(&client->shares, SHARE_held_up_ms, ns / NS_IN_MS);
	if (has_time(client))
		return;
	/* First only this client, then all: else a user could let each of many clients do it
	 * once. */
	for (struct client *other = c->clients; other; other = other->next)
		if (other == client || (!had_time && other->user == client->user))
			client_lost(other);
}

void client_look_for_holes(struct client *client)
{
	uint64_t ns = memory_held_up_ns(&client->page) + memory_held_up_ns(&client->capture);

	for (const struct object *o = client->objects[OBJECT_PIECE]; o; o = o->next)
		ns += memory_held_up_ns(&((const struct piece *)o)->mapping);
	client_held_up(client, ns);
}

static void look_for_holes(struct control *c)
{
	uint64_t total = memory_held_up_total();

	if (total == c->held_up_seen)
		return;
	c->held_up_seen = total;
	for (struct client *client = c->clients; client; client = client->next)
		client_look_for_holes(client);
}

/* ---- the turn ---- */

unsigned int control_serve(struct client *client, uint32_t events)
{
	if (client->pending && (events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)))
		client_lost(client);
	return session_serve(client);
}

/* Skips those whose users have used up their time. Returns how many have ended. */
static unsigned int free_clients(struct control *c)
{
	const struct client *last = TAILQ_LAST(&c->ended, client_queue);
	unsigned int ended = 0;
	struct client *client;
	bool more = last;

	for (unsigned int n = 0; more && n < ENDED_PER_TURN; n++) {
		client = TAILQ_FIRST(&c->ended);
		more = client != last;
		if (users_may_serve(client)) {
			client_end(client);
			ended++;
		} else {
			TAILQ_REMOVE(&c->ended, client, of_ended);
			TAILQ_INSERT_TAIL(&c->ended, client, of_ended);
		}
	}
	return ended;
}

/* Disconnects clients that only keep others from connecting: they have not opened a device, look at
 * nothing, keep no module paused, are no channel, and wait neither to be read nor for an answer.
 * Time in which this thread was busy or did not run does not count. */
static void end_silent(struct control *c)
{
	unsigned int ms =
		c->config.hello_timeout_ms ? c->config.hello_timeout_ms : HELLO_TIMEOUT_MS;

	for (struct client *client = c->clients; client; client = client->next) {
		if (client->device || client->captured || client->looks || client->holds ||
		    client->pending || client->gone ||
		    (c->attended_ns - client->silent_ns) / 1000000 < ms ||
		    session_has_request(client))
			continue;
		CLIENT_LOG(client, INFO, "has not opened a device in time, disconnected");
		client_lost(client);
	}
}

/* Refills what is limited per time. */
static void let_time_pass(struct control *c)
{
	uint64_t now = control_now_ns(), passed_ns = now - c->turn_begun_ns;

	c->turn_begun_ns = now;
	c->attended_ns += passed_ns < TURN_NS_MAX ? passed_ns : TURN_NS_MAX;
	/* A user who is alone keeps nobody waiting: turns in which he only paid back excess time
	 * would serve no one. */
	while (share_refill(c->shares, SHARE_control_us) && !c->contended)
		;
	if (now - c->second_ns >= NS_IN_S) {
		c->second_ns = now;
		share_refill(c->shares, SHARE_log_lines);
		share_refill(c->shares, SHARE_neighbours);
		share_refill_together(c->shares, SHARE_held_up_ms);
		share_refill_together(c->shares, SHARE_waited_ms);
		pieces_resume(c);
		memset(c->looked_ns, 0, sizeof(c->looked_ns));
		c->looked_all_ns = 0;
	}
	if (now >= c->silent_ns) {
		c->silent_ns = now + NS_IN_S / 10;
		end_silent(c);
	}
}

/* Is there work that no descriptor shows? */
static bool is_behind(const struct control *c)
{
	return c->throttled || (!TAILQ_EMPTY(&c->ended) && !c->bulk_deferred);
}

/* ---- between two turns ---- */

/* Polls for the next request, for each user no longer than his part: a client that always asks just
 * in time would keep the CPU busy. */
static bool look_for_more(struct control *c)
{
	uint64_t *by_user, begun = control_now_ns(), now = begun, before;
	bool found = false;

	if (!c->answered || !look_pays(&c->look, begun))
		return false;
	by_user = &c->looked_ns[client_user(c->answered)];
	if (*by_user >= LOOKED_NS_MAX || c->looked_all_ns >= LOOKED_ALL_NS_MAX)
		return false;
	do {
		found = users_wait(c, 0) > 0;
		if (!found)
			sched_yield();
		before = now;
		now = control_now_ns();
	} while (!found && look_again(&c->look, before, now));
	*by_user += now - begun;
	c->looked_all_ns += now - begun;
	if (!found)
		c->answered = NULL;
	return found;
}

void control_wait(struct control *c, int timeout_ms, bool spare)
{
	uint64_t wait_ns = timeout_ms < 0 ? UINT64_MAX : (uint64_t)timeout_ms * NS_IN_MS;

	if (is_behind(c) || (spare && look_for_more(c)))
		return;
	if (c->pending)
		wait_ns = MIN(wait_ns, (uint64_t)NS_IN_MS);
	users_wait(c, MIN(wait_ns, users_bulk_wait_ns(c)));
}

/* ---- a turn ---- */

int control_poll(struct control *c)
{
	unsigned int done, ended = 0;
	int rc;

	c->throttled = false;
	rc = users_poll(c);
	if (rc < 0)
		return rc;
	let_time_pass(c);
	users_turn_begin(c);
	pieces_turn(c); /* before requests take the time of their users */
	if (c->ended_first)
		ended = free_clients(c);
	done = sessions_retry(c) + users_serve(c);
	if (c->polled[0].revents)
		accept_clients(c);
	look_for_faults(c);
	look_for_holes(c);
	if (!c->ended_first)
		ended = free_clients(c);
	if (done || ended)
		c->ended_first = !c->ended_first;
	users_turn_end(c);
	FOR_EACH_DEVICE (d, c) {
		ceu_tidy(d->config.ceu);
		ceu_trim_contexts(d->config.ceu);
	}
	return (int)done;
}

bool control_has_waiting(const struct control *c)
{
	return c->pending > 0;
}

static void tell_clients(struct control *c, unsigned int device, enum eqe_type type,
			 uint32_t number)
{
	struct device *d = &c->devices[device];
	struct hca *h = d->config.hca;
	uint64_t one = 1;

	for (uint32_t i = 0; i < d->client_end; i++)
		if (d->clients[i])
			eq_post(&h->completion, &h->counters, i, type, number);
	completion_round(&h->completion, &h->counters);
	if (d->config.kick_eventfd >= 0 && write(d->config.kick_eventfd, &one, sizeof(one)) < 0)
		return; /* its counter is full: it is readable as it is */
}

void control_port_changed(struct control *c, unsigned int device, bool up)
{
	tell_clients(c, device, EQE_PORT_CHANGE, up);
}

void control_gids_changed(struct control *c, unsigned int device)
{
	tell_clients(c, device, EQE_GID_CHANGE, 0);
}

bool control_client_is_of(const struct control *c, unsigned int device, uint32_t index,
			  uint32_t uid)
{
	const struct client *client =
		index < CLIENTS_MAX ? c->devices[device].clients[index] : NULL;

	return client && client->uid == uid;
}

unsigned int control_clients(const struct control *c, struct control_client_info *info,
			     unsigned int n)
{
	const uint64_t now = control_now_ns();
	unsigned int i = 0;

	for (const struct client *client = c->clients; client && i < n; client = client->next) {
		if (client == c->asking)
			continue;
		info[i] = (struct control_client_info){
			.id = client->id,
			.index = client->index,
			.pid = client->pid,
			.uid = client->uid,
			.pds = client->counts[OBJECT_PD],
			.pieces = client->counts[OBJECT_PIECE],
			.mrs = client->counts[OBJECT_MR],
			.cqs = client->counts[OBJECT_CQ],
			.srqs = client->counts[OBJECT_SRQ],
			.qps = client->counts[OBJECT_QP],
			.bytes = share_held(&client->shares, SHARE_mapped_bytes),
			.registered_bytes = share_held(&client->shares, SHARE_registered_bytes),
			.connected_s = (now - client->begun_ns) / NS_IN_S,
		};
		if (client->device)
			memcpy(info[i].device, client->device->config.name, 32);
		if (client->captured)
			memcpy(info[i].captures, client->captured->config.name, 32);
		i++;
	}
	return c->client_count - (c->asking != NULL);
}

void control_destroy(struct control *c)
{
	if (!c)
		return;
	while (c->clients)
		client_end(c->clients);
	pieces_unmap_all(c);
	FOR_EACH_DEVICE (d, c)
		device_close(d);
	if (c->listener >= 0)
		close(c->listener);
	if (c->socket_path[0])
		unlink(c->socket_path);
	if (c->spare >= 0)
		close(c->spare);
	if (c->own_shares)
		shares_destroy(c->shares);
	free(c);
}
