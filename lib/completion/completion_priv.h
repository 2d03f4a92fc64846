/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPLETION_PRIV_H
#define COMPLETION_PRIV_H
/* What the two modules of this folder share. */
#include "completion/completion.h"

/* Raises the events of touched CQs that are armed. Costs a load when none was touched. */
void completion_serve_arms(struct completion *c, struct counters *counters);

#endif
