/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's state as DPDK telemetry commands, for `softhca` and dpdk-telemetry.py alike. Runs in
 * telemetry's own threads, under the daemon's lock; reads, never changes anything. The data path's
 * counters may be slightly stale.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "clients_view.h"
#include "cm_view.h"
#include "daemon.h"
#include "dict.h"
#include "held.h"
#include "limits_view.h"
#include "node_view.h"
#include "pipeline_view.h"
#include "qp_view.h"
#include "status_view.h"
#include "telemetry.h"

static struct daemon *served; /* NULL: not running */
static pthread_mutex_t served_lock = PTHREAD_MUTEX_INITIALIZER;

/* The daemon, locked; or NULL. */
static struct daemon *telemetry_enter(void)
{
	pthread_mutex_lock(&served_lock);
	if (served)
		pthread_mutex_lock(&served->lock);
	else
		pthread_mutex_unlock(&served_lock);
	return served;
}

static void telemetry_leave(struct daemon *d)
{
	pthread_mutex_unlock(&d->lock);
	pthread_mutex_unlock(&served_lock);
}

/* The device named by the first parameter, or the first. NULL: no such device. */
static struct device *find_device(struct daemon *d, const char *params)
{
	size_t length = params ? strcspn(params, ",") : 0;

	if (length == 0)
		return &d->devices[0];
	for (unsigned i = 0; i < d->device_count; i++) {
		const char *name = d->devices[i].section->name;

		if (strlen(name) == length && memcmp(name, params, length) == 0)
			return &d->devices[i];
	}
	return NULL;
}

/* The second parameter as a number, or `otherwise`. */
static uint32_t second_number(const char *params, uint32_t otherwise)
{
	const char *comma = params ? strchr(params, ',') : NULL;

	return comma ? strtoul(comma + 1, NULL, 0) : otherwise;
}

static uint32_t third_number(const char *params, uint32_t otherwise)
{
	const char *comma = params ? strchr(params, ',') : NULL;

	return comma ? second_number(comma + 1, otherwise) : otherwise;
}

static int answer_status(const char *command, const char *params, struct rte_tel_data *to)
{
	struct daemon *d = telemetry_enter();

	rte_tel_data_start_dict(to);
	if (!d)
		return -ENODEV;
	status_put(d, to);
	telemetry_leave(d);
	return 0;
}

static int answer_clients(const char *command, const char *params, struct rte_tel_data *to)
{
	struct daemon *d = telemetry_enter();

	rte_tel_data_start_dict(to);
	if (!d)
		return -ENODEV;
	clients_put(d, params ? strtoul(params, NULL, 0) : 0, to);
	telemetry_leave(d);
	return 0;
}

static int answer_qp(const char *command, const char *params, struct rte_tel_data *to)
{
	struct daemon *d = telemetry_enter();
	uint32_t qpn = second_number(params, 0);
	struct device *v = d ? find_device(d, params) : NULL;
	int ret = -ENODEV;

	rte_tel_data_start_dict(to);
	if (v) {
		rte_tel_data_add_dict_string(to, "hca", v->section->name);
		ret = 0;
		if (qpn)
			ret = qp_put(v, qpn, to);
		else
			qps_put(v, third_number(params, 0), to);
	}
	if (d)
		telemetry_leave(d);
	return ret;
}

static int answer_fifos(const char *command, const char *params, struct rte_tel_data *to)
{
	struct daemon *d = telemetry_enter();
	uint32_t engine = second_number(params, 0);
	struct device *v = d ? find_device(d, params) : NULL;
	int ret = -ENODEV;

	rte_tel_data_start_dict(to);
	if (v && engine < v->section->engines) {
		rte_tel_data_add_dict_string(to, "hca", v->section->name);
		pipeline_put(&v->hca->engines[engine], to);
		ret = 0;
	}
	if (d)
		telemetry_leave(d);
	return ret;
}

/* Starts measuring; the next query, if it comes soon, shows what has happened since. */
static int answer_runtime(const char *command, const char *params, struct rte_tel_data *to)
{
	struct daemon *d = telemetry_enter();
	uint32_t engine = second_number(params, 0);
	struct device *v = d ? find_device(d, params) : NULL;
	int ret = -ENODEV;

	rte_tel_data_start_dict(to);
	if (v && engine < v->section->engines) {
		daemon_measure(d);
		rte_tel_data_add_dict_string(to, "hca", v->section->name);
		runtime_put(&v->hca->engines[engine], to);
		ret = 0;
	}
	if (d)
		telemetry_leave(d);
	return ret;
}

