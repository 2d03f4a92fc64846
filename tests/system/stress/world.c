/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread: a random step after the other, until time is up; then everything goes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../../../bench/path/verify.h"
#include "stress.h"

enum { STEPS_PER_LIFE = 3000 };

uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t draw(struct random *r)
{
	return verify_mix(r->state++);
}

int contexts_open(struct softhca_context *ctx[SIDES])
{
	static const char *const names[SIDES] = {"left", "right"};

	for (unsigned side = 0; side < SIDES; side++) {
		int fd;

		ctx[side] = softhca_open(NULL, names[side]);
		if (!ctx[side]) {
			wrong("open %s: %s", names[side], strerror(errno));
			return -1;
		}
		fd = softhca_async_fd(ctx[side]);
		if (fd >= 0)
			fcntl(fd, F_SETFL, O_NONBLOCK);
	}
	return 0;
}

static void contexts_close(struct softhca_context *ctx[SIDES])
{
	for (unsigned side = 0; side < SIDES; side++)
		if (softhca_close(ctx[side]))
			wrong("close");
}

/* ---- steps ---- */

static void take_events(struct world *w)
{
	struct softhca_event event;

	for (unsigned side = 0; side < SIDES; side++)
		for (unsigned n = 0; n < 16; n++) {
			if (softhca_get_async_event(w->ctx[side], &event))
				break;
			add(TALLY_EVENTS, 1);
			if (event.type == SOFTHCA_EVENT_DEVICE_FATAL ||
			    event.type == SOFTHCA_EVENT_CQ_ERR ||
			    event.type == SOFTHCA_EVENT_SRQ_ERR)
				wrong("event: %s", softhca_event_type_str(event.type));
		}
}

static void free_memory(struct world *w, struct pair *p)
{
	for (unsigned side = 0; side < SIDES; side++) {
		int rc = softhca_free(w->ctx[side], p->end[side].area);

		if (rc)
			wrong("free: %s", strerror(-rc));
	}
	*p = (struct pair){0};
}

static void end_pair(struct world *w, struct pair *p, bool under_load)
{
	bool both = p->end[0].qp && p->end[1].qp && p->connected;

	if (both && !under_load) {
		if (p->disturbed || p->end[0].error || p->end[1].error)
			pair_flush(w, p);
		else
			pair_finish(w, p);
	}
	pair_destroy(p);
	free_memory(w, p);
}

static void connected_step(struct world *w, struct pair *p, uint32_t choice)
{
	if (choice < 490) {
		post_some(w, p, below(&w->random, SIDES));
	} else if (choice < 560) {
		handle_step(w, p, below(&w->random, SIDES));
	} else if (choice < 570) {
		resize_step(w, p);
	} else if (choice < 590) {
		sqe_step(w, p);
	} else if (choice < 900) {
		pair_poll(p);
	} else if (choice < 925) {
		pair_drain(w, p);
	} else if (choice < 950) {
		pair_look(w, p);
	} else if (choice < 960) {
		pair_error(w, p);
	} else if (choice < 975) {
		if ((p->end[0].box && box_worn(p->end[0].box)) ||
		    (p->end[1].box && box_worn(p->end[1].box)))
			end_pair(w, p, true);
		else
			pair_reset(w, p);
	} else {
		end_pair(w, p, choice < 988);
	}
}

static void half_step(struct world *w, struct pair *p, uint32_t choice)
{
	if (choice < 800)
		pair_poll(p);
	else if (choice < 850)
		pair_look(w, p);
	else if (choice < 950)
		pair_reset(w, p);
	else
		end_pair(w, p, true);
}

static void step(struct world *w)
{
	struct pair *p = &w->pair[below(&w->random, PAIRS)];
	uint32_t choice = below(&w->random, 1000);

	if (one_in(&w->random, 40))
		stray_step(w);
	if (one_in(&w->random, 50))
		take_events(w);
	if (w->overflows && one_in(&w->random, 500))
		overflow_step(w);
	if (!p->live)
		pair_make(w, p);
	else if (!p->end[0].qp || !p->end[1].qp)
		end_pair(w, p, true);
	else if (p->connected)
		connected_step(w, p, choice);
	else
		half_step(w, p, choice);
}

/* ---- a life ---- */

static uint32_t mtu_of(struct softhca_context *ctx)
{
	struct softhca_port_attr attr;

	if (softhca_query_port(ctx, &attr))
		return 256;
	return 128u << attr.active_mtu;
}

static int begin(struct world *w)
{
	if (w->own_ctx && contexts_open(w->ctx))
		return -1;
	w->mtu_bytes = mtu_of(w->ctx[0]);
	for (unsigned side = 0; side < SIDES; side++) {
		w->pd[side] = softhca_alloc_pd(w->ctx[side]);
		if (!w->pd[side]) {
			wrong("PD: %s", strerror(errno));
			return -1;
		}
	}
	return 0;
}

static void end(struct world *w)
{
	for (unsigned i = 0; i < PAIRS; i++)
		if (w->pair[i].live)
			end_pair(w, &w->pair[i], one_in(&w->random, 3));
	for (unsigned side = 0; side < SIDES; side++) {
		box_free(&w->box[side]);
		if (softhca_free(w->ctx[side], w->box[side].area))
			wrong("free");
	}
	strays_free(w);
	for (unsigned side = 0; side < SIDES; side++)
		if (softhca_free_pd(w->pd[side]))
			wrong("free PD");
}

static void live(struct world *w, uint64_t until_ns)
{
	uint32_t steps = STEPS_PER_LIFE / 2 + below(&w->random, STEPS_PER_LIFE);
	bool abrupt = w->own_ctx && one_in(&w->random, 2);

	if (begin(w))
		return;
	while (steps-- && !time_is_up(until_ns) && !told(TALLY_WRONG))
		step(w);
	if (abrupt)
		add(TALLY_CLOSED, SIDES);
	else
		end(w);
	if (w->own_ctx)
		contexts_close(w->ctx);
}

void world_run(struct softhca_context *const ctx[SIDES], uint64_t seed, uint64_t until_ns)
{
	struct world *w = malloc(sizeof(*w));
	uint64_t lives = 0;

	while (!time_is_up(until_ns) && !told(TALLY_WRONG)) {
		*w = (struct world){.random = {.state = verify_mix(seed) + (lives++ << 40)}};
		w->own_ctx = !ctx;
		w->overflows = !ctx && until_ns != UINT64_MAX;
		w->sharing = one_in(&w->random, 4);
		if (ctx)
			memcpy(w->ctx, ctx, sizeof(w->ctx));
		live(w, until_ns);
	}
	free(w);
}
