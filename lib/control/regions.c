/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests of the control socket on regions: client memory that is mapped into the daemon, as
 * one sealed memfd or composed of pieces of files. All that a request says is the client's word.
 * Control thread.
 */
#include <errno.h>
#include <stdlib.h>
#include "control_priv.h"

enum { LOG_PAGE_MIN = 12, LOG_PAGE_MAX = 30 };

/* An empty one, its length allowed. NULL with *err. */
static struct region *region_make(struct client *client, uint64_t length, int *err)
{
	const struct control_limits *limits = &client->control->config.limits;

	*err = -EINVAL;
	if (length == 0 || length > limits->region_bytes)
		return NULL;
	*err = -ENOSPC;
	if (length > limits->client_bytes - client->region_bytes)
		return NULL;
	return object_make(client, OBJECT_REGION, sizeof(struct region), err);
}

int run_add_region(struct call *call)
{
	const struct control_region *in = call->body;
	struct control_number *out = call->reply;
	struct client *client = call->client;
	const char *why;
	int rc;
	struct region *region = region_make(client, in->length, &rc);

	if (!region)
		return rc;
	rc = memory_map(call->fds[0], in->length, 0, &region->mapping, &why);
	if (rc) {
		LOG(WARNING, "client %u: region refused: it is %s", client->id, why);
		object_drop(&region->object);
		return rc;
	}
	region->filled = region->mapping.bytes;
	client->region_bytes += region->mapping.bytes;
	out->number = region->object.number;
	return 0;
}

/* Fills the region's next bytes. 0, -errno. */
static int fill(struct region *region, int fd, uint64_t offset, uint64_t bytes)
{
	struct client *client = region->object.client;
	struct piece *piece;
	const char *why;
	int rc;

	if (bytes == 0 || bytes > region->mapping.bytes - region->filled)
		return -EINVAL;
	if (client->pieces >= client->control->config.limits.pieces)
		return -ENOSPC;
	piece = malloc(sizeof(*piece));
	if (!piece)
		return -ENOMEM;
	rc = memory_map_piece(fd, offset, bytes, &region->mapping, region->filled,
		region->read_only, &piece->range, &why);
	if (rc) {
		LOG(WARNING, "client %u: piece of a region refused: it is %s", client->id, why);
		free(piece);
		return rc;
	}
	piece->next = region->pieces;
	region->pieces = piece;
	region->filled += bytes;
	client->pieces++;
	return 0;
}

int run_compose_region(struct call *call)
{
	const struct control_compose *in = call->body;
	struct control_number *out = call->reply;
	struct client *client = call->client;
	struct region *region;
	int rc;

	if (in->flags & ~(uint32_t)REGION_READ_ONLY || in->log_page < LOG_PAGE_MIN ||
		in->log_page > LOG_PAGE_MAX || in->length & ((1u << LOG_PAGE_MIN) - 1))
		return -EINVAL;
	region = region_make(client, in->length, &rc);
	if (!region)
		return rc;
	region->read_only = in->flags & REGION_READ_ONLY;
	rc = memory_reserve(
		in->length, in->address, in->log_page, region->read_only, &region->mapping);
	if (!rc)
		rc = fill(region, call->fds[0], in->offset, in->bytes);
	if (rc) {
		region_unmap(region);
		object_drop(&region->object);
		return rc;
	}
	client->region_bytes += region->mapping.bytes;
	out->number = region->object.number;
	return 0;
}

int run_add_piece(struct call *call)
{
	const struct control_piece *in = call->body;
	struct region *region = object_find(call->client, OBJECT_REGION, in->region);

	if (!region)
		return -ENOENT;
	if (in->reserved || !region->pieces || in->at != region->filled)
		return -EINVAL;
	return region->object.users ? -EBUSY : fill(region, call->fds[0], in->offset, in->bytes);
}

void region_unmap(struct region *region)
{
	struct piece *piece;

	/* First all guards: the addresses may be somebody else's as soon as they are free. */
	while ((piece = region->pieces)) {
		region->pieces = piece->next;
		memory_forget(piece->range);
		region->object.client->pieces--;
		free(piece);
	}
	memory_unmap(&region->mapping);
	region->filled = 0;
}

uint64_t region_faults(const struct region *region)
{
	uint64_t n = memory_faults(&region->mapping);

	for (const struct piece *piece = region->pieces; piece; piece = piece->next)
		n += memory_range_faults(piece->range);
	return n;
}

int run_drop_region(struct call *call)
{
	int rc;
	struct region *region = object_named(call, OBJECT_REGION, &rc);

	if (rc)
		return rc;
	/* No MR lies in it; those that did were invalidated and have quiesced. */
	call->client->region_bytes -= region->mapping.bytes;
	region_unmap(region);
	object_drop(&region->object);
	return 0;
}
