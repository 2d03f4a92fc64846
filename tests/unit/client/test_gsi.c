/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QP 1: one of each HCA, the daemon's own, with its number and Q_Key; what others may not have. The
 * daemon runs in this process, so its clients here are the daemon itself, unless they came
 * over a socket that a child connected.
 */
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include "pair.h"

enum { GSI_QKEY = 0x80010000, MAD_BYTES = 256, GRH_BYTES = 40, NOBODY = 65534 };

/* Requirements and behaviour of QP 1. */
struct gsi {
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_cq *cq;
	struct softhca_qp *qp;
};

static struct softhca_qp *create(struct gsi *g, enum softhca_qp_type type)
{
	struct softhca_qp_init_attr init = {.type = type,
					    .send_cq = g->cq,
					    .recv_cq = g->cq,
					    .cap = {.max_send_wr = 16,
						    .max_recv_wr = 16,
						    .max_send_sge = 1,
						    .max_recv_sge = 1,
						    .max_inline_data = MAD_BYTES}};

	return softhca_create_qp(g->pd, &init);
}

static void open_with(struct gsi *g, struct softhca_context *ctx)
{
	assert_non_null(ctx);
	g->ctx = ctx;
	g->pd = softhca_alloc_pd(g->ctx);
	assert_non_null(g->pd);
	g->cq = softhca_create_cq(g->ctx, 64, NULL, NULL);
	assert_non_null(g->cq);
}

static void bring_up(struct softhca_qp *qp, uint32_t qkey)
{
	struct softhca_endpoint end = {0};
	struct softhca_connect_attr attr = {.qkey = qkey};

	assert_int_equal(softhca_connect_qp(qp, &end, NULL, &attr), 0);
}

/* A connection to the daemon from another user than its own: `user`, or the one who runs the
 * test. */
