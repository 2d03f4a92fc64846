/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a hostile client: each must end its own connection or be refused, leak nothing and
 * hurt no other client. */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include "../lingering.h"
#include <rte_log.h>
#include "base/close_later.h"
#include "hca_test.h"
#include "raw_client.h"

static const uint16_t body_bytes[CONTROL_TYPE_END] = {
#define REQUEST(NAME, name, body, reply, fds) [CONTROL_##NAME] = body,
#include "host-abi/control_requests.def"
};

static const uint8_t descriptors_of[CONTROL_TYPE_END] = {
#define REQUEST(NAME, name, body, reply, fds) [CONTROL_##NAME] = fds,
#include "host-abi/control_requests.def"
};

TEST(header__each_field_wrong_ends_the_connection)
{
	static const struct control_header wrong[] = {
		{.type = 0},
		{.type = CONTROL_TYPE_END},
		{.type = UINT32_MAX},
		{.type = CONTROL_QUERY_PORT, .status = 1},
		{.type = CONTROL_QUERY_PORT, .status = -1},
		{.type = CONTROL_QUERY_PORT, .reserved = 1},
		{.type = CONTROL_QUERY_PORT, .length = 1},
		{.type = CONTROL_QUERY_PORT, .length = UINT32_MAX},
		{.type = CONTROL_QUERY_GID, .length = 8},
		{.type = CONTROL_ALLOC_PD, .length = UINT32_MAX - 15},
	};
	struct control_hello_reply hello;

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int fd = raw_open(f.path, &hello);

		raw_send(fd, &wrong[i], sizeof(wrong[i]), NULL, 0);
		assert_int_equal(raw_receive(fd, NULL, 0), RAW_GONE);
		close(fd);
	}
	assert_int_equal(fixture_counter(&f, COUNTER_control_malformed),
			 sizeof(wrong) / sizeof(wrong[0]));
	assert_true(fixture_wait_clients(&f, 0));
}

TEST(body__each_length_but_the_right_one_ends_the_connection)
{
	uint8_t bytes[CONTROL_BYTES_MAX + 100] __attribute__((aligned(8))) = {0};
	struct control_hello_reply hello;

	for (uint32_t type = CONTROL_QUERY_PORT; type < CONTROL_TYPE_END; type++) {
		static const int change[] = {-8, -1, 1, 8, 400, 600};

		for (unsigned int i = 0; i < sizeof(change) / sizeof(change[0]); i++) {
			struct control_header *h = (struct control_header *)bytes;
			int length = (int)body_bytes[type] + change[i], fd;

			if (length < 0 || length > (int)sizeof(bytes) - 16)
				continue;
			*h = (struct control_header){.type = type, .length = (uint32_t)length};
			fd = raw_open(f.path, &hello);
			raw_send(fd, bytes, sizeof(*h) + (size_t)length, NULL, 0);
			assert_int_equal(raw_receive(fd, NULL, 0), RAW_GONE);
			close(fd);
		}
	}
	/* shorter than a header */
	for (size_t n = 1; n < sizeof(struct control_header); n += 5) {
		int fd = raw_open(f.path, &hello);

		raw_send(fd, bytes, n, NULL, 0);
		assert_int_equal(raw_receive(fd, NULL, 0), RAW_GONE);
		close(fd);
	}
	assert_true(fixture_wait_clients(&f, 0));
}

TEST(order__hello_first_and_once)
{
	struct control_hello_reply hello;
	int fd, page = raw_memfd(sizeof(struct client_page), RAW_SEALS);

	assert_int_equal(control_when(CONTROL_SET), CONTROL_BEFORE_HELLO);
	for (uint32_t type = CONTROL_TYPE_NONE + 1; type < CONTROL_TYPE_END; type++) {
		uint8_t body[CONTROL_BYTES_MAX] = {0};

		if (control_when(type) == CONTROL_ANY_TIME)
			continue;
		fd = control_when(type) == CONTROL_AFTER_HELLO ? raw_connect(f.path)
							       : raw_open(f.path, &hello);
		assert_int_equal(raw_call(fd, type, body, body_bytes[type], &page,
					  descriptors_of[type], NULL, 0),
				 RAW_GONE);
		close(fd);
	}
	close(page);
}

