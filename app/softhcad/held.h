/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HELD_H
#define HELD_H
/* Resources that an HCA holds for its clients. Under the daemon's lock. */
#include <stdint.h>

struct device;
struct rte_tel_data;

/* Contexts of a device in use. */
struct held_contexts {
	uint64_t qps, cqs, srqs;
};
struct held_contexts held_contexts(const struct device *v);

/* Puts all of it into a dictionary. Waits for the lcores. Telemetry's threads. */
void held_put(struct device *v, struct rte_tel_data *to);

#endif
