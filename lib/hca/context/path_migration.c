/* SPDX-License-Identifier: BSD-3-Clause */
/* Automatic path migration: see path_migration.h. */
#include "completion/completion.h"
#include "context/path_migration.h"

#define MACHINE	      migration_machine
#define MACHINE_NAME  "path migration"
#define MACHINE_ID(s) MIGRATION_##s
#define MACHINE_DEF   "context/path_migration.def"
#include "pipeline/machine_define.h"

/* False: it has changed since it was read; *seen is what it is now. */
static bool way_step(struct qp *q, struct qp_way *seen, struct qp_way to)
{
	uint8_t from = seen->migration;

	if (!__atomic_compare_exchange(&q->way, seen, &to, false, __ATOMIC_SEQ_CST,
				       __ATOMIC_ACQUIRE))
		return false;
	if (to.migration != from)
		MACHINE_STEP(migration_machine, from, to.migration);
	return true;
}

bool qp_migrate(struct engine *e, struct counters *c, struct qp *q)
{
	struct qp_way way = qp_way(q), to;

	do {
		if (way.migration != MIGRATION_ARMED)
			return false;
		to = way;
		to.path = way.alternate;
		to.migration = MIGRATION_MIGRATED;
		to.turn++;
	} while (!way_step(q, &way, to));
	__atomic_store_n(&q->timeout, q->alternate_timeout, __ATOMIC_RELAXED);
	count(c, COUNTER_path_migrations);
	eq_post(e->completion, c, q->client, EQE_PATH_MIG, qp_number(q));
	return true;
}

void qp_arm(struct qp *q)
{
	struct qp_way way = qp_way(q), to;

	do {
		if (way.migration != MIGRATION_REARM)
			return;
		to = way;
		to.migration = MIGRATION_ARMED;
	} while (!way_step(q, &way, to));
}

void qp_refuse_migration(struct engine *e, struct counters *c, struct qp *q)
{
	if (!__atomic_exchange_n(&q->hp.migration_refused, 1, __ATOMIC_RELAXED))
		eq_post(e->completion, c, q->client, EQE_PATH_MIG_ERR, qp_number(q));
}

bool qp_rearm(struct qp *q)
{
	struct qp_way way = qp_way(q), to;

	__atomic_store_n(&q->hp.migration_refused, 0, __ATOMIC_RELAXED);
	do {
		if (way.migration != MIGRATION_MIGRATED)
			return false;
		to = way;
		to.migration = MIGRATION_REARM;
		to.turn++;
	} while (!way_step(q, &way, to));
	return true;
}

void qp_load_alternate(struct qp *q, unsigned path)
{
	struct qp_way way = qp_way(q), to;

	do {
		to = way;
		to.alternate = (uint8_t)path;
		if (way.migration == MIGRATION_NONE) {
			to.migration = MIGRATION_MIGRATED;
			to.turn++;
		}
	} while (!way_step(q, &way, to));
}

void qp_change_path(struct qp *q, unsigned path)
{
	struct qp_way way = qp_way(q), to;

	do {
		to = way;
		to.path = (uint8_t)path;
		to.alternate = qp_has_alternate(way) ? way.alternate : to.path;
		to.turn++;
	} while (!way_step(q, &way, to));
}

unsigned qp_path_unused(const struct qp *q)
{
	struct qp_way way = qp_way(q);
	unsigned path = 0;

	while (path == way.path || path == way.alternate)
		path++;
	return path;
}
