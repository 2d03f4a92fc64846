/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects of clients, by number; HELLO, port, protection domains. session.c has checked a
 * request's length against control_requests.def. Everything in it is untrusted: numbers must be the
 * client's own, sums must not wrap. Control thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/nodes.h"
#include "host-abi/wqe.h"
#include "mrs.h"
#include "objects.h"
#include "pieces.h"
#include "session.h"
#include "teardown.h"
#include "users.h"

const struct request_row request_rows[CONTROL_TYPE_END] = {
#define REQUEST(NAME, name, body, reply, fds)                                                      \
	[CONTROL_##NAME] = {#NAME, body, reply, fds, run_##name},
#include "host-abi/control_requests.def"
};

/* ---- objects ---- */

static struct table *object_table_of(struct client *client, enum object_kind kind)
{
	switch (kind) {
	case OBJECT_PD:
		return &client->device->pds;
	case OBJECT_PIECE:
		return &client->pieces;
	case OBJECT_MR:
	case OBJECT_MW:
		return &client->device->mrs;
	case OBJECT_CQ:
		return &client->device->cqs;
	case OBJECT_SRQ:
		return &client->device->srqs;
	case OBJECT_QP:
	case OBJECT_KINDS:
		break;
	}
	return &client->device->qps;
}

/* The row of shares.def that an object counts in; windows and MRs share one. SHARE_COUNT: none, a
 * piece counts when it is mapped. */
static enum share row_of(enum object_kind kind)
{
	static const uint8_t rows[OBJECT_KINDS] = {
		[OBJECT_PD] = SHARE_pds,  [OBJECT_PIECE] = SHARE_COUNT, [OBJECT_MR] = SHARE_keys,
		[OBJECT_MW] = SHARE_keys, [OBJECT_CQ] = SHARE_cqs,	[OBJECT_SRQ] = SHARE_srqs,
		[OBJECT_QP] = SHARE_qps,
	};

	return rows[kind];
}

static int place_take(struct client *client, enum object_kind kind)
{
	return row_of(kind) == SHARE_COUNT ? 0 : share_take(&client->shares, row_of(kind), 1);
}

static void place_give(struct client *client, enum object_kind kind)
{
	if (row_of(kind) != SHARE_COUNT)
		share_give(&client->shares, row_of(kind), 1);
}

static void *object_make_in(struct client *client, enum object_kind kind, size_t bytes,
			    int (*add)(struct table *, struct object *), int *err)
{
	struct object *o;

	*err = place_take(client, kind);
	if (*err)
		return NULL;
	o = calloc(1, bytes);
	*err = o ? add(object_table_of(client, kind), o) : -ENOMEM;
	if (*err) {
		place_give(client, kind);
		free(o);
		return NULL;
	}
	o->kind = kind;
	o->client = client;
	o->next = client->objects[kind];
	if (o->next)
		o->next->prev = o;
	client->objects[kind] = o;
	client->counts[kind]++;
	return o;
}

void *object_make(struct client *client, enum object_kind kind, size_t bytes, int *err)
{
	return object_make_in(client, kind, bytes, table_add, err);
}

void *object_make_kept(struct client *client, enum object_kind kind, size_t bytes, int *err)
{
	return object_make_in(client, kind, bytes, table_add_reserved, err);
}

void object_drop(struct object *o)
{
	struct client *client = o->client;

	table_remove(object_table_of(client, o->kind), o);
	if (o->next)
		o->next->prev = o->prev;
	if (o->prev)
		o->prev->next = o->next;
	else
		client->objects[o->kind] = o->next;
	client->counts[o->kind]--;
	if (o->kind == OBJECT_MR)
		mr_memory_drop(client, &((struct mr *)o)->memory);
	place_give(client, o->kind);
	free(o);
}

void *object_find(struct client *client, enum object_kind kind, uint32_t number)
{
	struct object *o = table_find(object_table_of(client, kind), number, client);

	return o && o->kind == kind ? o : NULL;
}

void *object_named(struct call *call, enum object_kind kind, int *err)
{
	const struct control_number *in = call->body;
	struct object *o = object_find(call->client, kind, in->number);

	*err = !o ? -ENOENT : o->users ? -EBUSY : 0;
	return *err ? NULL : o;
}

/* ---- HELLO ---- */

struct device *device_named(struct control *c, const char *name)
{
	FOR_EACH_DEVICE (d, c)
		if (strncmp(d->config.name, name, 32) == 0)
			return d;
	return NULL;
}

static int client_index(struct device *d, uint32_t *index)
{
	for (uint32_t i = 0; i < CLIENTS_MAX; i++)
		if (!d->clients[i]) {
			*index = i;
			return 0;
		}
	return -EUSERS;
}

static void hello_reply(struct client *client, struct control_hello_reply *out)
{
	const struct device *d = client->device;

	*out = (struct control_hello_reply){
		.version = CONTROL_VERSION,
		.queue_pd = client->queue_pd->object.number,
		.max_qp = d->qps.max,
		.max_cq = d->cqs.max,
		.max_mr = d->mrs.max,
		.max_pd = (uint32_t)shares_total(client->control->shares, SHARE_pds,
						 client->shares.hca),
		.max_qp_wr = CONTROL_QP_WR_MAX,
		.max_cqe = CONTROL_CQE_MAX,
		.max_srq = d->srqs.max,
		.max_srq_wr = CONTROL_SRQ_WR_MAX,
		.max_mw = d->mrs.max,
		.max_fast_reg_pages = WQE_REGISTER_PAGES,
		.max_mcast_groups = MULTICAST_GROUPS_MAX,
		.max_mcast_qps = MULTICAST_QPS_MAX,
		.max_mcast_attach = MULTICAST_ATTACH_MAX,
		.max_sge = SGE_MAX,
		.max_inline_bytes = CONTROL_INLINE_MAX,
		.max_rd_atomic = READS_MAX,
		.gid_count = device_gid_count(d),
		.guid = d->config.guid,
		.max_mr_bytes = CONTROL_PIECE_BYTES_MAX,
	};
	memcpy(out->device, d->config.name, sizeof(out->device));
}

/* The bell: the far end is the client's, which can only read it: nothing waits in ours to be closed. */
static int bell_make(struct client *client, int *theirs)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair))
		return -errno;
	client->bell = pair[0];
	*theirs = pair[1];
	return shutdown(pair[0], SHUT_RD) ? -errno : 0;
}

