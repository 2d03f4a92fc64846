/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program whose queue pairs cannot go on, since modules are paused: it posts WRITEs and READs in both
 * directions until nothing completes any more, and resets all queue pairs, which must not wait for that.
 * Then it connects them again, and writes once more, for as long as it takes until the modules run.
 * Nothing else completes.
 * Exit code 0: they could.
 *
 * usage: reset SOCKET LEFT RIGHT [stay]     stay: it does nothing more once it is stuck
 */
#include <time.h>
#include <unistd.h>
#include "softhca/softhca.h"
#include "need.h"

enum {
	QPS = 64,
	DEPTH = 16,
	BYTES = 65536,
	STUCK_MS = 200,
	RESET_MS_MAX = 1000,
	SLOW_MAX = 3, /* that may take longer, while this program or the daemon has no CPU */
	PATIENCE_MS = 30000,
	STRAY_MS = 100 /* in which anything else would have completed */
};

struct side {
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_cq *cq;
	struct softhca_mr *mr;
	struct softhca_qp *qp[QPS];
	uint8_t *memory; /* BYTES for each queue pair */
};

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void open_side(struct side *s, const char *socket, const char *device)
{
	struct softhca_qp_init_attr init = {.type = SOFTHCA_QP_RC,
					    .cap = {.max_send_wr = DEPTH,
						    .max_recv_wr = 1,
						    .max_send_sge = 1,
						    .max_recv_sge = 1}};

	NEED(s->memory = calloc(QPS, BYTES));
	NEED(s->ctx = softhca_open(socket, device));
	NEED(s->pd = softhca_alloc_pd(s->ctx));
	NEED(s->cq = softhca_create_cq(s->ctx, QPS * DEPTH, NULL, NULL));
	NEED(s->mr = softhca_reg_mr(s->pd, s->memory, QPS * BYTES, 0xf));
	init.send_cq = init.recv_cq = s->cq;
	for (int i = 0; i < QPS; i++)
		NEED(s->qp[i] = softhca_create_qp(s->pd, &init));
}

static void connect_all(struct side side[2])
{
	for (int i = 0; i < QPS; i++) {
		struct softhca_endpoint end[2];

		for (int k = 0; k < 2; k++)
			NEED(softhca_local_endpoint(side[k].qp[i], 0, &end[k]) == 0);
		for (int k = 0; k < 2; k++)
			NEED(softhca_connect_qp(side[k].qp[i], &end[k], &end[!k], NULL) == 0);
	}
}

static int post(const struct side *s, const struct side *peer, int qp, uint32_t opcode)
{
	struct softhca_sge sge = {.addr = (uintptr_t)s->memory + (uintptr_t)qp * BYTES,
				  .length = BYTES,
				  .lkey = s->mr->lkey};
	struct softhca_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = SOFTHCA_SEND_SIGNALED,
		.wr.rdma = {(uintptr_t)peer->memory + (uintptr_t)qp * BYTES, peer->mr->rkey}};

	return softhca_post_send(s->qp[qp], &wr, NULL);
}

/* As much as there is room for. Returns how many completed. */
static int work(const struct side *s, const struct side *peer)
{
	struct softhca_wc wc[DEPTH];
	int n = softhca_poll_cq(s->cq, DEPTH, wc);

	for (int i = 0; i < n; i++)
		NEED(wc[i].status == SOFTHCA_WC_SUCCESS);
	for (int i = 0; i < QPS; i++)
		while (post(s, peer, i, i % 2 ? SOFTHCA_WR_RDMA_READ : SOFTHCA_WR_RDMA_WRITE) == 0)
			;
	return n;
}

static void work_until_stuck(const struct side side[2])
{
	double begun = now_ms(), moved = begun;

	while (now_ms() - moved < STUCK_MS) {
		NEED(now_ms() - begun < PATIENCE_MS);
		if (work(&side[0], &side[1]) + work(&side[1], &side[0]))
			moved = now_ms();
	}
}

static void reset_all(const struct side side[2])
{
	const struct softhca_qp_attr attr = {.state = SOFTHCA_QPS_RESET};
	double begun, took, longest = 0;
	int slow = 0;

	for (int k = 0; k < 2; k++)
		for (int i = 0; i < QPS; i++) {
			begun = now_ms();
			NEED(softhca_modify_qp(side[k].qp[i], &attr, SOFTHCA_QP_STATE) == 0);
			took = now_ms() - begun;
			longest = took > longest ? took : longest;
			slow += took >= RESET_MS_MAX;
		}
	printf("reset in %.0f ms at most\n", longest);
	fflush(stdout);
	NEED(slow <= SLOW_MAX);
}

/* A WRITE of each queue pair of the left side, of which as many complete, and nothing of the former life. */
static void write_once(const struct side side[2])
{
	double begun = now_ms();
	struct softhca_wc wc;
	int n = 0;

	for (int i = 0; i < QPS; i++)
		NEED(post(&side[0], &side[1], i, SOFTHCA_WR_RDMA_WRITE) == 0);
	while (n < QPS) {
		NEED(now_ms() - begun < PATIENCE_MS);
		if (softhca_poll_cq(side[0].cq, 1, &wc) != 1)
			continue;
		NEED(wc.status == SOFTHCA_WC_SUCCESS);
		n++;
	}
	usleep(1000 * STRAY_MS);
	NEED(softhca_poll_cq(side[0].cq, 1, &wc) == 0 && softhca_poll_cq(side[1].cq, 1, &wc) == 0);
}

int main(int argc, char **argv)
{
	struct side side[2] = {0};

	if (argc < 4) {
		fputs("usage: reset SOCKET LEFT RIGHT [stay]\n", stderr);
		return 2;
	}
	for (int k = 0; k < 2; k++)
		open_side(&side[k], argv[1], argv[2 + k]);
	connect_all(side);
	work_until_stuck(side);
	puts("stuck");
	fflush(stdout);
	if (argc > 4)
		pause();
	reset_all(side);
	connect_all(side);
	write_once(side);
	return 0;
}