static void put_counters(const struct device *v, struct rte_tel_data *to)
{
	struct rte_tel_data *hca = dict_new(), *port = dict_new();

	for (unsigned i = 0; hca && i < COUNTER_COUNT; i++)
		rte_tel_data_add_dict_u64(hca, counter_name(i), hca_counter(v->hca, i));
	for (unsigned i = 0; port && i < PORT_COUNTER_COUNT; i++)
		rte_tel_data_add_dict_u64(port, port_counter_name(i), port_counter(v->port, i));
	rte_tel_data_add_dict_string(to, "hca", v->section->name);
	dict_put(to, "counters", hca);
	dict_put(to, "port_counters", port);
}

static int answer_counters(const char *command, const char *params, struct rte_tel_data *to)
{
	struct daemon *d = telemetry_enter();
	struct device *v = d ? find_device(d, params) : NULL;

	rte_tel_data_start_dict(to);
	if (v)
		put_counters(v, to);
	if (d)
		telemetry_leave(d);
	return v ? 0 : -ENODEV;
}

static int answer_held(const char *command, const char *params, struct rte_tel_data *to)
{
	struct daemon *d = telemetry_enter();
	struct device *v = d ? find_device(d, params) : NULL;

	rte_tel_data_start_dict(to);
	if (v)
		held_put(v, to);
	if (d)
		telemetry_leave(d);
	return v ? 0 : -ENODEV;
}

static int answer_limits(const char *command, const char *params, struct rte_tel_data *to)
{
	struct daemon *d = telemetry_enter();

	rte_tel_data_start_dict(to);
	if (!d)
		return -ENODEV;
	limits_put(d, to);
	telemetry_leave(d);
	return 0;
}

/* Without the daemon's lock: the connection manager's thread may be waiting for the control thread,
 * and we for it. */
static int answer_cm(const char *command, const char *params, struct rte_tel_data *to)
{
	int ret = -ENODEV;

	rte_tel_data_start_dict(to);
	pthread_mutex_lock(&served_lock);
	if (served) {
		cm_put(served, to);
		ret = 0;
	}
	pthread_mutex_unlock(&served_lock);
	return ret;
}

static int answer_topology(const char *command, const char *params, struct rte_tel_data *to)
{
	struct daemon *d = telemetry_enter();

	rte_tel_data_start_dict(to);
	if (d) {
		engines_put(to, d->devices, d->device_count);
		telemetry_leave(d);
	}
	topology_put(to);
	return 0;
}

int telemetry_start(struct daemon *d)
{
	static const struct {
		const char *command, *help;
		telemetry_cb answer;
	} commands[] = {
		{"/softhca/status", "Ports, lcores, memory, clients. No parameters", answer_status},
		{"/softhca/clients",
		 "Programs. Parameters: none, or ID of the one after which to go on",
		 answer_clients},
		{"/softhca/qp", "Queue pairs. Parameters: HCA[,QPN], or HCA,0,INDEX from there on",
		 answer_qp},
		{"/softhca/fifos", "Channels of an engine. Parameters: HCA[,ENGINE]", answer_fifos},
		{"/softhca/runtime",
		 "What an engine's modules do and cost. Parameters: HCA[,ENGINE]", answer_runtime},
		{"/softhca/counters", "Counters of an HCA and its port. Parameters: HCA",
		 answer_counters},
		{"/softhca/held", "Resources that an HCA holds for its clients. Parameters: HCA",
		 answer_held},
		{"/softhca/limits", "What clients share, and who holds it. No parameters",
		 answer_limits},
		{"/softhca/cm", "The connection manager. No parameters", answer_cm},
		{"/softhca/topology", "Modules, channels, where they run. No parameters",
		 answer_topology},
	};
	int ret = 0;

	for (unsigned i = 0; i < RTE_DIM(commands) && !ret; i++)
		ret = rte_telemetry_register_cmd(commands[i].command, commands[i].answer,
						 commands[i].help);
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
