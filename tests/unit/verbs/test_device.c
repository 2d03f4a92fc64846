/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, ports, addresses, keys and domains of the drop-in, against a whole daemon. */
#include "../control/hca_test.h"
#include "first.h"

static struct ibv_context *ctx;

static int set_up(void **state)
{
	start(state);
	ctx = open_first();
	return ctx ? 0 : -1;
}

static int tear_down(void **state)
{
	ibv_close_device(ctx);
	return stop(state);
}

/* ---- the list ---- */

#undef TEST
#define TEST(name) TEST_STATE(name, set_up, tear_down, NULL)

TEST(list__no_daemon_no_device)
{
	struct ibv_device **list;
	int n = 7;

	setenv("SOFTHCA_SOCKET", "/nowhere/softhca.sock", 1);
	list = ibv_get_device_list(&n);
	assert_non_null(list);
	assert_int_equal(n, 0);
	assert_null(list[0]);
	ibv_free_device_list(list);
}

/* An open device outlives the list from which it was opened; numbers need not be asked for. */
TEST(list__devices_live_while_open)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c;

	assert_non_null(list[0]);
	assert_null(list[1]);
	c = ibv_open_device(list[0]);
	assert_non_null(c);
	ibv_free_device_list(list);
	assert_int_equal(strlen(ibv_get_device_name(c->device)) > 0, 1);
	assert_int_not_equal(ibv_get_device_guid(c->device), 0);
	assert_int_equal(ibv_get_device_index(c->device), 0);
	assert_int_equal(c->device->node_type, IBV_NODE_CA);
	assert_int_equal(c->device->transport_type, IBV_TRANSPORT_IB);
	assert_int_equal(ibv_close_device(c), 0);
}

/* When the list is read again, a device in use is the same object; an unused one is new. */
TEST(list__a_device_keeps_its_identity)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	assert_ptr_equal(list[0], ctx->device);
	ibv_free_device_list(list);
	assert_int_equal(strlen(ibv_get_device_name(ctx->device)) > 0, 1);
}

/* No header that programs may include declares them. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
const char *ibv_get_sysfs_path(void);

TEST(sysfs__lines_without_their_end)
{
	char text[64];
	int n;

	assert_string_equal(ibv_get_sysfs_path(), "/sys");
	assert_int_equal(ibv_read_sysfs_file(ctx->device->ibdev_path, "no_such", text, 64), -1);
	assert_int_equal(errno, ENOENT);
	n = ibv_read_sysfs_file("/proc/self", "comm", text, sizeof(text));
	assert_int_equal(n, strlen(text));
	assert_null(strchr(text, '\n'));
	assert_int_equal(ibv_read_sysfs_file("/nowhere", "comm", text, 64), -1);
}

TEST(open__daemon_has_gone)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	setenv("SOFTHCA_SOCKET", "/nowhere/softhca.sock", 1);
	assert_fails(ibv_open_device(list[0]), ENOENT);
	ibv_free_device_list(list);
}

/* ---- the device ---- */

TEST(device__what_it_is)
{
	struct ibv_device_attr a;

	assert_int_equal(ibv_query_device(ctx, &a), 0);
	assert_true(strlen(a.fw_ver) > 0);
	assert_int_equal(a.node_guid, ibv_get_device_guid(ctx->device));
	assert_int_equal(a.sys_image_guid, a.node_guid);
	assert_int_not_equal(a.vendor_id, 0);
	assert_int_not_equal(a.vendor_id, 0x2c9); /* they of mlx5 get special treatment */
	assert_true(a.page_size_cap & 4096);
	assert_true(a.max_mr_size > 4096);
	assert_int_equal(a.phys_port_cnt, 1);
	assert_int_equal(a.max_pkeys, 1);
	assert_int_equal(a.atomic_cap, IBV_ATOMIC_HCA);
	for (const int *limit = &a.max_sge; limit <= &a.max_qp_rd_atom; limit++)
		assert_true(*limit > 0);
	assert_int_equal(a.max_qp_rd_atom, 128); /* as other devices: peers offer so many */
	assert_int_equal(a.max_qp_init_rd_atom, 128);
	assert_true(a.max_qp > 0 && a.max_qp_wr > 0 && a.max_mw > 0 && a.max_ah > 0);
	assert_true(a.max_srq > 0 && a.max_srq_wr > 0 && a.max_srq_sge > 0);
	assert_int_equal(a.max_ee_rd_atom | a.max_ee | a.max_rdd, 0);
	assert_int_equal(a.max_mcast_grp, MULTICAST_GROUPS_MAX);
	assert_int_equal(a.max_mcast_qp_attach, MULTICAST_QPS_MAX);
	assert_int_equal(a.max_total_mcast_qp_attach, MULTICAST_ATTACH_MAX);
}

