/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon dies: the events of its identifiers, and that they can be destroyed. */
#include <fcntl.h>
#include <poll.h>

#include "cm_program.h"
#include "cm_stub.h"
#include "host-abi/cm_channel.h"

enum { CONNECT_REQUEST = 4, DEVICE_REMOVAL = 11 };

static void make_id(int fd, uint32_t id)
{
	answer_id(id);
	assert_int_equal(create_id(fd, NULL), 0);
}

static void bind_id(int fd, uint32_t id, uint32_t flags)
{
	struct {
		struct rdma_ucm_cmd_hdr header;
		struct rdma_ucm_bind body;
	} m = {{.cmd = RDMA_USER_CM_CMD_BIND, .in = sizeof(m.body)}, {.id = id}};

	stub_set_answer(STUB_ANSWER, 0, flags, NULL, 0);
	assert_int_equal(write(fd, &m, sizeof(m)), sizeof(m));
}

static void accept_request(int fd, uint32_t id, uint64_t uid)
{
	struct {
		struct rdma_ucm_cmd_hdr header;
		struct rdma_ucm_accept body;
	} m = {{.cmd = RDMA_USER_CM_CMD_ACCEPT, .in = sizeof(m.body)},
	       {.uid = uid, .conn_param = {.valid = 1}, .id = id}};

	stub_set_answer(STUB_ANSWER, 0, 0, NULL, 0);
	assert_int_equal(write(fd, &m, sizeof(m)), sizeof(m));
}

/* How many events it had, or -errno. */
static int destroy_id(int fd, uint32_t id)
{
	struct rdma_ucm_destroy_id_resp out = {.events_reported = 99};
	struct {
		struct rdma_ucm_cmd_hdr header;
		struct rdma_ucm_destroy_id body;
	} m = {{.cmd = RDMA_USER_CM_CMD_DESTROY_ID, .in = sizeof(m.body), .out = sizeof(out)},
	       {.response = (uintptr_t)&out, .id = id}};

	return write(fd, &m, sizeof(m)) == sizeof(m) ? (int)out.events_reported : -errno;
}

/* The next event says so of that identifier. */
static void expect_removal(int fd, uint64_t uid, uint32_t id)
{
	struct rdma_ucm_event_resp out;

	assert_true(polled(fd) & (POLLIN | POLLHUP));
	assert_int_equal(read_event(fd, &out), 0);
	assert_int_equal(out.event, DEVICE_REMOVAL);
	assert_int_equal(out.status, 0);
	assert_int_equal(out.uid, uid);
	assert_int_equal(out.id, id);
}

/* Identifier 3 has an address, 4 a port alone, 5 has resolved one. */
static void three_identifiers(int fd)
{
	make_id(fd, 3);
	make_id(fd, 4);
	make_id(fd, 5);
	bind_id(fd, 3, CM_CHANNEL_ON_DEVICE);
	bind_id(fd, 4, 0);
	stub_set_event_id(5, 6);
	stub_event(0, 0);
	assert_int_equal(get_event(fd), 0);
}

TEST_DEVICE(removal__of_who_is_on_a_device, 0)
{
	struct waiter w;

	three_identifiers(fd);
	start_waiter(&w, fd);
	stub_kill();
	pthread_join(w.thread, NULL);
	assert_int_equal(w.got, DEVICE_REMOVAL);
	expect_removal(fd, 0x77, 5);
	assert_int_equal(polled(fd), 0);
	assert_int_equal(get_event(fd), -ENODEV);
	/* they can be destroyed, and an event counts until then */
	assert_int_equal(destroy_id(fd, 3), 1);
	assert_int_equal(destroy_id(fd, 4), 0);
	assert_int_equal(destroy_id(fd, 5), 2);
	assert_int_equal(destroy_id(fd, 5), 0);
}