TEST(hello__each_wrong_page_is_refused)
{
	const size_t right = sizeof(struct client_page);
	const struct {
		size_t bytes;
		int seals;
	} wrong[] = {
		{right, 0},
		{right, F_SEAL_SHRINK},
		{right, F_SEAL_GROW | F_SEAL_SEAL},
		{right, F_SEAL_SHRINK | F_SEAL_GROW},
		{right, F_SEAL_SHRINK | F_SEAL_SEAL},
		{right - 4096, RAW_SEALS},
		{right + 4096, RAW_SEALS},
		{right + 1, RAW_SEALS},
		{0, RAW_SEALS},
		{1ull << 40, RAW_SEALS},
	};
	struct control_hello in = {.version = CONTROL_VERSION};
	int fd = raw_connect(f.path), other[2];

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int page = raw_memfd(wrong[i].bytes, wrong[i].seals);

		assert_int_equal(raw_hello_with(fd, page, NULL), -EINVAL);
		close(page);
	}
	/* cannot be written */
	other[0] = raw_memfd(right, F_SEAL_WRITE | RAW_SEALS);
	assert_true(raw_hello_with(fd, other[0], NULL) < 0);
	close(other[0]);
	/* not a memfd at all */
	assert_int_equal(pipe(other), 0);
	assert_int_equal(raw_hello_with(fd, other[0], NULL), -EINVAL);
	close(other[0]);
	close(other[1]);
	other[0] = eventfd(0, 0);
	assert_int_equal(raw_hello_with(fd, other[0], NULL), -EINVAL);
	close(other[0]);
	other[0] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(raw_hello_with(fd, other[0], NULL), -EINVAL);
	close(other[0]);
	/* another version, another device, a name without end */
	other[0] = raw_memfd(right, RAW_SEALS);
	in.version = CONTROL_VERSION + 1;
	assert_int_equal(raw_call(fd, CONTROL_HELLO, &in, sizeof(in), other, 1, NULL, 0), -EPROTO);
	in.version = CONTROL_VERSION;
	strcpy(in.device, "none");
	assert_int_equal(raw_call(fd, CONTROL_HELLO, &in, sizeof(in), other, 1, NULL, 0), -ENODEV);
	memset(in.device, 'h', sizeof(in.device));
	assert_int_equal(raw_call(fd, CONTROL_HELLO, &in, sizeof(in), other, 1, NULL, 0), -EINVAL);
	/* and after all that it may still say it right */
	assert_int_equal(raw_hello_with(fd, other[0], NULL), 0);
	close(other[0]);
	close(fd);
}

TEST(descriptors__missing_or_too_many)
{
	struct control_hello_reply hello;
	const struct control_piece in = {.bytes = 4096};
	struct control_hello h = {.version = CONTROL_VERSION};
	int fds[32], memory = raw_memfd(4096, RAW_SEALS), fd;
	unsigned int before;

	assert_true(fixture_wait_clients(&f, 0));
	before = fixture_descriptors();
	for (unsigned int i = 0; i < 32; i++)
		fds[i] = memory;
	for (unsigned int n = 0; n <= 32; n += n < 6 ? 1 : 13) {
		fd = raw_open(f.path, &hello);
		assert_int_equal(raw_call(fd, CONTROL_ADD_PIECE, &in, sizeof(in), fds, n, NULL, 0),
				 n == 1 ? 0 : RAW_GONE);
		close(fd);
		fd = raw_connect(f.path);
		assert_int_equal(raw_call(fd, CONTROL_HELLO, &h, sizeof(h), fds, n, NULL, 0),
				 n == 1 ? -EINVAL : RAW_GONE);
		close(fd);
		if (n == 0)
			continue;
		fd = raw_open(f.path, &hello);
		assert_int_equal(raw_call(fd, CONTROL_QUERY_PORT, NULL, 0, fds, n, NULL, 0),
				 RAW_GONE);
		close(fd);
	}
	assert_true(fixture_wait_clients(&f, 0));
	assert_int_equal(fixture_descriptors(), before);
	close(memory);
}

static uint64_t rng_state = 0x9e3779b97f4a7c15u;
static uint32_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return (uint32_t)(rng_state >> 16);
}

