/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HELD_H
#define HELD_H
/* Resources that an HCA holds for its clients. Under the daemon's lock. */
#include <stdint.h>
#include <jansson.h>

struct device;

/* Contexts of a device in use. */
struct held_contexts {
	uint64_t qps, cqs, srqs;
};
struct held_contexts held_contexts(const struct device *v);

/* Puts all of it into a dictionary. Waits for the lcores. Under the daemon's lock. */
void held_put(struct device *v, json_t *to);

#endif
