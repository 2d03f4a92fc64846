/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups by the control protocol: permissions to attach, cleanup after a client, and
 * that the port is notified of all of it. */
#include "hca_test.h"
#include "raw_client.h"

static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, 239, 1, 2, 3};
static const uint8_t v6[16] = {0xff, 0x0e, [15] = 7};

static int ask(const struct raw *r, uint32_t type, uint32_t qpn, const uint8_t *mgid)
{
	struct control_multicast in = {.qpn = qpn};

	memcpy(in.mgid, mgid, sizeof(in.mgid));
	return raw_tell(r->fd, type, &in);
}

static int attach(const struct raw *r, uint32_t qpn, const uint8_t *mgid)
{
	return ask(r, CONTROL_ATTACH_MCAST, qpn, mgid);
}

static int detach(const struct raw *r, uint32_t qpn, const uint8_t *mgid)
{
	return ask(r, CONTROL_DETACH_MCAST, qpn, mgid);
}

static uint32_t datagram_qp(const struct raw *r)
{
	struct control_qp in = raw_qp_in(r->pd, r->cqn, r->lkey);
	uint32_t qpn;

	in.service = 2;
	assert_int_equal(raw_create_qp(r->fd, &in, &qpn), 0);
	assert_int_not_equal(qpn, MULTICAST_QPN);
	return qpn;
}

static void assert_attached(uint32_t groups, uint32_t members)
{
	assert_int_equal(f.hca->multicast.groups, groups);
	assert_int_equal(f.hca->multicast.members, members);
	assert_int_equal(f.joined, members);
}

TEST(multicast__what_may_be_attached)
{
	struct raw r = raw_client(f.path), other = raw_client(f.path);
	uint32_t qpn;
	uint8_t bad[16];

	qpn = datagram_qp(&r);
	assert_int_equal(attach(&r, r.qpn, v4), -EINVAL); /* RC */
	assert_int_equal(attach(&other, qpn, v4), -ENOENT);
	assert_int_equal(attach(&r, 0, v4), -ENOENT);
	memcpy(bad, v4, 16);
	bad[12] = 10;
	assert_int_equal(attach(&r, qpn, bad), -EINVAL);
	bad[0] = 0xfe;
	assert_int_equal(attach(&r, qpn, bad), -EINVAL);
	assert_attached(0, 0);
	assert_int_equal(attach(&r, qpn, v4), 0);
	assert_int_equal(attach(&r, qpn, v6), 0);
	assert_int_equal(detach(&other, qpn, v4), -ENOENT);
	assert_attached(2, 2);
	close(other.fd);
	close(r.fd);
}

CLIENT_TEST(multicast__once_or_again)
{
	uint32_t qpn[2];

	qpn[0] = datagram_qp(&r);
	qpn[1] = datagram_qp(&r);
	assert_int_equal(detach(&r, qpn[0], v4), -EINVAL);
	assert_int_equal(attach(&r, qpn[0], v4), 0);
	assert_int_equal(attach(&r, qpn[0], v4), 0);
	assert_attached(1, 1);
	assert_int_equal(attach(&r, qpn[1], v4), 0);
	assert_attached(1, 2);
	assert_int_equal(detach(&r, qpn[0], v4), 0);
	assert_int_equal(detach(&r, qpn[0], v4), -EINVAL);
	assert_int_equal(detach(&r, qpn[1], v6), -EINVAL);
	assert_int_equal(detach(&r, qpn[1], v4), 0);
	assert_attached(0, 0);
}

/* As a kernel has it (ibv_destroy_qp(3)). */
CLIENT_TEST(multicast__attached_is_in_use)
{
	uint32_t qpn;

	qpn = datagram_qp(&r);
	assert_int_equal(attach(&r, qpn, v4), 0);
	assert_int_equal(raw_number(r.fd, CONTROL_DESTROY_QP, qpn), -EBUSY);
	assert_int_equal(detach(&r, qpn, v4), 0);
	assert_int_equal(raw_number(r.fd, CONTROL_DESTROY_QP, qpn), 0);
}

TEST(multicast__ends_with_the_client)
{
	struct raw r = raw_client(f.path), other = raw_client(f.path);
	uint32_t qpn;

	assert_int_equal(attach(&other, datagram_qp(&other), v4), 0);
	for (unsigned int i = 0; i < 3; i++) {
		qpn = datagram_qp(&r);
		assert_int_equal(attach(&r, qpn, v4), 0);
		assert_int_equal(attach(&r, qpn, v6), 0);
	}
	assert_attached(2, 7);
	close(r.fd);
	assert_true(fixture_wait_clients(&f, 1));
	assert_attached(1, 1);
	close(other.fd);
	assert_true(fixture_wait_clients(&f, 0));
	assert_attached(0, 0);
}

/* 2 for one client */
static struct fixture_total limits[] = {{SHARE_attachments, 3}, {0}};

TEST_STATE(multicast__limits, start, stop, limits)
{
	uint8_t third[16];
	struct raw r;
	uint32_t qpn;

	memcpy(third, v6, 16);
	third[15]++;
	r = raw_client(f.path);
	assert_int_equal(r.hello.max_mcast_groups, MULTICAST_GROUPS_MAX);
	assert_int_equal(r.hello.max_mcast_qps, MULTICAST_QPS_MAX);
	assert_int_equal(r.hello.max_mcast_attach, MULTICAST_ATTACH_MAX);
	qpn = datagram_qp(&r);
	__atomic_store_n(&f.join_result, -ENOMEM, __ATOMIC_RELAXED);
	assert_int_equal(attach(&r, qpn, v4), -ENOMEM); /* the port's */
	__atomic_store_n(&f.join_result, 0, __ATOMIC_RELAXED);
	assert_attached(0, 0);
	assert_int_equal(attach(&r, qpn, v4), 0);
	assert_int_equal(attach(&r, qpn, v6), 0);
	assert_int_equal(attach(&r, qpn, third), -ENOMEM); /* the client's */
	assert_int_equal(attach(&r, qpn, v6), 0);
	assert_int_equal(detach(&r, qpn, v4), 0);
	assert_int_equal(attach(&r, qpn, third), 0);
	assert_attached(2, 2);
	close(r.fd);
	assert_true(fixture_wait_clients(&f, 0));
	assert_attached(0, 0);
}