/* A request's event counts for the listener; one not accepted gets no event of its own. */
TEST_DEVICE(removal__of_requests, O_NONBLOCK)
{
	three_identifiers(fd);
	for (uint32_t id = 6; id < 8; id++) {
		stub_set_event_id(id, 4);
		stub_event(0, CONNECT_REQUEST);
		assert_int_equal(get_event(fd), CONNECT_REQUEST);
	}
	accept_request(fd, 7, 0x88);
	stub_kill();
	expect_removal(fd, 0x77, 3);
	expect_removal(fd, 0x77, 5);
	expect_removal(fd, 0x88, 7);
	assert_int_equal(polled(fd), 0);
	assert_int_equal(get_event(fd), -ENODEV);
	assert_int_equal(destroy_id(fd, 3), 3);
	assert_int_equal(destroy_id(fd, 6), 0);
	assert_int_equal(destroy_id(fd, 7), 1);
}

/* Neither of one that was destroyed, before or after. */
TEST_DEVICE(removal__not_of_the_destroyed, O_NONBLOCK)
{
	uint32_t reported = 5;

	three_identifiers(fd);
	stub_set_answer(STUB_ANSWER, 0, 0, &reported, sizeof(reported));
	assert_int_equal(destroy_id(fd, 3), 5);
	stub_kill();
	assert_int_equal(destroy_id(fd, 5), 1);
	assert_int_equal(get_event(fd), -ENODEV);
	assert_int_equal(polled(fd), 0);
}

/* Each channel has its own, copies are the same one, and a migrated identifier is the new one's. */
TEST(removal__by_channels)
{
	const uint64_t ticket = 1;
	int first = open_device(O_NONBLOCK), second = open_device(O_NONBLOCK), copy;

	three_identifiers(first);
	make_id(second, 8);
	bind_id(second, 8, CM_CHANNEL_ON_DEVICE);
	stub_set_answer(STUB_ANSWER, 0, 0, &ticket, sizeof(ticket));
	assert_int_equal(migrate_id(second, 5, first, sizeof(struct rdma_ucm_migrate_id)), 0);
	copy = dup(first);
	stub_kill();
	expect_removal(copy, 0x77, 3);
	assert_int_equal(get_event(first), -ENODEV);
	expect_removal(second, 0x77, 5);
	expect_removal(second, 0x77, 8);
	assert_int_equal(get_event(second), -ENODEV);
	assert_int_equal(destroy_id(second, 5), 2);
	assert_int_equal(destroy_id(second, 3), 0);
	assert_int_equal(destroy_id(first, 3), 1);
	close(copy);
	close(first);
	close(second);
}

/* The reply's socket goes before the channel does. */
TEST_DEVICE(removal__during_a_command, 0)
{
	uint32_t reported = 1;

	three_identifiers(fd);
	stub_set_answer(STUB_NO_REPLY, 0, 0, NULL, 0);
	assert_int_equal(destroy_id(fd, 4), -ENODEV); /* a daemon that lives and says nothing */
	stub_set_answer(STUB_DIE, 0, 0, &reported, sizeof(reported));
	assert_int_equal(destroy_id(fd, 3), 0);
	expect_removal(fd, 0x77, 5);
	assert_int_equal(get_event(fd), -ENODEV);
}

/* A new daemon gives the same numbers again. */
TEST(removal__not_of_the_next_daemon)
{
	int old = open_device(O_NONBLOCK), fd;

	three_identifiers(old);
	stub_again();
	fd = open_device(O_NONBLOCK);
	make_id(fd, 3);
	expect_removal(old, 0x77, 5);
	assert_int_equal(get_event(old), -ENODEV);
	assert_int_equal(destroy_id(old, 3), 0);
	bind_id(fd, 3, CM_CHANNEL_ON_DEVICE);
	assert_int_equal(get_event(fd), -EAGAIN);
	stub_kill();
	expect_removal(fd, 0x77, 3);
	assert_int_equal(destroy_id(fd, 3), 1);
	close(old);
	close(fd);
}
