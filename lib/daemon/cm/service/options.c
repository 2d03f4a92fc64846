/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SET_OPTION. The option's bytes follow the body of the command. Runs in the CM thread.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <sys/param.h>
#include "commands.h"
#include "events.h"
#include "ids.h"
#include "route.h"

static int set_reuseaddr(struct ucm_id *id, bool on)
{
	if (id->state != UCM_IDLE && (!on || id->state == UCM_LISTENING))
		return -EINVAL;
	id->reuseaddr = on;
	return 0;
}

static int set_afonly(struct ucm_id *id, bool on)
{
	if (id->state != UCM_IDLE && id->state != UCM_BOUND)
		return -EINVAL;
	id->afonly = on;
	id->afonly_set = true;
	return 0;
}

static int set_timeout(struct ucm_id *id, uint8_t timeout)
{
	if (id->qp_type != UCM_QPT_RC || timeout > 31)
		return -EINVAL;
	id->timeout = timeout;
	id->timeout_set = true;
	return 0;
}

static int set_id(struct ucm_id *id, uint32_t name, const uint8_t *value, uint32_t bytes)
{
	bool small = name == RDMA_OPTION_ID_TOS || name == RDMA_OPTION_ID_ACK_TIMEOUT;
	int32_t number = 0;

	if (name > RDMA_OPTION_ID_ACK_TIMEOUT)
		return -ENOSYS;
	if (bytes != (small ? sizeof(uint8_t) : sizeof(number)))
		return -EINVAL;
	memcpy(&number, value, bytes); /* a byte is the lowest */
	switch (name) {
	case RDMA_OPTION_ID_TOS:
		id->tos = (uint8_t)number;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		return set_reuseaddr(id, number);
	case RDMA_OPTION_ID_AFONLY:
		return set_afonly(id, number);
	default:
		return set_timeout(id, (uint8_t)number);
	}
}

/* Takes the path attributes of a path record (IBTA 15.2.5.16) between the same ends. */
static int take_record(struct ucm_id *id, const uint8_t record[64])
{
	uint8_t mtu = record[54] & 0x3f;
	uint32_t hop;

	if (memcmp(record + 8, id->at.dgid, 16) != 0 || memcmp(record + 24, id->at.sgid, 16) != 0)
		return -EINVAL;
	ucm_path_make(id);
	memcpy(&hop, record + 44, sizeof(hop));
	hop = ntohl(hop);
	id->path.flow_label = hop >> 8 & 0xfffff;
	id->path.hop_limit = hop & 0xff ? (uint8_t)hop : UCM_HOP_LIMIT;
	id->path.traffic_class = record[48];
	id->path.sl = record[53] & 0xf;
	if (mtu)
		id->path.mtu = MIN(mtu, id->path.mtu);
	return 0;
}

static int set_path(struct ucm_id *id, const uint8_t *value, uint32_t bytes)
{
	const uint32_t wanted = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
	struct ib_path_rec_data data;
	int ret;

	if (bytes % sizeof(data))
		return -EINVAL;
	for (; bytes; bytes -= sizeof(data), value += sizeof(data)) {
		memcpy(&data, value, sizeof(data));
		if (data.flags == wanted)
			break;
	}
	if (!bytes || id->state != UCM_ADDR_RESOLVED)
		return -EINVAL;
	if (ucm_events_full(id->channel))
		return -ENOMEM;
	ret = take_record(id, (const uint8_t *)data.path_rec);
	if (ret)
		return ret;
	ucm_id_step(id, UCM_ROUTE_RESOLVED);
	ucm_event_report(id, UCM_EVENT_ROUTE_RESOLVED, 0);
	return 0;
}

int ucm_do_set_option(struct ucm_call *call, const struct rdma_ucm_set_option *in,
		      struct ucm_none *out)
{
	struct ucm_id *id;
	int ret = ucm_id_find(call->channel, in->id, &id);

	(void)out;
	if (ret)
		return ret;
	if (in->optlen > call->extra_bytes)
		return -EINVAL;
	if (in->level == RDMA_OPTION_ID)
		return set_id(id, in->optname, call->extra, in->optlen);
	if (in->level == RDMA_OPTION_IB && in->optname == RDMA_OPTION_IB_PATH)
		return set_path(id, call->extra, in->optlen);
	return -ENOSYS;
}
