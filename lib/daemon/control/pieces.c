/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests of the control socket on pieces: client memory that is mapped into the daemon once,
 * for all MRs in it. Requests are not to be trusted. Control thread.
 *
 * A mapping that has been touched takes long to unmap, about 20 ms per GiB: it is unmapped in
 * steps, between the requests of other clients, and populated likewise. Both are charged to their
 * user's part of the thread's time.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "objects.h"
#include "pieces.h"
#include "session.h"
#include "users.h"

enum {
	TURN_NS = 50000, /* for all users in a turn of the control thread */
	TURN_LOOKS = 8,	 /* users looked at in a turn, even if they have used up their time */
	UNMAP_QUICK_NS = 25000,
};
/* Bytes per step: few, doubled as long as steps are quick, as with memory that was not touched. A
 * touched MiB takes some 70 us, so one step of the largest size may take 9 ms. */
#define UNMAP_BYTES	(1ull << 20)
#define UNMAP_BYTES_MAX (128ull << 20)
#define POPULATE_BYTES	(128ull << 10)

/* The part of a mapping that is still to be unmapped. */
struct unmapping {
	TAILQ_ENTRY(unmapping) of_unmapping;
	uint8_t *base;
	uint64_t bytes, step;
	uint32_t range; /* counts until all of it is unmapped */
	struct share_user *user;
	struct long_work *of;
};

/* ---- users' turns ---- */

/* The long work of a client's user, for the caller to add to: from now on it gets turns. NULL: no
 * memory. */
static struct long_work *long_work_of(const struct client *client)
{
	struct control *c = client->control;
	struct long_work *w;

	TAILQ_FOREACH (w, &c->long_turns, of_control)
		if (w->uid == client->uid)
			return w;
	TAILQ_FOREACH (w, &c->long_deferred, of_control)
		if (w->uid == client->uid)
			return w;
	w = malloc(sizeof(*w));
	if (!w)
		return NULL;
	w->deferred = false;
	w->uid = client->uid;
	TAILQ_INIT(&w->unmapping);
	TAILQ_INIT(&w->populating);
	TAILQ_INSERT_TAIL(&c->long_turns, w, of_control);
	return w;
}

/* Frees the long work if nothing is left of it. */
static void long_work_removed(struct control *c, struct long_work *w)
{
	if (!TAILQ_EMPTY(&w->unmapping) || !TAILQ_EMPTY(&w->populating))
		return;
	if (w->deferred)
		TAILQ_REMOVE(&c->long_deferred, w, of_control);
	else
		TAILQ_REMOVE(&c->long_turns, w, of_control);
	free(w);
}

/* ---- mappings ---- */

/* Unmaps the last bytes first, so that the start stays the same. */
static void unmap_step(struct control *c, struct unmapping *l)
{
	uint64_t bytes = l->bytes < l->step ? l->bytes : l->step, begun = control_now_ns(), ns;
	const struct wait wait = wait_begin();

	/* Pages as large as a GiB go with the rest, whole. */
	if (munmap(l->base + (l->bytes - bytes), bytes)) {
		bytes = l->bytes;
		munmap(l->base, bytes);
	}
	user_waited(c, l->user, l->of->uid, wait_ns(&wait));
	ns = control_now_ns() - begun;
	if (ns > UNMAP_QUICK_NS)
		l->step = UNMAP_BYTES;
	else if (l->step < UNMAP_BYTES_MAX)
		l->step *= 2;
	l->bytes -= bytes;
	share_user_spend(l->user, SHARE_control_us, ns / 1000);
	/* The last one first: it keeps the user alive for the other. */
	if (!l->bytes)
		memory_forget(l->range);
	share_return(l->user, SHARE_mapped_bytes, 0, bytes);
	if (l->bytes)
		return;
	share_return(l->user, SHARE_mappings, 0, 1);
	TAILQ_REMOVE(&l->of->unmapping, l, of_unmapping);
	free(l);
}

/* Unmaps some. False: there is nothing to unmap, or not now. */
static bool unmap_next(struct control *c, const struct long_work *w)
{
	struct unmapping *l = TAILQ_FIRST(&w->unmapping);

	if (!l || !users_bulk_allowed(c, l->user) || !share_user_take(l->user, SHARE_control_us, 1))
		return false;
	unmap_step(c, l);
	return true;
}

/* Memory being unmapped still counts: a request that does not fit only because of it waits. */
static int charge_or_wait(struct client *client, enum share row, uint64_t n)
{
	struct share_client *s = &client->shares;
	struct control *c = client->control;

	if ((pieces_pending(c) || !TAILQ_EMPTY(&c->long_deferred)) &&
	    !share_fits(s, row, n, false) && share_fits(s, row, n, true))
		return -EAGAIN;
	return share_take(s, row, n);
}