/* As much as the caller has room for; unknown fields are zero. */
TEST(device_ex__of_all_lengths)
{
	enum { FIRST = offsetof(struct ibv_device_attr_ex, odp_caps) };
	struct verbs_context *v = verbs_get_ctx_op(ctx, query_device_ex);
	struct ibv_query_device_ex_input input = {.comp_mask = 1};
	struct ibv_device_attr_ex whole;
	struct ibv_device_attr orig;
	uint8_t more[sizeof(whole) + 64];

	memset(&whole, 0, sizeof(whole)); /* gaps between fields, too */
	memset(&orig, 0, sizeof(orig));
	assert_int_equal(ibv_query_device(ctx, &orig), 0);
	assert_int_equal(ibv_query_device_ex(ctx, NULL, &whole), 0);
	assert_memory_equal(&whole.orig_attr, &orig, sizeof(orig));
	assert_int_equal(whole.phys_port_cnt_ex, 1);
	/* and FLUSH, ATOMIC WRITE */
	assert_true(whole.device_cap_flags_ex == (orig.device_cap_flags | 1ull << 38 | 1ull << 40));
	for (size_t n = FIRST; n < sizeof(more); n++) {
		memset(more, 0xee, sizeof(more));
		assert_int_equal(v->query_device_ex(ctx, NULL, (void *)more, n), 0);
		assert_memory_equal(more, &whole, n < sizeof(whole) ? n : sizeof(whole));
		for (size_t i = sizeof(whole); i < n; i++)
			assert_int_equal(more[i], 0);
		assert_int_equal(more[n], 0xee);
	}
	assert_int_equal(v->query_device_ex(ctx, NULL, &whole, FIRST - 1), EINVAL);
	assert_int_equal(v->query_device_ex(ctx, &input, &whole, sizeof(whole)), EINVAL);
}

TEST(values__clock)
{
	struct ibv_values_ex now = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK},
			     other = {.comp_mask = IBV_VALUES_MASK_RESERVED};

	assert_int_equal(ibv_query_rt_values_ex(ctx, &now), 0);
	assert_int_equal(now.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	assert_true(now.raw_clock.tv_sec > 0 || now.raw_clock.tv_nsec > 0);
	assert_int_equal(ibv_query_rt_values_ex(ctx, &other), EINVAL);
}

/* ---- the port ---- */

