/* SPDX-License-Identifier: BSD-3-Clause */
/* Domains, regions, windows, address handles, channels, imports and what the device refuses,
 * against a whole daemon: what is in use stays, and each errno is the documented one. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

#include "../control/hca_test.h"
#include "first.h"

enum { BYTES = 8192, ALL = 0xf };

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static uint8_t *memory;

static int set_up(void **state)
{
	start(state);
	ctx = open_first();
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	memory = calloc(1, BYTES);
	return pd && memory ? 0 : -1;
}

static int tear_down(void **state)
{
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
	free(memory);
	return stop(state);
}

/* ---- domains ---- */

#undef TEST
#define TEST(name) TEST_STATE(name, set_up, tear_down, NULL)

TEST(domain__in_use)
{
	struct ibv_pd *own = ibv_alloc_pd(ctx);
	struct ibv_mr *mr = ibv_reg_mr(own, memory, BYTES, IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	assert_int_not_equal(own->handle, pd->handle);
	assert_int_equal(ibv_dealloc_pd(own), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(own), 0);
}

static void *allocate(struct ibv_pd *d, void *context, size_t size, size_t align, uint64_t type)
{
	return IBV_ALLOCATOR_USE_DEFAULT;
}

static void release(struct ibv_pd *d, void *context, void *at, uint64_t type)
{
}

TEST(parent_domain__holds_its_parts)
{
	struct ibv_td_init_attr none = {0};
	struct ibv_td *td = ibv_alloc_td(ctx, &none);
	struct ibv_parent_domain_init_attr attr = {.pd = pd,
						   .td = td,
						   .comp_mask =
							   IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
							   IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
						   .alloc = allocate,
						   .free = release,
						   .pd_context = memory};
	struct ibv_pd *parent = ibv_alloc_parent_domain(ctx, &attr);
	struct ibv_mr *mr;

	assert_non_null(td);
	assert_non_null(parent);
	mr = ibv_reg_mr(parent, memory, BYTES, 0);
	assert_non_null(mr);
	assert_ptr_equal(mr->pd, parent);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
}

TEST(parent_domain__refused)
{
	struct ibv_td_init_attr td = {.comp_mask = 1};
	struct ibv_parent_domain_init_attr attr = {0};
	struct ibv_pd *parent;

	assert_fails(ibv_alloc_td(ctx, &td), EOPNOTSUPP);
	assert_fails(ibv_alloc_parent_domain(ctx, &attr), EINVAL);
	attr.pd = pd;
	attr.comp_mask = 1u << 31;
	assert_fails(ibv_alloc_parent_domain(ctx, &attr), EOPNOTSUPP);
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	assert_fails(ibv_alloc_parent_domain(ctx, &attr), EINVAL);
	attr.comp_mask = 0;
	parent = ibv_alloc_parent_domain(ctx, &attr);
	assert_non_null(parent);
	attr.pd = parent;
	assert_fails(ibv_alloc_parent_domain(ctx, &attr), EINVAL);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
}

/* ---- regions ---- */

TEST(region__rights)
{
	static const struct {
		unsigned int access;
		int error;
	} rows[] = {
		{0, 0},
		{ALL, 0},
		{IBV_ACCESS_REMOTE_READ, 0},
		{IBV_ACCESS_REMOTE_WRITE, EINVAL},
		{IBV_ACCESS_REMOTE_ATOMIC, EINVAL},
		{IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_WRITE, EINVAL},
		{ALL | IBV_ACCESS_MW_BIND, 0},
		{ALL | IBV_ACCESS_ZERO_BASED, 0},
		{ALL | IBV_ACCESS_HUGETLB, 0},
		{ALL | 1 << 8, 0},	/* IBV_ACCESS_FLUSH_GLOBAL of libibverbs 45 */
		{ALL | 1 << 9, EINVAL}, /* IBV_ACCESS_FLUSH_PERSISTENT */
		{ALL | IBV_ACCESS_ON_DEMAND, EOPNOTSUPP},
		{ALL | 1 << 10, EINVAL},
		{ALL | 1u << 30, EINVAL},
		{ALL | IBV_ACCESS_RELAXED_ORDERING, 0},
		{ALL | 1 << 29, 0},
		{IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_RELAXED_ORDERING, EINVAL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned int access = rows[i].access;
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_mr(pd, memory, BYTES, access);
		if (!mr && !rows[i].error)
			fail_msg("access 0x%x: %s", access, strerror(errno));
		if (mr && rows[i].error)
			fail_msg("access 0x%x was taken", access);
		if (!mr) {
			assert_int_equal(errno, rows[i].error);
			continue;
		}
		assert_ptr_equal(mr->addr, memory);
		assert_int_equal(mr->length, BYTES);
		assert_ptr_equal(mr->pd, pd);
		assert_ptr_equal(mr->context, ctx);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
}

TEST(region__at_another_address)
{
	struct ibv_mr *mr = ibv_reg_mr_iova(pd, memory, BYTES, 0x1000, ALL);
	struct ibv_mr *other = ibv_reg_mr_iova2(pd, memory, BYTES, UINT64_MAX - 2 * BYTES,
						ALL | IBV_ACCESS_RELAXED_ORDERING);

	assert_non_null(mr);
	assert_non_null(other);
	assert_int_not_equal(mr->lkey, other->lkey);
	assert_int_not_equal(mr->handle, other->handle);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dereg_mr(other), 0);
}

TEST(region__registered_again)
{
	struct ibv_pd *to = ibv_alloc_pd(ctx);
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, BYTES, ALL);
	uint32_t lkey = mr->lkey;

	assert_int_equal(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_rereg_mr(mr, 8, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, to, NULL, 0, 1),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_REMOTE_WRITE),
			 IBV_REREG_MR_ERR_INPUT);
	assert_ptr_equal(mr->pd, pd);
	assert_int_equal(ibv_rereg_mr(mr,
				      IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_TRANSLATION |
					      IBV_REREG_MR_CHANGE_ACCESS,
				      to, memory + 1, 100, IBV_ACCESS_LOCAL_WRITE),
			 0);
	assert_ptr_equal(mr->pd, to);
	assert_ptr_equal(mr->addr, memory + 1);
	assert_int_equal(mr->length, 100);
	assert_int_equal(mr->lkey, lkey);
	assert_int_equal(ibv_dealloc_pd(to), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(to), 0);
}

