/* SPDX-License-Identifier: BSD-3-Clause */
/* QP 1 of a device whose link leads back to itself: what is sent comes back. Virtual time where it
 * counts; what the data path does takes real time. */
#include <errno.h>
#include <poll.h>
#include "../control/hca_test.h"
#include "../control/raw_client.h"
#include "cm_port.c"

enum { MS_NS = 1000000 };

static const uint8_t own_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t own_gid[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};

/* The answer of resolve, and the messages received. */
static struct {
	int resolve_rc;
	unsigned int resolved;
	uint8_t mac[6];
	unsigned int received;
	struct cm_path path;
	uint8_t mad[CM_MAD_BYTES];
} seen;

static int resolve(void *ctx, const uint8_t dgid[16], uint8_t mac[6])
{
	assert_ptr_equal(ctx, &seen);
	seen.resolved++;
	memcpy(mac, seen.mac, 6);
	return seen.resolve_rc;
}

static void receive(void *ctx, const struct cm_path *path, const uint8_t *mad, size_t bytes)
{
	assert_ptr_equal(ctx, &seen);
	assert_int_equal(bytes, CM_MAD_BYTES);
	seen.received++;
	seen.path = *path;
	memcpy(seen.mad, mad, bytes);
}

static bool would_ask(void *ctx, const uint8_t dgid[16])
{
	assert_ptr_equal(ctx, &seen);
	return dgid[15] != own_gid[15];
}

static const struct cm_port_ops ops = {resolve, would_ask, receive};

static struct cm_port *open_port(void)
{
	struct cm_port *p = NULL;

	memset(&seen, 0, sizeof(seen));
	memcpy(seen.mac, own_mac, sizeof(seen.mac));
	assert_int_equal(cm_port_open(raw_connect(f.path), "hca0", 3, &ops, &seen, &p), 0);
	assert_true(cm_port_fd(p) >= 0);
	return p;
}

static struct cm_path to_self(void)
{
	struct cm_path path = {.device = 3, .traffic_class = 0x28};

	memcpy(path.sgid, own_gid, 16);
	memcpy(path.dgid, own_gid, 16);
	return path;
}

static void fill(uint8_t mad[CM_MAD_BYTES], uint8_t seed)
{
	for (unsigned int i = 0; i < CM_MAD_BYTES; i++)
		mad[i] = (uint8_t)(seed + i * 7);
}

/* Waits as a thread would, until n have been received. */
static void wait_received(struct cm_port *p, uint64_t now, unsigned int n)
{
	for (int i = 0; i < 5000 && seen.received < n; i++) {
		struct pollfd fd = {.fd = cm_port_fd(p), .events = POLLIN};

		if (cm_port_due(p, now) > now)
			poll(&fd, 1, 1);
		cm_port_turn(p, now);
	}
	assert_int_equal(seen.received, n);
}

TEST(send__comes_back_with_the_way_back)
{
	struct cm_port *p = open_port();
	struct cm_path path = to_self();
	uint8_t mad[CM_MAD_BYTES];

	assert_int_equal(cm_port_due(p, 5), UINT64_MAX);
	for (uint8_t i = 0; i < 20; i++) {
		fill(mad, i);
		cm_port_send(p, 0, &path, mad);
		wait_received(p, 0, i + 1u);
		assert_memory_equal(seen.mad, mad, sizeof(mad));
	}
	assert_int_equal(seen.path.device, 3);
	assert_int_equal(seen.path.traffic_class, 0x28);
	assert_memory_equal(seen.path.sgid, own_gid, 16);
	assert_memory_equal(seen.path.dgid, own_gid, 16);
	assert_int_equal(cm_port_counters(p)->sent, 20);
	assert_int_equal(cm_port_counters(p)->received, 20);
	assert_int_equal(cm_port_due(p, 5), UINT64_MAX);
	cm_port_close(p);
}

TEST(open__there_is_one_qp_1)
{
	struct cm_port *p = open_port(), *second = NULL;
	unsigned int descriptors;

	assert_true(fixture_wait_clients(&f, 1));
	descriptors = fixture_descriptors();
	assert_int_equal(cm_port_open(raw_connect(f.path), "hca0", 0, &ops, &seen, &second),
			 -EBUSY);
	assert_int_equal(cm_port_open(raw_connect(f.path), "none", 0, &ops, &seen, &second),
			 -ENODEV);
	assert_null(second);
	assert_true(fixture_wait_clients(&f, 1));
	assert_int_equal(fixture_descriptors(), descriptors);
	cm_port_close(p);
	assert_true(fixture_wait_clients(&f, 0));
	cm_port_close(open_port());
}

