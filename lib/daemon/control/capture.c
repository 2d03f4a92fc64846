/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures of a port, or of a channel of the pipeline, for a program: maps the memory that it
 * brings, has the port copy frames, or the channel's consumer describe elements, into it, and ends
 * that with the connection. Both show what other users do, so only those who may change the daemon
 * may capture. Control thread.
 */
#include <errno.h>
#include <string.h>
#include "capture.h"
#include "objects.h"
#include "pause.h"
#include "pieces.h"
#include "session.h"
#include "settings.h"
#include "host-abi/capture_ring.h"
#include "pipeline/tap.h"

static int map_ring(struct client *client, int fd, uint64_t bytes, const char **why)
{
	int rc = mapping_charge(client, bytes);

	*why = "more than there is room for";
	if (rc)
		return rc;
	rc = memory_map(fd, bytes, MEMORY_SEAL_SEALED, &client->capture, why);
	if (!rc)
		return 0;
	mapping_uncharge(client, bytes);
	return rc == -EPERM || rc == -EACCES ? -EINVAL : rc; /* the memory is wrong, not the user */
}

static void unmap_ring(struct client *client)
{
	client_held_up(client, memory_held_up_ns(&client->capture));
	mapping_uncharge(client, client->capture.bytes);
	memory_unmap(&client->capture);
}

static int capture_check(const struct client *client, const struct control_capture *in)
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

/* Maps the memory, and begins. `channel`: CHANNEL_COUNT: the port's frames. */
static int capture_begin(struct call *call, struct device *d, enum channel_id channel,
			 const struct control_capture *in)
{
	struct client *client = call->client;
	struct hca *hca = d->config.hca;
	const char *why;
	int rc = map_ring(client, call->fds[0], in->bytes, &why);

	if (rc) {
		CLIENT_LOG(client, WARNING, "cannot capture: its memory is %s", why);
		return rc;
	}
	if (channel == CHANNEL_COUNT)
		rc = d->config.ops.capture(d->config.ctx, client->capture.base, in->bytes,
					   in->snap);
	else
		rc = tap_begin(hca->engines, hca->config.engines, channel, client->capture.base,
			       in->bytes, in->snap);
	if (rc) {
		unmap_ring(client);
		return rc;
	}
	client->captured = d;
	client->captured_channel = channel;
	return 0;
}

static struct device *device_meant(struct control *c, const char *name)
{
	return name[0] ? device_named(c, name) : device_first(c);
}

/* Captures what is meant and replies with its name. */
static int capture(struct call *call, enum channel_id channel, const struct control_capture *in)
{
	struct control_capture_reply *out = call->reply;
	struct client *client = call->client;
	struct device *d = device_meant(client->control, in->device);
	bool port = channel == CHANNEL_COUNT;
	int rc;

	if (!d)
		return -ENODEV;
	if (port && !d->config.ops.capture)
		return -EOPNOTSUPP;
	if (!port && !device_may_stop(d))
		return -EACCES;
	rc = capture_begin(call, d, channel, in);
	if (rc)
		return rc;
	memcpy(out->device, d->config.name, sizeof(out->device));
	CLIENT_LOG(client, NOTICE, "user %u captures %s%s%s", (unsigned int)client->uid,
		   port ? "" : channel_infos[channel].name, port ? "" : " of ", d->config.name);
	return 0;
}

int run_capture(struct call *call)
{
	const struct control_capture *in = call->body;
	int rc = capture_check(call->client, in);

	return rc ? rc : capture(call, CHANNEL_COUNT, in);
}

int run_capture_channel(struct call *call)
{
	const struct control_capture_channel *in = call->body;
	enum channel_id channel;
	int rc = capture_check(call->client, &in->capture);

	if (rc)
		return rc;
	if (!memchr(in->channel, 0, sizeof(in->channel)))
		return -EINVAL;
	channel = channel_named(in->channel);
	return channel == CHANNEL_COUNT ? -EINVAL : capture(call, channel, &in->capture);
}

void captures_debug_changed(struct control *c)
{
	for (struct client *client = c->clients; client; client = client->next)
		if (client->captured && client->captured_channel != CHANNEL_COUNT &&
		    !device_may_stop(client->captured))
			client_lost(client);
}

void capture_client_end(struct client *client)
{
	struct device *d = client->captured;
	const void *memory = client->capture.base;

	if (!d)
		return;
	if (client->captured_channel == CHANNEL_COUNT) {
		d->config.ops.capture_end(d->config.ctx, memory);
	} else {
		tap_end(d->config.hca->engines, d->config.hca->config.engines, memory);
		ceu_quiesce(device_first(client->control)->config.ceu);
	}
	unmap_ring(client);
	client->captured = NULL;
	CLIENT_LOG(client, NOTICE, "captures %s no more", d->config.name);
}