/* A number that may mean something: the client's own, a boundary, or noise. */
static uint32_t interesting(const struct raw *r)
{
	static const uint32_t edges[] = {0,  1,	  2,   3,    4,		 5,	     63,
					 64, 255, 256, 4096, 0x7fffffff, 0x80000000, UINT32_MAX};
	const uint32_t own[] = {r->pd,	r->piece, r->lkey,	    r->cqn,
				r->qpn, r->srqn,  r->hello.queue_pd};

	switch (rng() % 8) {
	case 0:
		return rng();
	case 1:
		return RAW_IOVA + rng() % 2 * RAW_SQ;
	case 2:
	case 3:
	case 4:
		return own[rng() % RTE_DIM(own)];
	default:
		return edges[rng() % RTE_DIM(edges)];
	}
}

/* Well-formed messages with each word at boundaries, its own numbers and noise. The daemon answers
 * all of them. */
TEST(fields__boundaries_and_noise)
{
	struct raw r, bystander;
	int memory = raw_memfd(8192, RAW_SEALS);
	struct control_number in;
	struct control_qp_attr attr;
	unsigned int refused = 0;

	bystander = raw_client(f.path);
	r = raw_client(f.path);
	for (unsigned int i = 0; i < 30000; i++) {
		uint32_t type =
			CONTROL_QUERY_PORT + rng() % (CONTROL_TYPE_END - CONTROL_QUERY_PORT);
		uint32_t body[CONTROL_BYTES_MAX / 4];
		int rc;

		if (!(control_when(type) & CONTROL_AFTER_HELLO))
			continue;
		for (unsigned int w = 0; w < body_bytes[type] / 4u; w++)
			body[w] = interesting(&r);
		rc = raw_call(r.fd, type, body, body_bytes[type], &memory, descriptors_of[type],
			      NULL, 0);
		if (rc == RAW_GONE)
			fail_msg("message %u of type %u ended the connection", i, type);
		refused += rc < 0;
		if (i % 5000 == 4999) {
			close(r.fd);
			r = raw_client(f.path);
		}
	}
	print_message("%u of 30000 refused\n", refused);
	in.number = bystander.qpn;
	in.reserved = 0;
	assert_int_equal(raw_ask(bystander.fd, CONTROL_QUERY_QP, &in, &attr), 0);
	close(memory);
	close(r.fd);
	close(bystander.fd);
}

