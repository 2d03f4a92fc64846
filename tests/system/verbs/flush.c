/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A log in the memory of a peer, as programs written to libibverbs 45 keep one: each record is a
 * WRITE, a FLUSH behind it, and an ATOMIC WRITE of the log's new end behind that. Linked with
 * whatever libibverbs the machine has, run by `softhca run`.
 *
 * usage: flush DEVICE PEER
 * Exits 0 if every record was there when its FLUSH had completed, the end when the ATOMIC WRITE
 * had, and a FLUSH that memory does not allow was refused.
 */
#include <stdint.h>
#include <unistd.h>
#include "device.h"
#include "later.h"

enum { RECORDS = 500, RECORD_MAX = 10000, LOG_BYTES = 1 << 20, PATIENCE_S = 30 };

struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
};

static void side_open(struct side *s, const char *device)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_WRITE |
				  IBV_QP_EX_WITH_FLUSH};

	s->context = open_named(device);
	s->pd = ibv_alloc_pd(s->context);
	s->cq = ibv_create_cq(s->context, 16, NULL, NULL, 0);
	s->memory = aligned_alloc(4096, LOG_BYTES);
	must(s->pd && s->cq && s->memory, "objects");
	memset(s->memory, 0, LOG_BYTES);
	must(!ibv_reg_mr(s->pd, s->memory, LOG_BYTES, IBV_ACCESS_FLUSH_PERSISTENT),
	     "ordinary memory became persistent");
	s->mr = ibv_reg_mr(s->pd, s->memory, LOG_BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_FLUSH_GLOBAL);
	must(s->mr != NULL, "ibv_reg_mr");
	attr.pd = s->pd;
	attr.send_cq = attr.recv_cq = s->cq;
	s->qp = ibv_create_qp_ex(s->context, &attr);
	must(s->qp != NULL, "ibv_create_qp_ex");
}

static void side_connect(struct side *s, const struct side *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_FLUSH_GLOBAL |
				   IBV_ACCESS_FLUSH_PERSISTENT,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}}};

	must(ibv_query_gid(peer->context, 1, 0, &attr.ah_attr.grh.dgid) == 0, "ibv_query_gid");
	must(ibv_modify_qp(s->qp, &attr,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
		     0,
	     "to INIT");
	attr.qp_state = IBV_QPS_RTR;
	must(ibv_modify_qp(s->qp, &attr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER) == 0,
	     "to RTR");
	attr.qp_state = IBV_QPS_RTS;
	must(ibv_modify_qp(s->qp, &attr,
			   IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				   IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
	     "to RTS");
}

static void expect(struct side *s, uint64_t wr_id, int opcode, enum ibv_wc_status status)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(s->cq, 1, &wc)) == 0)
		;
	must(n == 1 && wc.wr_id == wr_id, "its completion");
	if (wc.status != status || (status == IBV_WC_SUCCESS && (int)wc.opcode != opcode)) {
		fprintf(stderr, "request %lu: %s, opcode %d\n", (unsigned long)wr_id,
			ibv_wc_status_str(wc.status), wc.opcode);
		exit(1);
	}
}

/* One record at `end` of the log; returns the new end. */
static uint64_t append(struct side *s, const struct side *peer, uint64_t n, uint64_t end)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(s->qp);
	uint32_t bytes = 1 + (uint32_t)(n * 7919 % RECORD_MAX);
	uint64_t log = (uintptr_t)peer->memory, next = end + bytes;
	bool all = n % 2;

	memset(s->memory, (int)(n % 255 + 1), bytes);
	ibv_wr_start(ex);
	ex->wr_id = n;
	ex->wr_flags = 0;
	ibv_wr_rdma_write(ex, peer->mr->rkey, log + end);
	ibv_wr_set_sge(ex, s->mr->lkey, (uintptr_t)s->memory, bytes);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(ex, peer->mr->rkey, all ? 0 : log + end, all ? 0 : bytes, IBV_FLUSH_GLOBAL,
		     all ? IBV_FLUSH_MR : IBV_FLUSH_RANGE);
	ibv_wr_atomic_write(ex, peer->mr->rkey, log, &next);
	must(ibv_wr_complete(ex) == 0, "ibv_wr_complete");
	expect(s, n, IBV_WC_FLUSH, IBV_WC_SUCCESS);
	must(memcmp(peer->memory + end, s->memory, bytes) == 0, "the record");
	expect(s, n, IBV_WC_ATOMIC_WRITE, IBV_WC_SUCCESS);
	must(*(uint64_t *)peer->memory == next, "the end");
	return next;
}

int main(int argc, char **argv)
{
	struct side s, peer;
	struct ibv_qp_ex *ex;
	uint64_t end = 8;

	must(argc == 3, "usage: flush DEVICE PEER");
	alarm(PATIENCE_S);
	side_open(&s, argv[1]);
	side_open(&peer, argv[2]);
	side_connect(&s, &peer);
	side_connect(&peer, &s);
	for (uint64_t n = 0; n < RECORDS; n++)
		end = end + RECORD_MAX > LOG_BYTES ? append(&s, &peer, n, 8)
						   : append(&s, &peer, n, end);
	ex = ibv_qp_to_qp_ex(s.qp);
	ibv_wr_start(ex);
	ibv_wr_flush(ex, peer.mr->rkey, (uintptr_t)peer.memory, 8, IBV_FLUSH_PERSISTENT,
		     IBV_FLUSH_RANGE);
	must(ibv_wr_complete(ex) == 0, "ibv_wr_complete");
	expect(&s, RECORDS - 1, 0, IBV_WC_REM_ACCESS_ERR);
	printf("%d records\n", RECORDS);
	return 0;
}
