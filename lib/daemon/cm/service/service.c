/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The service as a whole: creation, turns, callbacks for the protocol, telemetry. Runs in the CM
 * thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/param.h>
#include <unistd.h>
#include "address.h"
#include "addresses.h"
#include "channel.h"
#include "connecting.h"
#include "ids.h"
#include "lifetime.h"
#include "numbers.h"
#include "requests.h"

static void op_send(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_BYTES])
{
	struct cm_service *s = ctx;
	struct cm_device *d = &s->devices[path->device];

	ASSERT(path->device < s->device_count);
	d->send(d->ctx, path, mad);
}

static uint64_t op_guid(void *ctx, unsigned int device)
{
	struct cm_service *s = ctx;

	ASSERT(device < s->device_count);
	return s->devices[device].guid;
}

static uint32_t op_random(void *ctx)
{
	(void)ctx;
	return ucm_random();
}

static const struct cm_ops ucm_cm_ops = {
	.send = op_send,
	.request = ucm_request,
	.event = ucm_connection_event,
	.guid = op_guid,
	.random = op_random,
};

struct cm_service *cm_service_create(const struct cm_service_limits *limits)
{
	struct cm_service *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->epoll = -1;
	if (limits)
		s->limits = *limits;
	s->shares = s->limits.shares;
	if (!s->shares) {
		s->shares = shares_create(geteuid());
		s->own_shares = true;
	}
	LIST_INIT(&s->channels);
	TAILQ_INIT(&s->resolving);
	s->resolve_due = UINT64_MAX;
	s->devices = calloc(HCA_MAX, sizeof(*s->devices));
	s->sum = calloc(1, sizeof(*s->sum));
	s->ports = calloc(UCM_SPACES * UCM_PORTS, sizeof(*s->ports));
	if (!s->devices || !s->sum || !s->ports || !s->shares)
		goto failed;
	if (!s->limits.protocol.unanswered)
		s->limits.protocol.unanswered =
			(uint32_t)shares_total(s->shares, SHARE_cm_requests, 0);
	for (unsigned int i = 0; i < HCA_MAX; i++)
		s->devices[i].removed = true;
	s->cm = cm_create(&ucm_cm_ops, s, &s->limits.protocol);
	if (!s->cm)
		goto failed;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0)
		goto failed;
	return s;
failed:
	cm_service_destroy(s);
	return NULL;
}

void cm_service_destroy(struct cm_service *s)
{
	int saved = errno;

	if (!s)
		return;
	while (!LIST_EMPTY(&s->channels))
		ucm_channel_close(LIST_FIRST(&s->channels));
	cm_destroy(s->cm);
	close(s->epoll); /* -1, if there is none, is refused */
	free(s->ids.at);
	free(s->memberships.at);
	free(s->devices);
	free(s->sum);
	free(s->ports);
	if (s->own_shares)
		shares_destroy(s->shares);
	free(s);
	errno = saved;
}

int cm_service_fd(const struct cm_service *s)
{
	return s->epoll;
}

uint64_t cm_service_turn(struct cm_service *s, uint64_t now)
{
	struct epoll_event ready[UCM_CHANNELS_PER_TURN];
	uint64_t next;
	int n;

	s->now = now;
	s->held_up = false;
	n = epoll_wait(s->epoll, ready, UCM_CHANNELS_PER_TURN, 0);
	for (int i = 0; i < n; i++)
		ucm_channel_serve(ready[i].data.ptr);
	ucm_resolve_turn(s);
	next = cm_expire(s->cm, now);
	s->held_up |= share_refill(s->shares, SHARE_cm_us);
	return s->held_up ? now : MIN(s->resolve_due, next);
}

void cm_service_receive(struct cm_service *s, uint64_t now, const struct cm_path *path,
			const uint8_t *mad, size_t bytes)
{
	s->now = now;
	cm_receive(s->cm, now, path, mad, bytes);
}

void cm_service_add(struct cm_service *s, unsigned int i, const struct cm_device *device)
{
	ASSERT(i < HCA_MAX && s->devices[i].removed);
	s->devices[i] = *device;
	if (i >= s->device_count)
		s->device_count = i + 1;
}

void cm_service_remove(struct cm_service *s, uint64_t now, unsigned int device)
{
	struct ucm_channel *ch;

	s->now = now;
	LIST_FOREACH (ch, &s->channels, of_service)
		ucm_channel_remove(ch, device);
	cm_forget_device(s->cm, device);
	s->devices[device].removed = true;
}

static void ucm_id_describe(const struct ucm_id *id, struct cm_id_info *info)
{
	*info = (struct cm_id_info){
		.id = id->number,
		.pid = id->channel->pid,
		.port_space = id->space,
		.source_port = ucm_address_port(&id->source),
		.destination_port = ucm_address_port(&id->destination),
		.qpn = id->qpn,
	};
	snprintf(info->state, sizeof(info->state), "%s", ucm_state_name(id->state));
	if (id->at.chosen)
		memcpy(info->device, ucm_device(id)->name, sizeof(info->device));
	ucm_address_gid(&id->source, info->source);
	ucm_address_gid(&id->destination, info->destination);
}

unsigned int cm_service_ids(const struct cm_service *s, struct cm_id_info *info, unsigned int n)
{
	const struct ucm_channel *ch;
	const struct ucm_id *id;
	unsigned int count = 0;

	LIST_FOREACH (ch, &s->channels, of_service) {
		LIST_FOREACH (id, &ch->ids, of_channel) {
			if (count < n)
				ucm_id_describe(id, &info[count]);
			count++;
		}
	}
	return count;
}

const struct cm_counters *cm_service_counters(const struct cm_service *s)
{
	const struct cm_counters *protocol = cm_counters(s->cm);

#define CM_COUNTER(name, text) s->sum->name = protocol->name + s->counters.name;
#include "cm/counters.def"
	return s->sum;
}