/* ---- windows, addresses, channels ---- */

TEST(window__of_both_types)
{
	for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		struct ibv_pd *own = ibv_alloc_pd(ctx);
		struct ibv_mw *mw = ibv_alloc_mw(own, type);

		assert_non_null(mw);
		assert_ptr_equal(mw->pd, own);
		assert_ptr_equal(mw->context, ctx);
		assert_int_equal(mw->type, type);
		assert_int_equal(ibv_dealloc_pd(own), EBUSY);
		assert_int_equal(ibv_dealloc_mw(mw), 0);
		assert_int_equal(ibv_dealloc_pd(own), 0);
	}
	assert_fails(ibv_alloc_mw(pd, 3), EINVAL);
}

TEST(address__needs_a_global_route)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	uint8_t mac[ETHERNET_LL_SIZE] = {0};
	struct ibv_ah *ah;
	uint16_t vlan = 0;

	assert_int_equal(ibv_query_gid(ctx, 1, 0, &attr.grh.dgid), 0);
	ah = ibv_create_ah(pd, &attr);
	assert_non_null(ah);
	assert_ptr_equal(ah->pd, pd);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_resolve_eth_l2_from_gid(ctx, &attr, mac, &vlan), 0);
	assert_int_equal(vlan, 0xffff);
	assert_int_not_equal(mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5], 0);
	attr.is_global = 0;
	assert_fails(ibv_create_ah(pd, &attr), EINVAL);
	attr.is_global = 1;
	attr.port_num = 2;
	assert_fails(ibv_create_ah(pd, &attr), EINVAL);
	attr.port_num = 1;
	attr.grh.sgid_index = 255;
	assert_fails(ibv_create_ah(pd, &attr), EINVAL);
	assert_int_equal(ibv_resolve_eth_l2_from_gid(ctx, &attr, mac, &vlan), EINVAL);
}

