/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attributes of the device, its port, its GIDs and P_Keys. Any thread; asks the daemon for what may
 * change.
 */
#include <string.h>
#include <time.h>
#include "host-abi/ece.h"
#include "handles.h"
#include "operations.h"

/* The maker of the device. Programs choose workarounds by these numbers, so they must be no one
 * else's. */
enum { VENDOR_ID = ECE_VENDOR, VENDOR_PART_ID = 1, HW_VERSION = 1 };

enum {
	/* Address handles live in the program's memory: this is the only limit. */
	AH_MAX = 1 << 20,
	/* 4.096 µs × 2^15 = 134 ms: how long a daemon that shares its cores may be delayed. */
	ACK_DELAY = 15,
	CLOCK_KHZ = 1000000,
	/* As ports report it: 2 GiB, the longest message. */
	MESSAGE_BYTES_MAX = 1u << 31,
	PORT_IS_UP = 5,
	PORT_IS_DISABLED = 3,
};

static const uint64_t page_sizes = 1ull << 12 | 1ull << 21 | 1ull << 30;

/* IB_UVERBS_DEVICE_FLUSH_GLOBAL and _ATOMIC_WRITE of the kernel's ABI, which libibverbs 44 has no
 * names for. */
static const uint64_t later_capabilities = 1ull << 38 | 1ull << 40;

static const unsigned int capabilities =
	IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
	IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_AUTO_PATH_MIG | IBV_DEVICE_MEM_WINDOW |
	IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;

/* ---- the device ---- */

static int at_most_int(uint64_t n)
{
	return n > INT32_MAX ? INT32_MAX : (int)n;
}

static void device_attr_fill(struct shca_context *c, struct ibv_device_attr *out)
{
	const struct softhca_device_attr *a = &c->attr;
	__be64 guid = to_shca_device(c->verbs.context.device)->guid;
	const size_t fields = offsetof(struct ibv_device_attr, phys_port_cnt) + 1;

	*out = (struct ibv_device_attr){
		.fw_ver = SOFTHCA_VERSION,
		.node_guid = guid,
		.sys_image_guid = guid,
		.max_mr_size = a->max_mr_bytes,
		.page_size_cap = page_sizes,
		.vendor_id = VENDOR_ID,
		.vendor_part_id = VENDOR_PART_ID,
		.hw_ver = HW_VERSION,
		.max_qp = at_most_int(a->max_qp),
		.max_qp_wr = at_most_int(a->max_qp_wr),
		.device_cap_flags = capabilities,
		.max_sge = at_most_int(a->max_sge),
		.max_sge_rd = at_most_int(a->max_sge),
		.max_cq = at_most_int(a->max_cq),
		.max_cqe = at_most_int(a->max_cqe),
		.max_mr = at_most_int(a->max_mr),
		.max_pd = at_most_int(a->max_pd),
		.max_qp_rd_atom = at_most_int(a->max_rd_atomic),
		.max_res_rd_atom = at_most_int((uint64_t)a->max_rd_atomic * a->max_qp),
		.max_qp_init_rd_atom = at_most_int(a->max_rd_atomic),
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_mw = at_most_int(a->max_mw),
		.max_mcast_grp = at_most_int(a->max_mcast_groups),
		.max_mcast_qp_attach = at_most_int(a->max_mcast_qps),
		.max_total_mcast_qp_attach = at_most_int(a->max_mcast_attach),
		.max_ah = AH_MAX,
		.max_srq = at_most_int(a->max_srq),
		.max_srq_wr = at_most_int(a->max_srq_wr),
		.max_srq_sge = at_most_int(a->max_sge),
		.max_pkeys = 1,
		.local_ca_ack_delay = ACK_DELAY,
		.phys_port_cnt = 1,
	};
	memset((uint8_t *)out + fields, 0, sizeof(*out) - fields); /* a gap */
}

VERBS_PUBLIC int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	if (!context_known(context))
		return no_such_object();
	device_attr_fill(to_shca_context(context), attr);
	return 0;
}

int shca_query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t bytes)
{
	struct ibv_device_attr_ex full;

	/* The first version of the extension contains everything up to here. */
	if ((input && input->comp_mask) || bytes < offsetof(struct ibv_device_attr_ex, odp_caps))
		return EINVAL;
	memset(&full, 0, sizeof(full)); /* what lies between its fields goes to the caller, too */
	device_attr_fill(to_shca_context(c), &full.orig_attr);
	full.device_cap_flags_ex = capabilities | later_capabilities;
	full.hca_core_clock = CLOCK_KHZ;
	full.phys_port_cnt_ex = 1;
	memset(attr, 0, bytes);
	memcpy(attr, &full, bytes < sizeof(full) ? bytes : sizeof(full));
	return 0;
}

/* The device's clock is the machine's, in nanoseconds. */
int shca_query_rt_values(struct ibv_context *c, struct ibv_values_ex *values)
{
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK)
		clock_gettime(CLOCK_MONOTONIC, &values->raw_clock);
	return 0;
}

/* ---- the port ---- */

/* Lanes and speed per lane as InfiniBand numbers them, slowest first. */
static const struct {
	uint32_t mbps;
	uint8_t width, speed;
} links[] = {
	{2500, 1, 1},	{5000, 1, 2},	 {10000, 1, 4},	  {14000, 1, 16},
	{20000, 2, 2},	{25000, 1, 32},	 {40000, 2, 4},	  {50000, 1, 64},
	{56000, 2, 16}, {100000, 2, 32}, {200000, 2, 64}, {400000, 2, 128},
};

