/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Divides the thread's time by user. Control thread.
 *
 * Each user gets a part of each turn (SHARE_control_us). With that rule alone, a client that waits
 * for each answer before it sends the next request would wait a whole turn of others' work for
 * each, and the thread would keep a CPU busy all the time. So bulk work is deferred: populating,
 * unmapping, and the requests of users who queue more than fit into their part of a turn, or whose
 * requests are refused again and again. All bulk work together
 *
 *     - takes at most a sixth of the thread's time, in small pieces, and leaves the CPU to programs
 *       in between; and
 *     - waits while another user, who has just been answered, is likely to send the next request,
 *       but never longer than BULK_DUE_NS.
 *
 * None of this applies while only one user is connected; nor is excess time then deducted from
 * later turns.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "base/monotonic.h"
#include "pieces.h"
#include "session.h"
#include "users.h"

enum {
	BACKLOGGED_TURNS = 4,
	BULK_NS = 10000000,    /* how long a user's requests are bulk once they queue up */
	BULK_TURN_NS = 50000,  /* for these requests in a turn */
	BULK_PAUSE_FACTOR = 5, /* a pause after bulk work, in multiples of the time it took, ... */
	BULK_PAUSE_NS_MAX = 2000000, /* ... but no longer than this */
	BULK_DUE_NS = 2000000,	     /* bulk work waits no longer than this for others */
	AWAITED_NS = 200000,	     /* within it a user who was answered should send again */
	REFUSED_NS = 10000000,	     /* two refusals within this time make a user's requests bulk */
};

/* ---- users ---- */

/* Counts users, except the daemon as its own client. */
static void update_contended(struct control *c)
{
	unsigned int n = 0;
	const struct user *u;

	TAILQ_FOREACH (u, &c->users, of_control)
		n += u->uid != c->owner || u->foreign;
	c->contended = n > 1;
	if (!c->contended)
		pieces_resume(c);
}

static struct user *user_make(struct control *c, uint32_t uid)
{
	struct user *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->uid = uid;
	u->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (u->epoll < 0) {
		free(u);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&c->users, u, of_control);
	return u;
}

int user_add_client(struct client *client)
{
	struct control *c = client->control;
	unsigned int others = 0;
	struct user *u;

	TAILQ_FOREACH (u, &c->users, of_control) {
		if (u->uid == client->uid)
			break;
		others++;
	}
	if (!u && others == CLIENTS_MAX)
		return -EUSERS;
	if (!u)
		u = user_make(c, client->uid);
	if (!u)
		return -ENOMEM;
	u->clients++;
	u->foreign += !client->own;
	client->user = u;
	update_contended(c);
	return 0;
}

void user_remove_client(struct client *client)
{
	struct control *c = client->control;
	struct user *u = client->user;

	u->foreign -= !client->own;
	if (--u->clients == 0) {
		TAILQ_REMOVE(&c->users, u, of_control);
		close(u->epoll);
		free(u);
	}
	update_contended(c);
}

static bool is_bulk(const struct control *c, const struct user *u)
{
	return c->contended && c->turn_begun_ns < u->bulk_until_ns;
}

void user_note_refusal(struct user *u, uint64_t now)
{
	if (now - u->refused_ns < REFUSED_NS)
		u->bulk_until_ns = now + BULK_NS;
	u->refused_ns = now;
}

/* ---- waiting ---- */

/*
 * The users' sets are polled, not nested in another set: to add a descriptor to a nested set, the
 * kernel takes a global mutex (epnested_mutex), which any process of the machine can hold for
 * milliseconds, again and again.
 */
static void update_polled(struct control *c)
{
	const struct user *u;

	c->polled[0] = (struct pollfd){.fd = c->listener, .events = POLLIN};
	c->polled_count = 1;
	TAILQ_FOREACH (u, &c->users, of_control)
		c->polled[c->polled_count++] =
			(struct pollfd){.fd = u->deferred ? -1 : u->epoll, .events = POLLIN};
}

int users_wait(struct control *c, uint64_t timeout_ns)
{
	const struct timespec limit = timespec_of(timeout_ns);
	int n = ppoll(c->polled, c->polled_count, timeout_ns == UINT64_MAX ? NULL : &limit, NULL);

	return n < 0 ? -errno : n > 0;
}

int users_poll(struct control *c)
{
	unsigned int i = 1;
	struct user *u;
	int rc;

	update_polled(c);
	rc = users_wait(c, 0);
	TAILQ_FOREACH (u, &c->users, of_control)
		u->ready = c->polled[i++].revents;
	return rc;
}

/* ---- bulk ---- */

/* Until when bulk work waits for the user who has just been answered. */
static uint64_t bulk_yields_until_ns(const struct control *c)
{
	return c->awaited_until_ns < c->bulk_due_ns ? c->awaited_until_ns : c->bulk_due_ns;
}

static uint64_t bulk_resumes_ns(const struct control *c)
{
	uint64_t yields = bulk_yields_until_ns(c);

	if (!c->contended)
		return 0;
	return c->bulk_paused_until_ns > yields ? c->bulk_paused_until_ns : yields;
}

