/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Identifiers of channels; see cm_ids.h. A table indexed by the daemon's numbers, which are 16
 * bits. One word of each entry changes only by compare and swap, so that a reported event either
 * counts for an identifier before it is destroyed, or is not reported.
 */
#include <stddef.h>
#include <string.h>
#include "cm_ids.h"

enum { NUMBERS = 65536 };
enum { KNOWN = 1, ON_DEVICE = 2, TOLD = 4, ONE_EVENT = 8 };

struct entry {
	uint64_t uid;
	uint32_t channel;
	uint32_t state; /* the flags above, then the number of events; 0: free */
};

static struct entry entries[NUMBERS];
static uint32_t end; /* entries from here on are unused */

#define GET(field)	  __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define SET(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELEASE)

static struct entry *find(uint32_t number)
{
	return number < NUMBERS ? &entries[number] : NULL;
}

/* If the entry is known and has none of the bits `unless`: sets those of `set` and adds `add`. */
static bool change(struct entry *e, uint32_t unless, uint32_t set, uint32_t add)
{
	uint32_t state = GET(e->state);

	do {
		if (!(state & KNOWN) || state & unless)
			return false;
	} while (!__atomic_compare_exchange_n(&e->state, &state, (state | set) + add, false,
					      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	return true;
}

/* uid 0: it gets no events yet, like identifiers that connection requests bring. */
static void made(uint32_t channel, uint32_t number, uint64_t uid)
{
	struct entry *e = find(number);
	uint32_t most = GET(end);

	if (!e)
		return;
	SET(e->uid, uid);
	SET(e->channel, channel);
	SET(e->state, KNOWN);
	while (most <= number && !__atomic_compare_exchange_n(&end, &most, number + 1, false,
							      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
}

static void set_uid(uint32_t number, uint64_t uid)
{
	struct entry *e = find(number);

	if (e)
		SET(e->uid, uid);
}

static void on_device(uint32_t number)
{
	struct entry *e = find(number);

	if (e)
		change(e, 0, ON_DEVICE, 0);
}

void cm_ids_moved(uint32_t number, uint32_t to_channel)
{
	struct entry *e = find(number);

	if (e)
		SET(e->channel, to_channel);
}

static void learn_event(uint32_t channel, const struct cm_channel_reply *reply,
			const struct rdma_ucm_event_resp *e)
{
	struct entry *counts = reply->counts_for ? find(reply->counts_for - 1) : NULL;

	if (counts)
		change(counts, 0, 0, ONE_EVENT);
	if (e->event == CM_EVENT_CONNECT_REQUEST)
		made(channel, e->id, 0);
	if (e->event == CM_EVENT_CONNECT_REQUEST || e->event == CM_EVENT_ADDR_RESOLVED)
		on_device(e->id);
}

void cm_ids_learn(uint32_t channel, const struct rdma_ucm_cmd_hdr *h, const void *body,
		  const struct cm_channel_reply *reply, const void *response)
{
	union {
		struct rdma_ucm_create_id create;
		struct rdma_ucm_accept accept;
		struct rdma_ucm_bind_ip bind_ip;
		struct rdma_ucm_bind bind;
	} in = {0};
	union {
		struct rdma_ucm_create_id_resp create;
		struct rdma_ucm_event_resp event;
	} out = {0};

	memcpy(&in, body, h->in < sizeof(in) ? h->in : sizeof(in));
	if (reply->bytes)
		memcpy(&out, response, reply->bytes < sizeof(out) ? reply->bytes : sizeof(out));
	if (h->cmd == RDMA_USER_CM_CMD_CREATE_ID)
		made(channel, out.create.id, in.create.uid);
	else if (h->cmd == RDMA_USER_CM_CMD_GET_EVENT)
		learn_event(channel, reply, &out.event);
	else if (h->cmd == RDMA_USER_CM_CMD_ACCEPT && in.accept.conn_param.valid)
		set_uid(in.accept.id, in.accept.uid);
	else if (h->cmd == RDMA_USER_CM_CMD_BIND_IP && reply->flags & CM_CHANNEL_ON_DEVICE)
		on_device(in.bind_ip.id);
	else if (h->cmd == RDMA_USER_CM_CMD_BIND && reply->flags & CM_CHANNEL_ON_DEVICE)
		on_device(in.bind.id);
}

uint32_t cm_ids_destroyed(uint32_t channel, uint32_t number)
{
	struct entry *e = find(number);

	if (!e || GET(e->channel) != channel)
		return 0;
	return __atomic_exchange_n(&e->state, 0, __ATOMIC_ACQ_REL) / ONE_EVENT;
}

static bool due(const struct entry *e, uint32_t channel)
{
	uint32_t state = GET(e->state);

	return (state & (KNOWN | ON_DEVICE | TOLD)) == (KNOWN | ON_DEVICE) &&
	       GET(e->channel) == channel && GET(e->uid);
}

bool cm_ids_removal(uint32_t channel, struct rdma_ucm_event_resp *event)
{
	for (uint32_t i = 0; i < GET(end); i++) {
		uint64_t uid = GET(entries[i].uid);

		if (!due(&entries[i], channel) || !change(&entries[i], TOLD, TOLD, ONE_EVENT))
			continue;
		*event = (struct rdma_ucm_event_resp){
			.uid = uid, .id = i, .event = CM_EVENT_DEVICE_REMOVAL};
		return true;
	}
	return false;
}

bool cm_ids_removal_waits(uint32_t channel)
{
	for (uint32_t i = 0; i < GET(end); i++)
		if (due(&entries[i], channel))
			return true;
	return false;
}
