/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a client, whatever its cause: removes its queue pairs, queues and keys from the data
 * path, waits for that once, then frees memory and numbers. Other clients notice nothing. Control
 * thread.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "base/close_later.h"
#include "capture.h"
#include "multicast.h"
#include "objects.h"
#include "pause.h"
#include "pieces.h"
#include "teardown.h"
#include "trace.h"

static void remove_objects(struct ceu *ceu, uint8_t op, const struct object *list)
{
	for (const struct object *o = list; o; o = o->next)
		ceu_exec(ceu, op, o->number, NULL, 0, NULL, 0);
}

/* Windows and fast registrations go first; a work request may be in the middle of adding another,
 * and no region goes before that request has finished. */
static void remove_windows(struct ceu *ceu, const struct client *client)
{
	bool any = client->objects[OBJECT_MW];

	remove_objects(ceu, CEU_HW2SW_MPT, client->objects[OBJECT_MW]);
	for (const struct object *o = client->objects[OBJECT_MR]; o; o = o->next) {
		if (!((const struct mr *)o)->memory.extents) {
			mpt_invalidate(o);
			any = true;
		}
	}
	if (any) {
		ceu_batch_end(ceu);
		ceu_batch_begin(ceu);
	}
}

/* Nothing of the client is found by the data path after this. */
static void leave_data_path(struct client *client)
{
	struct device *d = client->device;
	struct ceu *ceu = d->config.ceu;

	ceu_batch_begin(ceu);
	for (struct object *o = client->objects[OBJECT_QP]; o; o = o->next)
		multicast_leave_all((struct qp_object *)o);
	remove_objects(ceu, CEU_HW2SW_QP, client->objects[OBJECT_QP]);
	remove_objects(ceu, CEU_HW2SW_SRQ, client->objects[OBJECT_SRQ]); /* which no QP uses now */
	remove_objects(ceu, CEU_HW2SW_CQ, client->objects[OBJECT_CQ]);
	remove_windows(ceu, client);
	for (const struct object *o = client->objects[OBJECT_MR]; o; o = o->next)
		if (((const struct mr *)o)->memory.extents)
			mpt_invalidate(o);
	if (d->clients[client->index] == client) {
		hca_client_detach(d->config.hca, client->index);
		ceu_exec(ceu, CEU_HW2SW_EQ, client->index, NULL, 0, NULL, 0);
	}
	ceu_batch_end(ceu);
}

static void drop_all(struct client *client, enum object_kind kind)
{
	while (client->objects[kind]) {
		struct object *o = client->objects[kind];

		if (kind == OBJECT_PIECE)
			piece_unmap((struct piece *)o);
		object_drop(o);
	}
}

/* The client, or who has a copy of its kick, could go on waking the lcores: closing alone would leave
 * it in the set. */
static void close_wakeups(struct client *client)
{
	if (client->kick >= 0) {
		epoll_ctl(client->device->config.kicks, EPOLL_CTL_DEL, client->kick, NULL);
		close(client->kick);
	}
	if (client->bell >= 0)
		close(client->bell);
	client->bell = client->kick = -1;
}

void client_teardown(struct client *client)
{
	struct device *d = client->device;

	capture_client_end(client);
	pause_client_end(client);
	trace_client_end(client);
	if (!d)
		return;
	leave_data_path(client);
	client_look_for_holes(client); /* the last time */
	for (int kind = OBJECT_QP; kind >= OBJECT_PD; kind--)
		drop_all(client, (enum object_kind)kind);
	if (d->clients[client->index] == client)
		d->clients[client->index] = NULL;
	mapping_unmap_later(client, &client->page);
	if (client->pieces.slot)
		table_destroy(&client->pieces);
	free(client->runs);
	client->runs = NULL;
	share_give(&client->shares, SHARE_ranges, client->run_count);
	client->run_count = client->run_room = 0;
	close_wakeups(client);
	client->queue_pd = NULL;
	client->device = NULL;
}