/* From ::ffff:a.b.c.d as it lies in front of a datagram: behind 20 zeros, as an IPv4 header. */
TEST(address__of_who_sent)
{
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH, .sl = 3};
	struct ibv_ah_attr attr;
	struct ibv_grh grh = {0};
	uint8_t *ip = (uint8_t *)&grh + 20;
	union ibv_gid ours;
	struct ibv_ah *ah;

	assert_int_equal(ibv_query_gid(ctx, 1, 0, &ours), 0);
	ip[0] = 0x45;
	ip[1] = 7;
	memcpy(ip + 12, ours.raw + 12, 4);
	memcpy(ip + 16, ours.raw + 12, 4);
	assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &wc, &grh, &attr), 0);
	assert_memory_equal(&attr.grh.dgid, &ours, sizeof(ours));
	assert_int_equal(attr.grh.sgid_index, 0);
	assert_int_equal(attr.grh.traffic_class, 7);
	assert_int_equal(attr.sl, 0); /* what came was the name of a header */
	assert_int_equal(attr.is_global, 1);
	ah = ibv_create_ah_from_wc(pd, &wc, &grh, 1);
	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	ip[19] ^= 0x55; /* not to us */
	assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &wc, &grh, &attr), -1);
	assert_fails(ibv_create_ah_from_wc(pd, &wc, &grh, 1), EINVAL);
	ip[0] = 0;
	assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &wc, &grh, &attr), -1);
	wc.wc_flags = 0;
	assert_int_equal(ibv_init_ah_from_wc(ctx, 1, &wc, &grh, &attr), -1);
}

/* The fields that a program may read of a new object; `other` has another handle. */
#define NEW(object, other)                                                                         \
	do {                                                                                       \
		assert_non_null(object);                                                           \
		assert_non_null(other);                                                            \
		assert_ptr_equal((object)->context, ctx);                                          \
		assert_int_not_equal((object)->handle, (other)->handle);                           \
	} while (0)
#define NOTHING_COMPLETED(object, counter)                                                         \
	do {                                                                                       \
		assert_int_equal((object)->counter, 0);                                            \
		assert_int_equal(pthread_mutex_trylock(&(object)->mutex), 0);                      \
		assert_int_equal(pthread_cond_signal(&(object)->cond), 0);                         \
		assert_int_equal(pthread_mutex_unlock(&(object)->mutex), 0);                       \
	} while (0)

TEST(fields__of_a_context)
{
	assert_non_null(ctx->device);
	assert_true(ctx->cmd_fd >= 0 && ctx->async_fd >= 0);
	assert_int_equal(ctx->num_comp_vectors, 1);
	assert_ptr_equal(ctx->abi_compat, __VERBS_ABI_IS_EXTENDED);
	assert_int_equal(pthread_mutex_trylock(&ctx->mutex), 0);
	assert_int_equal(pthread_mutex_trylock(&ctx->mutex), EBUSY);
	assert_int_equal(pthread_mutex_unlock(&ctx->mutex), 0);
}

TEST(fields__of_new_objects)
{
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1};
	struct ibv_srq_init_attr srq_attr = {.srq_context = memory, .attr = {4, 1, 0}};
	struct ibv_qp_init_attr qp_attr = {.qp_context = memory,
					   .cap = {.max_send_wr = 1, .max_send_sge = 1},
					   .qp_type = IBV_QPT_RC};
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_mr *mr[2];
	struct ibv_mw *mw[2];
	struct ibv_ah *ah[2];
	struct ibv_cq *cq[2];
	struct ibv_srq *srq[2];
	struct ibv_qp *qp[2];

	assert_int_equal(ibv_query_gid(ctx, 1, 0, &to.grh.dgid), 0);
	for (int i = 0; i < 2; i++) {
		mr[i] = ibv_reg_mr(pd, memory, BYTES, ALL);
		mw[i] = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
		ah[i] = ibv_create_ah(pd, &to);
		cq[i] = ibv_create_cq(ctx, 4, memory, i ? NULL : channel, 0);
		srq[i] = ibv_create_srq(pd, &srq_attr);
		qp_attr.send_cq = qp_attr.recv_cq = cq[i];
		qp_attr.srq = srq[i];
		qp[i] = ibv_create_qp(pd, &qp_attr);
	}
	NEW(mr[0], mr[1]);
	assert_int_not_equal(mr[0]->lkey, mr[1]->lkey);
	NEW(mw[0], mw[1]);
	assert_int_not_equal(mw[0]->rkey, mw[1]->rkey);
	NEW(ah[0], ah[1]);
	assert_ptr_equal(channel->context, ctx);
	NEW(cq[0], cq[1]);
	assert_ptr_equal(cq[0]->channel, channel);
	assert_null(cq[1]->channel);
	assert_ptr_equal(cq[0]->cq_context, memory);
	NOTHING_COMPLETED(cq[0], comp_events_completed);
	NOTHING_COMPLETED(cq[0], async_events_completed);
	NEW(srq[0], srq[1]);
	NOTHING_COMPLETED(srq[0], events_completed);
	NEW(qp[0], qp[1]);
	NOTHING_COMPLETED(qp[0], events_completed);
	assert_ptr_equal(qp[0]->qp_context, memory);
	assert_ptr_equal(qp[0]->srq, srq[0]);
	assert_int_not_equal(qp[0]->qp_num, qp[1]->qp_num);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
		assert_int_equal(ibv_destroy_srq(srq[i]), 0);
		assert_int_equal(ibv_destroy_cq(cq[i]), 0);
		assert_int_equal(ibv_destroy_ah(ah[i]), 0);
		assert_int_equal(ibv_dealloc_mw(mw[i]), 0);
		assert_int_equal(ibv_dereg_mr(mr[i]), 0);
	}
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

