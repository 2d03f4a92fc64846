/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that write anything to their channels: bytes that are no commands, descriptors that are
 * no sockets. Nothing may be left, and nobody else may notice. Commands at random: tests/fuzz/cm.c.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include "../lingering.h"
#include "../stranger.h"
#include "base/close_later.h"
#include "send_descriptors.h"
#include "service_fixture.h"

/* A message with any descriptors. */
static void post(struct channel *ch, const void *bytes, size_t n, const int *fds,
		 unsigned int count)
{
	assert_int_equal(send_descriptors(ch->fd, bytes, n, fds, count, 0), (ssize_t)n);
}

/* The status of a reply, or 1 if there is none. */
static int replied(int fd)
{
	struct cm_channel_reply reply;

	return recv(fd, &reply, sizeof(reply), MSG_DONTWAIT) < 0 ? 1 : reply.status;
}

TEST(descriptors__of_every_kind)
{
	struct channel ch = open_channel(0), other = open_channel(0);
	struct rdma_ucm_cmd_hdr h = {.cmd = RDMA_USER_CM_CMD_GET_EVENT, .in = 8, .out = 1000};
	uint8_t bytes[2000] = {0};
	int fds[64], pair[2], dgram[2], pipes[2], file;
	int vsock = socket(AF_VSOCK, SOCK_SEQPACKET, 0); /* where there is one */
	struct rlimit room;
	unsigned int before;
	uint32_t id;

	memcpy(bytes, &h, sizeof(h));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, dgram), 0);
	assert_int_equal(pipe(pipes), 0);
	file = open("/dev/null", O_RDWR);
	before = service_descriptors();
	for (unsigned int i = 0; i < 64; i++)
		fds[i] = pair[1];

	post(&ch, bytes, 16, fds, 1);
	turn(&node[0]);
	assert_int_equal(replied(pair[0]), -EAGAIN);
	/* none: nothing to notify */
	post(&ch, bytes, 16, fds, 0);
	turn(&node[0]);
	assert_int_equal(replied(pair[0]), 1);
	for (size_t n = 2; n <= 64; n *= 2) {
		post(&ch, bytes, 16, fds, n);
		turn(&node[0]);
		assert_int_equal(replied(pair[0]), -EBADF);
	}
	post(&ch, bytes, 16, &file, 1);
	post(&ch, bytes, 16, &pipes[1], 1);
	post(&ch, bytes, 16, &dgram[1], 1);
	if (vsock >= 0)
		post(&ch, bytes, 16, &vsock, 1);
	turn(&node[0]);
	assert_int_equal(replied(dgram[0]), 1);
	assert_int_equal(cm_service_counters(node[0].s)->reply_lost, 0);
	/* Too long, too short. */
	post(&ch, bytes, 1025, fds, 1);
	turn(&node[0]);
	assert_int_equal(replied(pair[0]), -EMSGSIZE);
	post(&ch, bytes, 1024, fds, 1);
	turn(&node[0]);
	assert_int_equal(replied(pair[0]), -EAGAIN);
	for (size_t n = 0; n < 16; n++) {
		post(&ch, bytes, n, fds, 1);
		turn(&node[0]);
		assert_int_equal(replied(pair[0]), -EINVAL);
	}
	/* Empty, with a descriptor for which the daemon has no room. */
	getrlimit(RLIMIT_NOFILE, &room);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, room.rlim_max});
	post(&ch, bytes, 0, fds, 1);
	turn(&node[0]);
	setrlimit(RLIMIT_NOFILE, &room);
	post(&ch, bytes, 16, fds, 1);
	turn(&node[0]);
	assert_int_equal(replied(pair[0]), -EAGAIN);
	assert_int_equal(service_descriptors(), before);
	assert_true(cm_service_counters(node[0].s)->command_malformed >= 11);
	/* An empty message is the end; another channel does not notice. */
	post(&ch, bytes, 0, NULL, 0);
	turn(&node[0]);
	assert_int_equal(create_id(&other, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(recv(ch.fd, bytes, 1, MSG_DONTWAIT), 0);
	for (int i = 0; i < 2; i++) {
		close(pair[i]);
		close(dgram[i]);
		close(pipes[i]);
	}
	close(vsock);
	close(file);
}

/* A descriptor was a copy, and the other one is closed only later. Of the daemon's: nobody is
 * notified of a channel that has ended. Of the program's: the fixture ends the channel all the same.
 */
TEST(descriptors__copied)
{
	struct channel other = open_channel(0);
	struct pollfd p = {.fd = cm_service_fd(node[0].s), .events = POLLIN};
	int pair[2], copy;
	uint32_t id;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	copy = dup(pair[1]);
	assert_int_equal(cm_service_adopt(node[0].s, pair[1]), 0);
	close(pair[0]);
	turn(&node[0]);
	assert_int_equal(services_used(&node[0], SHARE_cm_channels), 1);
	assert_int_equal(poll(&p, 1, 0), 0);
	turn(&node[0]);
	assert_int_equal(create_id(&other, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	close(copy);
	copy = dup(other.fd);
	close_channel(&other);
	assert_int_equal(services_used(&node[0], SHARE_cm_channels), 0);
	close(copy);
}

/* Descriptors whose last close waits, wherever they are put: in a command, more than are taken, in
 * the queue of the socket for the reply, in that of the channel. Nobody else waits for them. */
TEST(descriptors__that_do_not_close)
{
	struct channel bad = open_channel(0), ended = open_channel(0), good = open_channel(0);
	uint64_t begun = lingering_now_ms();
	int fds[64], peer[4], pair[2];
	uint8_t byte = 1;
	uint32_t id;

	fds[0] = lingering(&peer[0]);
	post(&bad, &byte, 1, fds, 1);
	close(fds[0]);
	fds[1] = lingering(&peer[1]);
	for (unsigned int i = 0; i < 64; i++)
		fds[i] = fds[1];
	post(&bad, &byte, 1, fds, 64);
	close(fds[1]);
	fds[0] = lingering(&peer[2]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	post(&(struct channel){.fd = pair[0]}, &byte, 1, fds, 1);
	close(fds[0]);
	post(&bad, &byte, 1, &pair[1], 1);
	close(pair[1]);
	close(pair[0]);
	fds[0] = lingering(&peer[3]);
	post(&ended, &byte, 0, NULL, 0);
	post(&ended, &byte, 1, fds, 1);
	close(fds[0]);
	for (int i = 0; i < 10; i++)
		assert_int_equal(create_id(&good, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(recv(ended.fd, &byte, 1, MSG_DONTWAIT), 0);
	/* A program with more of them than it may have loses its channel. */
	services_total(SHARE_closings, 1);
	post(&bad, &byte, 1, NULL, 0);
	turn(&node[0]);
	assert_int_equal(recv(bad.fd, &byte, 1, MSG_DONTWAIT), 0);
	assert_true(lingering_now_ms() - begun < LINGER_LEAST_MS);
	for (int i = 0; i < 4; i++)
		close(peer[i]);
	close_later_finish();
	assert_true(lingering_now_ms() - begun < LINGER_LEAST_MS);
}

/* Bad reply sockets, some of which would block the writer. */
TEST(descriptors__of_strangers)
{
	struct channel bad = open_channel(0), good = open_channel(0);
	uint64_t begun = lingering_now_ms();
	struct stranger s;
	uint8_t byte = 1;
	uint32_t id;

	for (int kind = 0; kind < STRANGER_KINDS; kind++) {
		if (!stranger_make(&s, kind))
			continue;
		post(&bad, &byte, 1, &s.fd, 1);
		assert_int_equal(create_id(&good, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
		stranger_end(&s);
	}
	assert_true(lingering_now_ms() - begun < LINGER_LEAST_MS);
	close_later_finish();
}

/* A program that does not read its replies loses them; nothing waits for it. */
TEST(replies__not_read)
{
	struct channel ch = open_channel(0);
	struct rdma_ucm_cmd_hdr h = {.cmd = RDMA_USER_CM_CMD_GET_EVENT, .in = 8, .out = 1000};
	uint8_t bytes[16] = {0};
	int pair[2];

	memcpy(bytes, &h, sizeof(h));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	for (int i = 0; i < 5000; i++) {
		post(&ch, bytes, sizeof(bytes), &pair[1], 1);
		turn(&node[0]);
	}
	assert_true(cm_service_counters(node[0].s)->reply_lost > 1000);
	assert_int_equal(cm_service_counters(node[0].s)->command_refused, 0); /* no event yet */
	close(pair[0]);
	post(&ch, bytes, sizeof(bytes), &pair[1], 1);
	turn(&node[0]);
	close(pair[1]);
}

/* A turn serves a bounded number of commands of one channel, others come in between. */
TEST(commands__bounded)
{
	struct channel ch = open_channel(0), other = open_channel(0);
	uint8_t byte = 1;
	uint32_t id;

	for (int i = 0; i < 2 * UCM_COMMANDS_PER_TURN; i++)
		post(&ch, &byte, 1, NULL, 0);
	turn(&node[0]);
	assert_int_equal(cm_service_counters(node[0].s)->command_malformed, UCM_COMMANDS_PER_TURN);
	assert_int_equal(create_id(&other, 1, RDMA_PS_TCP, UCM_QPT_RC, &id), 0);
	assert_int_equal(cm_service_counters(node[0].s)->command_malformed,
			 2 * UCM_COMMANDS_PER_TURN);
}

/* However many channels a user has, another one waits for no more than his part of a turn. */
TEST(commands__take_their_users_time)
{
	enum { CHANNELS = 32 };
	struct channel crowd[CHANNELS], other;
	const struct cm_counters *c;
	uint64_t before;
	uint8_t byte = 1;

	for (int i = 0; i < CHANNELS; i++)
		crowd[i] = open_channel_as(0, 1000);
	other = open_channel_as(0, 1001);
	services_total(SHARE_cm_us, 100);
	shares_set_user_part(node[0].s->shares, 1);
	for (int i = 0; i < CHANNELS; i++)
		post(&crowd[i], &byte, 1, NULL, 0);
	post(&other, &byte, 1, NULL, 0);
	c = cm_service_counters(node[0].s);
	before = c->command_malformed;
	assert_int_equal(cm_service_turn(node[0].s, now), now); /* there is more */
	assert_int_equal(cm_service_counters(node[0].s)->command_malformed - before, 2);
	shares_set_user_part(node[0].s->shares, 0);
	services_total(SHARE_cm_us, UINT32_MAX);
	turn(&node[0]);
	assert_int_equal(cm_service_counters(node[0].s)->command_malformed - before, CHANNELS + 1);
}
