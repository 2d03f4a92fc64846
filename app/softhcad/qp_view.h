/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_VIEW_H
#define QP_VIEW_H
/* Puts queue pairs into dictionaries, for *who, or with everything (NULL). Under the daemon's
 * lock. */
#include <stdint.h>
#include <jansson.h>

struct control_viewer;
struct daemon;
struct device;

/* Puts as many of those in use, from that index on, as an answer holds; where to continue if there
 * are more; and the number of all. */
void qps_put(const struct daemon *d, const struct device *v, const struct control_viewer *who,
	     uint32_t from, json_t *to);

/* Everything about one, and what it waits for. 0; -ENOENT: no such queue pair. */
int qp_put(const struct daemon *d, const struct device *v, const struct control_viewer *who,
	   uint32_t qpn, json_t *to);

#endif
