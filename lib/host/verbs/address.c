/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address handles, and addresses taken from completions. Any thread.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include "base/ip.h"
#include "domain.h"
#include "handles.h"

/* False: without a global route nothing identifies the peer on this wire. */
static bool address_of(const struct ibv_ah_attr *attr, struct softhca_ah_attr *to)
{
	const struct ibv_global_route *grh = &attr->grh;

	*to = (struct softhca_ah_attr){
		.gid_index = grh->sgid_index,
		.traffic_class = grh->traffic_class,
		.hop_limit = grh->hop_limit,
		.sl = attr->sl,
		.flow_label = grh->flow_label,
	};
	memcpy(to->dgid, grh->dgid.raw, sizeof(to->dgid));
	return attr->is_global && attr->port_num == VERBS_PORT;
}

VERBS_PUBLIC struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct softhca_ah_attr to;
	struct shca_ah *ah;

	if (!pd_known(pd) || !address_of(attr, &to)) {
		errno = EINVAL;
		return NULL;
	}
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	ah->ah = softhca_create_ah(to_shca_pd(pd)->pd, &to);
	if (!ah->ah) {
		free(ah);
		return NULL;
	}
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	ah->ibv.handle =
		handle_add(&ah->handle, HANDLE_AH, to_shca_context(pd->context)->hca, 0, NULL);
	pd_hold(pd);
	return &ah->ibv;
}

VERBS_PUBLIC int ibv_destroy_ah(struct ibv_ah *ibv)
{
	struct shca_ah *ah = to_shca_ah(ibv);
	int rc;

	if (!ah_take(ibv))
		return no_such_object();
	rc = handle_end(&ah->handle, softhca_destroy_ah(ah->ah));
	if (rc)
		return rc;
	pd_release(ibv->pd);
	free(ah);
	return 0;
}

/* VLANs are the daemon's business: 0xffff, none. */
VERBS_PUBLIC int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
					     uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	struct softhca_ah_attr to;

	if (!context_known(context) || !address_of(attr, &to))
		return verbs_status(-EINVAL);
	*vid = 0xffff;
	return verbs_status(softhca_resolve(to_shca_context(context)->hca, &to, eth_mac));
}

/* ---- from completions ---- */

enum { IP_VERSION_4 = 4, IP_VERSION_6 = 6, IPV4_AT = 20 };

/* The addresses of a received datagram. */
struct route {
	union ibv_gid source, destination;
	uint32_t flow_label;
	uint8_t traffic_class;
};

/*
 * The 40 bytes in front of a datagram hold its IPv6 header, or zeroes and in the last 20 its IPv4
 * header. False: neither.
 */
static bool route_of(const struct ibv_grh *grh, struct route *out)
{
	const uint8_t *bytes = (const uint8_t *)grh;
	uint32_t word = be32toh(grh->version_tclass_flow);

	*out = (struct route){0};
	if (bytes[0] >> 4 == IP_VERSION_6) {
		out->source = grh->sgid;
		out->destination = grh->dgid;
		out->traffic_class = (uint8_t)(word >> 20);
		out->flow_label = word & IB_GRH_FLOWLABEL_MASK;
		return true;
	}
	if (bytes[IPV4_AT] >> 4 != IP_VERSION_4)
		return false;
	ip_map_v4(bytes + IPV4_AT + 12, out->source.raw);
	ip_map_v4(bytes + IPV4_AT + 16, out->destination.raw);
	out->traffic_class = bytes[IPV4_AT + 1];
	return true;
}

/* The GID index of one of our addresses, or -1. Address handles name at most 256. */
static int index_of(struct shca_context *c, const union ibv_gid *wanted)
{
	union ibv_gid gid;

	for (uint32_t i = 0; i <= UINT8_MAX && softhca_query_gid(c->hca, i, gid.raw) == 0; i++)
		if (memcmp(&gid, wanted, sizeof(gid)) == 0)
			return (int)i;
	return -1;
}

VERBS_PUBLIC int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
				     struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct route route;
	int index = -1;

	if (context_known(context) && port == VERBS_PORT && wc->wc_flags & IBV_WC_GRH &&
	    route_of(grh, &route))
		index = index_of(to_shca_context(context), &route.destination);
	if (index < 0) {
		errno = EINVAL;
		return -1;
	}
	*attr = (struct ibv_ah_attr){
		.grh = {.dgid = route.source,
			.flow_label = route.flow_label,
			.sgid_index = (uint8_t)index,
			.hop_limit = 0xff,
			.traffic_class = route.traffic_class},
		.dlid = wc->slid, /* wc->sl names the header, not a priority */
		.src_path_bits = wc->dlid_path_bits,
		.is_global = 1,
		.port_num = port,
	};
	return 0;
}

VERBS_PUBLIC struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
						  struct ibv_grh *grh, uint8_t port)
{
	struct ibv_ah_attr attr;

	if (!pd_known(pd))
		return none_for_no_such_object();
	if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}
