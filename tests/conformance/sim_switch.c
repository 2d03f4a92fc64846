/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch of simulated networks: see the header. */
#include "sim_switch.h"
#include "wire/encap.h"

enum { PS = 1000 }; /* in a ns */

uint64_t sim_next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

uint64_t sim_link_queued(const struct sim_link *l, uint64_t now_ns)
{
	uint64_t now_ps = now_ns * PS;

	return l->free_ps > now_ps ? (l->free_ps - now_ps) * l->mbps / 8000000 : 0;
}

uint64_t sim_link_send(struct sim_link *l, unsigned bytes, uint64_t now_ns)
{
	uint64_t now_ps = now_ns * PS, from_ps = l->free_ps > now_ps ? l->free_ps : now_ps;

	l->free_ps = from_ps + (l->mbps ? (bytes + SIM_GAP_BYTES) * 8000000ull / l->mbps : 0);
	return (l->free_ps + PS - 1) / PS + l->delay_ns;
}

static bool red_marks(struct sim_switch *w, uint64_t queued)
{
	const struct sim_switch_kind *k = &w->kind;

	if (!k->kmax || queued <= k->kmin)
		return false;
	return queued >= k->kmax || sim_next_random(&w->rng) % 1000000 <
					    k->pmax_ppm * (queued - k->kmin) / (k->kmax - k->kmin);
}

static bool has_room(const struct sim_switch *w, uint64_t queued, unsigned bytes, uint64_t now_ns)
{
	uint64_t all = 0, free;

	if (!w->kind.buffer_bytes)
		return true;
	for (unsigned i = 0; i < w->ports; i++)
		all += sim_link_queued(&w->port[i].link, now_ns);
	if (all + bytes > w->kind.buffer_bytes)
		return false;
	free = w->kind.buffer_bytes - all;
	return !w->kind.share_eighths || queued + bytes <= free * w->kind.share_eighths / 8;
}

bool sim_switch_forward(struct sim_switch *w, unsigned port, uint8_t *frame, unsigned bytes,
			uint64_t now_ns, uint64_t *at_ns)
{
	struct sim_port *p = &w->port[port];
	uint64_t queued = sim_link_queued(&p->link, now_ns);

	if (!has_room(w, queued, bytes, now_ns)) {
		p->dropped++;
		return false;
	}
	if (red_marks(w, queued))
		p->marked += wire_mark_congested(frame, bytes);
	*at_ns = sim_link_send(&p->link, bytes, now_ns);
	p->frames++;
	p->bytes += bytes;
	if (queued + bytes > p->most_queued)
		p->most_queued = (uint32_t)(queued + bytes);
	return true;
}