/* More than the send queue holds: what finds it full waits, nothing is lost. */
TEST(send__a_burst)
{
	struct cm_port *p = open_port();
	struct cm_path path = to_self();
	uint8_t mad[CM_MAD_BYTES] = {0};

	for (unsigned int i = 0; i < 900; i++)
		cm_port_send(p, 0, &path, mad);
	wait_received(p, 0, 900);
	assert_int_equal(cm_port_counters(p)->sent, 900);
	assert_null(p->first);
	assert_int_equal(p->waiting, 0);
	/* and in turn it can wait again */
	cm_port_send(p, 0, &path, mad);
	wait_received(p, 0, 901);
	cm_port_close(p);
}

TEST(send__waits_for_the_next_hop)
{
	struct cm_port *p = open_port();
	struct cm_path path = to_self();
	uint8_t mad[CM_MAD_BYTES] = {0};

	seen.resolve_rc = -EAGAIN;
	for (unsigned int i = 0; i < 70; i++)
		cm_port_send(p, 10 * MS_NS, &path, mad);
	assert_int_equal(cm_port_counters(p)->waited, WAITING_HOP_MAX);
	assert_int_equal(cm_port_counters(p)->dropped_full, 70 - WAITING_HOP_MAX);
	assert_int_equal(cm_port_due(p, 10 * MS_NS), 11 * MS_NS);
	cm_port_turn(p, 11 * MS_NS);
	assert_int_equal(cm_port_counters(p)->sent, 0);
	seen.resolve_rc = 0;
	wait_received(p, 12 * MS_NS, WAITING_HOP_MAX);
	assert_int_equal(cm_port_due(p, 12 * MS_NS), UINT64_MAX);
	/* and for no longer than this */
	seen.resolve_rc = -EAGAIN;
	cm_port_send(p, 20 * MS_NS, &path, mad);
	cm_port_turn(p, 20 * MS_NS + WAIT_NS - 1);
	assert_int_equal(cm_port_counters(p)->dropped_hop, 0);
	cm_port_turn(p, 20 * MS_NS + WAIT_NS);
	assert_int_equal(cm_port_counters(p)->dropped_hop, 1);
	assert_int_equal(cm_port_due(p, 0), UINT64_MAX);
	seen.resolve_rc = -EHOSTUNREACH;
	cm_port_send(p, 0, &path, mad);
	assert_int_equal(cm_port_counters(p)->dropped_hop, 2);
	/* nor once our GID is gone */
	seen.resolve_rc = -EAGAIN;
	cm_port_send(p, 0, &path, mad);
	p->gids = 0;
	cm_port_turn(p, 0);
	assert_int_equal(cm_port_counters(p)->dropped_path, 1);
	p->gids = 1;
	/* what waits is dropped */
	seen.resolve_rc = -EAGAIN;
	cm_port_send(p, 0, &path, mad);
	cm_port_close(p);
}

/* Many unresolved addresses are resolved at a limited rate; MADs to others are always sent. */
TEST(send__asks_for_few)
{
	struct cm_port *p = open_port();
	struct cm_path path = to_self();
	uint8_t mad[CM_MAD_BYTES] = {0};
	uint64_t now = 1000ull * MS_NS;

	seen.resolve_rc = -EHOSTUNREACH;
	path.dgid[15] = 77;
	for (unsigned int i = 0; i < 200; i++)
		cm_port_send(p, now, &path, mad);
	assert_int_equal(seen.resolved, ASKS + 1);
	assert_int_equal(cm_port_counters(p)->dropped_full, 200 - ASKS - 1);
	now += 10ull * ASK_NS;
	for (unsigned int i = 0; i < 200; i++)
		cm_port_send(p, now, &path, mad);
	assert_int_equal(seen.resolved, ASKS + 1 + 10);
	seen.resolve_rc = 0;
	path.dgid[15] = own_gid[15];
	cm_port_send(p, now, &path, mad);
	wait_received(p, now, 1);
	cm_port_close(p);
}