/* The kick wakes the lcores that watch the device's set. Nobody reads it, so each write counts as
 * an edge. */
static int kick_make(struct client *client)
{
	struct epoll_event event = {.events = EPOLLIN};
	int kicks = client->device->config.kicks;

	client->kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (client->kick < 0)
		return -errno;
	return kicks >= 0 && epoll_ctl(kicks, EPOLL_CTL_ADD, client->kick, &event) ? -errno : 0;
}

/* Once: copies that a client does not take from its socket would count as in flight from us. */
int run_get_kick(struct call *call)
{
	struct client *client = call->client;

	if (client->kick_given)
		return -EEXIST;
	call->reply_fd = fcntl(client->kick, F_DUPFD_CLOEXEC, 0);
	client->kick_given = call->reply_fd >= 0;
	return client->kick_given ? 0 : -errno;
}

/* The client's page and event queue. Undone by teardown. */
static int client_attach(struct client *client, int *theirs)
{
	struct client_page *page = (struct client_page *)client->page.base;
	struct device *d = client->device;
	const struct ceu_event_mask events = {.types = CEU_EVENTS_ALL};
	struct ceu_eq eq;
	int rc = client_index(d, &client->index);

	if (rc)
		return rc;
	rc = table_create(&client->pieces, 64, 1u << 20, 32, 0);
	if (rc)
		return rc;
	client->queue_pd = object_make(client, OBJECT_PD, sizeof(struct pd), &rc);
	if (rc)
		return rc;
	rc = bell_make(client, theirs);
	if (!rc)
		rc = kick_make(client);
	if (rc)
		return rc;
	eq = (struct ceu_eq){.page = page, .eventfd = client->bell};
	rc = client_command(client, CEU_SW2HW_EQ, client->index, &eq, sizeof(eq));
	if (rc)
		return rc;
	d->clients[client->index] = client;
	rc = client_command(client, CEU_MAP_EQ, client->index, &events, sizeof(events));
	if (rc)
		return rc;
	if (client->index >= d->client_end)
		d->client_end = client->index + 1;
	client_bind(client, client->page.base, client->page.bytes);
	return 0;
}

unsigned int client_engine(const struct client *client)
{
	const struct hca *h = client->device->config.hca;
	const unsigned int count = h->config.engines;
	unsigned int first = hca_client_engine(h, client->index), best = first;

	for (unsigned int i = 1; i < count; i++) {
		unsigned int other = (first + i) % count;

		if (client->on_engine[other] < client->on_engine[best])
			best = other;
	}
	return best;
}

