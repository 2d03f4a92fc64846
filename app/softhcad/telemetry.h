/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TELEMETRY_H
#define TELEMETRY_H
/* What telemetry.c leaves to other files, and what it lends them. */

#include <stdint.h>

struct daemon;
struct device;
struct hca_section;
struct qp;
struct rte_tel_data;

/* held.c: how many contexts of a device are in use. Under the daemon's lock. */
struct held_contexts {
	uint64_t qps, cqs, srqs;
};
struct held_contexts held_contexts(const struct device *v);

/* held.c: what the HCA holds for its clients, into a dictionary. Waits for the lcores. Telemetry's
 * threads, under the daemon's lock. */
void held_put(struct device *v, struct rte_tel_data *to);

/* cm_view.c: the connection manager, into a dictionary. Telemetry's threads, without the daemon's
 * lock. */
void cm_put(struct daemon *d, struct rte_tel_data *to);

/* node_view.c: the NUMA nodes of a port and of the engines behind it, their distances, into the
 * port's dictionary; and the same with the CPUs of all engines, into one of `engines`. Telemetry's
 * threads, under the daemon's lock. */
void node_put(struct rte_tel_data *to, const struct hca_section *s);
void engines_put(struct rte_tel_data *to, const struct daemon *d);

/* qp_view.c: all about one queue pair that is in use, and what it waits for, into a dictionary.
 * now_ns: the daemon's clock. Telemetry's threads, under the daemon's lock. */
void qp_view_put(struct rte_tel_data *to, const struct qp *q, uint64_t now_ns);

/* A new dictionary; NULL: there is no memory for it. The caller's until it is put somewhere. */
struct rte_tel_data *dict_new(void);
/* Into `to`, to which `what` belongs from now on; NULL: nothing. */
void dict_put(struct rte_tel_data *to, const char *name, struct rte_tel_data *what);
/* The same under a number as name: telemetry's arrays cannot hold dictionaries below the first
 * level. */
void dict_put_numbered(struct rte_tel_data *to, uint32_t number, struct rte_tel_data *what);

#endif
