/* SPDX-License-Identifier: BSD-3-Clause */
/* What a turn of the control thread costs does not depend on how many clients there are, or on what
 * they wait for. Measured in its CPU time: the least of many turns, so that a busy machine makes no
 * difference. */
#include <pthread.h>
#include <sys/resource.h>
#include "hca_test.h"
#include "raw_client.h"

enum {
	CROWD = 1500,
	FDS_EACH = 4, /* of this process, for a client: both ends */
	REQUESTS = 1000,
	SETTLED_MS = 300, /* from then on each of them is asked again as seldom as ever; */
	TRIES = 20,	  /* on a machine that has the time for it */
	BUSY = 32,
	QUEUED = 32, /* requests of each of these, always */
	GONE = 50,
};

/* Of the turn that serves a request, ns. */
static uint64_t cost_of_a_turn(int fd)
{
	struct control_port_reply port;

	(void)fixture_cheapest_turn_ns();
	for (int i = 0; i < REQUESTS; i++)
		assert_int_equal(
			raw_call(fd, CONTROL_QUERY_PORT, NULL, 0, NULL, 0, &port, sizeof(port)), 0);
	return fixture_cheapest_turn_ns();
}

static void make_room_for_descriptors(void)
{
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_max < CROWD * FDS_EACH + 100) {
		print_message("too few descriptors\n");
		skip();
	}
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

TEST(crowd__that_waits_for_neighbours_costs_others_nothing)
{
	const struct {
		struct control_header header;
		struct control_resolve body;
	} question = {
		.header = {.type = CONTROL_RESOLVE, .length = sizeof(struct control_resolve)}};
	static int crowd[CROWD];
	struct control_hello_reply hello;
	struct control_resolve_reply answer;
	uint64_t alone, among = UINT64_MAX;
	int fd;

	make_room_for_descriptors();
	fd = raw_open(f.path, &hello);
	alone = cost_of_a_turn(fd);
	__atomic_store_n(&f.resolve_again, 1 << 30, __ATOMIC_RELAXED);
	for (int i = 0; i < CROWD; i++) {
		crowd[i] = raw_open(f.path, &hello);
		raw_send(crowd[i], &question, sizeof(question), NULL, 0);
	}
	for (int i = 0; i < TRIES && among >= 3 * alone; i++) {
		usleep(SETTLED_MS * 1000);
		among = cost_of_a_turn(fd);
	}
	print_message("%u ns alone, %u ns among %d\n", (unsigned int)alone, (unsigned int)among,
		      CROWD);
	assert_true(among < 3 * alone);
	__atomic_store_n(&f.resolve_again, 0, __ATOMIC_RELAXED);
	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(raw_receive(crowd[i], &answer, sizeof(answer)), 0);
		close(crowd[i]);
	}
	close(fd);
	assert_true(fixture_wait_clients(&f, 0));
}

static struct {
	int fd[BUSY];
	bool stop; /* atomic */
} busy;

static void ask(int fd)
{
	const struct control_header query = {.type = CONTROL_QUERY_PORT};

	raw_send(fd, &query, sizeof(query), NULL, 0);
}

static void *ask_on(void *arg)
{
	uint8_t reply[256];

	while (!__atomic_load_n(&busy.stop, __ATOMIC_RELAXED))
		for (int i = 0; i < BUSY; i++)
			while (recv(busy.fd[i], reply, sizeof(reply), MSG_DONTWAIT) > 0)
				ask(busy.fd[i]);
	return arg;
}

/* Nor does a user whose programs always ask, and take all his time, end up with all connections held by those that
 * have gone. */
TEST(crowd__that_asks_without_pause_leaves_time_for_those_that_end)
{
	struct control_hello_reply hello;
	pthread_t asker;
	int gone[GONE];

	for (int i = 0; i < BUSY; i++) {
		busy.fd[i] = raw_open(f.path, &hello);
		for (int n = 0; n < QUEUED; n++)
			ask(busy.fd[i]);
	}
	assert_int_equal(pthread_create(&asker, NULL, ask_on, NULL), 0);
	for (int i = 0; i < GONE; i++)
		gone[i] = raw_open(f.path, &hello);
	for (int i = 0; i < GONE; i++)
		close(gone[i]);
	assert_true(fixture_wait_clients(&f, BUSY));
	__atomic_store_n(&busy.stop, true, __ATOMIC_RELAXED);
	pthread_join(asker, NULL);
	for (int i = 0; i < BUSY; i++)
		close(busy.fd[i]);
	assert_true(fixture_wait_clients(&f, 0));
}