static bool bulk_allowed(struct control *c)
{
	bool may = c->turn_begun_ns >= bulk_resumes_ns(c);

	c->bulk_deferred |= !may;
	return may;
}

bool users_bulk_allowed(struct control *c, const struct share_user *of)
{
	return (of == c->awaited && c->turn_begun_ns >= c->bulk_paused_until_ns) || bulk_allowed(c);
}

void users_charge_bulk(struct control *c, uint64_t ns)
{
	c->bulk_ns = ns;
	c->bulk_limit_ns = ns + BULK_TURN_NS;
}

void users_turn_begin(struct control *c)
{
	struct user *u;

	c->bulk_deferred = false;
	c->bulk_ns = 0;
	c->bulk_limit_ns = BULK_TURN_NS;
	if (c->turn_begun_ns < bulk_resumes_ns(c))
		return;
	TAILQ_FOREACH (u, &c->users, of_control) {
		u->ready |= u->deferred;
		u->deferred = false;
	}
}

void users_turn_end(struct control *c)
{
	struct user *u;
	uint64_t now, pause_ns = BULK_PAUSE_FACTOR * c->bulk_ns;

	TAILQ_FOREACH (u, &c->users, of_control)
		c->bulk_deferred |= u->deferred;
	u = TAILQ_FIRST(&c->users); /* rotate */
	if (u) {
		TAILQ_REMOVE(&c->users, u, of_control);
		TAILQ_INSERT_TAIL(&c->users, u, of_control);
	}
	update_polled(c);
	if (!c->bulk_ns)
		return;
	now = control_now_ns();
	c->bulk_paused_until_ns =
		now + (pause_ns < BULK_PAUSE_NS_MAX ? pause_ns : BULK_PAUSE_NS_MAX);
	c->bulk_due_ns = now + BULK_DUE_NS;
}

uint64_t users_bulk_wait_ns(const struct control *c)
{
	uint64_t from, now;

	if (!c->bulk_deferred && !pieces_pending(c))
		return UINT64_MAX;
	from = c->pieces_changed && c->contended ? c->bulk_paused_until_ns : bulk_resumes_ns(c);
	now = control_now_ns();
	return from > now ? from - now : 0;
}

/* ---- the time of the thread ---- */

bool users_may_serve(struct client *client)
{
	struct control *c = client->control;
	struct user *u = client->user;
	bool bulk = is_bulk(c, u), may;

	if (bulk && (!bulk_allowed(c) || c->bulk_ns > c->bulk_limit_ns)) {
		c->bulk_deferred = true;
		return false;
	}
	may = share_use(&client->shares, SHARE_control_us, 1) == 0;
	u->out_of_time |= !may;
	c->bulk_deferred |= !may && bulk;
	c->throttled |= !may && !bulk;
	return may;
}

void users_charge(struct client *client, uint64_t since_ns)
{
	uint64_t ns = control_now_ns() - since_ns;

	share_spend(&client->shares, SHARE_control_us, ns / 1000);
	client->user->served = true;
	if (is_bulk(client->control, client->user))
		client->control->bulk_ns += ns;
}

void users_note_answer(struct client *client, uint64_t arrived_ns)
{
	struct control *c = client->control;
	uint64_t now = control_now_ns();

	if (is_bulk(c, client->user))
		return;
	look_end(&c->look, arrived_ns);
	look_begin(&c->look, now);
	c->answered = client;
	c->awaited = client->shares.user;
	c->awaited_until_ns = now + AWAITED_NS;
}

/* A user's requests are bulk if they queue up for several turns. A client that waits for each
 * answer has only one queued, however long each takes. */
static void detect_bulk(struct control *c, struct user *u)
{
	if (u->out_of_time && !u->served)
		return; /* it still owes time from an earlier turn */
	if (!u->backlogged || !u->out_of_time)
		u->backlogged_turns = 0;
	else if (++u->backlogged_turns >= BACKLOGGED_TURNS)
		u->bulk_until_ns = c->turn_begun_ns + BULK_NS;
}

void user_check_backlog(const struct client *client)
{
	if (client->control->contended && !client->user->backlogged)
		client->user->backlogged = session_has_request(client);
}

static unsigned int user_serve(struct control *c, struct user *u)
{
	struct epoll_event events[EVENTS_PER_TURN];
	unsigned int done = 0;
	int n;

	if (is_bulk(c, u) && !bulk_allowed(c)) {
		u->deferred = true;
		return 0;
	}
	n = epoll_wait(u->epoll, events, EVENTS_PER_TURN, 0);
	u->served = u->out_of_time = false;
	u->backlogged = n > 1;
	for (int i = 0; i < n; i++)
		done += control_serve(events[i].data.ptr, events[i].events);
	detect_bulk(c, u);
	return done;
}

unsigned int users_serve(struct control *c)
{
	unsigned int done = 0;
	struct user *u;

	TAILQ_FOREACH (u, &c->users, of_control)
		if (u->ready)
			done += user_serve(c, u);
	return done;
}