TEST(port__what_it_is)
{
	struct ibv_port_attr a;

	assert_int_equal(ibv_query_port(ctx, 1, &a), 0);
	assert_int_equal(a.state, IBV_PORT_ACTIVE);
	assert_int_equal(a.phys_state, 5);
	assert_int_equal(a.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_true(a.active_mtu >= IBV_MTU_256 && a.active_mtu <= a.max_mtu);
	assert_true(a.max_mtu <= IBV_MTU_4096);
	assert_true(a.gid_tbl_len >= 1);
	assert_int_equal(a.pkey_tbl_len, 1);
	assert_int_equal(a.lid | a.sm_lid | a.lmc, 0);
	assert_true(a.max_msg_sz >= 1u << 30);
	assert_true(a.flags & IBV_QPF_GRH_REQUIRED);
	assert_true(a.active_width && a.active_speed);
	assert_int_equal(ibv_query_port(ctx, 0, &a), EINVAL);
	assert_int_equal(ibv_query_port(ctx, 2, &a), EINVAL);
}

/* The function, which old programs are linked with, knows a shorter structure; the inline one says
 * how long the caller's is. */
TEST(port__of_all_lengths)
{
	enum { COMPAT = offsetof(struct ibv_port_attr, port_cap_flags2) };
	struct verbs_context *v = verbs_get_ctx_op(ctx, query_port);
	struct ibv_port_attr whole;
	uint8_t bytes[sizeof(whole) + 32];

	assert_int_equal(ibv_query_port(ctx, 1, &whole), 0);
	memset(bytes, 0xee, sizeof(bytes));
	assert_int_equal((ibv_query_port)(ctx, 1, (void *)bytes), 0);
	assert_memory_equal(bytes, &whole, COMPAT);
	assert_int_equal(bytes[COMPAT], 0xee);
	for (size_t n = 0; n < sizeof(bytes); n++) {
		memset(bytes, 0xee, sizeof(bytes));
		assert_int_equal(v->query_port(ctx, 1, (void *)bytes, n), 0);
		assert_memory_equal(bytes, &whole, n < sizeof(whole) ? n : sizeof(whole));
		for (size_t i = sizeof(whole); i < n; i++)
			assert_int_equal(bytes[i], 0);
		assert_int_equal(bytes[n], 0xee);
	}
}

/* ---- addresses and partitions ---- */

TEST(gid__one_by_one)
{
	static const union ibv_gid none;
	struct ibv_gid_entry e;
	struct ibv_port_attr a;
	union ibv_gid gid;

	assert_int_equal(ibv_query_port(ctx, 1, &a), 0);
	assert_int_equal(ibv_query_gid(ctx, 1, 0, &gid), 0);
	assert_memory_not_equal(&gid, &none, sizeof(gid));
	assert_int_equal(ibv_query_gid_ex(ctx, 1, 0, &e, 0), 0);
	assert_memory_equal(&e.gid, &gid, sizeof(gid));
	assert_int_equal(e.gid_index, 0);
	assert_int_equal(e.port_num, 1);
	assert_int_equal(e.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(ibv_query_gid(ctx, 2, 0, &gid), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_query_gid(ctx, 1, -1, &gid), -1);
	assert_int_equal(ibv_query_gid(ctx, 1, a.gid_tbl_len, &gid), -1);
	assert_int_equal(ibv_query_gid_ex(ctx, 1, (uint32_t)a.gid_tbl_len, &e, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(ctx, 0, 0, &e, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(ctx, 1, 0, &e, 1), EOPNOTSUPP);
}

TEST(gid__table)
{
	/* As a program has it whose header has one field more. */
	struct {
		struct ibv_gid_entry known;
		uint64_t later;
	} e[4];
	struct ibv_gid_entry entry[4];
	ssize_t n = ibv_query_gid_table(ctx, entry, 4, 0);

	assert_true(n >= 1 && n <= 4);
	memset(e, 0xee, sizeof(e));
	assert_int_equal(_ibv_query_gid_table(ctx, &e[0].known, 4, 0, sizeof(e[0])), n);
	for (ssize_t i = 0; i < n; i++) {
		assert_memory_equal(&e[i].known, &entry[i], sizeof(entry[i]));
		assert_int_equal(e[i].later, 0);
		assert_int_equal(entry[i].port_num, 1);
	}
	assert_int_equal(ibv_query_gid_table(ctx, entry, 0, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(ctx, entry, 4, 1), -EOPNOTSUPP);
}

TEST(pkey__the_default_one)
{
	__be16 pkey = 0;

	assert_int_equal(ibv_query_pkey(ctx, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
	assert_int_equal(ibv_query_pkey(ctx, 1, 1, &pkey), -1);
	assert_int_equal(ibv_query_pkey(ctx, 2, 0, &pkey), -1);
	assert_int_equal(ibv_get_pkey_index(ctx, 1, 0xffff), 0);
	assert_int_equal(ibv_get_pkey_index(ctx, 1, 0x1234), -1);
	assert_int_equal(ibv_get_pkey_index(ctx, 2, 0xffff), -1);
}
