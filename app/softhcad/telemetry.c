/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's views (show.h) as commands of DPDK's telemetry, for its own tools. They show
 * everything, as only the daemon's user can enter the folder of its socket. Runs in telemetry's
 * threads, under the daemon's lock. The data path's counters may be slightly stale.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <rte_telemetry.h>
#include "daemon.h"
#include "show.h"
#include "telemetry.h"

enum { PATH_BYTES = 48, RETRY_US = 1000, RETRIES = 5000 };

static const char path_begin[] = "/softhca/";

static struct daemon *served; /* NULL: not running */
static pthread_mutex_t served_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- JSON to telemetry ---- */

static struct rte_tel_data *container_of_json(json_t *from);

static void tel_put(struct rte_tel_data *to, const char *name, json_t *value)
{
	struct rte_tel_data *container;

	if (json_is_string(value)) {
		rte_tel_data_add_dict_string(to, name, json_string_value(value));
	} else if (json_integer_value(value) < 0) {
		rte_tel_data_add_dict_int(to, name, (int)json_integer_value(value));
	} else if (json_is_integer(value)) {
		rte_tel_data_add_dict_u64(to, name, (uint64_t)json_integer_value(value));
	} else {
		container = container_of_json(value);
		if (container)
			rte_tel_data_add_dict_container(to, name, container, 0);
	}
}

static void fill_dict(struct rte_tel_data *to, json_t *from)
{
	const char *name;
	json_t *value;

	rte_tel_data_start_dict(to);
	json_object_foreach(from, name, value)
	{
		tel_put(to, name, value);
	}
}

/* All of its elements are of one type. */
static void fill_array(struct rte_tel_data *to, json_t *from)
{
	const bool texts = json_is_string(json_array_get(from, 0));
	json_t *value;
	size_t i;

	rte_tel_data_start_array(to, texts ? RTE_TEL_STRING_VAL : RTE_TEL_INT_VAL);
	json_array_foreach(from, i, value)
	{
		if (texts)
			rte_tel_data_add_array_string(to, json_string_value(value));
		else
			rte_tel_data_add_array_int(to, (int)json_integer_value(value));
	}
}

/* NULL: no memory. */
static struct rte_tel_data *container_of_json(json_t *from)
{
	struct rte_tel_data *to = rte_tel_data_alloc();

	if (to && json_is_array(from))
		fill_array(to, from);
	else if (to)
		fill_dict(to, from);
	return to;
}

/* ---- commands ---- */

/* A view that cannot be shown now may be waiting for the control thread: retries without the
 * lock. */
static int show_locked(const char *name, const char *parameters, json_t **out)
{
	int ret = -EAGAIN;

	for (unsigned i = 0; i < RETRIES && ret == -EAGAIN; i++) {
		if (i)
			usleep(RETRY_US);
		pthread_mutex_lock(&served_lock);
		if (served) {
			pthread_mutex_lock(&served->lock);
			ret = show(served, NULL, name, parameters, out);
			pthread_mutex_unlock(&served->lock);
		} else {
			ret = -ENODEV;
		}
		pthread_mutex_unlock(&served_lock);
	}
	return ret;
}

static int telemetry_answer(const char *command, const char *parameters, struct rte_tel_data *to)
{
	json_t *view;
	int ret = show_locked(command + sizeof(path_begin) - 1, parameters, &view);

	rte_tel_data_start_dict(to);
	if (ret)
		return ret;
	fill_dict(to, view);
	json_decref(view);
	return 0;
}

int telemetry_start(struct daemon *d)
{
	char path[PATH_BYTES];
	int ret = 0;

	for (const struct view_info *v = view_infos; v->name && !ret; v++) {
		snprintf(path, sizeof(path), "%s%s", path_begin, v->name);
		ret = rte_telemetry_register_cmd(path, telemetry_answer, v->help);
	}
	pthread_mutex_lock(&served_lock);
	served = d;
	pthread_mutex_unlock(&served_lock);
	return ret;
}

void telemetry_stop(void)
{
	pthread_mutex_lock(&served_lock);
	served = NULL;
	pthread_mutex_unlock(&served_lock);
}
