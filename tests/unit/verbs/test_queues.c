/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues, queue pairs and SRQs of the drop-in: what they are made with, what is refused
 * and how, states and attributes. Against a whole daemon; nothing is sent. */
#include "../control/hca_test.h"
#include "../../system/verbs/later.h"
#include "first.h"

static struct ibv_context *ctx;
static struct ibv_device_attr limits;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static int set_up(void **state)
{
	start(state);
	ctx = open_first();
	assert_int_equal(ibv_query_device(ctx, &limits), 0);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	assert_non_null(pd);
	assert_non_null(cq);
	return 0;
}

static int tear_down(void **state)
{
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
	return stop(state);
}

/* ---- completion queues ---- */

#undef TEST
#define TEST(name) TEST_STATE(name, set_up, tear_down, NULL)

TEST(cq__sizes)
{
	static const int good[] = {1, 2, 3, 100, 4096};
	static const int bad[] = {0, -1, INT32_MIN};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct ibv_cq *one = ibv_create_cq(ctx, good[i], &limits, NULL, 0);

		assert_non_null(one);
		assert_true(one->cqe >= good[i]);
		assert_ptr_equal(one->context, ctx);
		assert_ptr_equal(one->cq_context, &limits);
		assert_null(one->channel);
		assert_int_equal(ibv_destroy_cq(one), 0);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_fails(ibv_create_cq(ctx, bad[i], NULL, NULL, 0), EINVAL);
		assert_int_equal(ibv_resize_cq(cq, bad[i]), EINVAL);
	}
	assert_fails(ibv_create_cq(ctx, limits.max_cqe + 1, NULL, NULL, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, limits.max_cqe + 1), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, 500), 0);
	assert_true(cq->cqe >= 500);
	assert_int_equal(ibv_resize_cq(cq, 1), 0);
	assert_true(cq->cqe >= 1 && cq->cqe < 500);
}

TEST(cq__vectors)
{
	static const int bad[] = {-1, 1000, INT32_MAX};

	assert_true(ctx->num_comp_vectors > 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_fails(ibv_create_cq(ctx, 1, NULL, NULL, bad[i]), EINVAL);
	}
}

/* Each CQ, of both kinds, counts as a user of its channel, which is busy until the last is
 * destroyed. */
TEST(cq__holds_its_channel)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_cq_init_attr_ex attr = {.cqe = 5, .channel = channel};
	struct ibv_cq *plain = ibv_create_cq(ctx, 5, NULL, channel, 0);
	struct ibv_cq_ex *ex = ibv_create_cq_ex(ctx, &attr);

	assert_non_null(plain);
	assert_non_null(ex);
	assert_int_equal(channel->refcnt, 2);
	assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
	assert_int_equal(ibv_destroy_cq(plain), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
	assert_int_equal(channel->refcnt, 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	/* One without a channel may be armed, too: no event follows. */
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
}

TEST(cq_ex__what_is_not_there)
{
	const struct ibv_cq_init_attr_ex bad[] = {
		{.cqe = 5, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP},
		{.cqe = 5, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK},
		{.cqe = 5, .wc_flags = IBV_WC_EX_WITH_CVLAN},
		{.cqe = 5, .wc_flags = IBV_WC_EX_WITH_FLOW_TAG},
		{.cqe = 5, .wc_flags = IBV_WC_EX_WITH_TM_INFO},
		{.cqe = 5, .wc_flags = 1ull << 40},
		{.cqe = 5, .comp_mask = 1u << 2},
		{.cqe = 5,
		 .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		 .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN},
	};
	struct ibv_modify_cq_attr moderate = {.attr_mask = IBV_CQ_ATTR_MODERATE};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ibv_cq_init_attr_ex attr = bad[i];

		assert_fails(ibv_create_cq_ex(ctx, &attr), EOPNOTSUPP);
	}
	assert_int_equal(ibv_modify_cq(cq, &moderate), EOPNOTSUPP);
}

