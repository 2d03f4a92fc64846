/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paths, and queries of addresses, paths and GIDs. A path on Ethernet needs no query: it follows
 * from the addresses and the port. Runs in the CM thread.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include "addresses.h"
#include "commands.h"
#include "events.h"
#include "ids.h"
#include "route.h"

enum {
	SELECT_EXACTLY = 2, /* of MTU, rate and packet life time in a path record */
	FLOW_LABEL_MASK = 0xfffff,
	MTU_256 = 1,
	UNKNOWN_DEVICE_INDEX = UINT32_MAX, /* librdmacm then uses the GUID */
};

/* The code of a path record (enum ibv_rate) for the fastest rate that the port reaches. */
static uint8_t rate_code(uint32_t mbps)
{
	static const struct {
		uint32_t mbps;
		uint8_t code;
	} rates[] = {{1200000, 24}, {800000, 23}, {600000, 22}, {400000, 21}, {300000, 18},
		     {200000, 17},  {100000, 16}, {56000, 12},	{50000, 20},  {40000, 7},
		     {25000, 15},   {20000, 6},	  {10000, 3},	{5000, 5}};

	for (unsigned int i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		if (mbps >= rates[i].mbps)
			return rates[i].code;
	return 2;
}

/* Derived from the ports, so that different flows differ on the wire; the same both ways. */
static uint32_t flow_label_of(const struct ucm_id *id)
{
	uint32_t label, x = ucm_address_port(&id->source), y = ucm_address_port(&id->destination);

	if (id->source.family == AF_INET6) {
		label = ntohl(id->source.v6.sin6_flowinfo) & FLOW_LABEL_MASK;
		if (label)
			return label;
	}
	return (x * 31 + y) & FLOW_LABEL_MASK; /* as in a kernel, by captures */
}

uint8_t ucm_gid_index(const struct cm_device *d, const uint8_t gid[16])
{
	uint8_t other[16];

	for (uint8_t i = 0; i < UCM_NO_GID && !d->gid(d->ctx, i, other); i++)
		if (memcmp(gid, other, sizeof(other)) == 0)
			return i;
	return UCM_NO_GID;
}

void ucm_path_make(struct ucm_id *id)
{
	struct cm_device *d = ucm_device(id);
	struct control_port_reply port;
	uint8_t timeout = id->timeout ? id->timeout : UCM_PACKET_LIFE + 1;

	d->port(d->ctx, &port);
	id->path = (struct cm_path){
		.device = id->at.device,
		.flow_label = flow_label_of(id),
		.traffic_class = id->tos,
		.hop_limit = UCM_HOP_LIMIT,
		/* A port too small for any MTU has none; a REQ must name one, and will be
		 * refused. */
		.mtu = port.active_mtu ? (uint8_t)port.active_mtu : MTU_256,
		.ack_timeout = timeout,
		.rate = rate_code(port.speed_mbps),
	};
	memcpy(id->path.sgid, id->at.sgid, sizeof(id->path.sgid));
	memcpy(id->path.dgid, id->at.dgid, sizeof(id->path.dgid));
	id->path_known = true;
}

void ucm_ah_attr(const struct cm_device *d, const struct cm_path *path,
		 struct ib_uverbs_ah_attr *out)
{
	*out = (struct ib_uverbs_ah_attr){
		.grh = {.flow_label = path->flow_label,
			.sgid_index = ucm_gid_index(d, path->sgid),
			.hop_limit = path->hop_limit,
			.traffic_class = path->traffic_class},
		.sl = path->sl,
		.is_global = 1,
		.port_num = 1,
	};
	memcpy(out->grh.dgid, path->dgid, sizeof(out->grh.dgid));
}

/* The packet lifetime from which an ACK timeout was computed. */
static uint8_t life_of(const struct cm_path *path)
{
	return path->ack_timeout ? path->ack_timeout - 1 : 0;
}

/* ---- the commands ---- */

int ucm_do_resolve_route(struct ucm_call *call, const struct rdma_ucm_resolve_route *in,
			 struct ucm_none *out)
{
	struct ucm_id *id;
	int ret = ucm_id_find_on_device(call->channel, in->id, &id);

	(void)out;
	if (ret)
		return ret;
	if (id->state != UCM_ADDR_RESOLVED)
		return -EINVAL;
	if (ucm_events_full(call->channel))
		return -ENOMEM;
	ucm_path_make(id);
	ucm_id_step(id, UCM_ROUTE_RESOLVED);
	ucm_event_report(id, UCM_EVENT_ROUTE_RESOLVED, 0);
	return 0;
}

static void user_path(const struct cm_path *path, struct ib_user_path_rec *out)
{
	*out = (struct ib_user_path_rec){
		.flow_label = htonl(path->flow_label),
		.reversible = 1,
		.mtu = path->mtu,
		.pkey = htons(UCM_PKEY),
		.hop_limit = path->hop_limit,
		.traffic_class = path->traffic_class,
		.sl = path->sl,
		.mtu_selector = SELECT_EXACTLY,
		.rate_selector = SELECT_EXACTLY,
		.rate = path->rate,
		.packet_life_time_selector = SELECT_EXACTLY,
		.packet_life_time = life_of(path),
	};
	memcpy(out->dgid, path->dgid, sizeof(out->dgid));
	memcpy(out->sgid, path->sgid, sizeof(out->sgid));
}

/* IPv4 and IPv6 only: AF_IB addresses do not fit. */
static void copy_ip(struct sockaddr_in6 *to, const union ucm_address *from)
{
	memcpy(to, from, sizeof(*to));
}

int ucm_do_query_route(struct ucm_call *call, const struct rdma_ucm_query *in,
		       struct rdma_ucm_query_route_resp *out)
{
	struct ucm_id *id;
	int ret = ucm_id_find(call->channel, in->id, &id);

	if (ret)
		return ret;
	copy_ip(&out->src_addr, &id->source);
	copy_ip(&out->dst_addr, &id->destination);
	out->ibdev_index = UNKNOWN_DEVICE_INDEX;
	if (!id->at.chosen)
		return 0;
	out->node_guid = htobe64(ucm_device(id)->guid);
	out->port_num = 1;
	if (id->path_known) {
		out->num_paths = 1;
		user_path(&id->path, &out->ib_route[0]);
		return 0;
	}
	memcpy(out->ib_route[0].sgid, id->at.sgid, 16);
	memcpy(out->ib_route[0].dgid, id->at.dgid, 16);
	out->ib_route[0].pkey = htons(UCM_PKEY);
	return 0;
}

static void query_device(const struct ucm_id *id, struct rdma_ucm_query_addr_resp *out)
{
	out->ibdev_index = UNKNOWN_DEVICE_INDEX;
	if (!id->at.chosen)
		return;
	out->node_guid = htobe64(ucm_device(id)->guid);
	out->port_num = 1;
	out->pkey = htons(UCM_PKEY);
}

static void query_addr(const struct ucm_id *id, struct rdma_ucm_query_addr_resp *out)
{
	query_device(id, out);
	out->src_size = (uint16_t)ucm_address_bytes(&id->source);
	out->dst_size = (uint16_t)ucm_address_bytes(&id->destination);
	memcpy(&out->src_addr, &id->source, out->src_size);
	memcpy(&out->dst_addr, &id->destination, out->dst_size);
}

static void query_one_gid(const struct ucm_id *id, const union ucm_address *a,
			  const uint8_t gid[16], void *out)
{
	struct ucm_sockaddr_ib ib = {.family = UCM_AF_IB};

	if (a->family == UCM_AF_IB) {
		memcpy(out, &a->ib, sizeof(a->ib));
		return;
	}
	ib.pkey = id->at.chosen ? htons(UCM_PKEY) : 0;
	ib.sid = htobe64(ucm_service_id(id, a));
	memcpy(ib.gid, gid, sizeof(ib.gid));
	memcpy(out, &ib, sizeof(ib));
}

static void query_gid(const struct ucm_id *id, struct rdma_ucm_query_addr_resp *out)
{
	query_device(id, out);
	out->src_size = out->dst_size = sizeof(struct ucm_sockaddr_ib);
	query_one_gid(id, &id->source, id->at.sgid, &out->src_addr);
	query_one_gid(id, &id->destination, id->at.dgid, &out->dst_addr);
}

/* A path record as subnet administration has it (IBTA 15.2.5.16), big-endian words, in zeroes. */
static void sa_path(const struct cm_path *path, uint8_t out[64])
{
	uint32_t hop = htonl(path->flow_label << 8 | path->hop_limit);
	uint16_t pkey = htons(UCM_PKEY);

	memcpy(out + 8, path->dgid, 16);
	memcpy(out + 24, path->sgid, 16);
	memcpy(out + 44, &hop, 4);
	out[48] = path->traffic_class;
	out[49] = 0x80; /* reversible */
	memcpy(out + 50, &pkey, 2);
	out[53] = path->sl & 0xf;
	out[54] = (uint8_t)(SELECT_EXACTLY << 6 | path->mtu);
	out[55] = (uint8_t)(SELECT_EXACTLY << 6 | (path->rate & 0x3f));
	out[56] = (uint8_t)(SELECT_EXACTLY << 6 | life_of(path));
}

static void query_path(const struct ucm_id *id, struct ucm_call *call, uint8_t *out)
{
	struct rdma_ucm_query_path_resp head = {.num_paths = id->path_known};
	struct ib_path_rec_data data = {.flags = IB_PATH_GMP | IB_PATH_PRIMARY |
						 IB_PATH_BIDIRECTIONAL};

	memcpy(out, &head, sizeof(head));
	call->bytes = sizeof(head);
	if (!id->path_known || call->out < sizeof(head) + sizeof(data))
		return;
	sa_path(&id->path, (uint8_t *)data.path_rec);
	memcpy(out + sizeof(head), &data, sizeof(data));
	call->bytes += sizeof(data);
}

int ucm_do_query(struct ucm_call *call, const struct rdma_ucm_query *in, struct ucm_largest *out)
{
	struct rdma_ucm_query_addr_resp addr = {.node_guid = 0};
	uint32_t least = offsetof(struct rdma_ucm_query_addr_resp, ibdev_index);
	struct ucm_id *id;
	int ret = ucm_id_find(call->channel, in->id, &id);

	if (ret)
		return ret;
	if (in->option > RDMA_USER_CM_QUERY_GID)
		return -ENOSYS;
	if (in->option == RDMA_USER_CM_QUERY_PATH)
		least = sizeof(struct rdma_ucm_query_path_resp);
	if (call->out < least)
		return -ENOSPC;
	if (in->option == RDMA_USER_CM_QUERY_PATH) {
		query_path(id, call, out->bytes);
		return 0;
	}
	if (in->option == RDMA_USER_CM_QUERY_ADDR)
		query_addr(id, &addr);
	else
		query_gid(id, &addr);
	memcpy(out->bytes, &addr, sizeof(addr));
	call->bytes = sizeof(addr);
	return 0;
}