/* The fastest link that is not faster than the port, or else the slowest. */
static void link_of(uint32_t mbps, struct ibv_port_attr *out)
{
	unsigned int i = 0;

	while (i + 1 < sizeof(links) / sizeof(links[0]) && links[i + 1].mbps <= mbps)
		i++;
	out->active_width = links[i].width;
	out->active_speed = links[i].speed;
}

/* Programs expect a table with room for future addresses. */
static uint32_t gid_places(const struct softhca_port_attr *a)
{
	enum { GID_PLACES_MIN = 16 };

	return a->gid_count > GID_PLACES_MIN ? a->gid_count : GID_PLACES_MIN;
}

int shca_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *attr, size_t bytes)
{
	struct softhca_port_attr a;
	struct ibv_port_attr full = {
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = MESSAGE_BYTES_MAX,
		.max_vl_num = 1,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.flags = IBV_QPF_GRH_REQUIRED,
	};
	int rc;

	if (!context_known(c) || port != VERBS_PORT)
		return EINVAL;
	rc = softhca_query_port(to_shca_context(c)->hca, &a);
	if (rc)
		return verbs_status(rc);
	full.state = a.state;
	full.max_mtu = a.max_mtu;
	full.active_mtu = a.active_mtu;
	full.gid_tbl_len = at_most_int(gid_places(&a));
	full.pkey_tbl_len = (uint16_t)a.pkey_count;
	full.phys_state = a.state == SOFTHCA_PORT_ACTIVE ? PORT_IS_UP : PORT_IS_DISABLED;
	link_of(a.speed_mbps, &full);
	memset(attr, 0, bytes);
	memcpy(attr, &full, bytes < sizeof(full) ? bytes : sizeof(full));
	return 0;
}

/* Port attributes before the header made the function inline. */
enum { COMPAT_PORT_BYTES = offsetof(struct ibv_port_attr, port_cap_flags2) };
static_assert(COMPAT_PORT_BYTES == 48, "the old size");

VERBS_PUBLIC int ibv_query_port(struct ibv_context *context, uint8_t port,
				struct _compat_ibv_port_attr *attr)
{
	return shca_query_port(context, port, (struct ibv_port_attr *)attr, COMPAT_PORT_BYTES);
}

/* ---- addresses ---- */

/* 0; EINVAL: past the table; ENODATA: empty entry; or the daemon's error. */
static int gid_at(struct ibv_context *c, uint32_t port, uint32_t index, union ibv_gid *gid)
{
	static const union ibv_gid none;
	struct shca_context *ctx = to_shca_context(c);
	struct softhca_port_attr a;
	int rc;

	if (!context_known(c) || port != VERBS_PORT)
		return EINVAL;
	rc = softhca_query_gid(ctx->hca, index, gid->raw);
	if (rc == 0)
		return memcmp(gid, &none, sizeof(none)) ? 0 : ENODATA;
	if (rc != -ENOENT)
		return -rc;
	rc = softhca_query_port(ctx->hca, &a);
	if (rc)
		return -rc;
	return index < gid_places(&a) ? ENODATA : EINVAL;
}

VERBS_PUBLIC int ibv_query_gid(struct ibv_context *context, uint8_t port, int index,
			       union ibv_gid *gid)
{
	int rc = index < 0 ? EINVAL : gid_at(context, port, (uint32_t)index, gid);

	if (rc == ENODATA) { /* an empty entry reads as zeroes */
		memset(gid, 0, sizeof(*gid));
		return 0;
	}
	return verbs_minus_one(-rc);
}

/* Writes one entry in the caller's version of the structure, `bytes` long. */
static void gid_show(const union ibv_gid *gid, uint32_t port, uint32_t index, void *entry,
		     size_t bytes)
{
	const struct ibv_gid_entry full = {
		.gid = *gid,
		.gid_index = index,
		.port_num = port,
		.gid_type = IBV_GID_TYPE_ROCE_V2,
		.ndev_ifindex = 0, /* the port's interface is the daemon's, if it has one */
	};

	memset(entry, 0, bytes);
	memcpy(entry, &full, bytes < sizeof(full) ? bytes : sizeof(full));
}

VERBS_PUBLIC int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
				   struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	union ibv_gid gid;
	int rc = flags ? EOPNOTSUPP : gid_at(context, port, index, &gid);

	if (!rc)
		gid_show(&gid, port, index, entry, entry_size);
	return verbs_status(-rc);
}

VERBS_PUBLIC ssize_t _ibv_query_gid_table(struct ibv_context *context,
					  struct ibv_gid_entry *entries, size_t max_entries,
					  uint32_t flags, size_t entry_size)
{
	struct softhca_port_attr a;
	union ibv_gid gid;
	size_t n = 0;
	int rc;

	if (flags)
		return -EOPNOTSUPP;
	if (!context_known(context))
		return -EINVAL;
	rc = softhca_query_port(to_shca_context(context)->hca, &a);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < a.gid_count; i++) {
		rc = gid_at(context, VERBS_PORT, i, &gid);
		if (rc == ENODATA)
			continue;
		if (!rc && n == max_entries)
			rc = EINVAL;
		if (rc)
			return -rc;
		gid_show(&gid, VERBS_PORT, i, (uint8_t *)entries + n++ * entry_size, entry_size);
	}
	return (ssize_t)n;
}

/* ---- partition keys: only the default, full member ---- */

VERBS_PUBLIC int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	if (port != VERBS_PORT || index != 0)
		return verbs_minus_one(-EINVAL);
	*pkey = 0xffff;
	return 0;
}

VERBS_PUBLIC int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	if (port != VERBS_PORT || pkey != 0xffff)
		return verbs_minus_one(-EINVAL);
	return 0;
}
