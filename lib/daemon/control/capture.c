/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures of a port for a program: maps the memory that it brings, has the port copy frames into
 * it, and ends that with the connection. Frames hold the data of all users: for those who may change
 * the daemon. Control thread.
 */
#include <errno.h>
#include <string.h>
#include "control_priv.h"
#include "host-abi/capture_ring.h"

static int map_ring(struct client *client, int fd, uint64_t bytes, const char **why)
{
	int rc = mapping_take(client, bytes);

	*why = "more than there is room for";
	if (rc)
		return rc;
	rc = memory_map(fd, bytes, MEMORY_SEAL_SEALED, &client->capture, why);
	if (!rc)
		return 0;
	mapping_give(client, bytes);
	return rc == -EPERM || rc == -EACCES ? -EINVAL : rc; /* the memory is wrong, not the user */
}

static void unmap_ring(struct client *client)
{
	mapping_give(client, client->capture.bytes);
	memory_unmap(&client->capture);
}

static int check(const struct client *client, const struct control_capture *in)
{
	if (in->version != CONTROL_VERSION)
		return -EPROTO;
	if (!client_may_change(client))
		return -EPERM;
	if (client->captured)
		return -EBUSY;
	if (!memchr(in->device, 0, sizeof(in->device)) || in->bytes > CAPTURE_BYTES_MAX)
		return -EINVAL;
	return 0;
}

int run_capture(struct call *call)
{
	const struct control_capture *in = call->body;
	struct control_capture_reply *out = call->reply;
	struct client *client = call->client;
	struct device *d = device_first(client->control);
	const char *why;
	int rc = check(client, in);

	if (rc)
		return rc;
	if (in->device[0])
		d = device_named(client->control, in->device);
	if (!d)
		return -ENODEV;
	if (!d->config.ops.capture)
		return -EOPNOTSUPP;
	rc = map_ring(client, call->fds[0], in->bytes, &why);
	if (rc) {
		CLIENT_LOG(client, WARNING, "cannot capture: its memory is %s", why);
		return rc;
	}
	rc = d->config.ops.capture(d->config.ctx, client->capture.base, in->bytes, in->snap);
	if (rc) {
		unmap_ring(client);
		return rc;
	}
	client->captured = d;
	memcpy(out->device, d->config.name, sizeof(out->device));
	CLIENT_LOG(client, NOTICE, "user %u captures %s", (unsigned int)client->uid,
		   d->config.name);
	return 0;
}

void capture_leave(struct client *client)
{
	struct device *d = client->captured;

	if (!d)
		return;
	d->config.ops.capture_end(d->config.ctx, client->capture.base);
	unmap_ring(client);
	client->captured = NULL;
	CLIENT_LOG(client, NOTICE, "captures %s no more", d->config.name);
}
