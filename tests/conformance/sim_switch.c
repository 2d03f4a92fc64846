/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch of a simulation, and the port in front of it: see sim.h. */
#include "sim.h"
#include "wire/encap.h"

static bool red_marks(struct sim *s, uint64_t queued)
{
	const struct sim_switch *w = &s->net;

	if (queued <= w->kmin)
		return false;
	return queued >= w->kmax ||
	       sim_random(s) % 1000000 < (w->pmax_ppm * (queued - w->kmin) / (w->kmax - w->kmin));
}

bool sim_switch_forward(struct sim *s, uint8_t *frame, unsigned bytes, uint64_t *delay_ns)
{
	struct sim_switch *w = &s->net;
	uint64_t from = RTE_MAX(w->free_ns, s->now_ns);
	uint64_t queued = (from - s->now_ns) * w->mbps / 8000;

	if (queued + bytes > w->buffer_bytes) {
		w->dropped++;
		return false;
	}
	if (red_marks(s, queued))
		w->marked += wire_mark_congested(frame, bytes);
	w->free_ns = from + bytes * 8000ull / w->mbps;
	*delay_ns = w->free_ns - s->now_ns;
	return true;
}

bool sim_port_takes(struct sim *s, int from, unsigned bytes)
{
	struct sim_switch *w = &s->net;

	if (!w->port_mbps || from != 0)
		return true;
	if (w->port_free_ns > s->now_ns + s->step_ns)
		return false;
	w->port_free_ns = RTE_MAX(w->port_free_ns, s->now_ns) + bytes * 8000ull / w->port_mbps;
	return true;
}