/* Fields that were not asked for have no function; those of every CQ do. */
TEST(cq_ex__fields_as_asked)
{
	struct ibv_cq_init_attr_ex none = {.cqe = 5, .cq_context = &none};
	struct ibv_cq_init_attr_ex all = {.cqe = 5,
					  .wc_flags = IBV_WC_STANDARD_FLAGS,
					  .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					  .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED};
	struct ibv_poll_cq_attr poll = {.comp_mask = 1};
	struct ibv_cq_ex *a = ibv_create_cq_ex(ctx, &none), *b = ibv_create_cq_ex(ctx, &all);

	assert_ptr_equal(a->cq_context, &none);
	assert_true(a->read_opcode && a->read_vendor_err && a->read_wc_flags);
	assert_false(a->read_byte_len || a->read_imm_data || a->read_qp_num || a->read_src_qp ||
		     a->read_slid || a->read_sl || a->read_dlid_path_bits);
	assert_true(b->read_byte_len && b->read_imm_data && b->read_qp_num && b->read_src_qp &&
		    b->read_slid && b->read_sl && b->read_dlid_path_bits);
	assert_false(b->read_completion_ts || b->read_cvlan || b->read_flow_tag ||
		     b->read_tm_info || b->read_completion_wallclock_ns);
	for (int i = 0; i < 3; i++) { /* the lock is free again each time */
		assert_int_equal(ibv_start_poll(a, &poll), EINVAL);
		assert_int_equal(ibv_start_poll(b, &poll), EINVAL);
		assert_int_equal(ibv_start_poll(a, NULL), ENOENT);
		assert_int_equal(ibv_start_poll(b, NULL), ENOENT);
	}
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(a)), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(b)), 0);
}

/* ---- queue pairs ---- */

static struct ibv_qp_init_attr_ex wanted(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr_ex){.qp_context = &limits,
					    .send_cq = cq,
					    .recv_cq = cq,
					    .cap = {.max_send_wr = 10,
						    .max_recv_wr = 20,
						    .max_send_sge = 2,
						    .max_recv_sge = 3,
						    .max_inline_data = 50},
					    .qp_type = type,
					    .comp_mask = IBV_QP_INIT_ATTR_PD |
							 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					    .pd = pd,
					    .send_ops_flags = IBV_QP_EX_WITH_SEND};
}

static struct ibv_qp *make(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = wanted(type);
	struct ibv_qp *qp;

	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	qp = ibv_create_qp_ex(ctx, &attr);
	assert_non_null(qp);
	return qp;
}

TEST(qp__made_as_wanted)
{
	for (enum ibv_qp_type type = IBV_QPT_RC; type <= IBV_QPT_UD; type++) {
		struct ibv_qp_init_attr_ex attr = wanted(type);
		struct ibv_qp_init_attr now;
		struct ibv_qp_attr is;
		struct ibv_qp *qp;

		attr.sq_sig_all = type == IBV_QPT_UC;
		qp = ibv_create_qp_ex(ctx, &attr);
		assert_non_null(qp);
		assert_ptr_equal(qp->context, ctx);
		assert_ptr_equal(qp->pd, pd);
		assert_ptr_equal(qp->send_cq, cq);
		assert_ptr_equal(qp->recv_cq, cq);
		assert_ptr_equal(qp->qp_context, &limits);
		assert_int_equal(qp->qp_type, type);
		assert_int_equal(qp->state, IBV_QPS_RESET);
		assert_int_not_equal(qp->qp_num, 0);
		assert_ptr_equal(&ibv_qp_to_qp_ex(qp)->qp_base, qp);
		assert_int_equal(ibv_query_qp(qp, &is, IBV_QP_STATE, &now), 0);
		assert_int_equal(now.sq_sig_all, attr.sq_sig_all);
		assert_int_equal(now.qp_type, type);
		assert_ptr_equal(now.qp_context, &limits);
		assert_ptr_equal(now.send_cq, cq);
		assert_ptr_equal(now.recv_cq, cq);
		assert_null(now.srq);
		assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
		assert_int_equal(ibv_destroy_cq(cq), EBUSY);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}

static void refused(const struct ibv_qp_init_attr_ex *wanted_attr, int err)
{
	struct ibv_qp_init_attr_ex attr = *wanted_attr;

	assert_fails(ibv_create_qp_ex(ctx, &attr), err);
	assert_memory_equal(&attr, wanted_attr, sizeof(attr));
}

TEST(qp__kinds_that_are_not_there)
{
	static const int types[] = {0,
				    1,
				    IBV_QPT_UD + 1,
				    IBV_QPT_RAW_PACKET,
				    IBV_QPT_XRC_SEND,
				    IBV_QPT_XRC_RECV,
				    IBV_QPT_DRIVER};
	struct ibv_qp_init_attr_ex attr = wanted(IBV_QPT_RC);

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		attr.qp_type = types[i];
		refused(&attr, EOPNOTSUPP);
	}
	attr = wanted(IBV_QPT_RC);
	for (int bit = 0; bit < 32; bit++) {
		const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
				       IBV_QP_INIT_ATTR_CREATE_FLAGS;

		attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | 1u << bit;
		if (!(known & 1u << bit))
			refused(&attr, EOPNOTSUPP);
	}
	attr = wanted(IBV_QPT_RC);
	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	refused(&attr, EOPNOTSUPP);
	attr = wanted(IBV_QPT_RC);
	attr.comp_mask &= ~IBV_QP_INIT_ATTR_PD;
	refused(&attr, EINVAL);
	attr = wanted(IBV_QPT_RC);
	attr.recv_cq = NULL;
	refused(&attr, EINVAL);
}