TEST(send__not_everywhere)
{
	static const uint8_t no[][16] = {
		{0},
		{[10] = 0xff, 0xff, 0, 0, 0, 0},
		{[10] = 0xff, 0xff, 224, 0, 0, 1},
		{[10] = 0xff, 0xff, 255, 255, 255, 255},
		{0xfd, 0x77, [15] = 1}, /* from an IPv4 address */
		{0xff, 0x02, [15] = 1},
	};
	struct cm_port *p = open_port();
	struct cm_path path = to_self();
	uint8_t mad[CM_MAD_BYTES] = {0};

	for (unsigned int i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		memcpy(path.dgid, no[i], 16);
		cm_port_send(p, 0, &path, mad);
	}
	path = to_self();
	path.sgid[15] += 2; /* the device has two */
	cm_port_send(p, 0, &path, mad);
	assert_int_equal(cm_port_counters(p)->dropped_path, sizeof(no) / sizeof(no[0]) + 1);
	assert_int_equal(seen.resolved, 0);
	cm_port_close(p);
}

/* An address's handle is kept, while the next hop stays the same; the control socket, whose thread
 * may be busy with others or wait for an answer from the wire, is not asked. */
TEST(send__remembers_addresses)
{
	struct cm_port *p = open_port();
	struct cm_path path = to_self();
	uint8_t mad[CM_MAD_BYTES] = {0};
	const struct softhca_ah *ah;

	f.resolve_result = -EHOSTUNREACH;
	cm_port_send(p, 0, &path, mad);
	ah = handle_of(p, &path, seen.mac);
	cm_port_send(p, 0, &path, mad);
	assert_ptr_equal(handle_of(p, &path, seen.mac), ah);
	assert_int_equal(cm_port_counters(p)->sent, 2);
	seen.mac[5] = 1;
	cm_port_send(p, 0, &path, mad);
	path.flow_label = 1;
	cm_port_send(p, 0, &path, mad);
	assert_int_equal(cm_port_counters(p)->sent, 4);
	wait_received(p, 0, 4);
	f.resolve_result = 0;
	cm_port_close(p);
}

/* A send that failed stops the queue; it continues. */
TEST(send__continues_after_a_failure)
{
	struct cm_port *p = open_port();
	struct cm_path path = to_self();
	uint8_t mad[CM_MAD_BYTES] = {0};
	struct softhca_sge sge = {.addr = 64, .length = CM_MAD_BYTES, .lkey = 0x777};
	struct softhca_send_wr bad = {.sg_list = &sge,
				      .num_sge = 1,
				      .opcode = SOFTHCA_WR_SEND,
				      .send_flags = SOFTHCA_SEND_SIGNALED,
				      .wr.ud = {.remote_qpn = 1, .remote_qkey = CM_QKEY}};

	cm_port_send(p, 0, &path, mad);
	bad.wr.ud.ah = handle_of(p, &path, seen.mac);
	assert_int_equal(softhca_post_send(p->qp, &bad, NULL), 0);
	for (int i = 0; i < 5000 && p->counters.failed == 0; i++) {
		poll(NULL, 0, 1);
		reap(p);
	}
	assert_int_equal(p->counters.failed, 1);
	cm_port_send(p, 0, &path, mad);
	wait_received(p, 0, 2);
	cm_port_close(p);
}

TEST(receive__no_mad_of_a_stranger)
{
	struct cm_port *p = open_port();
	struct cm_path path = to_self();
	uint8_t mad[CM_MAD_BYTES] = {0};
	struct softhca_sge sge = {.addr = (uintptr_t)mad, .length = CM_MAD_BYTES - 4};
	struct softhca_send_wr wr = {.sg_list = &sge,
				     .num_sge = 1,
				     .opcode = SOFTHCA_WR_SEND,
				     .send_flags = SOFTHCA_SEND_INLINE | SOFTHCA_SEND_SIGNALED,
				     .wr.ud = {.remote_qpn = 1, .remote_qkey = CM_QKEY}};

	wr.wr.ud.ah = handle_of(p, &path, seen.mac);
	assert_int_equal(softhca_post_send(p->qp, &wr, NULL), 0);
	for (int i = 0; i < 5000 && p->counters.received == 0; i++) {
		poll(NULL, 0, 1);
		cm_port_turn(p, 0);
	}
	assert_int_equal(cm_port_counters(p)->dropped_stranger, 1);
	assert_int_equal(seen.received, 0);
	cm_port_close(p);
}

