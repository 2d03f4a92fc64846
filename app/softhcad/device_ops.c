/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers the control socket about a device: its port, its addresses, its attributes. Control
 * thread. */
#include <errno.h>
#include <string.h>
#include "attributes.h"
#include "device.h"
#include "device_ops.h"
#include "lcores.h"
#include "virt-to-phys/payload_ref.h"

enum { PORT_STATE_DOWN = 1, PORT_STATE_ACTIVE = 4 }; /* as IBV_PORT_* */

/* control_port_ops; ctx: struct device */

static void answer_port(void *ctx, struct control_port_reply *out)
{
	struct device *v = ctx;
	struct port_info info;

	port_info(v->port, &info);
	*out = (struct control_port_reply){
		.state = info.link_up && info.path_mtu_bytes ? PORT_STATE_ACTIVE : PORT_STATE_DOWN,
		.max_mtu = device_mtu_code(MTU_BYTES_MAX),
		.active_mtu = device_mtu_code(info.path_mtu_bytes),
		.speed_mbps = info.link_speed_mbps,
		.pkey_count = 1};
	memcpy(out->mac, info.mac, sizeof(out->mac));
}

static int answer_gid(void *ctx, uint32_t index, uint8_t gid[16])
{
	struct device *v = ctx;

	if (index >= v->hca->config.gid_count)
		return -ENOENT;
	memcpy(gid, v->hca->config.gids[index].src_ip, 16);
	return 0;
}

static int answer_resolve(void *ctx, const uint8_t dgid[16], uint8_t mac[6])
{
	struct device *v = ctx;

	if (!ip_is_group(dgid) && !peer_is_admitted(hca_admitted(v->hca), dgid))
		return -EACCES;
	return port_resolve(v->port, dgid, mac);
}

static bool answer_would_ask(void *ctx, const uint8_t dgid[16])
{
	struct device *v = ctx;

	return port_would_ask(v->port, dgid);
}

static int answer_join(void *ctx, const uint8_t mgid[16])
{
	struct device *v = ctx;

	return port_join(v->port, mgid);
}

static void answer_leave(void *ctx, const uint8_t mgid[16])
{
	struct device *v = ctx;

	port_leave(v->port, mgid);
}

static uint16_t answer_vlan(void *ctx)
{
	struct device *v = ctx;

	return v->section->port.vlan;
}

static int begin_capture(void *ctx, void *memory, uint64_t bytes, uint32_t snap)
{
	struct device *v = ctx;

	return port_capture_begin(v->port, memory, bytes, snap, payload_ref_copy);
}

static void end_capture(void *ctx, const void *memory)
{
	struct device *v = ctx;

	port_capture_end(v->port, memory);
	lcores_quiesce(v->lcores);
}

static bool may_stop(void *ctx)
{
	const struct device *v = ctx;

	return v->section->debug;
}

static int answer_attribute(void *ctx, const char *name, char *text, unsigned int bytes)
{
	return attribute_read(ctx, name, text, bytes);
}

void device_describe(struct device *v, struct control_device *out)
{
	*out = (struct control_device){.guid = device_guid(v),
				       .hca = v->hca,
				       .ceu = v->ceu,
				       .kicks = v->kicks,
				       .kick_eventfd = v->kick_fd,
				       .ops = {.port = answer_port,
					       .gid = answer_gid,
					       .resolve = answer_resolve,
					       .would_ask = answer_would_ask,
					       .vlan = answer_vlan,
					       .join = answer_join,
					       .leave = answer_leave,
					       .capture = begin_capture,
					       .capture_end = end_capture,
					       .may_stop = may_stop,
					       .attribute = answer_attribute},
				       .ctx = v};
	memcpy(out->name, v->section->name, sizeof(v->section->name));
}
