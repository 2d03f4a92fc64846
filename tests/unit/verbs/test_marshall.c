/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes in the kernel's form: every field comes over, none into another. Each byte of the
 * source has a different value. */
#include "test.h"
#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

/* No header that programs may include declares them. */
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src);

static void count_up(void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)bytes)[i] = (uint8_t)(i + 1);
}

#define SAME(field) assert_int_equal(dst.field, src.field)

static void check_ah(const struct ibv_ah_attr *to, const struct ib_uverbs_ah_attr *from)
{
	const struct ibv_ah_attr dst = *to;
	const struct ib_uverbs_ah_attr src = *from;

	assert_memory_equal(dst.grh.dgid.raw, src.grh.dgid, 16);
	SAME(grh.flow_label);
	SAME(grh.sgid_index);
	SAME(grh.hop_limit);
	SAME(grh.traffic_class);
	SAME(dlid);
	SAME(sl);
	SAME(src_path_bits);
	SAME(static_rate);
	SAME(is_global);
	SAME(port_num);
}

TEST(from_kernel__address)
{
	struct ib_uverbs_ah_attr src;
	struct ibv_ah_attr dst;

	count_up(&src, sizeof(src));
	ibv_copy_ah_attr_from_kern(&dst, &src);
	check_ah(&dst, &src);
}

TEST(from_kernel__queue_pair)
{
	struct ib_uverbs_qp_attr src;
	struct ibv_qp_attr dst;

	count_up(&src, sizeof(src));
	ibv_copy_qp_attr_from_kern(&dst, &src);
	SAME(qp_state);
	SAME(cur_qp_state);
	SAME(path_mtu);
	SAME(path_mig_state);
	SAME(qkey);
	SAME(rq_psn);
	SAME(sq_psn);
	SAME(dest_qp_num);
	SAME(qp_access_flags);
	assert_int_equal(dst.cap.max_send_wr, src.max_send_wr);
	assert_int_equal(dst.cap.max_recv_wr, src.max_recv_wr);
	assert_int_equal(dst.cap.max_send_sge, src.max_send_sge);
	assert_int_equal(dst.cap.max_recv_sge, src.max_recv_sge);
	assert_int_equal(dst.cap.max_inline_data, src.max_inline_data);
	check_ah(&dst.ah_attr, &src.ah_attr);
	check_ah(&dst.alt_ah_attr, &src.alt_ah_attr);
	SAME(pkey_index);
	SAME(alt_pkey_index);
	SAME(en_sqd_async_notify);
	SAME(sq_draining);
	SAME(max_rd_atomic);
	SAME(max_dest_rd_atomic);
	SAME(min_rnr_timer);
	SAME(port_num);
	SAME(timeout);
	SAME(retry_cnt);
	SAME(rnr_retry);
	SAME(alt_port_num);
	SAME(alt_timeout);
}

TEST(path_record__there_and_back)
{
	struct ib_user_path_rec src, back;
	struct ibv_sa_path_rec dst;

	count_up(&src, sizeof(src));
	src.mtu = 5; /* is of a byte on the other side */
	ibv_copy_path_rec_from_kern(&dst, &src);
	assert_memory_equal(dst.dgid.raw, src.dgid, 16);
	assert_memory_equal(dst.sgid.raw, src.sgid, 16);
	SAME(dlid);
	SAME(slid);
	SAME(raw_traffic);
	SAME(flow_label);
	SAME(hop_limit);
	SAME(traffic_class);
	SAME(reversible);
	SAME(numb_path);
	SAME(pkey);
	SAME(sl);
	SAME(mtu_selector);
	SAME(mtu);
	SAME(rate_selector);
	SAME(rate);
	SAME(packet_life_time_selector);
	SAME(packet_life_time);
	SAME(preference);
	ibv_copy_path_rec_to_kern(&back, &dst);
	assert_memory_equal(&back, &src, sizeof(src));
}