/* wr_*() that a service does not have would be called through NULL. */
TEST(qp_ex__operations)
{
	const uint64_t one_way = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	const uint64_t writes = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
	const uint64_t two_way = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
				 IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE |
				 IBV_QP_EX_WITH_FLUSH;
	const uint64_t of[] = {[IBV_QPT_RC] = one_way | writes | two_way,
			       [IBV_QPT_UC] = one_way | writes,
			       [IBV_QPT_UD] = one_way};
	struct ibv_qp *plain = make(IBV_QPT_RC);

	assert_null(ibv_qp_to_qp_ex(plain));
	assert_int_equal(ibv_destroy_qp(plain), 0);
	for (enum ibv_qp_type type = IBV_QPT_RC; type <= IBV_QPT_UD; type++) {
		for (int bit = 0; bit < 64; bit++) {
			struct ibv_qp_init_attr_ex attr = wanted(type);

			attr.send_ops_flags = 1ull << bit;
			if (!(of[type] & 1ull << bit)) {
				refused(&attr, EOPNOTSUPP);
				continue;
			}
			plain = ibv_create_qp_ex(ctx, &attr);
			assert_non_null(plain);
			assert_int_equal(ibv_destroy_qp(plain), 0);
		}
	}
}

TEST(qp__beyond_the_limits)
{
	struct ibv_qp_init_attr_ex attr;

#define BEYOND(field, value)                                                                       \
	attr = wanted(IBV_QPT_RC);                                                                 \
	attr.cap.field = (uint32_t)(value);                                                        \
	refused(&attr, EINVAL)
	BEYOND(max_send_wr, limits.max_qp_wr + 1);
	BEYOND(max_recv_wr, limits.max_qp_wr + 1);
	BEYOND(max_send_wr, UINT32_MAX);
	BEYOND(max_recv_wr, UINT32_MAX);
	BEYOND(max_send_sge, limits.max_sge + 1);
	BEYOND(max_recv_sge, limits.max_sge + 1);
	BEYOND(max_send_sge, UINT32_MAX);
	BEYOND(max_inline_data, 1 << 20);
	BEYOND(max_inline_data, UINT32_MAX);
#undef BEYOND
	attr = wanted(IBV_QPT_RC);
	attr.cap = (struct ibv_qp_cap){.max_send_wr = (uint32_t)limits.max_qp_wr,
				       .max_recv_wr = (uint32_t)limits.max_qp_wr,
				       .max_send_sge = (uint32_t)limits.max_sge,
				       .max_recv_sge = (uint32_t)limits.max_sge};
	struct ibv_qp *qp = ibv_create_qp_ex(ctx, &attr);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* ---- states ---- */

enum {
	TO_INIT = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	TO_RTR = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	TO_RTS = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
};

/* All attributes of a connection, each with a different value. */
static struct ibv_qp_attr attributes(enum ibv_qp_state to)
{
	struct ibv_qp_attr a = {
		.qp_state = to,
		.path_mtu = IBV_MTU_512,
		.rq_psn = 0xabcdef,
		.sq_psn = 0x123456,
		.dest_qp_num = 0x1234,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.flow_label = 0x12345, .hop_limit = 7, .traffic_class = 0x21},
			    .sl = 5},
		.max_rd_atomic = 3,
		.max_dest_rd_atomic = 5,
		.min_rnr_timer = 9,
		.port_num = 1,
		.timeout = 11,
		.retry_cnt = 6,
		.rnr_retry = 5};

	assert_int_equal(ibv_query_gid(ctx, 1, 0, &a.ah_attr.grh.dgid), 0);
	return a;
}

