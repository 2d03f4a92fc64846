/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MODIFY_QP and QUERY_QP: what a program sees and asks of path migration
 * (context/path_migration.h). Control thread.
 */
#include "ceu_priv.h"
#include "context/path_migration.h"

void ceu_migration_follow(struct ceu *ceu, const struct qp *q)
{
	struct control_qp_attr *s = &ceu->shadow[q->index];

	if (!(s->mask & QP_ATTR_ALT_PATH) || qp_has_alternate(qp_way(q)))
		return;
	s->av = s->alternate;
	s->timeout = s->alternate_timeout;
	s->mask &= ~(uint32_t)QP_ATTR_ALT_PATH;
}

uint32_t ceu_migration_state(const struct qp *q)
{
	uint8_t migration = qp_way(q).migration;

	return migration == MIGRATION_ARMED   ? CONTROL_MIG_ARMED
	       : migration == MIGRATION_REARM ? CONTROL_MIG_REARM
					      : CONTROL_MIG_MIGRATED;
}

bool ceu_migration_ok(const struct qp *q, enum qp_state to, const struct control_qp_attr *a)
{
	uint32_t now = ceu_migration_state(q);

	if (!(a->mask & QP_ATTR_PATH_MIG_STATE) || a->path_mig_state == now)
		return true;
	if (a->path_mig_state == CONTROL_MIG_MIGRATED)
		return now == CONTROL_MIG_ARMED;
	return now == CONTROL_MIG_MIGRATED && to == QP_RTS &&
	       (a->mask & QP_ATTR_ALT_PATH || qp_has_alternate(qp_way(q)));
}

void ceu_migration_set(struct ceu *ceu, struct qp *q, uint32_t to)
{
	if (to == CONTROL_MIG_REARM)
		qp_rearm(q);
	else
		qp_migrate(&ceu->config.engines[q->engine], ceu->config.counters, q);
}
