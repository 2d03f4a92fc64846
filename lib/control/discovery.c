/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program may ask before it has opened a device: which there are, and what
 * sysfs would say about them. Control thread. */
#include <errno.h>
#include <string.h>
#include "control_priv.h"

int run_list_devices(struct call *call)
{
	const struct control_list_devices *in = call->body;
	const struct control *c = call->client->control;
	struct control_device_reply *out = call->reply;
	const struct device *d;

	if (in->version != CONTROL_VERSION)
		return -EPROTO;
	if (in->index >= c->config.device_count)
		return -ENODEV;
	d = &c->devices[in->index];
	memcpy(out->device, d->config.name, sizeof(out->device));
	out->guid = d->config.guid;
	out->count = c->config.device_count;
	device_port(d, &out->port);
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
