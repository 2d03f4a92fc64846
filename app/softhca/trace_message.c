/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See trace_message.h. A WQE is known by its offset in the send queue, which is used again only
 * after it has completed; its packets name it. The responder knows their PSNs, and so do answers.
 */
#include <stdbool.h>
#include "pipeline/topology.h"
#include "trace_message.h"
#include "wire/opcode.h"
#include "wire/psn.h"

struct message {
	uint32_t wqe;
	unsigned begin, taken, end; /* steps: the first, RequesterTransControl's, behind the last */
	bool sent;
	uint32_t first_psn, last_psn;
	unsigned last_sent; /* the step in which its last packet, or a repeated one, is generated */
	bool answered[MODULE_COUNT]; /* that module has seen the answer to all of it */
};

static bool is_ours(const struct step *s)
{
	return s->place < STAGE_COUNT;
}

static bool takes_request(const struct step *s)
{
	return is_ours(s) && s->r.module == MODULE_RTC && s->r.channel == CHANNEL_DP_RTC;
}

static bool find_request(const struct step *step, unsigned count, unsigned n, struct message *m)
{
	unsigned first = 0, seen = 0, i;

	while (first < count && !(is_ours(&step[first]) && step[first].r.module == MODULE_DBP))
		first++;
	for (i = first; i < count; i++) {
		if (!takes_request(&step[i]) || (!seen && step[i].r.wqe != step[first].r.wqe))
			continue;
		if (++seen == n)
			break;
	}
	if (i >= count)
		return false;
	*m = (struct message){.wqe = step[i].r.wqe, .begin = first, .taken = i, .end = count};
	return true;
}

/* Bounds the message by those that used its place in the send queue before and after it. */
static void find_bounds(const struct step *step, struct message *m)
{
	for (unsigned i = m->begin; i < m->end; i++) {
		if (i == m->taken || !takes_request(&step[i]) || step[i].r.wqe != m->wqe)
			continue;
		if (i < m->taken)
			m->begin = i + 1;
		else
			m->end = i;
	}
}

static bool is_packet_of(const struct step *s, const struct message *m)
{
	return is_ours(s) && s->r.kind == TRACE_PACKET && s->r.wqe == m->wqe;
}

static void find_packets(const struct step *step, struct message *m)
{
	for (unsigned i = m->taken; i < m->end; i++) {
		const struct trace_record *r = &step[i].r;

		if (!is_packet_of(&step[i], m) || r->module != MODULE_RPG)
			continue;
		if (!m->sent)
			m->first_psn = m->last_psn = r->psn;
		else if (psn_after(r->psn, m->last_psn))
			m->last_psn = r->psn;
		m->sent = true;
		m->last_sent = i;
	}
}

/* Does it answer the last packet, and is there nothing more to come? */
static bool answers_all(const struct trace_record *r, const struct message *m)
{
	const struct wire_opcode *o = &wire_opcodes[r->opcode];

	return !psn_before(r->psn, m->last_psn) &&
	       (o->kind != WIRE_KIND_READ_RESP || o->flags & WIRE_LAST);
}

static bool is_answer(const struct step *s, unsigned i, struct message *m)
{
	const struct trace_record *r = &s->r;
	bool passes = is_ours(s) ? r->channel == CHANNEL_HP_RRC : r->channel == CHANNEL_RESPG_TXA;

	if (!passes || m->answered[r->module] || psn_before(r->psn, m->first_psn))
		return false;
	m->answered[r->module] = i > m->last_sent && answers_all(r, m);
	return true;
}

static bool is_received(const struct trace_record *r, const struct message *m)
{
	return (r->channel == CHANNEL_HP_EE || r->channel == CHANNEL_EE_RESPG) &&
	       !psn_before(r->psn, m->first_psn) && !psn_after(r->psn, m->last_psn);
}

static bool belongs(const struct step *s, unsigned i, struct message *m)
{
	if (m->answered[MODULE_RRC])
		return false;
	if (is_ours(s) && s->r.kind == TRACE_REQUEST)
		return s->r.wqe == m->wqe;
	if (i < m->taken || !m->sent || s->r.kind != TRACE_PACKET)
		return false;
	return is_packet_of(s, m) || (!is_ours(s) && is_received(&s->r, m)) || is_answer(s, i, m);
}

unsigned trace_message(struct step *step, unsigned count, unsigned n)
{
	struct message m;
	unsigned left = 0;

	if (!find_request(step, count, n, &m))
		return 0;
	find_bounds(step, &m);
	find_packets(step, &m);
	for (unsigned i = m.begin; i < m.end; i++)
		if (belongs(&step[i], i, &m))
			step[left++] = step[i];
	return left;
}
