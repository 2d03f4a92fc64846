/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much each client and user holds: shares.h has the rule. A user's assured part comes from the
 * reserve (`inside`), which is used for nothing else; everything above it from the rest (`beyond`).
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "base/assert.h"
#include "base/shares.h"

const struct share_row share_rows[SHARE_COUNT] = {
#define DAEMON	false
#define HCA	true
#define CLOSED	SHARE_CLOSED
#define DROPPED SHARE_DROPPED
#define LATER	SHARE_LATER
#define SHARE(name, scope, total, reserve, user, client, refusal, attack, text)                    \
	[SHARE_##name] = {#name, text, scope, total, reserve, user, client, refusal},
#include "base/shares.def"
#undef DAEMON
#undef HCA
#undef CLOSED
#undef DROPPED
#undef LATER
};

/* One row of one HCA, or of the daemon. */
struct pool {
	uint64_t total, reserve, assured, user_most, client_most;
	uint64_t used, refused;
	uint64_t inside, beyond; /* held by users within their assured parts, and above them */
};

struct share_user {
	struct shares *all;
	struct share_user *next, *prev;
	struct share_client *clients;
	uint32_t uid;
	unsigned int index;
	uint64_t holdings; /* sum of held: he is forgotten when it is 0 and he has no client */
	uint64_t held[SHARE_COUNT][HCA_MAX], refused[SHARE_COUNT][HCA_MAX];
	uint64_t left[SHARE_COUNT][HCA_MAX]; /* of what he holds: no client's any more */
};

struct shares {
	pthread_mutex_t lock;
	uint32_t owner;
	unsigned int user_part; /* 0: as in the table */
	struct share_user *users;
	struct pool pools[SHARE_COUNT][HCA_MAX];
};

static uint64_t percent_of(uint64_t total, unsigned int percent)
{
	return total / 100 * percent + total % 100 * percent / 100;
}

static unsigned int share_hca_of(const struct share_client *c, enum share row)
{
	return share_rows[row].of_hca ? c->hca : 0;
}

/* ---- totals ---- */

static void set_pool(struct shares *s, enum share row, unsigned int hca, uint64_t total)
{
	const struct share_row *r = &share_rows[row];
	struct pool *p = &s->pools[row][hca];

	p->total = total;
	p->reserve = percent_of(total, r->reserve);
	p->assured = p->reserve / SHARES_USERS;
	if (!p->assured && p->reserve)
		p->assured = 1;
	p->user_most = percent_of(total, s->user_part ? s->user_part : r->user);
	p->client_most = percent_of(total, r->client);
	/* However small the total, one of it may be held. */
	if (!p->user_most)
		p->user_most = total ? 1 : 0;
	if (!p->client_most)
		p->client_most = total ? 1 : 0;
}

static void count_again(struct shares *s, enum share row, unsigned int hca);

struct shares *shares_create(uint32_t owner)
{
	struct shares *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	pthread_mutex_init(&s->lock, NULL);
	s->owner = owner;
	for (unsigned int row = 0; row < SHARE_COUNT; row++)
		for (unsigned int hca = 0; hca < HCA_MAX; hca++)
			set_pool(s, row, hca, share_rows[row].total);
	return s;
}

void shares_set_total(struct shares *s, enum share row, unsigned int hca, uint64_t total)
{
	pthread_mutex_lock(&s->lock);
	set_pool(s, row, hca, total);
	count_again(s, row, hca);
	pthread_mutex_unlock(&s->lock);
}

uint64_t shares_total(struct shares *s, enum share row, unsigned int hca)
{
	uint64_t total;

	pthread_mutex_lock(&s->lock);
	total = s->pools[row][hca].total;
	pthread_mutex_unlock(&s->lock);
	return total;
}

void shares_set_user_part(struct shares *s, unsigned int percent)
{
	pthread_mutex_lock(&s->lock);
	s->user_part = percent;
	for (unsigned int row = 0; row < SHARE_COUNT; row++) {
		for (unsigned int hca = 0; hca < HCA_MAX; hca++) {
			set_pool(s, row, hca, s->pools[row][hca].total);
			count_again(s, row, hca);
		}
	}
	pthread_mutex_unlock(&s->lock);
}

/* ---- users and clients; with the lock held, as all below ---- */

static unsigned int free_index(const struct shares *s)
{
	const struct share_user *u = s->users;
	unsigned int index = 0;

	while (u) {
		if (u->index == index) {
			index++;
			u = s->users;
		} else {
			u = u->next;
		}
	}
	return index;
}

static struct share_user *share_user_of(struct shares *s, uint32_t uid)
{
	struct share_user *u = s->users;

	while (u && u->uid != uid)
		u = u->next;
	if (u)
		return u;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->all = s;
	u->uid = uid;
	u->index = free_index(s);
	u->next = s->users;
	if (u->next)
		u->next->prev = u;
	s->users = u;
	return u;
}

static void forget_if_idle(struct share_user *u)
{
	if (u->clients || u->holdings)
		return;
	if (u->next)
		u->next->prev = u->prev;
	if (u->prev)
		u->prev->next = u->next;
	else
		u->all->users = u->next;
	free(u);
}

int share_client_begin(struct shares *s, uint32_t uid, int32_t pid, struct share_client *c)
{
	struct share_user *u;

	*c = (struct share_client){.pid = pid};
	pthread_mutex_lock(&s->lock);
	u = share_user_of(s, uid);
	if (u) {
		c->user = u;
		c->next = u->clients;
		if (c->next)
			c->next->prev = c;
		u->clients = c;
	}
	pthread_mutex_unlock(&s->lock);
	return u ? 0 : -ENOMEM;
}

unsigned int share_user_index(const struct share_client *c)
{
	return c->user->index;
}

/* ---- the rule ---- */

static uint64_t share_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t user_most(const struct share_user *u, const struct pool *p)
{
	bool trusted = u->uid == 0 || u->uid == u->all->owner;

	return trusted ? p->total - p->reserve + p->assured : p->user_most;
}

/* A user's holding, split into reserve and rest. Anything charged unconditionally above his limit
 * is his debt, and reduces no other user's part. */
static uint64_t inside_of(const struct pool *p, uint64_t held)
{
	return share_least(held, p->assured);
}

static uint64_t beyond_of(const struct share_user *u, const struct pool *p, uint64_t held)
{
	return share_least(held, user_most(u, p)) - inside_of(p, held);
}

/* The limits have changed: what users hold is split anew. */
static void count_again(struct shares *s, enum share row, unsigned int hca)
{
	struct pool *p = &s->pools[row][hca];

	p->inside = p->beyond = 0;
	for (const struct share_user *u = s->users; u; u = u->next) {
		p->inside += inside_of(p, u->held[row][hca]);
		p->beyond += beyond_of(u, p, u->held[row][hca]);
	}
}

static bool grants_user(const struct share_user *u, const struct pool *p, uint64_t n, uint64_t held)
{
	uint64_t more, after = held + n;

	if (n > p->total || after > user_most(u, p))
		return false;
	more = beyond_of(u, p, after) - beyond_of(u, p, held);
	if (more && p->beyond + more > p->total - p->reserve)
		return false;
	return p->inside + inside_of(p, after) - inside_of(p, held) <= p->reserve;
}

static bool grants(const struct share_client *c, const struct pool *p, enum share row, uint64_t n,
		   uint64_t held)
{
	return n <= p->total && c->held[row] + n <= p->client_most &&
	       grants_user(c->user, p, n, held);
}

/* The user holds n more, or (wrapping) less. */
static void user_hold(struct share_user *u, enum share row, unsigned int hca, uint64_t n)
{
	struct pool *p = &u->all->pools[row][hca];
	uint64_t *held = &u->held[row][hca], after = *held + n;

	p->inside += inside_of(p, after) - inside_of(p, *held);
	p->beyond += beyond_of(u, p, after) - beyond_of(u, p, *held);
	p->used += n;
	u->holdings += n;
	*held = after;
}

static int share_ask(struct share_client *c, enum share row, uint64_t n, bool to_keep)
{
	struct share_user *u = c->user;
	unsigned int hca = share_hca_of(c, row);
	struct pool *p = &u->all->pools[row][hca];
	int refusal = share_rows[row].refusal;
	bool granted;

	pthread_mutex_lock(&u->all->lock);
	granted = grants(c, p, row, n, u->held[row][hca]);
	if (granted) {
		c->held[row] += to_keep ? n : 0;
		user_hold(u, row, hca, n);
	} else {
		c->refused[row]++;
		u->refused[row][hca]++;
		p->refused++;
	}
	pthread_mutex_unlock(&u->all->lock);
	if (granted)
		return 0;
	return refusal < SHARE_CLOSED ? -refusal : -EAGAIN;
}

int share_take(struct share_client *c, enum share row, uint64_t n)
{
	return share_ask(c, row, n, true);
}

int share_use(struct share_client *c, enum share row, uint64_t n)
{
	return share_ask(c, row, n, false);
}

void share_spend(struct share_client *c, enum share row, uint64_t n)
{
	pthread_mutex_lock(&c->user->all->lock);
	user_hold(c->user, row, share_hca_of(c, row), n);
	pthread_mutex_unlock(&c->user->all->lock);
}

bool share_user_take(struct share_user *u, enum share row, uint64_t n)
{
	struct pool *p = &u->all->pools[row][0];
	bool granted;

	pthread_mutex_lock(&u->all->lock);
	granted = grants_user(u, p, n, u->held[row][0]);
	if (granted) {
		user_hold(u, row, 0, n);
	} else {
		u->refused[row][0]++;
		p->refused++;
	}
	pthread_mutex_unlock(&u->all->lock);
	return granted;
}

void share_user_spend(struct share_user *u, enum share row, uint64_t n)
{
	pthread_mutex_lock(&u->all->lock);
	user_hold(u, row, 0, n);
	pthread_mutex_unlock(&u->all->lock);
}

void share_user_give(struct share_user *u, enum share row, uint64_t n)
{
	pthread_mutex_lock(&u->all->lock);
	user_hold(u, row, 0, -n);
	pthread_mutex_unlock(&u->all->lock);
}

/* Each user gets his part of a row, divided by n. The lock is held. */
static bool refill_users(struct shares *s, enum share row, unsigned int n)
{
	const struct pool *p = &s->pools[row][0];
	struct share_user *next;

	for (struct share_user *u = p->used ? s->users : NULL; u; u = next) {
		uint64_t most = (user_most(u, p) + n - 1) / n, held = u->held[row][0];

		next = u->next;
		user_hold(u, row, 0, -(held < most ? held : most));
		forget_if_idle(u);
	}
	return p->used > 0;
}

bool share_refill(struct shares *s, enum share row)
{
	bool lacks;

	pthread_mutex_lock(&s->lock);
	lacks = refill_users(s, row, 1);
	pthread_mutex_unlock(&s->lock);
	return lacks;
}

bool share_refill_together(struct shares *s, enum share row)
{
	unsigned int holders = 0;
	bool lacks;

	pthread_mutex_lock(&s->lock);
	for (const struct share_user *u = s->users; u; u = u->next)
		holders += u->held[row][0] != 0;
	lacks = holders && refill_users(s, row, holders);
	pthread_mutex_unlock(&s->lock);
	return lacks;
}

void share_add(struct share_client *c, enum share row, uint64_t n)
{
	pthread_mutex_lock(&c->user->all->lock);
	c->held[row] += n;
	user_hold(c->user, row, share_hca_of(c, row), n);
	pthread_mutex_unlock(&c->user->all->lock);
}

bool share_fits(struct share_client *c, enum share row, uint64_t n, bool later)
{
	unsigned int hca = share_hca_of(c, row);
	struct shares *s = c->user->all;
	struct pool then;
	bool granted;

	pthread_mutex_lock(&s->lock);
	then = s->pools[row][hca];
	for (const struct share_user *u = later ? s->users : NULL; u; u = u->next) {
		uint64_t held = u->held[row][hca], kept = held - u->left[row][hca];

		then.inside -= inside_of(&then, held) - inside_of(&then, kept);
		then.beyond -= beyond_of(u, &then, held) - beyond_of(u, &then, kept);
	}
	granted = grants(c, &then, row, n,
			 c->user->held[row][hca] - (later ? c->user->left[row][hca] : 0));
	pthread_mutex_unlock(&s->lock);
	return granted;
}

void share_give(struct share_client *c, enum share row, uint64_t n)
{
	pthread_mutex_lock(&c->user->all->lock);
	ASSERT(c->held[row] >= n);
	c->held[row] -= n;
	user_hold(c->user, row, share_hca_of(c, row), -n);
	pthread_mutex_unlock(&c->user->all->lock);
}

uint64_t share_held(const struct share_client *c, enum share row)
{
	return c->held[row];
}

struct share_user *share_leave(struct share_client *c, enum share row, uint64_t n)
{
	pthread_mutex_lock(&c->user->all->lock);
	ASSERT(c->held[row] >= n);
	c->held[row] -= n;
	c->user->left[row][share_hca_of(c, row)] += n;
	pthread_mutex_unlock(&c->user->all->lock);
	return c->user;
}

void share_return(struct share_user *u, enum share row, unsigned int hca, uint64_t n)
{
	struct shares *s = u->all;

	pthread_mutex_lock(&s->lock);
	ASSERT(u->left[row][hca] >= n);
	u->left[row][hca] -= n;
	user_hold(u, row, hca, -n);
	forget_if_idle(u);
	pthread_mutex_unlock(&s->lock);
}

void share_client_end(struct share_client *c)
{
	struct share_user *u = c->user;
	struct shares *s;

	if (!u)
		return;
	s = u->all;
	pthread_mutex_lock(&s->lock);
	for (unsigned int row = 0; row < SHARE_COUNT; row++)
		user_hold(u, row, share_hca_of(c, row), -c->held[row]);
	if (c->next)
		c->next->prev = c->prev;
	if (c->prev)
		c->prev->next = c->next;
	else
		u->clients = c->next;
	forget_if_idle(u);
	pthread_mutex_unlock(&s->lock);
	c->user = NULL;
}

/* Is anything of this user's still to be returned? */
static bool is_awaited(const struct share_user *u)
{
	for (unsigned int row = 0; row < SHARE_COUNT; row++)
		for (unsigned int hca = 0; hca < HCA_MAX; hca++)
			if (u->left[row][hca])
				return true;
	return false;
}

void shares_destroy(struct shares *s)
{
	struct share_user *next;
	bool awaited = false;

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	for (struct share_user *u = s->users; u; u = next) {
		next = u->next;
		ASSERT(!u->clients);
		if (is_awaited(u)) {
			awaited = true;
		} else {
			u->holdings = 0;
			forget_if_idle(u);
		}
	}
	pthread_mutex_unlock(&s->lock);
	if (awaited)
		return; /* the thread that returns it needs both; the process ends */
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* ---- what is shown ---- */

void shares_info(struct shares *s, enum share row, unsigned int hca, struct share_info *out)
{
	const struct pool *p = &s->pools[row][hca];

	pthread_mutex_lock(&s->lock);
	*out = (struct share_info){.row = row,
				   .hca = hca,
				   .total = p->total,
				   .used = p->used,
				   .refused = p->refused,
				   .reserve = p->reserve,
				   .assured = p->assured,
				   .user_most = p->user_most,
				   .client_most = p->client_most};
	pthread_mutex_unlock(&s->lock);
}

struct listing {
	struct share_holder *out;
	unsigned int room, count;
};

static void list_holder(struct listing *l, const struct share_holder *h)
{
	if (!h->held && !h->refused)
		return;
	if (l->count < l->room)
		l->out[l->count] = *h;
	l->count++;
}

static void list_user(struct listing *l, const struct share_user *u, enum share row,
		      unsigned int hca)
{
	const struct share_holder h = {.row = row,
				       .hca = hca,
				       .uid = u->uid,
				       .held = u->held[row][hca],
				       .most = user_most(u, &u->all->pools[row][hca]),
				       .refused = u->refused[row][hca]};

	list_holder(l, &h);
}

static void list_clients(struct listing *l, const struct share_user *u, enum share row,
			 unsigned int hca)
{
	for (const struct share_client *c = u->clients; c; c = c->next) {
		const struct share_holder h = {.row = row,
					       .hca = hca,
					       .uid = u->uid,
					       .pid = c->pid,
					       .held = c->held[row],
					       .most = u->all->pools[row][hca].client_most,
					       .refused = c->refused[row]};

		if (share_hca_of(c, row) == hca)
			list_holder(l, &h);
	}
}

static void list_all(struct listing *l, const struct shares *s,
		     void (*one)(struct listing *, const struct share_user *, enum share,
				 unsigned int))
{
	for (const struct share_user *u = s->users; u; u = u->next)
		for (unsigned int row = 0; row < SHARE_COUNT; row++)
			for (unsigned int hca = 0; hca < (share_rows[row].of_hca ? HCA_MAX : 1);
			     hca++)
				one(l, u, row, hca);
}

unsigned int shares_holders(struct shares *s, struct share_holder *out, unsigned int n)
{
	struct listing l = {.out = out, .room = n};

	pthread_mutex_lock(&s->lock);
	list_all(&l, s, list_user);
	list_all(&l, s, list_clients);
	pthread_mutex_unlock(&s->lock);
	return l.count;
}
