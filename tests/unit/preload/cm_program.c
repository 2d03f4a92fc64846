/* SPDX-License-Identifier: BSD-3-Clause */
/* See cm_program.h. */
#include <fcntl.h>
#include <poll.h>
#include <sys/types.h>

#include "../descriptors.h"
#include "cm_program.h"
#include "cm_stub.h"
#include "host-abi/cm_channel.h"

static unsigned int descriptors_before;

int program_start(void **state)
{
	stub_again();
	assert_true(stub_wait_channels(0));
	descriptors_before = open_descriptors();
	return 0;
}

/* No test leaves a descriptor behind, here or there. */
int program_stop(void **state)
{
	stub_again();
	assert_true(stub_wait_channels(0));
	assert_int_equal(open_descriptors(), descriptors_before);
	return 0;
}

int open_device(int flags)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC | flags);

	assert_true(fd >= 0);
	return fd;
}

struct create {
	struct rdma_ucm_cmd_hdr header;
	struct rdma_ucm_create_id body;
};

int create_id(int fd, uint32_t *id)
{
	struct rdma_ucm_create_id_resp out = {.id = 0};
	struct create m = {
		{.cmd = RDMA_USER_CM_CMD_CREATE_ID, .in = sizeof(m.body), .out = sizeof(out)},
		{.uid = 0x77, .response = (uintptr_t)&out, .ps = RDMA_PS_TCP}};
	ssize_t n = write(fd, &m, sizeof(m));

	if (n == sizeof(m) && id)
		*id = out.id;
	return n == sizeof(m) ? 0 : -errno;
}

void answer_id(uint32_t id)
{
	stub_set_answer(STUB_ANSWER, 0, 0, &id, sizeof(id));
}

int read_event(int fd, struct rdma_ucm_event_resp *out)
{
	struct {
		struct rdma_ucm_cmd_hdr header;
		struct rdma_ucm_get_event body;
	} m = {{.cmd = RDMA_USER_CM_CMD_GET_EVENT, .in = sizeof(m.body), .out = sizeof(*out)},
	       {.response = (uintptr_t)out}};

	*out = (struct rdma_ucm_event_resp){.event = 0};
	return write(fd, &m, sizeof(m)) == sizeof(m) ? 0 : -errno;
}

int get_event(int fd)
{
	struct rdma_ucm_event_resp out;
	int ret = read_event(fd, &out);

	return ret ? ret : (int)out.event;
}

int polled(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) ? p.revents : 0;
}

int migrate_id(int fd, uint32_t id, int from, uint16_t in)
{
	struct rdma_ucm_migrate_resp out;
	struct {
		struct rdma_ucm_cmd_hdr header;
		struct rdma_ucm_migrate_id body;
	} m = {{.cmd = RDMA_USER_CM_CMD_MIGRATE_ID, .in = in, .out = sizeof(out)},
	       {.id = id, .fd = (uint32_t)from, .response = (uintptr_t)&out}};

	return write(fd, &m, sizeof(m)) == sizeof(m) ? 0 : -errno;
}

static void *wait_for_event(void *arg)
{
	struct waiter *w = arg;

	w->got = get_event(w->fd);
	return NULL;
}

void ask_waiter(struct waiter *w, int fd)
{
	w->fd = fd;
	w->got = 0;
	assert_int_equal(pthread_create(&w->thread, NULL, wait_for_event, w), 0);
}

void start_waiter(struct waiter *w, int fd)
{
	unsigned int before = stub_empty();

	ask_waiter(w, fd);
	assert_true(stub_wait_empty(before + 1));
	usleep(20000);
}

static int daemon_starts(void **state)
{
	stub_start();
	return 0;
}

static int daemon_stops(void **state)
{
	stub_stop();
	return 0;
}

TEST_GROUP(.setup = daemon_starts, .teardown = daemon_stops);