static int modify(struct ibv_qp *qp, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = attributes(to);

	return ibv_modify_qp(qp, &attr, mask);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, attr.cur_qp_state);
	assert_int_equal(attr.qp_state, qp->state);
	return attr.qp_state;
}

TEST(states__there_and_back)
{
	struct ibv_qp *qp = make(IBV_QPT_RC);

	for (int round = 0; round < 2; round++) {
		assert_int_equal(modify(qp, IBV_QPS_RTR, TO_RTR), EINVAL);
		assert_int_equal(state_of(qp), IBV_QPS_RESET);
		assert_int_equal(modify(qp, IBV_QPS_INIT, TO_INIT), 0);
		assert_int_equal(state_of(qp), IBV_QPS_INIT);
		assert_int_equal(modify(qp, IBV_QPS_RTR, TO_RTR & ~IBV_QP_AV), EINVAL);
		assert_int_equal(modify(qp, IBV_QPS_RTR, TO_RTR | IBV_QP_SQ_PSN), EINVAL);
		assert_int_equal(modify(qp, IBV_QPS_RTR, TO_RTR), 0);
		assert_int_equal(state_of(qp), IBV_QPS_RTR);
		assert_int_equal(modify(qp, IBV_QPS_RTS, TO_RTS), 0);
		assert_int_equal(state_of(qp), IBV_QPS_RTS);
		/* SQD and SQE have other numbers in libsofthca. */
		assert_int_equal(modify(qp, IBV_QPS_SQD, IBV_QP_STATE), 0);
		assert_int_equal(state_of(qp), IBV_QPS_SQD);
		assert_int_equal(modify(qp, IBV_QPS_RTS, IBV_QP_STATE), 0);
		assert_int_equal(state_of(qp), IBV_QPS_RTS);
		assert_int_equal(modify(qp, IBV_QPS_SQE, IBV_QP_STATE), EINVAL);
		assert_int_equal(modify(qp, IBV_QPS_ERR, IBV_QP_STATE), 0);
		assert_int_equal(state_of(qp), IBV_QPS_ERR);
		assert_int_equal(modify(qp, IBV_QPS_RESET, IBV_QP_STATE), 0);
		assert_int_equal(state_of(qp), IBV_QPS_RESET);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* qp->state is what the last modification or query of the state said, whatever else was asked. */
TEST(states__public_state_by_the_mask)
{
	struct ibv_qp *qp = make(IBV_QPT_RC);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(modify(qp, IBV_QPS_INIT, TO_INIT), 0);
	attr = attributes(IBV_QPS_RESET);
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(qp->state, IBV_QPS_INIT);
	qp->state = IBV_QPS_UNKNOWN;
	assert_int_equal(ibv_query_qp(qp, &attr, ~IBV_QP_STATE, &init), 0);
	assert_int_equal(qp->state, IBV_QPS_UNKNOWN);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(qp->state, IBV_QPS_INIT);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

TEST(states__attributes_come_back)
{
	struct ibv_qp *qp = make(IBV_QPT_RC);
	struct ibv_qp_attr is, was = attributes(IBV_QPS_RTS);
	struct ibv_qp_init_attr init;

	assert_int_equal(modify(qp, IBV_QPS_INIT, TO_INIT), 0);
	assert_int_equal(modify(qp, IBV_QPS_RTR, TO_RTR), 0);
	assert_int_equal(modify(qp, IBV_QPS_RTS, TO_RTS), 0);
	assert_int_equal(ibv_query_qp(qp, &is, ~0, &init), 0);
#define BACK(field) assert_int_equal(is.field, was.field)
	BACK(path_mtu);
	BACK(rq_psn);
	BACK(sq_psn);
	BACK(dest_qp_num);
	BACK(qp_access_flags);
	BACK(max_rd_atomic);
	BACK(max_dest_rd_atomic);
	BACK(min_rnr_timer);
	BACK(port_num);
	BACK(timeout);
	BACK(retry_cnt);
	BACK(rnr_retry);
	BACK(ah_attr.is_global);
	BACK(ah_attr.port_num);
	BACK(ah_attr.grh.flow_label);
	BACK(ah_attr.grh.hop_limit);
	BACK(ah_attr.grh.traffic_class);
	BACK(ah_attr.sl);
	BACK(ah_attr.grh.sgid_index);
#undef BACK
	assert_memory_equal(&is.ah_attr.grh.dgid, &was.ah_attr.grh.dgid, 16);
	assert_int_equal(is.path_mig_state, IBV_MIG_MIGRATED);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

TEST(states__datagrams)
{
	struct ibv_qp *qp = make(IBV_QPT_UD);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x1ee7};
	struct ibv_qp_init_attr init;
	int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;

	assert_int_equal(ibv_modify_qp(qp, &attr, to_init & ~IBV_QP_QKEY), EINVAL);
	assert_int_equal(ibv_modify_qp(qp, &attr, to_init), 0);
	assert_int_equal(modify(qp, IBV_QPS_RTR, IBV_QP_STATE), 0);
	assert_int_equal(modify(qp, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	assert_int_equal(ibv_query_qp(qp, &attr, ~0, &init), 0);
	assert_int_equal(attr.qkey, 0x1ee7);
	assert_int_equal(attr.ah_attr.is_global, 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* ibv_set_ece() takes what the peer can do and gives back what both can; nothing of other makers, or that
 * another maker's device has put under our number. */
TEST(ece__both_can)
{
	enum { OURS = 0x025348, ALL = 0x53480001 };
	static const struct {
		struct ibv_ece peer;
		uint32_t agreed;
	} rows[] = {
		{{OURS, ALL, 0}, ALL},	    {{OURS, ALL | 0xfffe, 0}, ALL},
		{{OURS, 0x53480000, 0}, 0}, {{OURS, 1, 0}, 0},
		{{OURS, 0x10000001, 0}, 0}, {{OURS, 0, 0}, 0},
		{{0x15b3, ALL, 0}, 0},	    {{0, 0, 0}, 0},
	};
	struct ibv_qp *qp = make(IBV_QPT_RC);
	struct ibv_ece ece;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(ibv_query_ece(qp, &ece), 0);
		assert_true(ece.vendor_id == OURS && ece.options == ALL && !ece.comp_mask);
		if (i % 2)
			assert_int_equal(modify(qp, IBV_QPS_INIT, TO_INIT), 0);
		ece = rows[i].peer;
		assert_int_equal(ibv_set_ece(qp, &ece), 0);
		assert_int_equal(ece.vendor_id, rows[i].peer.vendor_id);
		assert_int_equal(ece.options, rows[i].agreed);
		assert_int_equal(ibv_query_ece(qp, &ece), rows[i].agreed ? 0 : EOPNOTSUPP);
		assert_int_equal(ece.options, rows[i].agreed);
		assert_int_equal(modify(qp, IBV_QPS_RESET, IBV_QP_STATE), 0);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

TEST(ece__too_late_or_impossible)
{
	struct ibv_qp *qp = make(IBV_QPT_RC), *ud = make(IBV_QPT_UD);
	struct ibv_ece ece = {0x025348, 0x53480001, 1};

	assert_int_equal(ibv_set_ece(qp, &ece), EINVAL);
	ece.comp_mask = 0;
	assert_int_equal(modify(qp, IBV_QPS_INIT, TO_INIT), 0);
	assert_int_equal(modify(qp, IBV_QPS_RTR, TO_RTR), 0);
	assert_int_equal(ibv_set_ece(qp, &ece), EINVAL);
	assert_int_equal(ibv_query_ece(qp, &ece), EOPNOTSUPP); /* nothing was agreed */
	assert_int_equal(ibv_query_ece(ud, &ece), EOPNOTSUPP);
	assert_true(!ece.vendor_id && !ece.options);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_qp(ud), 0);
}

TEST(states__addresses_that_cannot_be)
{
	struct ibv_qp *qp = make(IBV_QPT_RC);
	struct ibv_qp_attr a = attributes(IBV_QPS_RTR);

	assert_int_equal(modify(qp, IBV_QPS_INIT, TO_INIT), 0);
	a.ah_attr.is_global = 0; /* RoCE has no others */
	assert_int_equal(ibv_modify_qp(qp, &a, TO_RTR), EINVAL);
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 2;
	assert_int_equal(ibv_modify_qp(qp, &a, TO_RTR), EINVAL);
	a.ah_attr.port_num = 1;
	a.ah_attr.grh.sgid_index = 99;
	assert_int_equal(ibv_modify_qp(qp, &a, TO_RTR), EINVAL);
	a.ah_attr.grh.sgid_index = 0;
	assert_int_equal(ibv_modify_qp(qp, &a, TO_RTR | IBV_QP_ALT_PATH), EINVAL);
	a.path_mtu = 0;
	assert_int_equal(ibv_modify_qp(qp, &a, TO_RTR), EINVAL);
	a.path_mtu = IBV_MTU_4096 + 1;
	assert_int_equal(ibv_modify_qp(qp, &a, TO_RTR), EINVAL);
	a.path_mtu = IBV_MTU_1024;
	assert_int_equal(ibv_modify_qp(qp, &a, TO_RTR), 0);
	assert_int_equal(modify(qp, IBV_QPS_RTS, TO_RTS | IBV_QP_RATE_LIMIT), EOPNOTSUPP);
	a = attributes(IBV_QPS_RTS);
	a.path_mig_state = IBV_MIG_REARM; /* without an alternate path */
	assert_int_equal(ibv_modify_qp(qp, &a, TO_RTS | IBV_QP_PATH_MIG_STATE), EINVAL);
	assert_int_equal(modify(qp, IBV_QPS_RTS, TO_RTS | IBV_QP_CAP), EINVAL);
	assert_int_equal(modify(qp, IBV_QPS_RTS, TO_RTS), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

TEST(states__places_in_init)
{
	struct ibv_qp *qp = make(IBV_QPT_RC);
	struct ibv_qp_attr a = attributes(IBV_QPS_INIT);

	a.port_num = 2;
	assert_int_equal(ibv_modify_qp(qp, &a, TO_INIT), EINVAL);
	a.port_num = 1;
	a.pkey_index = 1;
	assert_int_equal(ibv_modify_qp(qp, &a, TO_INIT), EINVAL);
	a.pkey_index = 256; /* more than libsofthca has bits for */
	assert_int_equal(ibv_modify_qp(qp, &a, TO_INIT), EINVAL);
	a.pkey_index = 0;
	assert_int_equal(ibv_modify_qp(qp, &a, TO_INIT), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* ---- capacities ---- */

/* Posts one request of n entries, each a byte of memory that is never read. */
static int send(struct ibv_qp *qp, struct ibv_ah *ah, int n, unsigned int flags)
{
	uint8_t bytes[64];
	struct ibv_sge sge[32];
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .sg_list = sge,
				 .num_sge = n,
				 .send_flags = flags},
			   *bad;

	for (int i = 0; i < 32; i++)
		sge[i] = (struct ibv_sge){.addr = (uintptr_t)bytes, .length = 1};
	if (qp->qp_type == IBV_QPT_UD)
		wr.wr.ud.ah = ah;
	return ibv_post_send(qp, &wr, &bad);
}

static int receive(struct ibv_qp *qp, struct ibv_srq *srq, int n)
{
	struct ibv_sge sge[32] = {{0}};
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = n}, *bad;

	return srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad);
}

/* A queue pair that takes requests and does none of them. */
static void make_fail(struct ibv_qp *qp)
{
	int service = qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;

	assert_int_equal(modify(qp, IBV_QPS_INIT, (TO_INIT & ~IBV_QP_ACCESS_FLAGS) | service), 0);
	assert_int_equal(modify(qp, IBV_QPS_ERR, IBV_QP_STATE), 0);
}

/* Neither less nor more: programs size their arrays by what they asked for. */
TEST(qp__capacities_as_asked)
{
	static const struct ibv_qp_cap rows[] = {
		{1, 1, 1, 1, 16},     {3, 5, 6, 7, 17},	      {10, 20, 2, 3, 50},
		{17, 33, 12, 9, 100}, {64, 128, 14, 14, 300},
	};
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1};
	struct ibv_ah *ah;

	assert_int_equal(ibv_query_gid(ctx, 1, 0, &to.grh.dgid), 0);
	ah = ibv_create_ah(pd, &to);
	for (size_t i = 0; i < 3 * sizeof(rows) / sizeof(rows[0]); i++) {
		const struct ibv_qp_cap *cap = &rows[i / 3];
		struct ibv_qp_init_attr_ex attr = wanted(IBV_QPT_RC + i % 3);
		struct ibv_qp_init_attr now;
		struct ibv_qp_attr is;
		struct ibv_qp *qp;

		attr.comp_mask = IBV_QP_INIT_ATTR_PD;
		attr.cap = *cap;
		qp = ibv_create_qp_ex(ctx, &attr);
		assert_non_null(qp);
		assert_memory_equal(&attr.cap, cap, sizeof(*cap));
		make_fail(qp);
		assert_int_equal(ibv_query_qp(qp, &is, IBV_QP_CAP, &now), 0);
		assert_memory_equal(&is.cap, cap, sizeof(*cap));
		assert_memory_equal(&now.cap, cap, sizeof(*cap));
		assert_int_equal(send(qp, ah, (int)cap->max_send_sge + 1, 0), EINVAL);
		assert_int_equal(receive(qp, NULL, (int)cap->max_recv_sge + 1), EINVAL);
		for (uint32_t n = 0; n < cap->max_send_wr; n++)
			assert_int_equal(send(qp, ah, (int)cap->max_send_sge, 0), 0);
		for (uint32_t n = 0; n < cap->max_recv_wr; n++)
			assert_int_equal(receive(qp, NULL, (int)cap->max_recv_sge), 0);
		assert_int_equal(send(qp, ah, 1, 0), ENOMEM);
		assert_int_equal(receive(qp, NULL, 1), ENOMEM);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* More inline than was asked for is refused, except for what stands in the place of one entry, 16
 * bytes: programs rely on that (rdma_xclient). */
TEST(qp__inline_as_asked)
{
	static const int asked[] = {0, 16, 20, 31};

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		struct ibv_qp_init_attr_ex attr = wanted(IBV_QPT_RC);
		int most = asked[i] < 16 ? 16 : asked[i];
		struct ibv_qp *qp;

		attr.comp_mask = IBV_QP_INIT_ATTR_PD;
		attr.cap.max_inline_data = (uint32_t)asked[i];
		qp = ibv_create_qp_ex(ctx, &attr);
		assert_int_equal(attr.cap.max_inline_data, asked[i]);
		make_fail(qp);
		assert_int_equal(send(qp, NULL, most, IBV_SEND_INLINE), 0);
		assert_int_equal(send(qp, NULL, most + 1, IBV_SEND_INLINE), EINVAL);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}

/* ---- shared receive queues ---- */

TEST(srq__made_queried_limited)
{
	struct ibv_srq_init_attr init = {.srq_context = &init,
					 .attr = {.max_wr = 10, .max_sge = 3, .srq_limit = 99}};
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	struct ibv_srq_attr is, to = {.srq_limit = 4};
	uint32_t number = 0;

	assert_non_null(srq);
	assert_int_equal(init.attr.max_wr, 10);
	assert_int_equal(init.attr.max_sge, 3);
	assert_ptr_equal(srq->context, ctx);
	assert_ptr_equal(srq->srq_context, &init);
	assert_ptr_equal(srq->pd, pd);
	assert_int_equal(ibv_get_srq_num(srq, &number), 0);
	assert_int_not_equal(number, 0);
	assert_int_equal(ibv_query_srq(srq, &is), 0);
	assert_int_equal(is.max_wr, init.attr.max_wr);
	assert_int_equal(is.max_sge, init.attr.max_sge);
	assert_int_equal(is.srq_limit, 0); /* not at creation */
	assert_int_equal(ibv_modify_srq(srq, &to, 0), 0);
	to.srq_limit = init.attr.max_wr + 1;
	assert_int_equal(ibv_modify_srq(srq, &to, IBV_SRQ_LIMIT), EINVAL);
	assert_int_equal(ibv_modify_srq(srq, &to, IBV_SRQ_MAX_WR), EOPNOTSUPP);
	assert_int_equal(ibv_modify_srq(srq, &to, 1 << 5), EINVAL);
	to.srq_limit = 0;
	assert_int_equal(ibv_modify_srq(srq, &to, IBV_SRQ_LIMIT), 0);
	assert_int_equal(receive(NULL, srq, 4), EINVAL);
	for (int i = 0; i < 10; i++)
		assert_int_equal(receive(NULL, srq, 3), 0);
	assert_int_equal(receive(NULL, srq, 3), ENOMEM);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

TEST(srq__held_by_its_queue_pairs)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 10, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	struct ibv_qp_init_attr_ex attr = wanted(IBV_QPT_RC);
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad = NULL;
	struct ibv_qp_init_attr now;
	struct ibv_qp_attr is;
	struct ibv_qp *qp;

	attr.srq = srq;
	attr.cap.max_recv_wr = attr.cap.max_recv_sge = UINT32_MAX; /* says nothing then */
	qp = ibv_create_qp_ex(ctx, &attr);
	assert_non_null(qp);
	assert_int_equal(attr.cap.max_recv_wr | attr.cap.max_recv_sge, 0);
	assert_int_equal(ibv_query_qp(qp, &is, ~0, &now), 0);
	assert_ptr_equal(now.srq, srq);
	assert_ptr_equal(qp->srq, srq);
	assert_int_equal(modify(qp, IBV_QPS_INIT, TO_INIT), 0);
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

TEST(srq__refused)
{
	struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 10, .max_sge = 1},
					    .comp_mask =
						    IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
					    .srq_type = IBV_SRQT_BASIC,
					    .pd = pd};
	struct ibv_srq_init_attr plain = {.attr = {.max_wr = 0, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq_ex(ctx, &attr);

	assert_non_null(srq);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	for (enum ibv_srq_type type = IBV_SRQT_XRC; type <= IBV_SRQT_TM; type++) {
		attr.srq_type = type;
		assert_fails(ibv_create_srq_ex(ctx, &attr), EOPNOTSUPP);
	}
	assert_fails(ibv_create_srq(pd, &plain), EINVAL);
	plain.attr.max_wr = (uint32_t)limits.max_srq_wr + 1;
	assert_fails(ibv_create_srq(pd, &plain), EINVAL);
	plain.attr =
		(struct ibv_srq_attr){.max_wr = 1, .max_sge = (uint32_t)limits.max_srq_sge + 1};
	assert_fails(ibv_create_srq(pd, &plain), EINVAL);
}
