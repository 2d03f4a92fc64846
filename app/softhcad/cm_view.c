/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager: programs' identifiers, counters. Under the daemon's lock; changes
 * nothing.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include "base/ip.h"
#include "cm-thread/cm_thread.h"
#include "cm_view.h"
#include "daemon.h"
#include "views.h"

enum { IDS_LISTED_MAX = 32, ADDRESS_BYTES = INET6_ADDRSTRLEN + 16 };

/* RDMA_PS_*, of rdma/rdma_user_cm.h */
static const char *space_name(uint16_t space)
{
	switch (space) {
	case 0x0002:
		return "IPoIB";
	case 0x0106:
		return "TCP";
	case 0x0111:
		return "UDP";
	case 0x013f:
		return "IB";
	default:
		return "?";
	}
}

static const char *endpoint_text(char text[ADDRESS_BYTES], const uint8_t ip[16], uint16_t port)
{
	bool is_v4 = ip_is_v4_mapped(ip);
	char address[INET6_ADDRSTRLEN];

	inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? ip + IP_V4_AT : ip, address, sizeof(address));
	snprintf(text, ADDRESS_BYTES, is_v4 ? "%s:%u" : "[%s]:%u", address, port);
	return text;
}

VIEW_OF(id_of, cm_id_info, CM_ID_VIEW)

static void put_ids(json_t *to, const struct cm_service *s)
{
	struct cm_id_info info[IDS_LISTED_MAX];
	unsigned count = cm_service_ids(s, info, IDS_LISTED_MAX);
	json_t *ids = dict_new();

	/* Keyed by index, since their numbers are unique only within channels. */
	for (unsigned i = 0; ids && i < count && i < IDS_LISTED_MAX; i++)
		dict_put_numbered(ids, i, id_of(&info[i]));
	dict_u64(to, "id_count", count);
	dict_put(to, "ids", ids);
}

static json_t *cm_view_counters_of(const struct cm_service *s)
{
	const struct cm_counters *c = cm_service_counters(s);
	json_t *p = dict_new();

	if (!p)
		return NULL;
#define CM_COUNTER(name, text) dict_u64(p, #name, c->name);
#include "cm/counters.def"
	return p;
}

static json_t *port_counters_of(const struct cm_port_counters *c)
{
	json_t *p = dict_new();

	if (!p)
		return NULL;
#define CM_PORT_COUNTER(name, text) dict_u64(p, #name, c->name);
#include "cm-thread/cm_port.def"
	return p;
}

static void put_all(const struct daemon *d, const struct cm_thread *cm, const struct cm_service *s,
		    json_t *to)
{
	json_t *ports = s ? dict_new() : NULL;

	dict_string(to, "state", s ? "on" : "off");
	if (s) {
		put_ids(to, s);
		dict_put(to, "counters", cm_view_counters_of(s));
	}
	for (unsigned i = 0; ports && i < d->device_count; i++) {
		const char *device;
		const struct cm_port_counters *c = cm_thread_port(cm, i, &device);

		if (c)
			dict_put(ports, device, port_counters_of(c));
	}
	dict_put(to, "ports", ports);
}

int cm_put(struct daemon *d, json_t *to)
{
	struct cm_thread *cm = __atomic_load_n(&d->cm, __ATOMIC_ACQUIRE);
	const struct cm_service *s = NULL;

	if (cm && !cm_thread_try_enter(cm, &s))
		return -EAGAIN;
	put_all(d, cm, s, to);
	if (cm)
		cm_thread_leave(cm);
	return 0;
}
