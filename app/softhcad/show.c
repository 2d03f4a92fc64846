/* SPDX-License-Identifier: BSD-3-Clause */
/* See show.h. The views themselves are in *_view.c; here are their names and parameters. */
#include <errno.h>
#include <stdio.h>
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
#include "show.h"
#include "status_view.h"

enum { NAME_BYTES = 48 };

/* ---- parameters: "HCA,NUMBER,NUMBER" ---- */

/* The device named by the first parameter, or the first. NULL: no such device. */
static struct device *show_find_device(struct daemon *d, const char *params)
{
	size_t length = strcspn(params, ",");

	if (length == 0)
		return &d->devices[daemon_device_from(d, 0)];
	FOR_EACH_DEVICE (i, d) {
		const char *name = d->devices[i].section->name;

		if (strlen(name) == length && memcmp(name, params, length) == 0)
			return &d->devices[i];
	}
	return NULL;
}

/* The number behind `commas` commas, or 0. */
static uint32_t show_number(const char *params, unsigned commas)
{
	for (; params && commas; commas--) {
		params = strchr(params, ',');
		params += params ? 1 : 0;
	}
	return params ? strtoul(params, NULL, 0) : 0;
}

/* The engine that the first two name, of *device; NULL: there is none. */
static const struct engine *find_engine(struct daemon *d, const char *params,
					struct device **device)
{
	struct device *v = show_find_device(d, params);
	const uint32_t engine = show_number(params, 1);

	*device = v;
	return v && engine < v->section->engines ? &v->hca->engines[engine] : NULL;
}

/* ---- views for `who` (show.h): 0, or -errno with anything in `to` ---- */

static int show_status(struct daemon *d, const struct control_viewer *who, const char *params,
		       json_t *to)
{
	status_put(d, to);
	return 0;
}

static int show_clients(struct daemon *d, const struct control_viewer *who, const char *params,
			json_t *to)
{
	clients_put(d, show_number(params, 0), to);
	return 0;
}

static int show_qp(struct daemon *d, const struct control_viewer *who, const char *params,
		   json_t *to)
{
	struct device *v = show_find_device(d, params);
	const uint32_t qpn = show_number(params, 1);

	if (!v)
		return -ENODEV;
	dict_string(to, "hca", v->section->name);
	if (qpn)
		return qp_put(d, v, who, qpn, to);
	qps_put(d, v, who, show_number(params, 2), to);
	return 0;
}

static int show_fifos(struct daemon *d, const struct control_viewer *who, const char *params,
		      json_t *to)
{
	struct device *v;
	const struct engine *e = find_engine(d, params, &v);

	if (!e)
		return -ENODEV;
	dict_string(to, "hca", v->section->name);
	pipeline_put(e, to);
	return 0;
}

/* Starts measuring, which slows the engine down, if the viewer may change the daemon; the next
 * query, if it comes soon, shows what has happened since. */
static int show_runtime(struct daemon *d, const struct control_viewer *who, const char *params,
			json_t *to)
{
	struct device *v;
	const struct engine *e = find_engine(d, params, &v);

	if (!e)
		return -ENODEV;
	if (!who || who->may_change)
		device_measure(v, e->index);
	dict_string(to, "hca", v->section->name);
	runtime_put(e, to);
	return 0;
}

static int show_counters(struct daemon *d, const struct control_viewer *who, const char *params,
			 json_t *to)
{
	const struct device *v = show_find_device(d, params);
	json_t *hca = dict_new(), *port = dict_new();

	for (unsigned i = 0; v && i < COUNTER_COUNT; i++)
		dict_u64(hca, counter_name(i), hca_counter(v->hca, i));
	for (unsigned i = 0; v && i < PORT_COUNTER_COUNT; i++)
		dict_u64(port, port_counter_name(i), port_counter(v->port, i));
	dict_string(to, "hca", v ? v->section->name : "");
	dict_put(to, "counters", hca);
	dict_put(to, "port_counters", port);
	return v ? 0 : -ENODEV;
}

static int show_held(struct daemon *d, const struct control_viewer *who, const char *params,
		     json_t *to)
{
	struct device *v = show_find_device(d, params);

	if (v)
		held_put(v, to);
	return v ? 0 : -ENODEV;
}

static int show_limits(struct daemon *d, const struct control_viewer *who, const char *params,
		       json_t *to)
{
	limits_put(d, to);
	return 0;
}

static int show_cm(struct daemon *d, const struct control_viewer *who, const char *params,
		   json_t *to)
{
	return cm_put(d, to);
}

static int show_topology(struct daemon *d, const struct control_viewer *who, const char *params,
			 json_t *to)
{
	engines_put(to, d->devices, d->device_count);
	topology_put(to);
	return 0;
}

/* ---- all of them ---- */

#define VIEWS(VIEW)                                                                                \
	VIEW(status, "Ports, lcores, memory, clients. No parameters")                              \
	VIEW(clients, "Programs. Parameters: none, or ID of the one after which to go on")         \
	VIEW(qp, "Queue pairs. Parameters: HCA[,QPN], or HCA,0,INDEX from there on")               \
	VIEW(fifos, "Channels of an engine. Parameters: HCA[,ENGINE]")                             \
	VIEW(runtime, "What an engine's modules do and cost. Parameters: HCA[,ENGINE]")            \
	VIEW(counters, "Counters of an HCA and its port. Parameters: HCA")                         \
	VIEW(held, "Resources that an HCA holds for its clients. Parameters: HCA")                 \
	VIEW(limits, "What clients share, and who holds it. No parameters")                        \
	VIEW(cm, "The connection manager. No parameters")                                          \
	VIEW(topology, "Modules, channels, where they run. No parameters")

const struct view_info view_infos[] = {
#define INFO(name, help) {#name, help},
	VIEWS(INFO){NULL, NULL},
};

static int (*const show_view[])(struct daemon *, const struct control_viewer *, const char *,
				json_t *) = {
#define FUNCTION(name, help) show_##name,
	VIEWS(FUNCTION)};

int show(struct daemon *d, const struct control_viewer *who, const char *name,
	 const char *parameters, json_t **out)
{
	unsigned i = 0;
	int ret;

	while (view_infos[i].name && strcmp(view_infos[i].name, name) != 0)
		i++;
	if (!view_infos[i].name)
		return -ENOENT;
	*out = dict_new();
	ret = *out ? show_view[i](d, who, parameters ? parameters : "", *out) : -ENOMEM;
	if (ret)
		json_decref(*out);
	return ret;
}

int show_text(void *ctx, const struct control_viewer *who, const char *name, const char *parameters,
	      char *text, unsigned room)
{
	char key[NAME_BYTES];
	json_t *view, *whole;
	size_t bytes;
	int ret = show(ctx, who, name, parameters, &view);

	if (ret)
		return ret;
	snprintf(key, sizeof(key), "/softhca/%s", name);
	whole = dict_new();
	dict_put(whole, key, view);
	bytes = json_dumpb(whole, text, room, JSON_COMPACT);
	json_decref(whole);
	return bytes == 0 ? -ENOMEM : bytes > room ? -EMSGSIZE : (int)bytes;
}