void client_engine_take(struct client *client, unsigned int engine)
{
	struct client_page *page = (struct client_page *)client->page.base;

	client->on_engine[engine]++;
	if (client->attached & 1u << engine)
		return;
	client->attached |= 1u << engine;
	hca_client_attach(client->device->config.hca, client->index, engine, &page->uar[engine]);
}

void client_engine_give(struct client *client, unsigned int engine)
{
	client->on_engine[engine]--;
}

void client_bind(const struct client *client, void *at, uint64_t bytes)
{
	node_bind(at, bytes, hca_client_node(client->device->config.hca, client->index));
}

static int map_page(struct client *client, int fd, const char **why)
{
	const struct wait wait = wait_begin();
	int rc = mapping_charge(client, sizeof(struct client_page));

	*why = "more than there is room for";
	if (rc)
		return rc;
	rc = memory_map(fd, sizeof(struct client_page), MEMORY_SEAL_SEALED, &client->page, why);
	if (rc)
		mapping_uncharge(client, sizeof(struct client_page));
	client_waited(client, wait_ns(&wait));
	return rc;
}

int run_hello(struct call *call)
{
	const struct control_hello *in = call->body;
	struct client *client = call->client;
	struct device *d;
	const char *why;
	int rc;

	if (in->version != CONTROL_VERSION)
		return -EPROTO;
	if (!memchr(in->device, 0, sizeof(in->device)))
		return -EINVAL;
	d = in->device[0] ? device_named(client->control, in->device)
			  : device_first(client->control);
	if (!d)
		return -ENODEV;
	rc = map_page(client, call->fds[0], &why);
	if (rc == -EAGAIN)
		return rc;
	if (rc) {
		CLIENT_LOG(client, WARNING, "refused: its page is %s", why);
		return rc;
	}
	client->device = d;
	client->shares.hca = (unsigned int)(d - client->control->devices);
	rc = client_attach(client, &call->reply_fd);
	if (rc) {
		client_teardown(client);
		return rc;
	}
	hello_reply(client, call->reply);
	LOG(DEBUG, "client %u: pid %d opened %s as number %u", client->id, (int)client->pid,
	    d->config.name, client->index);
	return 0;
}

/* ---- port ---- */

int device_gid(const struct device *d, uint32_t index, uint8_t gid[16])
{
	if (index >= GID_TABLE_MAX)
		return -ENOENT;
	return d->config.ops.gid(d->config.ctx, index, gid);
}

uint32_t device_gid_count(const struct device *d)
{
	uint8_t gid[16];
	uint32_t n = 0;

	while (device_gid(d, n, gid) == 0)
		n++;
	return n;
}

void device_port(const struct device *d, struct control_port_reply *out)
{
	d->config.ops.port(d->config.ctx, out);
	out->gid_count = device_gid_count(d);
}

int run_query_port(struct call *call)
{
	device_port(call->client->device, call->reply);
	return 0;
}

int run_query_gid(struct call *call)
{
	const struct control_number *in = call->body;
	struct control_gid_reply *out = call->reply;

	out->index = in->number;
	return device_gid(call->client->device, in->number, out->gid);
}

/* ---- protection domains ---- */

int run_alloc_pd(struct call *call)
{
	struct control_number *out = call->reply;
	int rc;
	struct pd *pd = object_make(call->client, OBJECT_PD, sizeof(*pd), &rc);

	if (!pd)
		return rc;
	out->number = pd->object.number;
	return 0;
}

int run_free_pd(struct call *call)
{
	int rc;
	struct pd *pd = object_named(call, OBJECT_PD, &rc);

	if (rc)
		return rc;
	if (pd == call->client->queue_pd)
		return -EBUSY;
	object_drop(&pd->object);
	return 0;
}

/* ---- commands ---- */

int client_command(const struct client *client, uint16_t op, uint32_t modifier, const void *in,
		   uint32_t bytes)
{
	return ceu_errno(ceu_exec(client->device->config.ceu, op, modifier, in, bytes, NULL, 0));
}

int client_query(const struct client *client, uint16_t op, uint32_t modifier, void *out,
		 uint32_t bytes)
{
	return ceu_errno(ceu_exec(client->device->config.ceu, op, modifier, NULL, 0, out, bytes));
}

int mpt_write(const struct object *o, struct mpt_entry entry)
{
	const struct device *d = o->client->device;

	entry.key = o->number;
	return client_command(o->client, CEU_SW2HW_MPT, v2p_index(&d->config.hca->v2p, entry.key),
			      &entry, sizeof(entry));
}

int mpt_invalidate(const struct object *o)
{
	return client_command(o->client, CEU_HW2SW_MPT, o->number, NULL, 0);
}
