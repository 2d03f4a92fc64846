/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_BUDGET_H
#define STAGE_BUDGET_H
#include "rig.h"
#include "workload.h"

/*
 * Prints where the cycles of a workload go, about `ms` each for the rig and its model: the modules
 * of both HCAs, the rig's client, the rest of the round, their sum and the total of rounds in which
 * nothing is measured; with and without ICRC, copied by the sender or not; beside each module the
 * model's steps that do the same work. 0 or -1: something failed.
 */
int budget_print(struct rig *r, const struct workload *w, unsigned ms);

#endif