bool mapping_deferred(struct client *client)
{
	return client->control->contended && share_use(&client->shares, SHARE_waited_ms, 0);
}

int mapping_charge(struct client *client, uint64_t bytes)
{
	int rc;

	if (mapping_deferred(client))
		return -EAGAIN;
	rc = bytes > CONTROL_PIECE_BYTES_MAX ? -ENOSPC
					     : charge_or_wait(client, SHARE_mapped_bytes, bytes);
	if (rc)
		return rc;
	rc = charge_or_wait(client, SHARE_mappings, 1);
	if (rc)
		share_give(&client->shares, SHARE_mapped_bytes, bytes);
	return rc;
}

void mapping_uncharge(struct client *client, uint64_t bytes)
{
	share_give(&client->shares, SHARE_mapped_bytes, bytes);
	share_give(&client->shares, SHARE_mappings, 1);
}

static int map_piece(const struct call *call, const struct control_piece *in, struct piece *piece,
		     bool wanted)
{
	struct client *client = call->client;
	const char *why = "more than there is room for";
	const struct wait wait = wait_begin();
	int rc = mapping_charge(client, in->bytes);

	if (!rc) {
		rc = memory_map_piece(call->fds[0], in->offset, in->bytes, piece->read_only,
				      &piece->mapping, &why);
		if (rc)
			mapping_uncharge(client, in->bytes);
	}
	if (!rc) {
		memory_set_owner(&piece->mapping, client->uid);
		client_bind(client, piece->mapping.base, piece->mapping.bytes);
	} else if (wanted && rc != -EAGAIN)
		CLIENT_LOG(client, WARNING, "piece refused: it is %s", why);
	client_waited(client, wait_ns(&wait));
	return rc;
}

/* `wanted`: the client needs it now. */
static int piece_add_one(const struct call *call, const struct control_piece *in, bool wanted,
			 uint32_t *number)
{
	struct client *client = call->client;
	struct piece *piece;
	int rc;

	if (in->flags & ~(uint32_t)PIECE_READ_ONLY || in->reserved || in->bytes == 0 ||
	    in->bytes > CONTROL_PIECE_BYTES_MAX)
		return -EINVAL;
	piece = object_make(client, OBJECT_PIECE, sizeof(*piece), &rc);
	if (!piece)
		return rc;
	piece->read_only = in->flags & PIECE_READ_ONLY;
	rc = map_piece(call, in, piece, wanted);
	if (rc) {
		object_drop(&piece->object);
		return rc;
	}
	*number = piece->object.number;
	return 0;
}

int run_add_piece(struct call *call)
{
	struct control_number *out = call->reply;

	return piece_add_one(call, call->body, true, &out->number);
}

int run_add_pieces(struct call *call)
{
	const struct control_pieces *in = call->body;
	struct control_pieces_reply *out = call->reply;
	struct control_piece next = in->first;
	int rc = 0;

	if (in->reserved || in->count == 0 || in->count > CONTROL_PIECES_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < in->count && !rc; i++) {
		rc = piece_add_one(call, &next, i == 0, &out->number[i]);
		out->count += !rc;
		next.offset += in->stride;
	}
	return out->count ? 0 : rc;
}

int run_drop_piece(struct call *call)
{
	int rc;
	struct piece *piece = object_named(call, OBJECT_PIECE, &rc);

	if (rc)
		return rc;
	/* No MR lies in it any more; those that did were invalidated, and the data path has left
	 * them. */
	client_held_up(call->client, memory_held_up_ns(&piece->mapping));
	piece_unmap(piece);
	object_drop(&piece->object);
	return 0;
}

/* ---- populating ---- */