/* ---- handles that are none ---- */

/* One object of each kind, each holding those before it; the inline functions of verbs.h look into
 * what they are given. */
struct zoo {
	struct ibv_pd *pd;
	struct ibv_td *td;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_ah *ah;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
};

static void zoo_open(struct zoo *z)
{
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1};
	struct ibv_srq_init_attr srq = {.attr = {4, 1, 0}};
	struct ibv_qp_init_attr qp = {.cap = {.max_send_wr = 1}, .qp_type = IBV_QPT_UD};

	assert_int_equal(ibv_query_gid(ctx, 1, 0, &to.grh.dgid), 0);
	z->pd = ibv_alloc_pd(ctx);
	z->td = ibv_alloc_td(ctx, &(struct ibv_td_init_attr){0});
	z->mr = ibv_reg_mr(z->pd, memory, BYTES, ALL);
	z->mw = ibv_alloc_mw(z->pd, IBV_MW_TYPE_1);
	z->ah = ibv_create_ah(z->pd, &to);
	z->channel = ibv_create_comp_channel(ctx);
	z->cq = ibv_create_cq(ctx, 4, memory, z->channel, 0);
	z->srq = ibv_create_srq(z->pd, &srq);
	qp.send_cq = qp.recv_cq = z->cq;
	qp.srq = z->srq;
	z->qp = ibv_create_qp(z->pd, &qp);
	assert_non_null(z->qp);
}

#define DESTROYER(name, type, function)                                                            \
	static int name(void *object)                                                              \
	{                                                                                          \
		return function((struct type *)object);                                            \
	}
DESTROYER(end_qp, ibv_qp, ibv_destroy_qp)
DESTROYER(end_srq, ibv_srq, ibv_destroy_srq)
DESTROYER(end_cq, ibv_cq, ibv_destroy_cq)
DESTROYER(end_channel, ibv_comp_channel, ibv_destroy_comp_channel)
DESTROYER(end_ah, ibv_ah, ibv_destroy_ah)
DESTROYER(end_mw, ibv_mw, ibv_dealloc_mw)
DESTROYER(end_mr, ibv_mr, ibv_dereg_mr)
DESTROYER(end_td, ibv_td, ibv_dealloc_td)
DESTROYER(end_pd, ibv_pd, ibv_dealloc_pd)

/* Leaves errno: rdma_create_qp() of librdmacm destroys what it has made, and then reports why it failed. */
static void zoo_close(struct zoo *z)
{
	errno = EDOM;
	assert_int_equal(end_qp(z->qp) + end_srq(z->srq) + end_cq(z->cq), 0);
	assert_int_equal(end_channel(z->channel) + end_ah(z->ah) + end_mw(z->mw), 0);
	assert_int_equal(end_mr(z->mr) + end_td(z->td) + end_pd(z->pd), 0);
	assert_int_equal(errno, EDOM);
}

TEST(handles__garbled_or_gone)
{
	static uint64_t nothing[64];
	struct zoo z;

	zoo_open(&z);
	const struct {
		int (*destroy)(void *object);
		void *object;
		uint32_t *handle; /* NULL: it has none */
		bool is_inline;
	} rows[] = {
		{end_qp, z.qp, &z.qp->handle, false}, {end_srq, z.srq, &z.srq->handle, false},
		{end_cq, z.cq, &z.cq->handle, false}, {end_channel, z.channel, NULL, false},
		{end_ah, z.ah, &z.ah->handle, false}, {end_mw, z.mw, &z.mw->handle, true},
		{end_mr, z.mr, &z.mr->handle, false}, {end_td, z.td, NULL, true},
		{end_pd, z.pd, &z.pd->handle, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int bit = 0; bit < 32 && rows[i].handle; bit++) {
			*rows[i].handle ^= 1u << bit;
			assert_int_equal(rows[i].destroy(rows[i].object), EINVAL);
			*rows[i].handle ^= 1u << bit;
		}
		assert_int_equal(rows[i].destroy(rows[i].object), 0);
		assert_int_equal(rows[i].destroy(rows[i].object), EINVAL);
		if (rows[i].is_inline)
			continue;
		assert_int_equal(rows[i].destroy(NULL), EINVAL);
		assert_int_equal(rows[i].destroy(nothing + 8), EINVAL);
		assert_int_equal(rows[i].destroy((uint8_t *)ctx + 3), EINVAL);
	}
}

