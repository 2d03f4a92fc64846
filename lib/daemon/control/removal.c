/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HCAs that join and leave a running daemon: the requests, and their end here. Programs that use
 * one find their connection closed, which their library reports as IBV_EVENT_DEVICE_FATAL, as for
 * an adapter that is pulled out. Other HCAs go on. Control thread.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "capture.h"
#include "pause.h"
#include "session.h"
#include "settings.h"
#include "trace.h"

int run_remove_hca(struct call *call)
{
	struct client *client = call->client;
	const struct control_config *c = &client->control->config;
	const struct control_remove_hca *in = call->body;
	const struct control_changer who = {client->uid, client->pid};
	struct control_change_reply *out = call->reply;
	int rc = client_may(client, in->version, "remove HCAs");

	if (rc)
		return rc;
	if (in->reserved || !memchr(in->device, '\0', sizeof(in->device)) || !c->settings.remove)
		return -EINVAL;
	return change_answered(out,
			       c->settings.remove(c->settings_ctx, &who, in->device,
						  client->pending, out->text, sizeof(out->text)));
}

int run_add_hca(struct call *call)
{
	struct client *client = call->client;
	const struct control_config *c = &client->control->config;
	const struct control_add_hca *in = call->body;
	const struct control_changer who = {client->uid, client->pid};
	struct control_change_reply *out = call->reply;
	int rc = client_may(client, in->version, "add HCAs");

	if (rc)
		return rc;
	if (in->reserved || !memchr(in->device, '\0', sizeof(in->device)) ||
	    !memchr(in->settings, '\0', sizeof(in->settings)) || !c->settings.add)
		return -EINVAL;
	return change_answered(out, c->settings.add(c->settings_ctx, &who, in->device, in->settings,
						    &client->ticket, out->text, sizeof(out->text)));
}

/* Does it look at the device without having opened it? */
static bool looks_at(const struct client *client, const struct device *d)
{
	for (unsigned int i = 0; i < client->traced_count; i++)
		if (client->traced[i].device == d)
			return true;
	return client->captured == d;
}

void control_remove_device(struct control *c, unsigned int device)
{
	struct device *d = &c->devices[device];
	struct client *client, *next;

	pause_device_end(c, d);
	for (client = c->clients; client; client = next) {
		next = client->next;
		if (client->device == d) {
			CLIENT_LOG(client, INFO, "disconnected: %s is removed", d->config.name);
			client_end(client);
		} else if (looks_at(client, d)) {
			capture_client_end(client);
			trace_client_end(client);
			client_lost(client);
		}
	}
	device_close(d);
	*d = (struct device){.config.hca = NULL};
}
