/* SPDX-License-Identifier: BSD-3-Clause */
/* When whose work is done, without any HCA: what control_wait() does between two turns, where it looks for the next request of a
 * client that may ask at once, or sleeps; and when bulk has to wait. */
#include <sys/eventfd.h>

#include "test.h"
#include "users.h"

static const struct {
	const char *what;
	bool answered, soon; /* a client; whose request came soon after the answer before it */
	bool asks;	     /* again, by now */
	bool spare;	     /* is the CPU */
	uint64_t by_user, by_all;
	bool looks;
} rows[] = {
	{"nobody has asked", false, true, false, true, 0, 0, false},
	{"the last request came after a pause", true, false, false, true, 0, 0, false},
	{"the last request came soon", true, true, false, true, 0, 0, true},
	{"and so does the next", true, true, true, true, 0, 0, true},
	{"an lcore needs the CPU", true, true, false, false, 0, 0, false},
	{"one ns is left to its user", true, true, false, true, LOOKED_NS_MAX - 1, LOOKED_NS_MAX,
	 true},
	{"its user has had his part", true, true, false, true, LOOKED_NS_MAX, LOOKED_NS_MAX, false},
	{"all have had theirs", true, true, false, true, 0, LOOKED_ALL_NS_MAX, false},
};

TEST(wait__looks_for_who_asks_on_and_on_and_not_for_long)
{
	struct shares *shares = shares_create(0);
	struct control *c = calloc(1, sizeof(*c));
	struct user user = {0};
	struct client client = {.control = c, .user = &user};
	uint64_t *spent, *all = &c->looked_all_ns, now;

	assert_int_equal(share_client_begin(shares, 1000, 1, &client.shares), 0);
	spent = &c->looked_ns[client_user(&client)];
	TAILQ_INIT(&c->ended);
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int asks = eventfd(rows[i].asks, EFD_CLOEXEC);

		print_message("%s\n", rows[i].what);
		c->polled[0] = (struct pollfd){.fd = asks, .events = POLLIN};
		c->polled_count = 1;
		now = control_now_ns();
		c->look = (struct look){.since_ns = rows[i].soon ? now : 0};
		users_note_answer(&client, now);
		c->answered = rows[i].answered ? &client : NULL;
		*spent = rows[i].by_user;
		*all = rows[i].by_all;
		control_wait(c, 0, rows[i].spare);
		assert_int_equal(*spent > rows[i].by_user, rows[i].looks);
		assert_int_equal(*all - rows[i].by_all, *spent - rows[i].by_user);
		/* Once for each answer: not again in each turn that follows. */
		if (rows[i].looks)
			assert_ptr_equal(c->answered, rows[i].asks ? &client : NULL);
		close(asks);
	}
	share_client_end(&client.shares);
	shares_destroy(shares);
	free(c);
}

enum { MS = 1000000 };

/* A request that waits for something else is looked at again, although no client asks. */
TEST(wait__not_long_while_a_request_waits)
{
	struct control *c = calloc(1, sizeof(*c));

	TAILQ_INIT(&c->ended);
	c->pending = 1;
	control_wait(c, -1, false);
	free(c);
}

/* May they be served in a turn at that time? */
static void expect(struct control *c, uint64_t at_ns, struct client *bulk, bool bulk_may,
		   struct client *other)
{
	c->turn_begun_ns = at_ns;
	while (share_refill(c->shares, SHARE_control_us))
		;
	users_turn_begin(c);
	assert_int_equal(users_may_serve(bulk), bulk_may);
	assert_int_equal(c->bulk_deferred, !bulk_may);
	assert_true(users_may_serve(other));
}

