/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests about the daemon itself: its settings, who may change them, and what it shows. What they
 * are and how they are applied is the daemon's (control_settings_ops, control_view_fn). Control
 * thread. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "session.h"
#include "settings.h"

/* Was the connecting process in that group? The kernel noted its groups then. */
static bool settings_in_group(int fd, gid_t group)
{
	struct ucred who = {.gid = (gid_t)-1};
	socklen_t bytes = sizeof(who);
	gid_t *groups;
	bool in;

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes);
	in = who.gid == group;
	bytes = 0;
	if (in || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &bytes) == 0 || errno != ERANGE)
		return in; /* it has no others */
	groups = malloc(bytes);
	if (groups && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) == 0)
		for (socklen_t i = 0; i < bytes / sizeof(*groups) && !in; i++)
			in = groups[i] == group;
	free(groups);
	return in;
}

bool client_may_change(const struct client *client)
{
	const struct control_config *c = &client->control->config;

	return client->uid == 0 || client->uid == geteuid() ||
	       (c->has_admin_group && settings_in_group(client->fd, c->admin_gid));
}

int client_may(struct client *client, uint32_t version, const char *what)
{
	if (version != CONTROL_VERSION)
		return -EPROTO;
	if (client_may_change(client))
		return 0;
	CLIENT_LOG(client, WARNING, "user %u may not %s", (unsigned int)client->uid, what);
	return -EPERM;
}

int change_answered(struct control_change_reply *reply, int rc)
{
	if (rc == -EAGAIN)
		return rc;
	reply->error = rc;
	return 0;
}

/* Each change is logged. */
static bool changes_too_often(struct client *client, struct control_change_reply *reply)
{
	if (!share_use(&client->shares, SHARE_log_lines, 1))
		return false;
	snprintf(reply->text, sizeof(reply->text), "too many changes in a second");
	return true;
}

int run_get_setting(struct call *call)
{
	const struct control_config *c = &call->client->control->config;
	const struct control_get_setting *in = call->body;

	if (in->version != CONTROL_VERSION)
		return -EPROTO;
	return c->settings.read ? c->settings.read(c->settings_ctx, in->index, call->reply)
				: -ENOENT;
}

int run_set(struct call *call)
{
	struct client *client = call->client;
	const struct control_config *c = &client->control->config;
	const struct control_set *in = call->body;
	const struct control_changer who = {client->uid, client->pid};
	struct control_change_reply *out = call->reply;
	int rc = client_may(client, in->version, "change settings");

	if (rc)
		return rc;
	if (!memchr(in->assignment, '\0', sizeof(in->assignment)) || !c->settings.change)
		return -EINVAL;
	if (changes_too_often(client, out))
		return change_answered(out, -EBUSY);
	return change_answered(out, c->settings.change(c->settings_ctx, &who, in->assignment,
						       out->text, sizeof(out->text)));
}

int run_reload(struct call *call)
{
	struct client *client = call->client;
	const struct control_config *c = &client->control->config;
	const struct control_reload *in = call->body;
	const struct control_changer who = {client->uid, client->pid};
	struct control_change_reply *out = call->reply;
	int rc = client_may(client, in->version, "reload the configuration");

	if (rc)
		return rc;
	if (in->reserved || !c->settings.reload)
		return -EINVAL;
	if (!client->pending && changes_too_often(client, out))
		return change_answered(out, -EBUSY);
	return change_answered(out, c->settings.reload(c->settings_ctx, &who, &client->ticket,
						       out->text, sizeof(out->text)));
}

/* Whoever may connect may look; the view decides what he sees of others. A client that does not
 * take its replies is disconnected, so that it holds no more of them than its socket does. */
int run_view(struct call *call)
{
	struct control *c = call->client->control;
	const struct control_view *in = call->body;
	const struct control_viewer who = {.uid = call->client->uid,
					   .may_change = client_may_change(call->client)};
	int n;

	if (in->version != CONTROL_VERSION)
		return -EPROTO;
	if (in->reserved || !memchr(in->name, '\0', sizeof(in->name)) ||
	    !memchr(in->parameters, '\0', sizeof(in->parameters)))
		return -EINVAL;
	if (!c->config.view)
		return -ENOENT;
	c->asking = call->client;
	n = c->config.view(c->config.view_ctx, &who, in->name, in->parameters, c->text,
			   sizeof(c->text));
	c->asking = NULL;
	if (n < 0)
		return n;
	call->client->looks = true;
	call->text = c->text;
	call->text_bytes = (uint32_t)n;
	return 0;
}
