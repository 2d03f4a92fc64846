/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection that becomes a channel of the connection manager: who takes it, and that nothing of
 * it is left with the control socket. */
#include <poll.h>
#include "hca_test.h"
#include "raw_client.h"

static int adopted;	 /* atomic: the last descriptor given; -1: none */
static int adopt_answer; /* atomic */

/* The serving thread. */
static int adopt(void *ctx, int fd)
{
	int answer = __atomic_load_n(&adopt_answer, __ATOMIC_RELAXED);

	assert_ptr_equal(ctx, &f);
	if (answer == 0)
		__atomic_store_n(&adopted, fd, __ATOMIC_RELEASE);
	return answer;
}

static int start_with_cm(void **state)
{
	fixture_cm_adopt = adopt;
	adopted = -1;
	adopt_answer = 0;
	return start(state);
}

static int stop_with_cm(void **state)
{
	fixture_cm_adopt = NULL;
	return stop(state);
}

static int open_cm(int fd, uint32_t version, uint32_t reserved)
{
	struct control_open_cm in = {.version = version, .reserved = reserved};

	return raw_tell(fd, CONTROL_OPEN_CM, &in);
}

TEST_STATE(channel__is_handed_over_with_its_reply, start_with_cm, stop_with_cm, NULL)
{
	int fd = raw_connect(f.path), theirs;
	char text[8] = "";

	assert_int_equal(open_cm(fd, CONTROL_VERSION, 0), 0);
	theirs = __atomic_load_n(&adopted, __ATOMIC_ACQUIRE);
	assert_true(theirs >= 0);
	assert_true(fcntl(theirs, F_GETFD) & FD_CLOEXEC);
	/* from now on the control socket reads nothing, whatever it looks like */
	for (int i = 0; i < 20; i++) {
		assert_int_equal(send(fd, "ping", 4, 0), 4);
		assert_int_equal(poll(&(struct pollfd){.fd = theirs, .events = POLLIN}, 1, 5000),
				 1);
		assert_int_equal(recv(theirs, text, sizeof(text), 0), 4);
		assert_int_equal(send(theirs, "pong", 4, 0), 4);
		assert_int_equal(recv(fd, text, sizeof(text), 0), 4);
	}
	assert_true(fixture_wait_clients(&f, 0));
	assert_int_equal(fixture_counter(&f, COUNTER_control_malformed), 0);
	assert_int_equal(fixture_counter(&f, COUNTER_clients_gone), 0);
	/* its last copies are these two */
	close(theirs);
	assert_int_equal(recv(fd, text, sizeof(text), 0), 0);
	close(fd);
}

TEST_STATE(channel__refused_stays_a_connection, start_with_cm, stop_with_cm, NULL)
{
	unsigned int before = fixture_descriptors();
	int fd = raw_connect(f.path), page = raw_memfd(sizeof(struct client_page), RAW_SEALS);

	assert_int_equal(open_cm(fd, CONTROL_VERSION + 1, 0), -EPROTO);
	assert_int_equal(open_cm(fd, CONTROL_VERSION, 1), -EINVAL);
	__atomic_store_n(&adopt_answer, -EUSERS, __ATOMIC_RELAXED);
	assert_int_equal(open_cm(fd, CONTROL_VERSION, 0), -EUSERS);
	__atomic_store_n(&adopt_answer, -EAGAIN, __ATOMIC_RELAXED);
	assert_int_equal(open_cm(fd, CONTROL_VERSION, 0), -ENOMEM);
	assert_int_equal(adopted, -1);
	assert_int_equal(fixture_descriptors(),
			 before + 4); /* ours, and the daemon's: its end, its user's set */
	assert_int_equal(fixture_counter(&f, COUNTER_control_refused), 4);
	assert_int_equal(raw_hello_with(fd, page, NULL), 0);
	close(page);
	close(fd);
}

TEST(channel__without_a_connection_manager)
{
	int fd = raw_connect(f.path);

	assert_int_equal(open_cm(fd, CONTROL_VERSION, 0), -EOPNOTSUPP);
	close(fd);
}

/* The client has not waited for the reply: the connection manager finds it gone. */
TEST_STATE(channel__client_gone_at_once, start_with_cm, stop_with_cm, NULL)
{
	struct {
		struct control_header header;
		struct control_open_cm body;
	} m = {{.type = CONTROL_OPEN_CM, .length = sizeof(m.body)}, {.version = CONTROL_VERSION}};
	char text[8];
	int theirs = -1;

	for (int i = 0; i < 100; i++) {
		int fd = raw_connect(f.path);

		raw_send(fd, &m, sizeof(m), NULL, 0);
		close(fd);
		for (int wait = 0; theirs < 0 && wait < 5000; wait++) {
			theirs = __atomic_exchange_n(&adopted, -1, __ATOMIC_ACQ_REL);
			usleep(theirs < 0 ? 1000 : 0);
		}
		assert_true(theirs >= 0);
		assert_true(recv(theirs, text, sizeof(text), 0) <= 0);
		close(theirs);
		theirs = -1;
	}
	assert_true(fixture_wait_clients(&f, 0));
}

/* The receive queue of an RC queue pair of its own gives them, an SRQ gives none; and only whose it
 * is may ask, and tell of its peer. */
CLIENT_TEST(credits__of_the_users_queue_pairs)
{
	const uint32_t me = getuid();
	struct control_qp in;
	uint32_t shared, none, uc, *credits;

	in = raw_qp_in(r.pd, r.cqn, r.lkey);
	in.service = SERVICE_UC;
	assert_int_equal(raw_create_qp(r.fd, &in, &uc), 0);
	in.service = SERVICE_RC;
	in.rq_log_entries = 0xff;
	in.rq_stride = 0;
	assert_int_equal(raw_create_qp(r.fd, &in, &none), 0);
	in.srqn = r.srqn;
	assert_int_equal(raw_create_qp(r.fd, &in, &shared), 0);
	assert_true(control_gives_credits(f.control, 0, me, r.qpn));
	assert_false(control_gives_credits(f.control, 0, me + 1, r.qpn));
	assert_false(control_gives_credits(f.control, 0, me, r.qpn ^ 1));
	assert_false(control_gives_credits(f.control, 0, me, uc));
	assert_false(control_gives_credits(f.control, 0, me, none));
	assert_false(control_gives_credits(f.control, 0, me, shared));
	f.hca->config.settings.e2e_credits = false;
	assert_false(control_gives_credits(f.control, 0, me, r.qpn));

	credits = &qp_find(&f.hca->qps, r.qpn)->rrc.credits;
	control_peer_gives_no_credits(f.control, 0, me + 1, r.qpn);
	assert_int_equal(*credits, 0);
	control_peer_gives_no_credits(f.control, 0, me, r.qpn);
	assert_int_equal(*credits, CREDITS_UNLIMITED);
}
