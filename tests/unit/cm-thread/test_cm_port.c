/* SPDX-License-Identifier: BSD-3-Clause */
/* QP 1 of a device whose link leads back to itself: what is sent comes back. Virtual time where it
 * counts; what the data path does takes real time. */
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

/* Of each case: the port, a path back to it, a MAD of zeroes. */
static struct cm_port *p;
static struct cm_path path;
static uint8_t mad[CM_MAD_BYTES];

static void open_port(void)
{
	memset(&seen, 0, sizeof(seen));
	memcpy(seen.mac, own_mac, sizeof(seen.mac));
	assert_int_equal(cm_port_open(raw_connect(f.path), "hca0", 3, &ops, &seen, &p), 0);
	assert_true(cm_port_fd(p) >= 0);
}

static int start_port(void **state)
{
	start(state);
	open_port();
	path = (struct cm_path){.device = 3, .traffic_class = 0x28};
	memcpy(path.sgid, own_gid, 16);
	memcpy(path.dgid, own_gid, 16);
	memset(mad, 0, sizeof(mad));
	return 0;
}

static int stop_port(void **state)
{
	cm_port_close(p);
	return stop(state);
}

#undef TEST
#define TEST(name) TEST_STATE(name, start_port, stop_port, NULL)

/* Waits as a thread would, until n have been received. */
static void wait_received(uint64_t now, unsigned int n)
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
	assert_int_equal(cm_port_due(p, 5), UINT64_MAX);
	for (uint8_t i = 0; i < 20; i++) {
		for (unsigned int k = 0; k < CM_MAD_BYTES; k++)
			mad[k] = (uint8_t)(i + k * 7);
		cm_port_send(p, 0, &path, mad);
		wait_received(0, i + 1u);
		assert_memory_equal(seen.mad, mad, sizeof(mad));
	}
	assert_int_equal(seen.path.device, 3);
	assert_int_equal(seen.path.traffic_class, 0x28);
	assert_memory_equal(seen.path.sgid, own_gid, 16);
	assert_memory_equal(seen.path.dgid, own_gid, 16);
	assert_int_equal(cm_port_counters(p)->sent, 20);
	assert_int_equal(cm_port_counters(p)->received, 20);
	assert_int_equal(cm_port_due(p, 5), UINT64_MAX);
}

TEST(open__there_is_one_qp_1)
{
	struct cm_port *second = NULL;
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
	open_port();
}

/* More than the send queue holds: what finds it full waits, nothing is lost. */
TEST(send__a_burst)
{
	for (unsigned int i = 0; i < 900; i++)
		cm_port_send(p, 0, &path, mad);
	wait_received(0, 900);
	assert_int_equal(cm_port_counters(p)->sent, 900);
	assert_null(p->first);
	assert_int_equal(p->waiting, 0);
	/* and in turn it can wait again */
	cm_port_send(p, 0, &path, mad);
	wait_received(0, 901);
}

TEST(send__waits_for_the_next_hop)
{
	seen.resolve_rc = -EAGAIN;
	for (unsigned int i = 0; i < 70; i++)
		cm_port_send(p, 10 * MS_NS, &path, mad);
	assert_int_equal(cm_port_counters(p)->waited, WAITING_HOP_MAX);
	assert_int_equal(cm_port_counters(p)->dropped_full, 70 - WAITING_HOP_MAX);
	assert_int_equal(cm_port_due(p, 10 * MS_NS), 11 * MS_NS);
	cm_port_turn(p, 11 * MS_NS);
	assert_int_equal(cm_port_counters(p)->sent, 0);
	seen.resolve_rc = 0;
	wait_received(12 * MS_NS, WAITING_HOP_MAX);
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
}

/* Many unresolved addresses are resolved at a limited rate; MADs to others are always sent. */
TEST(send__asks_for_few)
{
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
	wait_received(now, 1);
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

	for (unsigned int i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		memcpy(path.dgid, no[i], 16);
		cm_port_send(p, 0, &path, mad);
	}
	memcpy(path.dgid, own_gid, 16);
	path.sgid[15] += 2; /* the device has two */
	cm_port_send(p, 0, &path, mad);
	assert_int_equal(cm_port_counters(p)->dropped_path, sizeof(no) / sizeof(no[0]) + 1);
	assert_int_equal(seen.resolved, 0);
}

/* An address's handle is kept, while the next hop stays the same; the control socket, whose thread
 * may be busy with others or wait for an answer from the wire, is not asked. */
