/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DICT_H
#define DICT_H
/*
 * Dictionaries and arrays of DPDK's telemetry. NULL (out of memory) may be passed on: what it would
 * have contained is not shown.
 */
#include <stdint.h>
#include <rte_telemetry.h>

/* A new dictionary, the caller's until put into another; NULL: no memory. */
struct rte_tel_data *dict_new(void);
/* The same for an array of that type. */
struct rte_tel_data *array_new(enum rte_tel_value_type type);

/* Puts `what` into `to`, which takes ownership. */
void dict_put(struct rte_tel_data *to, const char *name, struct rte_tel_data *what);
/* The same with a number as its name, since telemetry's nested arrays cannot hold dictionaries. */
void dict_put_numbered(struct rte_tel_data *to, uint32_t number, struct rte_tel_data *what);

#endif
