/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists a daemon's devices for programs that have not opened one. Any thread; one connection per
 * call. */
#include <string.h>
#include <unistd.h>
#include "ask.h"
#include "base/limits.h"
#include "context.h"
#include "host-abi/cm_channel.h"

enum { GIDS_MAX = 1 + UINT8_MAX }; /* their indices have eight bits */

void port_attr_of(const struct control_port_reply *r, struct softhca_port_attr *attr)
{
	*attr = (struct softhca_port_attr){.state = r->state,
					   .max_mtu = r->max_mtu,
					   .active_mtu = r->active_mtu,
					   .speed_mbps = r->speed_mbps,
					   .gid_count = r->gid_count < GIDS_MAX ? r->gid_count
										: GIDS_MAX,
					   .pkey_count = r->pkey_count};
	memcpy(attr->mac, r->mac, sizeof(attr->mac));
}

/* Device `index`: 0, -ENODEV, or -errno. */
static int device_query(int fd, uint32_t index, struct control_device_reply *r)
{
	struct control_list_devices in = {.version = CONTROL_VERSION, .index = index};
	int rc = ask(fd, CONTROL_LIST_DEVICES, &in, sizeof(in), r, sizeof(*r), -1, NULL);

	/* A daemon that hangs up here does not know the request. */
	return rc == -ENOTCONN ? -EPROTO : rc;
}

static void info_of(const struct control_device_reply *r, uint32_t index,
		    struct softhca_device_info *info)
{
	*info = (struct softhca_device_info){.index = index, .guid = r->guid};
	memcpy(info->name, r->device, sizeof(info->name));
	info->name[sizeof(info->name) - 1] = 0;
	port_attr_of(&r->port, &info->port);
}

int softhca_device_list(const char *socket_path, struct softhca_device_info *list, unsigned int n)
{
	struct softhca_device_info info;
	struct control_device_reply r;
	struct cm_channel_hcas hcas;
	unsigned int found = 0;
	int fd = ask_connect(socket_path);
	int rc;

	if (fd < 0)
		return fd;
	ask_hcas(&hcas);
	rc = device_query(fd, 0, &r);
	for (uint32_t i = 0; !rc && i < HCA_MAX; i++) {
		info_of(&r, i, &info);
		if (cm_channel_uses(&hcas, info.name) && found++ < n)
			list[found - 1] = info;
		if (i + 1 >= r.count)
			break;
		rc = device_query(fd, i + 1, &r);
	}
	close(fd);
	return rc ? rc : (int)found;
}

int softhca_read_attribute(const char *socket_path, const char *device, const char *name,
			   char *text, unsigned int bytes)
{
	struct control_read_attribute in = {0};
	struct control_attribute out;
	int fd, rc;

	if (strlen(device) >= sizeof(in.device) || strlen(name) >= sizeof(in.name))
		return -ENOENT;
	strcpy(in.device, device);
	strcpy(in.name, name);
	fd = ask_connect(socket_path);
	if (fd < 0)
		return fd;
	rc = ask(fd, CONTROL_READ_ATTRIBUTE, &in, sizeof(in), &out, sizeof(out), -1, NULL);
	close(fd);
	if (rc)
		return rc;
	if (out.bytes > sizeof(out.text) || out.bytes > bytes)
		return -ENOSPC;
	memcpy(text, out.text, out.bytes);
	return (int)out.bytes;
}
