/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue pair state machine as a table: which transition exists for which service, by which
 * command, and the attributes that it requires and allows (as ibv_modify_qp() does; IBTA volume
 * 1, 11.2.5.2). Data only, control thread.
 */
#include <stddef.h>
#include "command/ceu.h"

#define RC   (1u << SERVICE_RC)
#define UC   (1u << SERVICE_UC)
#define UD   (1u << SERVICE_UD)
#define CONN (RC | UC)
#define ALL  (RC | UC | UD)

#define RTR_UC (QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN)
#define RTR_RC (RTR_UC | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER)
#define RTS_RC                                                                                     \
	(QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |                \
	 QP_ATTR_MAX_RD_ATOMIC)
#define SQD_RC                                                                                     \
	(QP_ATTR_PORT | QP_ATTR_AV | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |     \
	 QP_ATTR_MAX_RD_ATOMIC | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_ACCESS |                     \
	 QP_ATTR_PKEY_INDEX | QP_ATTR_MIN_RNR_TIMER | MIG)
#define CUR QP_ATTR_CUR_STATE
#define ALT QP_ATTR_ALT_PATH
#define MIG (QP_ATTR_ALT_PATH | QP_ATTR_PATH_MIG_STATE)

/* clang-format off */
static const struct ceu_transition transitions[] = {
	/* from, to, command, services, required, optional */
	{QP_RST,  QP_RST,  CEU_2RST, ALL, 0, 0},
	{QP_INIT, QP_RST,  CEU_2RST, ALL, 0, 0},
	{QP_RTR,  QP_RST,  CEU_2RST, ALL, 0, 0},
	{QP_RTS,  QP_RST,  CEU_2RST, ALL, 0, 0},
	{QP_SQE,  QP_RST,  CEU_2RST, ALL, 0, 0},
	{QP_SQD,  QP_RST,  CEU_2RST, ALL, 0, 0},
	{QP_ERR,  QP_RST,  CEU_2RST, ALL, 0, 0},

	{QP_INIT, QP_ERR,  CEU_2ERR, ALL, 0, 0},
	{QP_RTR,  QP_ERR,  CEU_2ERR, ALL, 0, 0},
	{QP_RTS,  QP_ERR,  CEU_2ERR, ALL, 0, 0},
	{QP_SQE,  QP_ERR,  CEU_2ERR, ALL, 0, 0},
	{QP_SQD,  QP_ERR,  CEU_2ERR, ALL, 0, 0},
	{QP_ERR,  QP_ERR,  CEU_2ERR, ALL, 0, 0},

	{QP_RST,  QP_INIT, CEU_RST2INIT, CONN, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS, 0},
	{QP_RST,  QP_INIT, CEU_RST2INIT, UD, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY, 0},
	{QP_INIT, QP_INIT, CEU_INIT2INIT, CONN, 0, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS},
	{QP_INIT, QP_INIT, CEU_INIT2INIT, UD, 0, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY},

	{QP_INIT, QP_RTR,  CEU_INIT2RTR, RC, RTR_RC, QP_ATTR_ACCESS | QP_ATTR_PKEY_INDEX | ALT},
	{QP_INIT, QP_RTR,  CEU_INIT2RTR, UC, RTR_UC, QP_ATTR_ACCESS | QP_ATTR_PKEY_INDEX | ALT},
	{QP_INIT, QP_RTR,  CEU_INIT2RTR, UD, 0, QP_ATTR_PKEY_INDEX | QP_ATTR_QKEY},

	{QP_RTR,  QP_RTS,  CEU_RTR2RTS, RC, RTS_RC, CUR | QP_ATTR_ACCESS | QP_ATTR_MIN_RNR_TIMER | MIG},
	{QP_RTR,  QP_RTS,  CEU_RTR2RTS, UC, QP_ATTR_SQ_PSN, CUR | QP_ATTR_ACCESS | MIG},
	{QP_RTR,  QP_RTS,  CEU_RTR2RTS, UD, QP_ATTR_SQ_PSN, CUR | QP_ATTR_QKEY},

	{QP_RTS,  QP_RTS,  CEU_RTS2RTS, RC, 0, CUR | QP_ATTR_ACCESS | QP_ATTR_MIN_RNR_TIMER | MIG},
	{QP_RTS,  QP_RTS,  CEU_RTS2RTS, UC, 0, CUR | QP_ATTR_ACCESS | MIG},
	{QP_RTS,  QP_RTS,  CEU_RTS2RTS, UD, 0, CUR | QP_ATTR_QKEY},

	{QP_RTS,  QP_SQD,  CEU_RTS2SQD, ALL, 0, QP_ATTR_EN_SQD_ASYNC_NOTIFY},
	{QP_SQD,  QP_SQD,  CEU_SQD2SQD, RC, 0, SQD_RC},
	{QP_SQD,  QP_SQD,  CEU_SQD2SQD, UC, 0, QP_ATTR_AV | QP_ATTR_ACCESS | QP_ATTR_PKEY_INDEX | MIG},
	{QP_SQD,  QP_SQD,  CEU_SQD2SQD, UD, 0, QP_ATTR_PKEY_INDEX | QP_ATTR_QKEY},
	{QP_SQD,  QP_RTS,  CEU_SQD2RTS, RC, 0, CUR | QP_ATTR_ACCESS | QP_ATTR_MIN_RNR_TIMER | MIG},
	{QP_SQD,  QP_RTS,  CEU_SQD2RTS, UC, 0, CUR | QP_ATTR_ACCESS | MIG},
	{QP_SQD,  QP_RTS,  CEU_SQD2RTS, UD, 0, CUR | QP_ATTR_QKEY},

	{QP_SQE,  QP_RTS,  CEU_SQERR2RTS, UC, 0, CUR | QP_ATTR_ACCESS},
	{QP_SQE,  QP_RTS,  CEU_SQERR2RTS, UD, 0, CUR | QP_ATTR_QKEY},
};
/* clang-format on */

#define TRANSITIONS (sizeof(transitions) / sizeof(transitions[0]))

const struct ceu_transition *ceu_transition_find(enum qp_state from, enum qp_state to,
						 enum qp_service service)
{
	for (unsigned int i = 0; i < TRANSITIONS; i++) {
		const struct ceu_transition *t = &transitions[i];

		if (t->from == from && t->to == to && (t->services & 1u << service))
			return t;
	}
	return NULL;
}

int ceu_modify_op(enum qp_state from, enum qp_state to)
{
	for (unsigned int i = 0; i < TRANSITIONS; i++)
		if (transitions[i].from == from && transitions[i].to == to)
			return transitions[i].op;
	return CEU_BAD_TRANSITION;
}
