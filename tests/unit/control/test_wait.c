/* SPDX-License-Identifier: BSD-3-Clause */
/* What control_wait() does between two turns, without any HCA: it looks for the next request of a client that may ask at
 * once, or sleeps. */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "test.h"
#include "control_priv.h"

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
	struct client client = {.control = c};
	struct epoll_event event = {.events = EPOLLIN};
	uint64_t *spent, *all = &c->looked_all_ns, now;

	assert_int_equal(share_client_begin(shares, 1000, 1, &client.shares), 0);
	spent = &c->looked_ns[client_user(&client)];
	TAILQ_INIT(&c->ended);
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int asks = eventfd(rows[i].asks, EFD_CLOEXEC);

		print_message("%s\n", rows[i].what);
		c->epoll = epoll_create1(EPOLL_CLOEXEC);
		assert_int_equal(epoll_ctl(c->epoll, EPOLL_CTL_ADD, asks, &event), 0);
		now = control_now_ns();
		c->look = (struct look){.since_ns = rows[i].soon ? now : 0};
		control_answered(&client, now);
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
		close(c->epoll);
	}
	share_client_end(&client.shares);
	shares_destroy(shares);
	free(c);
}
