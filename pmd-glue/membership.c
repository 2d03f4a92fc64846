/* SPDX-License-Identifier: BSD-3-Clause */
/* The host part of IGMPv3 and MLDv2, without the formats: membership.h. Control thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_random.h>

#include "control.h"
#include "membership.h"

static const uint8_t all_hosts[16] = {[10] = 0xff, [11] = 0xff, 224, 0, 0, 1};

bool membership_is_reported(const uint8_t ip[16])
{
	static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1};

	if (ip_is_v4_mapped(ip))
		return memcmp(ip, all_hosts, 16) != 0;
	return (ip[1] & 0xf) >= 2 && memcmp(ip, all_nodes, 16) != 0;
}

void membership_free(struct memberships *t)
{
	free(t->entry);
	*t = (struct memberships){0};
}

static struct membership *membership_lookup(const struct memberships *t, const uint8_t ip[16])
{
	for (unsigned int i = 0; i < t->count; i++) {
		if (memcmp(t->entry[i].ip, ip, 16) == 0)
			return &t->entry[i];
	}
	return NULL;
}

static struct membership *membership_add(struct memberships *t, const uint8_t ip[16])
{
	struct membership *m;

	if (t->count == t->room) {
		unsigned int room = t->room ? t->room * 2 : 16;

		m = realloc(t->entry, room * sizeof(*m));
		if (!m)
			return NULL;
		t->entry = m;
		t->room = room;
	}
	m = &t->entry[t->count++];
	*m = (struct membership){0};
	memcpy(m->ip, ip, 16);
	return m;
}

static void expect(struct memberships *t, uint64_t when_ms)
{
	if (when_ms < t->next_ms)
		t->next_ms = when_ms;
}

static uint8_t robustness(const struct memberships *t, bool v6)
{
	return t->robustness[v6] ? t->robustness[v6] : MEMBERSHIP_ROBUSTNESS;
}

/* The last change replaces one whose reports have not all been sent. */
static void membership_change(struct memberships *t, struct membership *m, uint64_t now_ms)
{
	if (!membership_is_reported(m->ip))
		return;
	m->changes = robustness(t, !ip_is_v4_mapped(m->ip));
	m->change_ms = now_ms;
	expect(t, now_ms);
}

int membership_join(struct memberships *t, const uint8_t ip[16], uint64_t now_ms, bool *first)
{
	struct membership *m = membership_lookup(t, ip);

	if (!m)
		m = membership_add(t, ip);
	if (!m)
		return -ENOMEM;
	*first = m->users++ == 0;
	if (*first && m->changes) /* it had been left */
		t->left--;
	if (*first)
		membership_change(t, m, now_ms);
	return 0;
}

bool membership_leave(struct memberships *t, const uint8_t ip[16], uint64_t now_ms)
{
	struct membership *m = membership_lookup(t, ip);

	if (!m || !m->users || --m->users)
		return false;
	m->answer_ms = 0;
	if (membership_is_reported(ip) && t->left < MEMBERSHIP_LEFT_MAX) {
		t->left++;
		membership_change(t, m, now_ms);
	} else {
		*m = t->entry[--t->count];
	}
	return true;
}

void membership_announce(struct memberships *t, uint64_t now_ms)
{
	for (unsigned int i = 0; i < t->count; i++)
		membership_change(t, &t->entry[i], now_ms);
}

/* Schedules an answer within delay_ms, never 0, unless one is due earlier. */
static uint64_t answer_by(uint64_t open_ms, uint32_t delay_ms, uint64_t now_ms)
{
	uint64_t when_ms = now_ms + 1 + (delay_ms ? rte_rand_max(delay_ms) : 0);

	return open_ms && open_ms < when_ms ? open_ms : when_ms;
}

