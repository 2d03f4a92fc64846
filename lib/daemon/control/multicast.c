/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests of the control socket on multicast groups. A QP's groups are in its object, so that
 * they end with it; the port gets each attachment. As with a kernel's verbs, attaching again
 * changes nothing, and a QP that is attached cannot be destroyed. Control thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/ip.h"
#include "multicast.h"
#include "objects.h"
#include "session.h"

/* The pointer to the QP's attachment to that group; to NULL: there is none. */
static struct attachment **multicast_attachment(struct qp_object *qp, const uint8_t mgid[16])
{
	struct attachment **at = &qp->groups;

	while (*at && memcmp((*at)->mgid, mgid, sizeof((*at)->mgid)) != 0)
		at = &(*at)->next;
	return at;
}

static int change_group(const struct qp_object *qp, uint8_t op, const uint8_t mgid[16])
{
	struct ceu_multicast in;

	memcpy(in.mgid, mgid, sizeof(in.mgid));
	return client_command(qp->object.client, op, qp->object.number, &in, sizeof(in));
}

/* Attaches at the port, then in the data path. 0, -ENOMEM, -EINVAL: nothing has changed. */
static int enter(const struct qp_object *qp, const uint8_t mgid[16])
{
	const struct control_device *d = &qp->object.client->device->config;
	int rc = d->ops.join ? d->ops.join(d->ctx, mgid) : 0;

	if (rc)
		return rc;
	rc = change_group(qp, CEU_ATTACH_MGM, mgid);
	if (rc && d->ops.leave)
		d->ops.leave(d->ctx, mgid);
	return rc;
}

/* Removes *at from the list, the data path and the port. */
static void leave(struct qp_object *qp, struct attachment **at)
{
	struct client *client = qp->object.client;
	const struct control_device *d = &client->device->config;
	struct attachment *a = *at;

	*at = a->next;
	change_group(qp, CEU_DETACH_MGM, a->mgid);
	if (d->ops.leave)
		d->ops.leave(d->ctx, a->mgid);
	share_give(&client->shares, SHARE_attachments, 1);
	free(a);
}

void multicast_leave_all(struct qp_object *qp)
{
	while (qp->groups)
		leave(qp, &qp->groups);
}

int run_attach_mcast(struct call *call)
{
	const struct control_multicast *in = call->body;
	struct client *client = call->client;
	struct qp_object *qp = object_find(client, OBJECT_QP, in->qpn);
	struct attachment *a;
	int rc;

	if (!qp)
		return -ENOENT;
	if (!ip_is_group(in->mgid))
		return -EINVAL;
	if (*multicast_attachment(qp, in->mgid))
		return 0;
	rc = share_take(&client->shares, SHARE_attachments, 1);
	if (rc)
		return rc;
	a = malloc(sizeof(*a));
	rc = a ? enter(qp, in->mgid) : -ENOMEM;
	if (rc) {
		share_give(&client->shares, SHARE_attachments, 1);
		free(a);
		return rc;
	}
	memcpy(a->mgid, in->mgid, sizeof(a->mgid));
	a->next = qp->groups;
	qp->groups = a;
	return 0;
}

int run_detach_mcast(struct call *call)
{
	const struct control_multicast *in = call->body;
	struct qp_object *qp = object_find(call->client, OBJECT_QP, in->qpn);
	struct attachment **at;

	if (!qp)
		return -ENOENT;
	at = multicast_attachment(qp, in->mgid);
	if (!*at)
		return -EINVAL;
	leave(qp, at);
	return 0;
}
