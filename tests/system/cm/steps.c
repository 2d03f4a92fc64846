/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One side of an RC connection made by librdmacm, that can stop at each step of it. Linked with the
 * machine's own librdmacm and libibverbs; run by rdmacm_kill.sh below `softhca run`.
 *
 * usage: steps client|server ADDRESS PORT STEP
 *   client    id, address, route, connect, connected, traffic, disconnect
 *   server    listening, request, accept, established, traffic, disconnect
 * It says `at STEP` whenever a step is done: the identifier made, the address resolved, ..., the
 * request sent (connect) or received (request), the reply sent (accept), the connection there
 * (connected, established), some messages exchanged, the disconnection asked for. At STEP it stops
 * once, until a line comes on stdin: the line `event` makes it take an event next, every other one
 * continue. It does not stop in traffic, of which there is none with another STEP, and disconnects
 * by itself at that step alone. STEP may be `none`, too; `last` is a client that stops nowhere,
 * disconnects, and makes the server end.
 *
 * It says `event NAME STATUS` of each event, and `FUNCTION: ERROR` of what fails, as rdma_accept()
 * does when nobody waits for it. Then it releases the connection; a server waits for the next.
 * Exit code 0: all it had could be given back, and no request was lost.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH = 16, BYTES = 4096, WARM = 64, RESOLVE_MS = 5000 };

static const char *stop_at;
static struct rdma_event_channel *channel;
static struct sockaddr_in address = {.sin_family = AF_INET};

/* The connection, or what is to become one. */
static struct rdma_cm_id *id;
static struct ibv_mr *mr;
static uint8_t *memory;
static unsigned int posted, completed;
static bool disconnected;

static bool over; /* no connection follows */
static int wrong; /* the exit code */

static bool is_step(const char *step)
{
	return strcmp(stop_at, step) == 0;
}

/* A failure is printed, and may be the expected one. */
static bool done(const char *what, int ret)
{
	if (ret)
		printf("%s: %s\n", what, strerrorname_np(errno));
	return ret == 0;
}

/* Calls that must always succeed. */
static void back(const char *what, int ret)
{
	if (!done(what, ret))
		wrong = 1;
}

/* ---- events ---- */

static struct rdma_cm_event got; /* the last; acknowledged */

static bool event_waits(void)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* True if it is that one. If the device has gone, so says each identifier. */
static bool next(enum rdma_cm_event_type wanted)
{
	static const char prefix[] = "RDMA_CM_EVENT_";
	struct rdma_cm_event *event;

	if (!done("rdma_get_cm_event", rdma_get_cm_event(channel, &event))) {
		over = true;
		return false;
	}
	got = *event;
	printf("event %s %d\n", rdma_event_str(event->event) + strlen(prefix), event->status);
	if (got.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		const char *data = event->param.conn.private_data;

		id = event->id;
		over = event->param.conn.private_data_len && data[0] == 'l';
	}
	disconnected |= got.event == RDMA_CM_EVENT_DISCONNECTED;
	rdma_ack_cm_event(event);
	if (got.event != RDMA_CM_EVENT_DEVICE_REMOVAL)
		return got.event == wanted;
	over = true;
	while (event_waits())
		next(wanted);
	return false;
}

/* Always true, but if the line says that no further step is wanted. */
static bool at(const char *step)
{
	static bool stopped;
	char line[16] = "";

	printf("at %s\n", step);
	if (stopped || !is_step(step))
		return true;
	stopped = true;
	if (!fgets(line, sizeof(line), stdin))
		exit(2);
	if (strcmp(line, "event\n") != 0)
		return true;
	next(RDMA_CM_EVENT_DEVICE_REMOVAL);
	return false;
}

/* ---- the queue pair ---- */

static bool post(bool send)
{
	struct ibv_sge sge = {.addr = (uintptr_t)(memory + (send ? 0 : BYTES)),
			      .length = BYTES,
			      .lkey = mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad_send;
	int ret = send ? ibv_post_send(id->qp, &wr, &bad_send)
		       : ibv_post_recv(id->qp, &recv, &bad_recv);

	posted += !ret;
	return !ret;
}

static bool make_qp(void)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = DEPTH,
						.max_recv_wr = DEPTH,
						.max_send_sge = 1,
						.max_recv_sge = 1}};

	if (!done("rdma_create_qp", rdma_create_qp(id, NULL, &attr)))
		return false;
	memory = aligned_alloc(4096, 2 * BYTES);
	mr = memory ? ibv_reg_mr(id->pd, memory, 2 * BYTES, IBV_ACCESS_LOCAL_WRITE) : NULL;
	if (!done("ibv_reg_mr", mr ? 0 : -1))
		return false;
	posted = completed = 0;
	for (int i = 0; i < DEPTH; i++)
		post(false);
	return true;
}