void membership_query(struct memberships *t, bool v6, const uint8_t *group, uint8_t wanted,
		      uint32_t delay_ms, uint64_t now_ms)
{
	struct membership *m = group ? membership_lookup(t, group) : NULL;

	t->robustness[v6] = wanted;
	if (!group) {
		t->general_ms[v6] = RTE_MAX(
			answer_by(t->general_ms[v6], delay_ms, now_ms),
			t->answered_ms[v6] ? t->answered_ms[v6] + MEMBERSHIP_GENERAL_MS : 0);
		expect(t, t->general_ms[v6]);
	} else if (m && m->users && membership_is_reported(group)) {
		m->answer_ms = answer_by(m->answer_ms, delay_ms, now_ms);
		expect(t, m->answer_ms);
	}
}

/* Accounts for one report of m's change being sent. */
static void reported(struct memberships *t, struct membership *m, uint64_t now_ms)
{
	if (--m->changes) {
		m->change_ms = now_ms + 1 + rte_rand_max(MEMBERSHIP_REPEAT_MS);
		return;
	}
	if (m->users)
		return;
	t->left--;
	/* Nothing refers to it any more. The caller visits the index again. */
	*m = t->entry[--t->count];
}

static unsigned int changes_due(struct memberships *t, bool v6, uint64_t now_ms,
				struct membership_record *records)
{
	unsigned int n = 0;

	for (unsigned int i = t->count; i-- > 0 && n < MEMBERSHIP_RECORDS_MAX;) {
		struct membership *m = &t->entry[i];

		if (!m->changes || m->change_ms > now_ms || v6 == ip_is_v4_mapped(m->ip))
			continue;
		records[n].type = m->users ? MEMBERSHIP_TO_EXCLUDE : MEMBERSHIP_TO_INCLUDE;
		memcpy(records[n++].ip, m->ip, 16);
		reported(t, m, now_ms);
	}
	return n;
}

/* A general query requests all groups. */
static void spread_general(struct memberships *t, bool v6, uint64_t now_ms)
{
	if (!t->general_ms[v6] || t->general_ms[v6] > now_ms)
		return;
	t->general_ms[v6] = 0;
	t->answered_ms[v6] = now_ms;
	for (unsigned int i = 0; i < t->count; i++) {
		struct membership *m = &t->entry[i];

		if (m->users && v6 != ip_is_v4_mapped(m->ip) && membership_is_reported(m->ip))
			m->answer_ms = now_ms;
	}
}

static unsigned int answers_due(struct memberships *t, bool v6, uint64_t now_ms,
				struct membership_record *records)
{
	unsigned int n = 0;

	spread_general(t, v6, now_ms);
	for (unsigned int i = 0; i < t->count && n < MEMBERSHIP_RECORDS_MAX; i++) {
		struct membership *m = &t->entry[i];

		if (!m->answer_ms || m->answer_ms > now_ms || v6 == ip_is_v4_mapped(m->ip))
			continue;
		records[n].type = MEMBERSHIP_IS_EXCLUDE;
		memcpy(records[n++].ip, m->ip, 16);
		m->answer_ms = 0;
	}
	return n;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t membership_find_next(const struct memberships *t)
{
	uint64_t next_ms = UINT64_MAX;

	for (unsigned int i = 0; i < 2; i++) {
		if (t->general_ms[i])
			next_ms = earlier(next_ms, t->general_ms[i]);
	}
	for (unsigned int i = 0; i < t->count; i++) {
		const struct membership *m = &t->entry[i];

		if (m->changes)
			next_ms = earlier(next_ms, m->change_ms);
		if (m->answer_ms)
			next_ms = earlier(next_ms, m->answer_ms);
	}
	return next_ms;
}

unsigned int membership_due(struct memberships *t, bool v6, uint64_t now_ms,
			    struct membership_record records[MEMBERSHIP_RECORDS_MAX])
{
	unsigned int n;

	if (now_ms < t->next_ms)
		return 0;
	n = changes_due(t, v6, now_ms, records);
	if (!n)
		n = answers_due(t, v6, now_ms, records);
	if (!n)
		t->next_ms = membership_find_next(t);
	return n;
}