static int socket_of_another(uid_t user)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), status;
	pid_t child;

	strcpy(addr.sun_path, f.path);
	child = fork();
	if (child == 0) {
		if (geteuid() == 0 && setuid(user))
			_exit(2);
		_exit(connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return fd;
}

TEST(gsi__one_with_the_number_1)
{
	struct gsi g, other;

	open_with(&g, softhca_open(f.path, NULL));
	open_with(&other, softhca_open(f.path, NULL));
	for (int i = 0; i < 50; i++) { /* the former one may still be leaving */
		g.qp = create(&g, SOFTHCA_QP_GSI);
		assert_non_null(g.qp);
		assert_int_equal(softhca_qp_number(g.qp), 1);
		bring_up(g.qp, GSI_QKEY);
		assert_fails(create(&other, SOFTHCA_QP_GSI), EBUSY);
		assert_int_equal(softhca_destroy_qp(g.qp), 0);
	}
	assert_non_null(create(&g, SOFTHCA_QP_GSI));
	softhca_close(g.ctx);
	assert_true(fixture_wait_clients(&f, 1));
	assert_non_null(create(&other, SOFTHCA_QP_GSI));
	softhca_close(other.ctx);
}

TEST(gsi__a_qp_type_too_far)
{
	struct gsi g;

	open_with(&g, softhca_open(f.path, NULL));
	assert_fails(create(&g, (enum softhca_qp_type)4), EINVAL);
	softhca_close(g.ctx);
}

static void send_mad(struct gsi *g, struct softhca_qp *from, struct softhca_ah *ah, uint8_t *mad)
{
	struct softhca_sge sge = {.addr = (uintptr_t)mad, .length = MAD_BYTES};
	struct softhca_send_wr wr = {.wr_id = 1,
				     .sg_list = &sge,
				     .num_sge = 1,
				     .opcode = SOFTHCA_WR_SEND,
				     .send_flags = SOFTHCA_SEND_INLINE | SOFTHCA_SEND_SIGNALED,
				     .wr.ud = {ah, 1, GSI_QKEY}};

	assert_int_equal(softhca_post_send(from, &wr, NULL), 0);
}

/* Polls until n completions came; the receive among them, if any. */
static struct softhca_wc poll_for(struct gsi *g, int n)
{
	struct softhca_wc received = {.qp_num = 0}, wc;
	double end = seconds() + 5;

	while (n > 0) {
		if (seconds() > end)
			fail_msg("%d completions did not come", n);
		if (softhca_poll_cq(g->cq, 1, &wc) < 1) {
			sched_yield();
			continue;
		}
		assert_int_equal(wc.status, SOFTHCA_WC_SUCCESS);
		if (wc.opcode & SOFTHCA_WC_RECV)
			received = wc;
		n--;
	}
	return received;
}

TEST(gsi__takes_what_has_its_qkey)
{
	struct softhca_ah_attr to = {.hop_limit = 64};
	uint8_t mad[MAD_BYTES], *memory;
	struct softhca_qp *ordinary;
	struct softhca_wc wc;
	struct softhca_ah *ah;
	struct softhca_mr *mr;
	double end = seconds() + 5;
	struct gsi g;

	open_with(&g, softhca_open(f.path, NULL));
	g.qp = create(&g, SOFTHCA_QP_GSI);
	ordinary = create(&g, SOFTHCA_QP_UD);
	assert_true(g.qp && ordinary);
	bring_up(g.qp, GSI_QKEY);
	bring_up(ordinary, 0x11111111);
	memory = softhca_alloc(g.ctx, 4096);
	mr = softhca_reg_mr(g.pd, memory, 4096, SOFTHCA_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	struct softhca_sge sge = {
		.addr = (uintptr_t)memory, .length = GRH_BYTES + MAD_BYTES, .lkey = mr->lkey};
	struct softhca_recv_wr recv = {.wr_id = 2, .sg_list = &sge, .num_sge = 1};
	assert_int_equal(softhca_post_recv(g.qp, &recv, NULL), 0);
	assert_int_equal(softhca_query_gid(g.ctx, 0, to.dgid), 0);
	ah = softhca_create_ah(g.pd, &to);
	assert_non_null(ah);
	memset(mad, 0x5a, sizeof(mad));
	/* Its Q_Key has the top bit: the QP's own is sent, which does not fit */
	send_mad(&g, ordinary, ah, mad);
	poll_for(&g, 1);
	while (fixture_counter(&f, COUNTER_drop_ud_qkey) == 0 && seconds() < end)
		sched_yield();
	assert_int_equal(fixture_counter(&f, COUNTER_drop_ud_qkey), 1);
	send_mad(&g, g.qp, ah, mad);
	wc = poll_for(&g, 2);
	assert_int_equal(wc.qp_num, 1);
	assert_int_equal(wc.src_qp, 1);
	assert_int_equal(wc.byte_len, GRH_BYTES + MAD_BYTES);
	assert_memory_equal(memory + GRH_BYTES, mad, MAD_BYTES);
	softhca_close(g.ctx);
}

TEST(gsi__not_for_others)
{
	struct gsi g;

	open_with(&g, softhca_open_socket(socket_of_another(0), NULL));
	assert_fails(create(&g, SOFTHCA_QP_GSI), EPERM);
	g.qp = create(&g, SOFTHCA_QP_UD);
	assert_non_null(g.qp);
	assert_true(softhca_qp_number(g.qp) >= 1024);
	softhca_close(g.ctx);
}

TEST(qkey__controlled_ones_not_for_others)
{
	struct softhca_qp_attr attr = {.state = SOFTHCA_QPS_INIT, .qkey = GSI_QKEY, .port = 1};
	uint32_t mask =
		SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_QKEY;
	struct gsi g;

	open_with(&g, softhca_open_socket(socket_of_another(NOBODY), NULL));
	g.qp = create(&g, SOFTHCA_QP_UD);
	assert_non_null(g.qp);
	assert_int_equal(softhca_modify_qp(g.qp, &attr, mask), -EPERM);
	assert_int_equal(softhca_qp_current_state(g.qp), SOFTHCA_QPS_RESET);
	attr.qkey = 0x7fffffff;
	assert_int_equal(softhca_modify_qp(g.qp, &attr, mask), 0);
	attr.qkey = UINT32_MAX;
	assert_int_equal(softhca_modify_qp(g.qp, &attr, SOFTHCA_QP_QKEY), -EPERM);
	softhca_close(g.ctx);
}

TEST_WITH(open_socket__keeps_none_that_fails, NULL, NULL)
{
	int pair[2];
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(shutdown(pair[1], SHUT_WR), 0); /* no answer will come */
	assert_fails(softhca_open_socket(pair[0], NULL), ENOTCONN);
	while (recv(pair[1], &byte, 1, 0) > 0) /* HELLO, then the connection closes */
		;
	close(pair[1]);
}