/* Many requests without reading one reply: the daemon neither waits nor grows. */
TEST(replies__never_read)
{
	struct raw bystander = raw_client(f.path);
	struct control_hello_reply hello;
	struct control_header h = {.type = CONTROL_QUERY_PORT};
	int fd = raw_open(f.path, &hello);

	for (int i = 0; i < 5000; i++)
		if (send(fd, &h, sizeof(h), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
			break;
	assert_int_equal(raw_number(bystander.fd, CONTROL_DESTROY_QP, bystander.qpn), 0);
	close(fd);
	close(bystander.fd);
	assert_true(fixture_wait_clients(&f, 0));
}

/* Descriptors whose last close waits: with a message, too many with one, left in the queue. Nobody
 * else waits. */
TEST(descriptors__that_do_not_close)
{
	const struct control_header query = {.type = CONTROL_QUERY_PORT}, bad = {.type = 0};
	uint64_t begun = lingering_now_ms();
	struct control_hello_reply hello;
	struct raw bystander = raw_client(f.path);
	int peer[3] = {-1, -1, -1}, fds[64], fd;

	for (unsigned int n = 1; n <= 64; n *= 64) {
		fd = raw_open(f.path, &hello);
		fds[0] = lingering(&peer[n > 1]);
		for (unsigned int i = 1; i < n; i++)
			fds[i] = fds[0];
		raw_send(fd, &query, sizeof(query), fds, n);
		close_later(fds[0], NULL); /* the last copy may be ours */
		assert_int_equal(raw_receive(fd, NULL, 0), RAW_GONE);
		close(fd);
	}
	fd = raw_open(f.path, &hello);
	fds[0] = lingering(&peer[2]);
	raw_send(fd, &bad, sizeof(bad), NULL, 0);
	raw_send(fd, &query, sizeof(query), fds, 1);
	close_later(fds[0], NULL);
	assert_int_equal(raw_receive(fd, NULL, 0), RAW_GONE);
	close(fd);
	for (int i = 0; i < 3; i++)
		assert_int_equal(raw_number(bystander.fd, CONTROL_DESTROY_QP, bystander.qpn),
				 i ? -ENOENT : 0);
	close(bystander.fd);
	assert_true(fixture_wait_clients(&f, 0));
	assert_true(lingering_now_ms() - begun < LINGER_LEAST_MS);
	for (int i = 0; i < 3; i++)
		close(peer[i]);
	close_later_finish();
}

/* The descriptor that comes with the answer to a request. */
static int ask_for_descriptor(int fd, const void *request, size_t n, const int *passed)
{
	union close_later_control room;
	uint8_t bytes[CONTROL_BYTES_MAX];
	struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &room,
			     .msg_controllen = sizeof(room)};
	int got = -1;

	raw_send(fd, request, n, passed, passed ? 1 : 0);
	assert_true(recvmsg(fd, &msg, 0) > 0);
	assert_int_equal(close_later_receive(&msg, &got, 1, NULL), 1);
	return got;
}

/* Only the daemon writes into the bell, so that nothing waits in it to be closed. The kick wakes
 * lcores as often as the client likes, whatever it does to it, and no longer than the client is
 * there, although a copy remains. */
TEST(wakeups__are_one_way)
{
	const struct {
		struct control_header header;
		struct control_hello body;
	} hello = {{.type = CONTROL_HELLO, .length = sizeof(hello.body)},
		   {.version = CONTROL_VERSION}};
	const struct control_header get_kick = {.type = CONTROL_GET_KICK};
	const uint64_t most = UINT64_MAX - 1;
	int page = raw_memfd(sizeof(struct client_page), RAW_SEALS), fd = raw_connect(f.path);
	int bell = ask_for_descriptor(fd, &hello, sizeof(hello), &page);
	int kick = ask_for_descriptor(fd, &get_kick, sizeof(get_kick), NULL);
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	int lcore = epoll_create1(0);

	assert_int_equal(raw_call(fd, CONTROL_GET_KICK, NULL, 0, NULL, 0, NULL, 0), -EEXIST);
	assert_int_equal(send(bell, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(epoll_ctl(lcore, EPOLL_CTL_ADD, f.kicks, &event), 0);
	assert_int_equal(epoll_wait(lcore, &event, 1, 0), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(eventfd_write(kick, 1), 0);
		assert_int_equal(epoll_wait(lcore, &event, 1, 0), 1);
		assert_int_equal(epoll_wait(lcore, &event, 1, 0), 0);
	}
	assert_int_equal(write(kick, &most, sizeof(most)), -1); /* too many: it is not blocked */
	close(fd);
	assert_true(fixture_wait_clients(&f, 0));
	eventfd_write(kick, 1);
	assert_int_equal(epoll_wait(lcore, &event, 1, 0), 0);
	close(lcore);
	close(kick);
	close(bell);
	close(page);
}

/* The daemon (which is in this process) has no descriptor left: who connects is notified, and who
 * is connected does not notice. */
TEST(descriptors__none_left)
{
	enum { FEW = 512 };
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct timeval wait = {.tv_sec = 5};
	struct rlimit before, low;
	struct control_hello_reply hello;
	struct raw bystander;
	int client[3], fill[FEW], n = 0;
	char byte;

	strcpy(addr.sun_path, f.path);
	bystander = raw_client(f.path);
	for (int i = 0; i < 3; i++) {
		client[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		setsockopt(client[i], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	}
	assert_true(fixture_wait_clients(&f, 1));
	close_later_finish();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = (struct rlimit){.rlim_cur = (rlim_t)client[2] + 20, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	while (n < FEW && (fill[n] = dup(client[0])) >= 0)
		n++;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(connect(client[i], (struct sockaddr *)&addr, sizeof(addr)), 0);
		assert_int_equal(recv(client[i], &byte, 1, 0), 0);
	}
	assert_int_equal(raw_number(bystander.fd, CONTROL_DESTROY_QP, bystander.qpn), 0);
	while (n)
		close(fill[--n]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (int i = 0; i < 3; i++)
		close(client[i]);
	close(raw_open(f.path, &hello));
	close(bystander.fd);
	assert_true(fixture_wait_clients(&f, 0));
}

/* Connections that never open a device are ended; those that have, look at something or wait are not. */
TEST_STATE(connections__that_say_nothing, start_impatient, stop, NULL)
{
	struct control_list_devices in = {.version = CONTROL_VERSION};
	struct control_view view = {.version = CONTROL_VERSION, .name = "answer"};
	struct control_remove_hca removal = {.version = CONTROL_VERSION, .device = "slow"};
	struct control_hello_reply hello;
	struct control_device_reply device;
	struct control_change_reply change;
	int open = raw_open(f.path, &hello), silent = raw_connect(f.path),
	    curious = raw_connect(f.path), looks = raw_connect(f.path), waits = raw_connect(f.path);

	assert_int_equal(raw_ask(curious, CONTROL_LIST_DEVICES, &in, &device), 0);
	assert_int_equal(raw_tell(looks, CONTROL_VIEW, &view), 0);
	assert_int_equal(raw_ask(waits, CONTROL_REMOVE_HCA, &removal, &change), 0);
	assert_int_equal(raw_receive(silent, NULL, 0), RAW_GONE);
	assert_int_equal(raw_receive(curious, NULL, 0), RAW_GONE);
	assert_int_equal(raw_call(open, CONTROL_ALLOC_PD, NULL, 0, NULL, 0, NULL, 0), 0);
	assert_int_equal(raw_tell(looks, CONTROL_VIEW, &view), 0);
	close(waits);
	close(looks);
	close(silent);
	close(curious);
	close(open);
}

enum { PATIENCE_MS = 3000 };

/* So much that being busy does not use up the user's part of it. */
static struct fixture_total much_time[] = {{SHARE_control_us, 100 * 1000 * 1000}, {0}};

static int start_patient(void **state)
{
	int rc;

	fixture_hello_ms = PATIENCE_MS;
	rc = start(state);
	fixture_hello_ms = 0;
	return rc;
}

/* While the thread is busy for longer than a connection may be silent, requests wait unread: none of their senders was
 * silent. */
TEST_STATE(connections__that_were_not_heard, start_patient, stop, much_time)
{
	const struct {
		struct control_header header;
		struct control_set body;
	} m = {.header = {.type = CONTROL_SET, .length = sizeof(m.body)},
	       .body = {.version = CONTROL_VERSION, .assignment = "busy"}};
	const struct {
		struct control_header header;
		struct control_list_devices body;
	} list = {.header = {.type = CONTROL_LIST_DEVICES, .length = sizeof(list.body)},
		  .body = {.version = CONTROL_VERSION}};
	int busy = raw_connect(f.path), early = raw_connect(f.path);
	struct control_change_reply change;
	struct control_device_reply device;

	assert_true(fixture_wait_clients(&f, 2));
	raw_send(busy, &m, sizeof(m), NULL, 0);
	while (!__atomic_load_n(&fixture_busy, __ATOMIC_ACQUIRE))
		sched_yield();
	raw_send(early, &list, sizeof(list), NULL, 0);
	usleep((PATIENCE_MS + 100) * 1000);
	__atomic_store_n(&fixture_busy, 0, __ATOMIC_RELEASE);
	assert_int_equal(raw_receive(early, &device, sizeof(device)), 0);
	assert_int_equal(raw_receive(busy, &change, sizeof(change)), 0);
	close(early);
	close(busy);
}

/* One whose user has had so much time that nobody reads what it has asked was not silent, either. */
TEST_STATE(connections__that_wait_to_be_heard, start_impatient, stop, NULL)
{
	const struct {
		struct control_header header;
		struct control_list_devices body;
	} list = {.header = {.type = CONTROL_LIST_DEVICES, .length = sizeof(list.body)},
		  .body = {.version = CONTROL_VERSION}};
	struct raw company = raw_client_as(f.path, 1001);
	struct control_device_reply device;
	struct share_client same;
	int asks, silent;

	raw_be(1000);
	asks = raw_connect(f.path);
	raw_be(0);
	assert_true(fixture_wait_clients(&f, 2));
	assert_int_equal(share_client_begin(f.shares, 1000, 0, &same), 0);
	share_spend(&same, SHARE_control_us, 100 * 1000 * 1000);
	raw_send(asks, &list, sizeof(list), NULL, 0);
	silent = raw_connect(f.path);
	assert_int_equal(raw_receive(silent, NULL, 0), RAW_GONE);
	while (share_refill(f.shares, SHARE_control_us))
		;
	assert_int_equal(raw_receive(asks, &device, sizeof(device)), 0);
	share_client_end(&same);
	close(asks);
	close(silent);
	close(company.fd);
}

/* One user's connections, silent or not, leave places to others, and to root. */
static struct fixture_total few_connections[] = {{SHARE_connections, 64}, {0}};

TEST_STATE(connections__of_one_user_leave_some, start, stop, few_connections)
{
	struct control_hello_reply hello;
	int fd[64], n = 0, other;
	struct share_info info;

	raw_be(1000);
	for (; n < 64; n++)
		fd[n] = raw_connect(f.path);
	raw_be(1001);
	other = raw_open(f.path, &hello);
	raw_be(0);
	shares_info(f.shares, SHARE_connections, 0, &info);
	assert_int_equal(info.used, 33);
	assert_int_equal(info.refused, 32);
	raw_be(1000);
	for (int i = 0; i < 200; i++)
		close(raw_connect(f.path));
	raw_be(0);
	shares_info(f.shares, SHARE_log_lines, 0, &info);
	assert_int_not_equal(info.refused, 0); /* not every refusal is worth a line */
	close(raw_open(f.path, &hello));
	close(other);
	while (n)
		close(fd[--n]);
	assert_true(fixture_wait_clients(&f, 0));
}

/* Who asks without end gets his part of each turn, is answered all the same, and nobody waits for
 * him. */
static struct fixture_total little_time[] = {{SHARE_control_us, 8}, {0}};

TEST_STATE(time__of_one_user_is_bounded, start, stop, little_time)
{
	const struct control_header query = {.type = CONTROL_QUERY_PORT};
	struct control_port_reply port;
	struct control_hello_reply hello;
	struct share_info info;
	struct raw bystander;
	int fd, sent = 0;

	raw_be(1000);
	fd = raw_open(f.path, &hello);
	raw_be(1001);
	bystander = raw_client(f.path);
	raw_be(0);
	while (sent < 100 && send(fd, &query, sizeof(query), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		sent++;
	assert_int_equal(raw_number(bystander.fd, CONTROL_DESTROY_QP, bystander.qpn), 0);
	while (sent--)
		assert_int_equal(raw_receive(fd, &port, sizeof(port)), 0);
	shares_info(f.shares, SHARE_control_us, 0, &info);
	assert_true(info.refused > 0);
	close(fd);
	close(bystander.fd);
	assert_true(fixture_wait_clients(&f, 0));
}

static unsigned int lines;

static ssize_t count_lines(void *cookie, const char *text, size_t bytes)
{
	lines += memmem(text, bytes, "softhca: client", 15) != NULL;
	return (ssize_t)bytes;
}

/* A client that is refused on and on writes no more than its user's part of the log: half of 40
 * lines in a second, of which at most two are begun while it asks. */
TEST(log__of_one_user_is_bounded)
{
	const cookie_io_functions_t io = {.write = count_lines};
	FILE *log = fopencookie(NULL, "w", io);
	const struct control_piece in = {.bytes = 4096};
	struct control_hello_reply hello;
	uint64_t begun, seconds;
	int fd, wrong[2];

	assert_int_equal(pipe(wrong), 0);
	raw_be(1000);
	fd = raw_open(f.path, &hello);
	raw_be(0);
	setvbuf(log, NULL, _IONBF, 0);
	rte_openlog_stream(log);
	rte_log_set_global_level(RTE_LOG_INFO);
	rte_log_set_level_pattern("softhca", RTE_LOG_INFO);
	begun = lingering_now_ms();
	for (int i = 0; i < 1000; i++)
		assert_int_equal(raw_add_piece(fd, wrong[0], &in, NULL), -EINVAL);
	seconds = (lingering_now_ms() - begun) / 1000 + 2;
	rte_log_set_global_level(RTE_LOG_ERR);
	rte_openlog_stream(NULL);
	fclose(log);
	assert_in_range(lines, 1, 20 * seconds);
	close(wrong[0]);
	close(wrong[1]);
	close(fd);
}
