/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_SPREAD_H
#define STAGE_SPREAD_H
#include "workload.h"

/* Prints the rates of these two workloads for each way to use two lcores, each of them measured for
 * `ms` in each of 1 to 9 turns, and the medians. EAL is not up yet. Exit code of the program; 77:
 * there is one CPU only. */
int spread_main(const struct workload *small, const struct workload *large, unsigned ms,
		unsigned turns);

#endif
