/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that are valid before a device is opened: the list of devices, their sysfs attributes,
 * and the connection manager, which uses all of them. Control thread. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "objects.h"
#include "session.h"

int run_list_devices(struct call *call)
{
	const struct control_list_devices *in = call->body;
	struct control *c = call->client->control;
	struct control_device_reply *out = call->reply;
	const struct device *asked = NULL;

	if (in->version != CONTROL_VERSION)
		return -EPROTO;
	FOR_EACH_DEVICE (d, c)
		if (out->count++ == in->index)
			asked = d;
	if (!asked)
		return -ENODEV;
	memcpy(out->device, asked->config.name, sizeof(out->device));
	out->guid = asked->config.guid;
	device_port(asked, &out->port);
	return 0;
}

int run_read_attribute(struct call *call)
{
	const struct control_read_attribute *in = call->body;
	struct control_attribute *out = call->reply;
	const struct device *d;
	int n;

	if (!memchr(in->device, 0, sizeof(in->device)) || !memchr(in->name, 0, sizeof(in->name)))
		return -EINVAL;
	d = device_named(call->client->control, in->device);
	if (!d)
		return -ENODEV;
	if (!d->config.ops.attribute)
		return -ENOENT;
	n = d->config.ops.attribute(d->config.ctx, in->name, out->text, sizeof(out->text));
	if (n < 0)
		return n;
	out->bytes = (uint32_t)n;
	return 0;
}

/* The connection manager gets a copy of the descriptor, since it could close the original before
 * the reply has been sent here. */
int run_open_cm(struct call *call)
{
	const struct control_open_cm *in = call->body;
	const struct control_config *config = &call->client->control->config;
	int fd, rc;

	if (in->version != CONTROL_VERSION)
		return -EPROTO;
	if (in->reserved)
		return -EINVAL;
	if (!config->cm_adopt)
		return -EOPNOTSUPP;
	fd = fcntl(call->client->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -ENOMEM;
	rc = config->cm_adopt(config->cm_ctx, fd);
	if (rc)
		close(fd);
	else
		call->client->handed_over = true;
	return rc;
}
