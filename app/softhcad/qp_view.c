/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs: a list of those in use, and everything about one, down to each module's state, so
 * that one can see from outside what a stuck queue pair waits for. Values may be slightly stale,
 * and from different moments. Users do not see in others' queue pairs what it takes to forge
 * packets of the connection: another local program sends from the same address, so the peer could
 * not tell. Under the daemon's lock, which keeps the context and the client's memory mapped.
 * Changes nothing.
 */
#include <arpa/inet.h>
#include <errno.h>
#include "daemon.h"
#include "pipeline/message.h"
#include "qp_view.h"
#include "requester/requester.h"
#include "residence.h"
#include "responder/responder.h"
#include "views.h"

enum { QPS_LISTED_MAX = 48 };

/* Hidden from the race detector: everything read here may be changing. */
#define UNGUARDED __attribute__((no_sanitize("thread")))
/* A field that an lcore may write concurrently; read once. */
#define NOW(field) (*(const volatile __typeof__(field) *)&(field))

/* A user sees these only for his own queue pairs; `all` says whether this is one. */
#define PUT_SECRET(to, key, value)                                                                 \
	if (all)                                                                                   \
		dict_u64(to, key, value);
#define PUT_SECRET_TEXT(to, key, value)                                                            \
	if (all)                                                                                   \
		dict_string(to, key, value);

static bool sees_all(const struct daemon *d, const struct device *v,
		     const struct control_viewer *who, const struct qp *q)
{
	return !who || who->may_change ||
	       control_client_is_of(d->control, v - d->devices, q->client, who->uid);
}

/* ---- the list ---- */

static const char *state_name(unsigned state)
{
	static const char *const names[] = {QP_STATE_NAMES};

	return state < RTE_DIM(names) ? names[state] : "?";
}

static const char *service_name(unsigned service)
{
	static const char *const names[] = {"RC", "UC", "UD"};

	return service < RTE_DIM(names) ? names[service] : "?";
}

/* Of path migration: doc/transport.md#path-migration. */
static const char *migration_name(struct qp_way way)
{
	static const char *const names[] = {
#define STATE(id, text) #id,
#include "context/path_migration.def"
	};

	return way.migration < RTE_DIM(names) ? names[way.migration] : "?";
}

/* The next QP in use from index `from` on, or NULL. pages: of the table. */
static const struct qp *next_qp(const struct qp_table *t, struct residence *pages, uint32_t from)
{
	for (uint32_t i = from; i < t->count; i++) {
		const struct qp *q = qp_at(t, i);

		if (is_resident(pages, &q->qpn) && __atomic_load_n(&q->qpn, __ATOMIC_ACQUIRE) != 0)
			return q;
	}
	return NULL;
}

/* NULL: no memory. */
UNGUARDED static json_t *qp_of(const struct qp *it, bool all)
{
	json_t *to = dict_new();

	if (to) {
		QP_VIEW(PUT)
	}
	return to;
}

void qps_put(const struct daemon *d, const struct device *v, const struct control_viewer *who,
	     uint32_t from, json_t *to)
{
	const struct qp_table *t = &v->hca->qps;
	json_t *qps = dict_new();
	struct residence pages;
	const struct qp *q;
	unsigned count = 0, listed = 0;
	uint32_t next = 0;

	residence_init(&pages, t->qps, t->count * sizeof(*t->qps));
	for (q = next_qp(t, &pages, 0); qps && q; q = next_qp(t, &pages, q->index + 1)) {
		count++;
		if (q->index < from)
			continue;
		if (listed == QPS_LISTED_MAX && !next)
			next = q->index;
		if (listed < QPS_LISTED_MAX) {
			dict_put_numbered(qps, qp_number(q), qp_of(q, sees_all(d, v, who, q)));
			listed++;
		}
	}
	dict_u64(to, "qp_count", count);
	if (next)
		dict_u64(to, "next", next);
	dict_put(to, "qps", qps);
}

/* ---- one queue pair ---- */

static const char *ip_text(char text[INET6_ADDRSTRLEN], const uint8_t ip[16])
{
	return inet_ntop(AF_INET6, ip, text, INET6_ADDRSTRLEN);
}

static uint64_t ms_since(uint64_t then_ns, uint64_t now_ns)
{
	return then_ns ? (now_ns - then_ns) / 1000000 : 0;
}

UNGUARDED static void put_srq(json_t *to, const struct srq *it){QP_SRQ_VIEW(PUT)}

/* In ms from now, negative if late. A timer that is not armed has no value. */
UNGUARDED static void put_due(json_t *to, const char *key, const struct qp *q, enum timer_kind kind,
			      uint64_t now_ns)
{
	uint64_t at_ns = NOW(q->tc.deadline_ns[kind]);

	if (NOW(q->tc.armed[kind]))
		dict_int(to, key, (int)((int64_t)(at_ns - now_ns) / 1000000));
}

UNGUARDED static void put_modules(json_t *to, const struct qp *it, uint64_t now_ns, bool all)
{
	char word[CONFIG_WORD_BYTES];

	QP_REQUESTER_VIEW(PUT)
	QP_RESPONDER_VIEW(PUT)
	put_due(to, "loss_due_ms", it, TIMER_LOSS, now_ns);
	put_due(to, "rnr_due_ms", it, TIMER_RNR, now_ns);
}

/* The time as the modules count it: without the periods in which it stood (stepping.h). Uses that
 * of an lcore's last round only while time stands, since the lcore may be asleep. */
static uint64_t qp_view_now_of(const struct device *v, const struct engine *e)
{
	if (engine_time_stands(e))
		return engine_now(e);
	return clock_now_ns(&v->lcores->clock) - __atomic_load_n(&e->stood_ns, __ATOMIC_RELAXED);
}

int qp_put(const struct daemon *d, const struct device *v, const struct control_viewer *who,
	   uint32_t qpn, json_t *to)
{
	const struct qp_table *t = &v->hca->qps;
	struct residence pages;
	const struct qp *it;
	bool all;

	residence_init(&pages, t->qps, t->count * sizeof(*t->qps));
	it = next_qp(t, &pages, qpn & t->mask);
	if (!it || qp_number(it) != qpn)
		return -ENOENT;
	all = sees_all(d, v, who, it);
	dict_put(to, "qp", qp_of(it, all));
	QP_ATTRIBUTES_VIEW(PUT)
	if (it->srq)
		put_srq(to, it->srq);
	put_modules(to, it, qp_view_now_of(v, &v->hca->engines[it->engine]), all);
	return 0;
}
