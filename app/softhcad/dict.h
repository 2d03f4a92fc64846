/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DICT_H
#define DICT_H
/*
 * Dictionaries and arrays of DPDK's telemetry. NULL, for want of memory, may be handed on: what
 * should have been in it is not shown.
 */
#include <stdint.h>
#include <rte_telemetry.h>

/* A new dictionary, the caller's until it is put somewhere; NULL: no memory. */
struct rte_tel_data *dict_new(void);
/* The same for an array of that type. */
struct rte_tel_data *array_new(enum rte_tel_value_type type);

/* Puts `what` into `to`, to which it belongs from now on. */
void dict_put(struct rte_tel_data *to, const char *name, struct rte_tel_data *what);
/* The same under a number as its name: telemetry's arrays cannot hold dictionaries below the first
 * level. */
void dict_put_numbered(struct rte_tel_data *to, uint32_t number, struct rte_tel_data *what);

#endif