/* Verbs that end no object of the zoo: 0, or what the program sees as an error. They undo what they
 * make. */
#define LOOKER(name, expression)                                                                   \
	static int name(const struct zoo *z)                                                       \
	{                                                                                          \
		return expression;                                                                 \
	}

static int made(void *object, int (*end)(void *object))
{
	return object ? end(object) : errno;
}

static union ibv_gid multicast = {.raw = {[10] = 0xff, [11] = 0xff, 239, 1, 2, 3}};

static struct ibv_qp *qp_of(const struct zoo *z)
{
	return ibv_create_qp(z->pd, &(struct ibv_qp_init_attr){.send_cq = z->cq,
							       .recv_cq = z->cq,
							       .srq = z->srq,
							       .cap = {.max_send_wr = 1},
							       .qp_type = IBV_QPT_RC});
}

static struct ibv_qp *qp_ex_of(const struct zoo *z)
{
	const uint32_t mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

	return ibv_create_qp_ex(ctx,
				&(struct ibv_qp_init_attr_ex){.send_cq = z->cq,
							      .recv_cq = z->cq,
							      .srq = z->srq,
							      .pd = z->pd,
							      .comp_mask = mask,
							      .send_ops_flags = IBV_QP_EX_WITH_SEND,
							      .cap = {.max_send_wr = 1},
							      .qp_type = IBV_QPT_RC});
}

static struct ibv_ah *ah_of(const struct zoo *z)
{
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1};

	assert_int_equal(ibv_query_gid(ctx, 1, 0, &to.grh.dgid), 0);
	return ibv_create_ah(z->pd, &to);
}

static struct ibv_srq *srq_of(const struct zoo *z)
{
	return ibv_create_srq(z->pd, &(struct ibv_srq_init_attr){.attr = {4, 1, 0}});
}

LOOKER(query_qp,
       ibv_query_qp(z->qp, &(struct ibv_qp_attr){0}, IBV_QP_STATE, &(struct ibv_qp_init_attr){0}))