/* A client with the Q_Key of QP 1 that is not the connection manager. */
TEST(receive__not_from_qp_1)
{
	struct cm_port p = {.index = 2, .gids = 1, .ops = &ops, .ops_ctx = &seen};
	struct softhca_wc wc = {.sl = SOFTHCA_WC_SL_IPV4,
				.byte_len = GRH_BYTES + CM_MAD_BYTES,
				.wc_flags = SOFTHCA_WC_GRH,
				.src_qp = 2};
	uint8_t slot[SLOT_BYTES] = {[32] = 10, 0, 0, 9, 10, 0, 0, 1};

	memset(&seen, 0, sizeof(seen));
	memcpy(p.gid[0], own_gid, 16);
	p.memory = slot;
	cm_port_take(&p, 0, &wc);
	assert_int_equal(seen.received, 0);
	assert_int_equal(p.counters.dropped_stranger, 1);
	wc.src_qp = 1;
	cm_port_take(&p, 0, &wc);
	assert_int_equal(seen.received, 1);
}

/* While MADs wait, whoever sends more of them than there is time for has his part handled, and others all. */
TEST_WITH(receive__a_flood_of_one_source_is_its_own, NULL, NULL)
{
	struct cm_port p = {.index = 2, .gids = 1, .ops = &ops, .ops_ctx = &seen};
	struct softhca_wc wc = {.sl = SOFTHCA_WC_SL_IPV4,
				.byte_len = GRH_BYTES + CM_MAD_BYTES,
				.wc_flags = SOFTHCA_WC_GRH,
				.src_qp = 1};
	uint8_t slot[SLOT_BYTES] = {[32] = 10, 0, 0, 9, 10, 0, 0, 1};
	const uint64_t second = 1000 * MS_NS;

	memset(&seen, 0, sizeof(seen));
	memcpy(p.gid[0], own_gid, 16);
	p.memory = slot;
	for (unsigned int i = 0; i < 2 * SOURCE_MADS; i++)
		cm_port_take(&p, second, &wc); /* a burst that there is time for */
	assert_int_equal(seen.received, 2 * SOURCE_MADS);
	p.behind = true;
	for (unsigned int i = 0; i < 100000; i++) {
		slot[35] = 9;
		cm_port_take(&p, 2 * second, &wc);
		slot[35] = 8;
		if (i % 20 == 0)
			cm_port_take(&p, 2 * second, &wc);
	}
	assert_int_equal(seen.received, 2 * SOURCE_MADS + SOURCE_MADS + 5000);
	assert_int_equal(p.counters.dropped_flood, 100000 - SOURCE_MADS);
	slot[35] = 9;
	for (unsigned int i = 0; i < 1000; i++)
		cm_port_take(&p, 2 * second + 100 * SOURCE_MAD_NS, &wc);
	assert_int_equal(seen.received, 2 * SOURCE_MADS + SOURCE_MADS + 5000 + 100);
}

TEST_WITH(receive__the_way_back_over_ipv6, NULL, NULL)
{
	struct cm_port p = {.index = 2, .gids = 2};
	const struct softhca_wc wc = {.sl = SOFTHCA_WC_SL_IPV6};
	uint8_t grh[40] = {0x6a, 0xb1, 0x23, 0x45};
	struct cm_path path;

	memcpy(p.gid[0], own_gid, 16);
	memset(p.gid[1], 0x26, 16);
	memset(grh + 8, 0x20, 16);
	memset(grh + 24, 0x26, 16);
	assert_true(path_back(&p, &wc, grh, &path));
	assert_int_equal(path.device, 2);
	assert_int_equal(gid_index(&p, path.sgid), 1);
	assert_int_equal(path.traffic_class, 0xab);
	assert_int_equal(path.flow_label, 0x12345);
	assert_memory_equal(path.dgid, grh + 8, 16);
	assert_memory_equal(path.sgid, grh + 24, 16);
	grh[39] = 1; /* none of ours */
	assert_false(path_back(&p, &wc, grh, &path));
	grh[39] = 0x26;
	grh[8] = 0xff; /* no sender has that */
	assert_false(path_back(&p, &wc, grh, &path));
}

TEST(turn__the_daemon_releases)
{
	struct cm_port *p = open_port();
	struct cm_path path = to_self();
	uint8_t mad[CM_MAD_BYTES] = {0};

	fixture_kill_control(&f);
	for (int i = 0; i < 5000 && cm_port_fd(p) >= 0; i++) {
		struct pollfd fd = {.fd = cm_port_fd(p), .events = POLLIN};

		poll(&fd, 1, 1);
		cm_port_turn(p, 0);
	}
	assert_int_equal(cm_port_fd(p), -1);
	assert_int_equal(cm_port_due(p, 0), UINT64_MAX);
	cm_port_send(p, 0, &path, mad);
	cm_port_turn(p, 0);
	cm_port_close(p);
}