static uint64_t min_bytes(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void populate_some(struct piece *piece)
{
	uint64_t bytes = min_bytes(piece->populate_to - piece->populate_from, POPULATE_BYTES);
	uint64_t begun = control_now_ns();

	memory_populate(&piece->mapping, piece->populate_from, bytes);
	piece->populate_from += bytes;
	if (piece->populate_from == piece->populate_to)
		TAILQ_REMOVE(&piece->of->populating, piece, of_populating);
	users_charge(piece->object.client, begun);
}

/* Populates some. False: there is nothing to populate, or not now. */
static bool populate_next(struct control *c, const struct long_work *w)
{
	struct piece *piece = TAILQ_FIRST(&w->populating);

	if (!piece || !users_bulk_allowed(c, piece->object.client->shares.user) ||
	    !users_may_serve(piece->object.client))
		return false;
	populate_some(piece);
	return true;
}

void piece_populate(struct piece *piece, uint64_t offset, uint64_t bytes, bool at_once)
{
	bool waits = piece->populate_from < piece->populate_to;

	if (!waits && at_once) {
		memory_populate(&piece->mapping, offset, bytes);
		return;
	}
	if (!waits) {
		piece->of = long_work_of(piece->object.client);
		if (!piece->of)
			return; /* its pages are mapped when they are touched */
		piece->populate_from = offset;
		piece->populate_to = offset + bytes;
		TAILQ_INSERT_TAIL(&piece->of->populating, piece, of_populating);
		piece->object.client->control->pieces_changed = true;
		return;
	}
	/* One range: includes what lies between the two. */
	piece->populate_from = min_bytes(piece->populate_from, offset);
	if (piece->populate_to < offset + bytes)
		piece->populate_to = offset + bytes;
}

static void forget_populating(struct piece *piece)
{
	if (piece->populate_from == piece->populate_to)
		return;
	TAILQ_REMOVE(&piece->of->populating, piece, of_populating);
	long_work_removed(piece->object.client->control, piece->of);
	piece->populate_from = piece->populate_to = 0;
}

int piece_register(struct piece *piece, uint64_t bytes)
{
	uint64_t has = piece->mapping.bytes, before = min_bytes(piece->registered, has);
	uint64_t more = min_bytes(piece->registered + bytes, has) - before;
	int rc = share_take(&piece->object.client->shares, SHARE_registered_bytes, more);

	if (!rc)
		piece->registered += bytes;
	return rc;
}

void piece_deregister(struct piece *piece, uint64_t bytes)
{
	uint64_t has = piece->mapping.bytes, before = min_bytes(piece->registered, has);

	piece->registered -= bytes;
	share_give(&piece->object.client->shares, SHARE_registered_bytes,
		   before - min_bytes(piece->registered, has));
}

/* ---- unmapping ---- */

void mapping_unmap_later(struct client *client, struct mapping *m)
{
	struct long_work *w;
	struct unmapping *l;

	if (!m->base)
		return;
	w = long_work_of(client);
	l = w ? malloc(sizeof(*l)) : NULL;
	if (!l) {
		if (w)
			long_work_removed(client->control, w);
		mapping_uncharge(client, m->bytes);
		memory_unmap(m);
		return;
	}
	/* It is not touched any more, and its addresses are not reused before it is unmapped. */
	memory_unguard(m->range);
	*l = (struct unmapping){.of = w,
				.base = m->base,
				.bytes = m->bytes,
				.step = UNMAP_BYTES,
				.range = m->range};
	share_leave(&client->shares, SHARE_mapped_bytes, l->bytes);
	l->user = share_leave(&client->shares, SHARE_mappings, 1);
	TAILQ_INSERT_TAIL(&l->of->unmapping, l, of_unmapping);
	client->control->pieces_changed = true;
	*m = (struct mapping){0};
}

void piece_unmap(struct piece *piece)
{
	forget_populating(piece);
	mapping_unmap_later(piece->object.client, &piece->mapping);
}

bool pieces_pending(const struct control *c)
{
	return !TAILQ_EMPTY(&c->long_turns);
}

/* Moves the first user to the end of the turns, or defers it if it is in debt. False: deferred. */
static bool take_turn_or_defer(struct control *c, struct long_work *w)
{
	const struct unmapping *l = TAILQ_FIRST(&w->unmapping);

	w->deferred = l && c->contended && !share_user_take(l->user, SHARE_waited_ms, 0);
	TAILQ_REMOVE(&c->long_turns, w, of_control);
	if (w->deferred)
		TAILQ_INSERT_TAIL(&c->long_deferred, w, of_control);
	else
		TAILQ_INSERT_TAIL(&c->long_turns, w, of_control);
	return !w->deferred;
}

void pieces_resume(struct control *c)
{
	struct long_work *w;

	TAILQ_FOREACH (w, &c->long_deferred, of_control)
		w->deferred = false;
	TAILQ_CONCAT(&c->long_turns, &c->long_deferred, of_control);
}

/* Does some work of the first user. False: nothing was done. */
static bool long_turn(struct control *c)
{
	struct long_work *w = TAILQ_FIRST(&c->long_turns);
	bool done;

	if (!take_turn_or_defer(c, w))
		return false;
	done = unmap_next(c, w);
	done |= populate_next(c, w);
	long_work_removed(c, w);
	return done;
}

void pieces_turn(struct control *c)
{
	uint64_t begun, ns = 0;
	bool done = false;

	c->pieces_changed = false;
	if (!pieces_pending(c))
		return;
	begun = control_now_ns();
	for (unsigned int n = 0; pieces_pending(c) && n < TURN_LOOKS && ns <= TURN_NS; n++) {
		done |= long_turn(c);
		ns = control_now_ns() - begun;
	}
	if (done)
		users_charge_bulk(c, ns);
}

void pieces_unmap_all(struct control *c)
{
	struct long_work *w;

	pieces_resume(c);
	while ((w = TAILQ_FIRST(&c->long_turns))) {
		unmap_step(c, TAILQ_FIRST(&w->unmapping));
		long_work_removed(c, w);
	}
}