LOOKER(modify_qp,
       ibv_modify_qp(z->qp,
		     &(struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1},
		     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
LOOKER(attach, ibv_attach_mcast(z->qp, &multicast, 0))
LOOKER(detach, ibv_detach_mcast(z->qp, &multicast, 0))
LOOKER(resize_cq, ibv_resize_cq(z->cq, 8))
LOOKER(query_srq, ibv_query_srq(z->srq, &(struct ibv_srq_attr){0}))
LOOKER(modify_srq, ibv_modify_srq(z->srq, &(struct ibv_srq_attr){.srq_limit = 1}, IBV_SRQ_LIMIT))
LOOKER(rereg_mr, ibv_rereg_mr(z->mr, IBV_REREG_MR_CHANGE_PD, z->pd, NULL, 0, 0) ? EINVAL : 0)
LOOKER(reg_mr, made(ibv_reg_mr_iova(z->pd, memory, BYTES, 0, ALL), end_mr))
LOOKER(null_mr, made(ibv_alloc_null_mr(z->pd), end_mr))
LOOKER(alloc_mw, made(ibv_alloc_mw(z->pd, IBV_MW_TYPE_2), end_mw))
LOOKER(create_ah, made(ah_of(z), end_ah))
LOOKER(create_srq, made(srq_of(z), end_srq))
LOOKER(create_qp, made(qp_of(z), end_qp))
LOOKER(create_qp_ex, made(qp_ex_of(z), end_qp))
LOOKER(parent,
       made(ibv_alloc_parent_domain(ctx, &(struct ibv_parent_domain_init_attr){.pd = z->pd}),
	    end_pd))

TEST(handles__garbled_ones_change_nothing)
{
	struct zoo z;

	zoo_open(&z);
	const struct {
		int (*call)(const struct zoo *z);
		uint32_t *handle;
	} rows[] = {
		{query_qp, &z.qp->handle},     {modify_qp, &z.qp->handle},
		{attach, &z.qp->handle},       {detach, &z.qp->handle},
		{resize_cq, &z.cq->handle},    {query_srq, &z.srq->handle},
		{modify_srq, &z.srq->handle},  {rereg_mr, &z.mr->handle},
		{rereg_mr, &z.pd->handle},     {reg_mr, &z.pd->handle},
		{null_mr, &z.pd->handle},      {alloc_mw, &z.pd->handle},
		{create_ah, &z.pd->handle},    {create_srq, &z.pd->handle},
		{create_qp, &z.pd->handle},    {create_qp, &z.cq->handle},
		{create_qp, &z.srq->handle},   {create_qp_ex, &z.pd->handle},
		{create_qp_ex, &z.cq->handle}, {create_qp_ex, &z.srq->handle},
		{parent, &z.pd->handle},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int bit = 0; bit < 32; bit++) {
			*rows[i].handle ^= 1u << bit;
			assert_int_equal(rows[i].call(&z), EINVAL);
			*rows[i].handle ^= 1u << bit;
		}
		assert_int_equal(rows[i].call(&z), 0);
	}
	zoo_close(&z);
}

/* These return nothing: what they do not know stays as it is. */
TEST(handles__garbled_ones_are_not_unimported)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, BYTES, ALL), *m = ibv_import_mr(pd, mr->handle);
	struct ibv_pd *d = ibv_import_pd(ctx, pd->handle);

	for (int bit = 0; bit < 32; bit++) {
		m->handle ^= 1u << bit;
		d->handle ^= 1u << bit;
		ibv_unimport_mr(m);
		ibv_unimport_pd(d);
		m->handle ^= 1u << bit;
		d->handle ^= 1u << bit;
	}
	assert_ptr_equal(m->pd, pd);
	assert_ptr_equal(d->context, ctx);
	ibv_unimport_mr(m);
	ibv_unimport_pd(d);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

