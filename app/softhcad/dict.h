/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DICT_H
#define DICT_H
/*
 * What a view shows: dictionaries and arrays, which show.c turns into JSON and telemetry.c into an
 * answer of DPDK's telemetry. NULL (out of memory) may be passed on: what it would have contained
 * is not shown.
 */
#include <stdint.h>
#include <jansson.h>

/* A new dictionary, the caller's until put into another; NULL: no memory. */
static inline json_t *dict_new(void)
{
	return json_object();
}
/* The same for an array, of numbers or of texts. */
static inline json_t *array_new(void)
{
	return json_array();
}

/* Puts `what` into `to`, which takes ownership. */
static inline void dict_put(json_t *to, const char *name, json_t *what)
{
	json_object_set_new(to, name, what);
}
/* The same under a number: arrays of telemetry hold no dictionaries. */
void dict_put_numbered(json_t *to, uint32_t number, json_t *what);

static inline void dict_u64(json_t *to, const char *name, uint64_t value)
{
	dict_put(to, name, json_integer((json_int_t)value));
}
static inline void dict_int(json_t *to, const char *name, int value)
{
	dict_put(to, name, json_integer(value));
}
static inline void dict_string(json_t *to, const char *name, const char *value)
{
	dict_put(to, name, json_string(value));
}

static inline void array_int(json_t *to, int value)
{
	json_array_append_new(to, json_integer(value));
}
static inline void array_string(json_t *to, const char *value)
{
	json_array_append_new(to, json_string(value));
}

#endif