TEST(bulk__pauses_and_waits_for_the_awaited_user)
{
	struct shares *shares = shares_create(0);
	struct control *c = calloc(1, sizeof(*c));
	struct user user[2] = {{.uid = 1000}, {.uid = 1001}};
	struct client bulk = {.control = c, .user = &user[0]},
		      other = {.control = c, .user = &user[1]};
	uint64_t now = control_now_ns();

	c->shares = shares;
	c->contended = true;
	TAILQ_INIT(&c->users);
	assert_int_equal(share_client_begin(shares, 1000, 1, &bulk.shares), 0);
	assert_int_equal(share_client_begin(shares, 1001, 2, &other.shares), 0);
	user_note_refusal(&user[0], now); /* once is no crime */
	user_note_refusal(&user[1], now);
	expect(c, now, &bulk, true, &other);
	user_note_refusal(&user[0], now);
	user[0].bulk_until_ns = UINT64_MAX;

	/* twice as long as it took */
	expect(c, now, &bulk, true, &other);
	users_charge(&bulk, control_now_ns() - MS);
	users_turn_end(c);
	assert_in_range(c->bulk_paused_until_ns, now + 2 * MS, UINT64_MAX);
	now = c->bulk_paused_until_ns;
	expect(c, now - 1, &bulk, false, &other);
	expect(c, now, &bulk, true, &other);

	/* while the other one is awaited, whose own mappings are worked on; but not for long */
	users_note_answer(&other, now);
	c->awaited_until_ns = now + 100 * MS;
	c->bulk_due_ns = now + 2 * MS;
	expect(c, now + 2 * MS - 1, &bulk, false, &other);
	assert_true(users_bulk_allowed(c, other.shares.user));
	assert_false(users_bulk_allowed(c, bulk.shares.user));
	expect(c, now + 2 * MS, &bulk, true, &other);

	/* who is served in bulk is not awaited */
	users_note_answer(&bulk, now);
	assert_ptr_equal(c->awaited, other.shares.user);

	/* and nobody waits for nobody */
	c->contended = false;
	expect(c, now, &bulk, true, &other);
	while (share_refill(shares, SHARE_control_us))
		;
	share_client_end(&bulk.shares);
	share_client_end(&other.shares);
	shares_destroy(shares);
	free(c);
}

/* Pieces, whose turn it is first, would otherwise take all of the time that there is for bulk. */
TEST(bulk__is_served_at_once_when_allowed)
{
	struct control *c = calloc(1, sizeof(*c));
	struct user user = {.uid = 1000, .epoll = -1, .deferred = true};

	TAILQ_INIT(&c->users);
	TAILQ_INSERT_TAIL(&c->users, &user, of_control);
	c->contended = true;
	c->listener = -1;
	c->bulk_paused_until_ns = MS;
	for (c->turn_begun_ns = MS - 1; c->turn_begun_ns <= MS; c->turn_begun_ns++) {
		assert_int_equal(users_poll(c), 0); /* no descriptor says that it asks */
		users_turn_begin(c);
		assert_int_equal(user.ready, c->turn_begun_ns == MS);
		assert_int_equal(user.deferred, c->turn_begun_ns < MS);
	}
	free(c);
}

TEST(debt__is_paid_to_others_not_to_nobody)
{
	struct shares *shares = shares_create(0);
	struct control *c = calloc(1, sizeof(*c));
	struct user user = {.uid = 1000};
	struct client debtor = {.control = c, .user = &user};

	c->shares = shares;
	c->listener = -1;
	TAILQ_INIT(&c->users);
	TAILQ_INIT(&c->ended);
	TAILQ_INIT(&c->long_turns);
	TAILQ_INIT(&c->long_deferred);
	assert_int_equal(share_client_begin(shares, 1000, 1, &debtor.shares), 0);
	for (int contended = 1; contended >= 0; contended--) {
		share_spend(&debtor.shares, SHARE_control_us, MS);
		c->contended = contended;
		assert_int_equal(control_poll(c), 0);
		assert_int_equal(users_may_serve(&debtor), !contended);
	}
	while (share_refill(shares, SHARE_control_us))
		;
	share_client_end(&debtor.shares);
	shares_destroy(shares);
	free(c);
}