/* Takes what has completed; posts the same again while all is well. False: something failed. */
static bool turn(struct ibv_cq *cq, bool send)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 1) {
		completed++;
		if (wc.status != IBV_WC_SUCCESS)
			return false;
		post(send);
	}
	return n == 0;
}

/* Until a request fails, or an event waits. */
static void traffic(void)
{
	int said = 0;

	if (!is_step("traffic"))
		return;
	for (int i = 0; i < DEPTH; i++)
		post(true);
	while (turn(id->send_cq, true) && turn(id->recv_cq, false) && !event_waits()) {
		if (!said && completed > WARM)
			said = printf("at traffic\n");
	}
}

/* All that was posted completes, since its QP is in ERR. */
static void drain(void)
{
	struct ibv_wc wc;

	for (int i = 0; i < 20000 && completed != posted; i++) {
		if (ibv_poll_cq(id->send_cq, 1, &wc) == 1 || ibv_poll_cq(id->recv_cq, 1, &wc) == 1)
			completed++;
		else
			usleep(1000);
	}
	back("what was posted completes", completed == posted ? 0 : -1);
}

/* ---- the two sides ---- */

/* Disconnects, whichever side begins. */
static bool connected(void)
{
	traffic();
	if (is_step("last") || is_step("disconnect")) {
		if (!done("rdma_disconnect", rdma_disconnect(id)) || !at("disconnect"))
			return false;
	}
	return next(RDMA_CM_EVENT_DISCONNECTED);
}

static void release_all(void)
{
	if (!id)
		return;
	if (disconnected) {
		/* Answers the peer; if it was we who asked there is nothing to answer. */
		rdma_disconnect(id);
		drain();
	}
	if (mr)
		back("ibv_dereg_mr", ibv_dereg_mr(mr));
	if (id->qp)
		rdma_destroy_qp(id);
	back("rdma_destroy_id", rdma_destroy_id(id));
	free(memory);
	id = NULL;
	mr = NULL;
	memory = NULL;
	disconnected = false;
}

static struct rdma_conn_param parameters(void)
{
	return (struct rdma_conn_param){.responder_resources = 1,
					.initiator_depth = 1,
					.retry_count = 7,
					.rnr_retry_count = 7,
					.private_data = stop_at,
					.private_data_len = (uint8_t)(strlen(stop_at) + 1)};
}

static void client(void)
{
	struct rdma_conn_param param = parameters();
	struct sockaddr *to = (struct sockaddr *)&address;

	if (!done("rdma_create_id", rdma_create_id(channel, &id, NULL, RDMA_PS_TCP)))
		return;
	if (at("id") && done("rdma_resolve_addr", rdma_resolve_addr(id, NULL, to, RESOLVE_MS)) &&
	    next(RDMA_CM_EVENT_ADDR_RESOLVED) && at("address") &&
	    done("rdma_resolve_route", rdma_resolve_route(id, RESOLVE_MS)) &&
	    next(RDMA_CM_EVENT_ROUTE_RESOLVED) && at("route") && make_qp() &&
	    done("rdma_connect", rdma_connect(id, &param)) && at("connect") &&
	    next(RDMA_CM_EVENT_ESTABLISHED) && at("connected"))
		connected();
	release_all();
}

static void serve(void)
{
	struct rdma_conn_param param = parameters();

	if (next(RDMA_CM_EVENT_CONNECT_REQUEST) && make_qp() && at("request") &&
	    done("rdma_accept", rdma_accept(id, &param)) && at("accept") &&
	    next(RDMA_CM_EVENT_ESTABLISHED) && at("established"))
		connected();
	release_all();
}

static void server(void)
{
	struct rdma_cm_id *listener;

	if (!done("rdma_create_id", rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP)))
		return;
	if (done("rdma_bind_addr", rdma_bind_addr(listener, (struct sockaddr *)&address)) &&
	    done("rdma_listen", rdma_listen(listener, 8)) && at("listening")) {
		do
			serve();
		while (!over);
	}
	back("rdma_destroy_id", rdma_destroy_id(listener));
}

int main(int argc, char **argv)
{
	if (argc != 5 || inet_pton(AF_INET, argv[2], &address.sin_addr) != 1)
		return 2;
	address.sin_port = htons((uint16_t)atoi(argv[3]));
	stop_at = argv[4];
	setvbuf(stdout, NULL, _IOLBF, 0);
	channel = rdma_create_event_channel();
	if (!done("rdma_create_event_channel", channel ? 0 : -1))
		return 2;
	if (strcmp(argv[1], "client") == 0)
		client();
	else
		server();
	rdma_destroy_event_channel(channel);
	return wrong;
}
