/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast groups of UD identifiers. On Ethernet there is no one to ask: the group follows from
 * the address, and the program's library attaches its QP itself, which makes the device join. Runs
 * in the CM thread.
 */
#include <errno.h>
#include <stdlib.h>
#include "addresses.h"
#include "commands.h"
#include "events.h"
#include "ids.h"
#include "multicast.h"
#include "numbers.h"
#include "route.h"

static void ucm_membership_leave(struct ucm_membership *m)
{
	struct ucm_id *id = m->id;

	ucm_events_drop(m);
	ucm_number_free(&id->channel->service->memberships, m->number);
	LIST_REMOVE(m, of_id);
	share_give(&id->channel->shares, SHARE_cm_ids, 1);
	free(m);
}

void ucm_leave_all(struct ucm_id *id)
{
	while (!LIST_EMPTY(&id->memberships))
		ucm_membership_leave(LIST_FIRST(&id->memberships));
}

static struct ucm_membership *membership_new(struct ucm_id *id, uint64_t uid)
{
	struct ucm_channel *ch = id->channel;
	struct ucm_membership *m;

	if (share_take(&ch->shares, SHARE_cm_ids, 1))
		return NULL;
	m = calloc(1, sizeof(*m));
	if (m)
		m->number = ucm_number_take(&ch->service->memberships, m);
	if (!m || m->number == UCM_NO_NUMBER) {
		share_give(&ch->shares, SHARE_cm_ids, 1);
		free(m);
		return NULL;
	}
	m->id = id;
	m->uid = uid;
	LIST_INSERT_HEAD(&id->memberships, m, of_id);
	return m;
}

static void ucm_multicast_event(struct ucm_membership *m, struct ucm_event *e,
				const uint8_t mgid[16])
{
	struct ucm_id *id = m->id;
	struct rdma_ucm_ud_param *p = &e->body.param.ud;
	struct cm_path path = {
		.hop_limit = UCM_HOP_LIMIT,
		.traffic_class = id->tos,
	};

	memcpy(path.sgid, id->at.sgid, sizeof(path.sgid));
	memcpy(path.dgid, mgid, sizeof(path.dgid));
	e->membership = m;
	e->body.uid = m->uid;
	e->body.id = m->number;
	p->qp_num = UCM_MULTICAST_QPN;
	p->qkey = id->qkey;
	ucm_ah_attr(ucm_device(id), &path, &p->ah_attr);
	ucm_event_post(e);
}

static int join(struct ucm_channel *ch, uint32_t number, uint64_t uid,
		const union ucm_address *group, struct rdma_ucm_create_id_resp *out)
{
	struct ucm_membership *m;
	struct ucm_event *e;
	struct ucm_id *id;
	uint8_t mgid[16];
	int ret = ucm_id_find_on_device(ch, number, &id);

	if (ret)
		return ret;
	if (id->state != UCM_BOUND && id->state != UCM_ADDR_RESOLVED)
		return -EINVAL;
	if (id->qp_type != UCM_QPT_UD || !ucm_address_multicast(group))
		return -EINVAL;
	ucm_set_qkey(id, 0);
	m = ucm_events_full(ch) ? NULL : membership_new(id, uid);
	if (!m)
		return -ENOMEM;
	e = ucm_event_new(id, UCM_EVENT_MULTICAST_JOIN, 0);
	if (!e) {
		ucm_membership_leave(m);
		return -ENOMEM;
	}
	ucm_address_gid(group, mgid);
	out->id = m->number;
	ucm_multicast_event(m, e, mgid);
	return 0;
}

int ucm_do_join_ip_mcast(struct ucm_call *call, const struct rdma_ucm_join_ip_mcast *in,
			 struct rdma_ucm_create_id_resp *out)
{
	union ucm_address group;

	ucm_address_copy_ip(&group, &in->addr);
	if (group.family != AF_INET && group.family != AF_INET6)
		return -EINVAL;
	return join(call->channel, in->id, in->uid, &group, out);
}

int ucm_do_join_mcast(struct ucm_call *call, const struct rdma_ucm_join_mcast *in,
		      struct rdma_ucm_create_id_resp *out)
{
	union ucm_address group;

	if (in->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return -EINVAL;
	if (ucm_address_copy(&group, &in->addr, in->addr_size))
		return -EINVAL;
	return join(call->channel, in->id, in->uid, &group, out);
}

int ucm_do_leave_mcast(struct ucm_call *call, const struct rdma_ucm_destroy_id *in,
		       struct rdma_ucm_destroy_id_resp *out)
{
	struct ucm_membership *m = ucm_number_find(&call->channel->service->memberships, in->id);

	if (!m)
		return -ENOENT;
	if (m->id->channel != call->channel)
		return -EINVAL;
	out->events_reported = m->events_reported;
	ucm_membership_leave(m);
	return 0;
}