TEST(send__remembers_addresses)
{
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
	wait_received(0, 4);
	f.resolve_result = 0;
}

/* A send that failed stops the queue; it continues. */
TEST(send__continues_after_a_failure)
{
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
	wait_received(0, 2);
}

TEST(receive__no_mad_of_a_stranger)
{
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
}

/* A client with the Q_Key of QP 1 that is not the connection manager. */
TEST_WITH(receive__not_from_qp_1, NULL, NULL)
{
	struct cm_port made = {.index = 2, .gids = 1, .ops = &ops, .ops_ctx = &seen};
	struct softhca_wc wc = {.sl = SOFTHCA_WC_SL_IPV4,
				.byte_len = GRH_BYTES + CM_MAD_BYTES,
				.wc_flags = SOFTHCA_WC_GRH,
				.src_qp = 2};
	uint8_t slot[SLOT_BYTES] = {[32] = 10, 0, 0, 9, 10, 0, 0, 1};

	memset(&seen, 0, sizeof(seen));
	memcpy(made.gid[0], own_gid, 16);
	made.memory = slot;
	cm_port_take(&made, 0, &wc);
	assert_int_equal(seen.received, 0);
	assert_int_equal(made.counters.dropped_stranger, 1);
	wc.src_qp = 1;
	cm_port_take(&made, 0, &wc);
	assert_int_equal(seen.received, 1);
}

/* While MADs wait, whoever sends more of them than there is time for has his part handled, and others all. */
TEST_WITH(receive__a_flood_of_one_source_is_its_own, NULL, NULL)
{
	struct cm_port made = {.index = 2, .gids = 1, .ops = &ops, .ops_ctx = &seen};
	struct softhca_wc wc = {.sl = SOFTHCA_WC_SL_IPV4,
				.byte_len = GRH_BYTES + CM_MAD_BYTES,
				.wc_flags = SOFTHCA_WC_GRH,
				.src_qp = 1};
	uint8_t slot[SLOT_BYTES] = {[32] = 10, 0, 0, 9, 10, 0, 0, 1};
	const uint64_t second = 1000 * MS_NS;

	memset(&seen, 0, sizeof(seen));
	memcpy(made.gid[0], own_gid, 16);
	made.memory = slot;
	for (unsigned int i = 0; i < 2 * SOURCE_MADS; i++)
		cm_port_take(&made, second, &wc); /* a burst that there is time for */
	assert_int_equal(seen.received, 2 * SOURCE_MADS);
	made.behind = true;
	for (unsigned int i = 0; i < 100000; i++) {
		slot[35] = 9;
		cm_port_take(&made, 2 * second, &wc);
		slot[35] = 8;
		if (i % 20 == 0)
			cm_port_take(&made, 2 * second, &wc);
	}
	assert_int_equal(seen.received, 2 * SOURCE_MADS + SOURCE_MADS + 5000);
	assert_int_equal(made.counters.dropped_flood, 100000 - SOURCE_MADS);
	slot[35] = 9;
	for (unsigned int i = 0; i < 1000; i++)
		cm_port_take(&made, 2 * second + 100 * SOURCE_MAD_NS, &wc);
	assert_int_equal(seen.received, 2 * SOURCE_MADS + SOURCE_MADS + 5000 + 100);
}

TEST_WITH(receive__the_way_back_over_ipv6, NULL, NULL)
{
	struct cm_port made = {.index = 2, .gids = 2};
	const struct softhca_wc wc = {.sl = SOFTHCA_WC_SL_IPV6};
	uint8_t grh[40] = {0x6a, 0xb1, 0x23, 0x45};
	struct cm_path back;

	memcpy(made.gid[0], own_gid, 16);
	memset(made.gid[1], 0x26, 16);
	memset(grh + 8, 0x20, 16);
	memset(grh + 24, 0x26, 16);
	assert_true(path_back(&made, &wc, grh, &back));
	assert_int_equal(back.device, 2);
	assert_int_equal(gid_index(&made, back.sgid), 1);
	assert_int_equal(back.traffic_class, 0xab);
	assert_int_equal(back.flow_label, 0x12345);
	assert_memory_equal(back.dgid, grh + 8, 16);
	assert_memory_equal(back.sgid, grh + 24, 16);
	grh[39] = 1; /* none of ours */
	assert_false(path_back(&made, &wc, grh, &back));
	grh[39] = 0x26;
	grh[8] = 0xff; /* no sender has that */
	assert_false(path_back(&made, &wc, grh, &back));
}

TEST(turn__the_daemon_releases)
{
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
}
