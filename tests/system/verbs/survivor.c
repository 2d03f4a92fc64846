/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a verbs program sees when the other side is killed. Linked with whatever libibverbs the
 * machine has, run by `softhca run`.
 *
 * usage: survivor DEVICE ROLE
 *   peer      one end of an RC connection; prints its address, reads the other's from stdin, then
 *             sends for ever what the other takes
 *   daemon    the same; expects the daemon to die: the event DEVICE_FATAL, a completion channel
 *             that wakes, calls that fail, and objects that can be destroyed all the same
 *   program   the same; expects the other program to die: the send under way fails with
 *             RETRY_EXC_ERR, the rest is flushed, the QP is in ERR, an event says nothing fatal
 *   cable     the same, and the other end of the wire with it: the event PORT_ERR
 * Exits 0 if it was so, and says what was not.
 */
#include <poll.h>
#include <stdint.h>
#include <unistd.h>
#include "device.h"

enum { DEPTH = 16, BYTES = 4096, PATIENCE_MS = 30000 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t *memory;
static int wrong;

static void expect(bool so, const char *what)
{
	if (so)
		return;
	fprintf(stderr, "not so: %s (errno %d)\n", what, errno);
	wrong = 1;
}

static void make(void)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = DEPTH,
						.max_recv_wr = DEPTH,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_LOCAL_WRITE};

	memory = aligned_alloc(4096, 2 * BYTES);
	pd = ibv_alloc_pd(context);
	channel = ibv_create_comp_channel(context);
	must(memory && pd && channel, "domain");
	mr = ibv_reg_mr(pd, memory, 2 * BYTES, IBV_ACCESS_LOCAL_WRITE);
	cq = ibv_create_cq(context, 4 * DEPTH, NULL, channel, 0);
	must(mr && cq, "ibv_create_cq");
	attr.send_cq = attr.recv_cq = cq;
	qp = ibv_create_qp(pd, &attr);
	must(qp != NULL, "ibv_create_qp");
	must(ibv_modify_qp(qp, &init,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
		     0,
	     "to INIT");
}

static void post_receive(void)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)(memory + BYTES), .length = BYTES, .lkey = mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;

	ibv_post_recv(qp, &wr, &bad);
}

static int post_send(void)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = BYTES, .lkey = mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 2,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	return ibv_post_send(qp, &wr, &bad);
}

/* Address out, the other's in, and connected. */
static void join(void)
{
	struct ibv_qp_attr to = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}}};
	union ibv_gid mine;
	unsigned int number;

	must(ibv_query_gid(context, 1, 0, &mine) == 0, "ibv_query_gid");
	printf("%u", qp->qp_num);
	for (int i = 0; i < 16; i++)
		printf(" %02x", mine.raw[i]);
	printf("\n");
	fflush(stdout);
	must(scanf("%u", &number) == 1, "the other's number");
	for (int i = 0; i < 16; i++) {
		unsigned int byte;

		must(scanf("%x", &byte) == 1, "the other's address");
		to.ah_attr.grh.dgid.raw[i] = (uint8_t)byte;
	}
	to.dest_qp_num = number;
	must(ibv_modify_qp(qp, &to,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER) == 0,
	     "to RTR");
	to = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				  .timeout = 12,
				  .retry_cnt = 5,
				  .rnr_retry = 7,
				  .max_rd_atomic = 1};
	must(ibv_modify_qp(qp, &to,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
	     "to RTS");
}

/* Takes completions, posts again, until one fails or polling does: its status, or -1. */
static int traffic(void)
{
	struct ibv_wc wc;
	int n;

	for (;;) {
		n = ibv_poll_cq(cq, 1, &wc);
		if (n < 0)
			return -1;
		if (n == 0)
			continue;
		if (wc.status != IBV_WC_SUCCESS)
			return (int)wc.status;
		if (wc.opcode & IBV_WC_RECV)
			post_receive();
		else
			post_send();
	}
}

static bool readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

/* The next event that is not COMM_EST, which comes when the other end was quicker. -1: none in that
 * time. */
static int next_event(int ms)
{
	struct ibv_async_event event;

	while (readable(context->async_fd, ms)) {
		if (ibv_get_async_event(context, &event))
			return -1;
		ibv_ack_async_event(&event);
		if (event.event_type != IBV_EVENT_COMM_EST)
			return (int)event.event_type;
	}
	return -1;
}

static void daemon_died(int status)
{
	struct ibv_cq *of;
	void *user;

	expect(status == -1 || status == IBV_WC_WR_FLUSH_ERR,
	       "polling fails, or requests are flushed");
	expect(next_event(PATIENCE_MS) == IBV_EVENT_DEVICE_FATAL, "the event DEVICE_FATAL");
	expect(readable(channel->fd, PATIENCE_MS), "who waits for completions wakes");
	expect(ibv_get_cq_event(channel, &of, &user) != 0, "and is told that none come");
	expect(post_send() != 0, "a post fails");
	expect(ibv_alloc_pd(context) == NULL, "an object is not made");
}

/* event: the one to expect; -1: none. */
static void peer_died(int status, int event)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_wc wc;
	int n, flushed = 0, waited = 0;

	expect(status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_REM_INV_REQ_ERR,
	       "the send under way fails");
	while (flushed < 2 * DEPTH - 1 && waited < PATIENCE_MS) {
		n = ibv_poll_cq(cq, 1, &wc);
		if (n == 0) {
			usleep(1000);
			waited++;
			continue;
		}
		if (n < 0 || wc.status != IBV_WC_WR_FLUSH_ERR)
			break;
		flushed++;
	}
	expect(flushed == 2 * DEPTH - 1, "all that was posted is flushed");
	expect(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0, "ibv_query_qp");
	expect(attr.qp_state == IBV_QPS_ERR, "the QP is in ERR");
	n = next_event(event < 0 ? 0 : PATIENCE_MS);
	expect(n == event, n == -1 ? "an event" : ibv_event_type_str((enum ibv_event_type)n));
}

int main(int argc, char **argv)
{
	int status;

	if (argc != 3)
		return 2;
	context = open_named(argv[1]);
	make();
	for (int i = 0; i < DEPTH; i++)
		post_receive();
	join();
	for (int i = 0; i < DEPTH; i++)
		post_send();
	status = traffic();
	if (strcmp(argv[2], "daemon") == 0)
		daemon_died(status);
	else if (strcmp(argv[2], "program") == 0)
		peer_died(status, -1);
	else if (strcmp(argv[2], "cable") == 0)
		peer_died(status, IBV_EVENT_PORT_ERR);
	expect(ibv_destroy_qp(qp) == 0, "ibv_destroy_qp");
	expect(ibv_destroy_cq(cq) == 0, "ibv_destroy_cq");
	expect(ibv_destroy_comp_channel(channel) == 0, "ibv_destroy_comp_channel");
	expect(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
	expect(ibv_dealloc_pd(pd) == 0, "ibv_dealloc_pd");
	expect(ibv_close_device(context) == 0, "ibv_close_device");
	free(memory);
	return wrong;
}