TEST(handles__pointers_to_something_else)
{
	static uint64_t nothing[64];
	void *no = nothing;
	struct zoo z;
	struct ibv_qp_attr qp_attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp_init_attr init;
	struct ibv_srq_attr srq_attr = {.srq_limit = 1};
	struct ibv_srq_init_attr srq_init = {.attr = {4, 1, 0}};
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1};
	struct ibv_device_attr device;
	struct ibv_async_event event;
	union ibv_gid gid = {{0}};
	struct ibv_cq *cq;
	void *user;

	zoo_open(&z);
	init = (struct ibv_qp_init_attr){
		.send_cq = z.cq, .recv_cq = z.cq, .cap = {.max_send_wr = 1}, .qp_type = IBV_QPT_RC};
	assert_fails(ibv_alloc_pd(no), EINVAL);
	assert_fails(ibv_create_comp_channel(no), EINVAL);
	assert_fails(ibv_create_cq(no, 4, NULL, NULL, 0), EINVAL);
	assert_fails(ibv_create_cq(ctx, 4, NULL, no, 0), EINVAL);
	assert_fails(ibv_create_cq_ex(ctx, &(struct ibv_cq_init_attr_ex){.cqe = 4, .channel = no}),
		     EINVAL);
	assert_fails(ibv_alloc_parent_domain(ctx, &(struct ibv_parent_domain_init_attr){.pd = no}),
		     EINVAL);
	assert_fails(ibv_alloc_parent_domain(
			     ctx, &(struct ibv_parent_domain_init_attr){.pd = z.pd, .td = no}),
		     EINVAL);
	assert_fails(ibv_create_srq(no, &srq_init), EINVAL);
	assert_fails(ibv_create_ah(no, &to), EINVAL);
	assert_fails(ibv_create_ah_from_wc(no, &(struct ibv_wc){0}, &(struct ibv_grh){0}, 1),
		     EINVAL);
	assert_fails(ibv_reg_mr_iova2(no, memory, BYTES, 0, ALL), EINVAL);
	assert_fails(ibv_create_qp(no, &init), EINVAL);
	init.srq = no;
	assert_fails(ibv_create_qp(z.pd, &init), EINVAL);
	init.srq = NULL;
	init.recv_cq = no;
	assert_fails(ibv_create_qp(z.pd, &init), EINVAL);
	assert_fails(ibv_import_pd(no, z.pd->handle), EINVAL);
	assert_fails(ibv_import_mr(no, z.mr->handle), EINVAL);
	assert_int_equal(ibv_close_device(no), EINVAL);
	assert_int_equal(ibv_query_device(no, &device), EINVAL);
	assert_int_equal(ibv_query_gid(no, 1, 0, &gid), -1);
	assert_int_equal(ibv_get_async_event(no, &event), -1);
	assert_int_equal(ibv_get_cq_event(no, &cq, &user), -1);
	assert_int_equal(ibv_resize_cq(no, 8), EINVAL);
	assert_int_equal(ibv_modify_qp(no, &qp_attr, IBV_QP_STATE), EINVAL);
	assert_int_equal(ibv_query_qp(no, &qp_attr, IBV_QP_STATE, &init), EINVAL);
	assert_int_equal(ibv_attach_mcast(no, &gid, 0), EINVAL);
	assert_int_equal(ibv_detach_mcast(no, &gid, 0), EINVAL);
	assert_int_equal(ibv_modify_srq(no, &srq_attr, IBV_SRQ_LIMIT), EINVAL);
	assert_int_equal(ibv_query_srq(no, &srq_attr), EINVAL);
	assert_int_equal(ibv_rereg_mr(no, IBV_REREG_MR_CHANGE_PD, z.pd, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(z.mr, IBV_REREG_MR_CHANGE_PD, no, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	ibv_unimport_pd(no);
	ibv_unimport_mr(no);
	ibv_ack_cq_events(no, 1);
	for (int type = IBV_EVENT_CQ_ERR; type <= IBV_EVENT_WQ_FATAL; type++) {
		event = (struct ibv_async_event){.element.cq = no, .event_type = type};
		ibv_ack_async_event(&event);
	}
	/* Objects left end with the connection, and are invalid then. */
	struct ibv_context *own = open_first();
	struct ibv_pd *left = ibv_alloc_pd(own);

	assert_int_equal(ibv_close_device(own), 0);
	assert_int_equal(ibv_close_device(own), EINVAL);
	assert_int_equal(ibv_dealloc_pd(left), EINVAL);
	free(left); /* the program's loss: nothing else refers to it */
	zoo_close(&z);
}

TEST(channel__in_use)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, memory, channel, 0);
	struct ibv_cq *from;
	void *user;

	assert_non_null(cq);
	assert_int_equal(channel->refcnt, 1);
	assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(ibv_get_cq_event(channel, &from, &user), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(channel->refcnt, 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

static struct ibv_async_event next_event(void)
{
	struct pollfd fd = {.fd = ctx->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	assert_int_equal(poll(&fd, 1, 5000), 1);
	assert_int_equal(ibv_get_async_event(ctx, &event), 0);
	return event;
}

/* Waits until *count, which `mutex` guards and `cond` announces, is 1. */
struct watch {
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
	const uint32_t *count;
	bool waits;
};
#define WATCH(object, count)                                                                       \
	(struct watch)                                                                             \
	{                                                                                          \
		&(object)->mutex, &(object)->cond, &(object)->count, false                         \
	}

static void *watch(void *arg)
{
	struct watch *w = arg;

	pthread_mutex_lock(w->mutex);
	w->waits = true;
	while (*w->count != 1)
		pthread_cond_wait(w->cond, w->mutex);
	pthread_mutex_unlock(w->mutex);
	return NULL;
}

/* Acknowledges the first event, or completion event of `cq`, while another thread already waits. */
static void acknowledge(struct watch w, struct ibv_async_event *event, struct ibv_cq *cq)
{
	pthread_t watcher;
	bool waits = false;

	assert_int_equal(*w.count, 0);
	assert_int_equal(pthread_create(&watcher, NULL, watch, &w), 0);
	while (!waits) {
		pthread_mutex_lock(w.mutex);
		waits = w.waits;
		pthread_mutex_unlock(w.mutex);
	}
	if (event)
		ibv_ack_async_event(event);
	else
		ibv_ack_cq_events(cq, 1);
	assert_int_equal(pthread_join(watcher, NULL), 0);
}

/* Each names the program's own object, which goes once it is acknowledged. */
TEST(events__of_objects)
{
	struct ibv_srq_init_attr srq_attr = {.srq_context = memory, .attr = {4, 1, 0}};
	struct ibv_srq_attr limit = {.srq_limit = 2};
	struct ibv_srq *srq = ibv_create_srq(pd, &srq_attr);
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr qp_attr = {.send_cq = cq,
					   .recv_cq = cq,
					   .srq = srq,
					   .cap = {.max_send_wr = 1, .max_send_sge = 1},
					   .qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = ibv_create_qp(pd, &qp_attr);
	struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_async_event event;

	assert_non_null(srq);
	assert_non_null(qp);
	assert_int_equal(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
	event = next_event();
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, srq);
	assert_ptr_equal(event.element.srq->srq_context, memory);
	acknowledge(WATCH(srq, events_completed), &event, NULL);
	assert_int_equal(
		ibv_modify_qp(qp, &to,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	to.qp_state = IBV_QPS_ERR;
	assert_int_equal(ibv_modify_qp(qp, &to, IBV_QP_STATE), 0);
	event = next_event();
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, qp);
	acknowledge(WATCH(qp, events_completed), &event, NULL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* The receives of a QP that fails overflow a CQ of two entries: events of both kinds come. */
TEST(events__of_a_cq_are_counted_in_it)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 2, memory, channel, 0), *from;
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 8, .max_send_sge = 1},
		.qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_recv_wr wr = {0}, *bad;
	struct ibv_async_event event;
	void *user;

	assert_int_equal(
		ibv_modify_qp(qp, &to,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	to.qp_state = IBV_QPS_ERR;
	assert_int_equal(ibv_modify_qp(qp, &to, IBV_QP_STATE), 0);
	assert_int_equal(ibv_get_cq_event(channel, &from, &user), 0);
	assert_ptr_equal(from, cq);
	assert_ptr_equal(user, memory);
	acknowledge(WATCH(cq, comp_events_completed), NULL, cq);
	event = next_event();
	assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(event.element.cq, cq);
	acknowledge(WATCH(cq, async_events_completed), &event, NULL);
	assert_int_equal(cq->comp_events_completed, 1);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

TEST(events__the_daemon_dies)
{
	struct pollfd fd = {.fd = ctx->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	assert_int_equal(poll(&fd, 1, 0), 0);
	fixture_kill_control(&f);
	assert_int_equal(poll(&fd, 1, 5000), 1);
	assert_int_equal(ibv_get_async_event(ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_get_async_event(ctx, &event), -1);
	assert_int_equal(errno, EIO);
}

/* ---- under another name, and not at all ---- */

TEST(import__lives_beside_the_original)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, BYTES, ALL);
	struct ibv_context *c = ibv_import_device(dup(ctx->cmd_fd));
	struct ibv_device_attr attr;
	struct ibv_pd *d;
	struct ibv_mr *m;

	assert_non_null(c);
	assert_ptr_equal(c->device, ctx->device);
	assert_int_equal(ibv_query_device(c, &attr), 0);
	d = ibv_import_pd(c, pd->handle);
	assert_non_null(d);
	assert_ptr_equal(d->context, c);
	m = ibv_import_mr(d, mr->handle);
	assert_non_null(m);
	assert_null(m->addr);
	assert_int_equal(m->lkey, mr->lkey);
	assert_fails(ibv_import_pd(c, 0xdead), ENOENT);
	assert_fails(ibv_import_mr(d, 0xdead), ENOENT);
	ibv_unimport_mr(mr); /* deallocating it ends it for all */
	assert_int_equal(ibv_dereg_mr(m), 0);
	ibv_unimport_pd(d);
	assert_int_equal(ibv_close_device(c), 0);
	assert_int_equal(ibv_query_port(ctx, 1, &(struct ibv_port_attr){0}), 0);
}

TEST(import__of_nothing)
{
	int fd = open("/dev/null", O_RDONLY);

	assert_fails(ibv_import_device(fd), EOPNOTSUPP);
	close(fd);
	assert_fails(ibv_import_device(fd), EBADF);
}

TEST(refused__as_a_driver_does)
{
	assert_fails(ibv_reg_dmabuf_mr(pd, 0, BYTES, 0, 0, ALL), EOPNOTSUPP);
	assert_fails(ibv_import_dm(ctx, 0), EOPNOTSUPP);
	assert_fails(ibv_alloc_dm(ctx, &(struct ibv_alloc_dm_attr){.length = 1}), EOPNOTSUPP);
	assert_fails(ibv_open_xrcd(ctx, &(struct ibv_xrcd_init_attr){0}), EOPNOTSUPP);
	assert_int_equal(ibv_advise_mr(pd, 0, 0, NULL, 0), EOPNOTSUPP);
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}
