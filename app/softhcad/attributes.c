/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The attributes of a device as sysfs has them: names, formats and units are those of the kernel's
 * RDMA class, which programs parse; see attributes.h. Reads port and counters, changes nothing.
 * Control thread.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "attributes.h"
#include "device.h"
#include "held.h"

/* A text being written. */
struct text {
	char *at;
	unsigned int bytes;
};

/* One attribute, or a folder of numbered or named ones. */
struct attribute {
	const char *name;
	bool live;
	int (*write)(struct device *v, struct text *out, unsigned int i);
	unsigned int (*count)(struct device *v); /* of a folder's entries; NULL: not a folder */
	const char *(*entry)(unsigned int i);	 /* their names; NULL: numbers */
	unsigned int number;			 /* passed to write() if not a folder */
};

static int put_text(struct text *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int put_text(struct text *out, const char *format, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(out->at, out->bytes, format, arguments);
	va_end(arguments);
	return n < 0 || (unsigned int)n >= out->bytes ? -ENOSPC : n;
}

/* ---- the device ---- */

static int write_node_type(struct device *v, struct text *out, unsigned int i)
{
	return put_text(out, "1: CA\n");
}

static int write_guid(struct device *v, struct text *out, unsigned int i)
{
	uint64_t guid = device_guid(v);

	return put_text(out, "%04x:%04x:%04x:%04x\n", (unsigned)(guid >> 48),
			(unsigned)(guid >> 32 & 0xffff), (unsigned)(guid >> 16 & 0xffff),
			(unsigned)(guid & 0xffff));
}

static int write_description(struct device *v, struct text *out, unsigned int i)
{
	return put_text(out, "softhca %s\n", v->section->name);
}

static int write_version(struct device *v, struct text *out, unsigned int i)
{
	return put_text(out, "%s\n", SOFTHCA_VERSION);
}

static int write_board(struct device *v, struct text *out, unsigned int i)
{
	return put_text(out, "softhca\n");
}

static int write_number(struct device *v, struct text *out, unsigned int i)
{
	return put_text(out, "%u\n", i);
}

static int write_hex(struct device *v, struct text *out, unsigned int i)
{
	return put_text(out, "0x%x\n", i);
}

static int write_numa(struct device *v, struct text *out, unsigned int i)
{
	return put_text(out, "-1\n");
}

/* All CPUs: a device in software is near none in particular. */
static int write_cpus(struct device *v, struct text *out, unsigned int as_list)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct text rest = *out;
	int n;

	if (as_list)
		return put_text(out, "0-%ld\n", cpus - 1);
	for (long word = (cpus - 1) / 32; word >= 0; word--) {
		long left = cpus - word * 32;

		n = put_text(&rest, word ? "%08x," : "%08x\n",
			     left >= 32 ? UINT32_MAX : (1u << left) - 1);
		if (n < 0)
			return n;
		rest.at += n;
		rest.bytes -= n;
	}
	return (int)(rest.at - out->at);
}

/* ---- the port ---- */

static bool is_active(struct device *v)
{
	struct port_info info;

	port_info(v->port, &info);
	return info.link_up && info.path_mtu_bytes;
}

static int write_state(struct device *v, struct text *out, unsigned int i)
{
	return put_text(out, is_active(v) ? "4: ACTIVE\n" : "1: DOWN\n");
}

static int write_physical_state(struct device *v, struct text *out, unsigned int i)
{
	return put_text(out, is_active(v) ? "5: LinkUp\n" : "3: Disabled\n");
}

/* Lanes and kind of lane, rounded down, as lib/host/verbs shows it. An unknown speed is shown
 * as the slowest. */
static int write_rate(struct device *v, struct text *out, unsigned int i)
{
	static const struct {
		uint32_t mbps;
		const char *text;
	} rates[] = {{400000, "400 Gb/sec (4X NDR)"}, {200000, "200 Gb/sec (4X HDR)"},
		     {100000, "100 Gb/sec (4X EDR)"}, {56000, "56 Gb/sec (4X FDR)"},
		     {50000, "50 Gb/sec (1X HDR)"},   {40000, "40 Gb/sec (4X QDR)"},
		     {25000, "25 Gb/sec (1X EDR)"},   {20000, "20 Gb/sec (4X DDR)"},
		     {14000, "14 Gb/sec (1X FDR)"},   {10000, "10 Gb/sec (1X QDR)"},
		     {5000, "5 Gb/sec (1X DDR)"},     {0, "2.5 Gb/sec (1X SDR)"}};
	struct port_info info;
	unsigned int k = 0;

	port_info(v->port, &info);
	while (info.link_speed_mbps < rates[k].mbps)
		k++;
	return put_text(out, "%s\n", rates[k].text);
}

static int write_link_layer(struct device *v, struct text *out, unsigned int i)
{
	return put_text(out, "Ethernet\n");
}

/* ---- addresses ---- */

/* The files are made once, but addresses change: there is a file for each possible address. */
static unsigned int count_gids(struct device *v)
{
	return PORT_OWN_MAX;
}

static bool has_gid(const struct device *v, unsigned int i)
{
	return i < v->hca->config.gid_count;
}

static int write_gid(struct device *v, struct text *out, unsigned int i)
{
	static const uint8_t none[16];
	const uint8_t *g = has_gid(v, i) ? v->hca->config.gids[i].src_ip : none;

	return put_text(out,
			"%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x\n",
			g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9], g[10], g[11],
			g[12], g[13], g[14], g[15]);
}

static int write_gid_type(struct device *v, struct text *out, unsigned int i)
{
	return has_gid(v, i) ? put_text(out, "RoCE v2\n") : -ENOENT;
}

/* The kernel's interface, if there is one. Programs require some name. */
static int write_gid_interface(struct device *v, struct text *out, unsigned int i)
{
	const struct port_config *p = &v->section->port;
	bool kernel = p->type == PORT_AF_PACKET || p->type == PORT_AF_XDP || p->type == PORT_TAP;

	if (!has_gid(v, i))
		return -ENOENT;
	return put_text(out, "%s\n", kernel ? p->device : v->section->name);
}

static unsigned int count_one(struct device *v)
{
	return 1;
}

static int write_pkey(struct device *v, struct text *out, unsigned int i)
{
	return put_text(out, "0xffff\n");
}

/* ---- counters ---- */

/* The counters of the HCA and of its port, and those known from other drivers, are files of one
 * folder. A name used twice would hide all of /sys; here the compiler refuses it. */
enum {
#define COUNTER(name, text)	      FILE_##name,
#define PORT_COUNTER(name, text)      FILE_##name,
#define HW_COUNTER(name, text, terms) FILE_##name,
#include "base/counters.def"
#include "pmd-glue/port_counters.def"
#include "../known_counters.def"
#undef COUNTER
#undef PORT_COUNTER
};

/* A counter that others know, as the sum of ours. Those that are always 0 have no terms. */
struct known_counter {
	const char *name;
	uint32_t unit;
	uint16_t terms[12]; /* of HCA() or PORT(), ends with 0 */
};

#define HCA(name)  COUNTER_##name + 1,
#define PORT(name) COUNTER_COUNT + 1 + PORT_COUNTER_##name,
#define TERMS_OF(...)                                                                              \
	{                                                                                          \
		__VA_ARGS__ 0                                                                      \
	}

static const struct known_counter standard_counters[] = {
#define STANDARD_COUNTER(name, unit, metric, times, terms) {#name, unit, TERMS_OF terms},
#include "../known_counters.def"
};

static const struct known_counter hw_counters[] = {
#define HW_COUNTER(name, text, terms) {#name, 1, TERMS_OF terms},
#include "../known_counters.def"
};

/* One of ours: the HCA's, then its port's. */
static uint64_t own_counter(struct device *v, unsigned int i)
{
	return i < COUNTER_COUNT ? hca_counter(v->hca, i)
				 : port_counter(v->port, i - COUNTER_COUNT);
}

static int write_known(struct device *v, struct text *out, const struct known_counter *c)
{
	uint64_t value = 0;

	for (unsigned k = 0; c->terms[k]; k++)
		value += own_counter(v, c->terms[k] - 1);
	return put_text(out, "%llu\n", (unsigned long long)(value / c->unit));
}

static unsigned int count_standard(struct device *v)
{
	return sizeof(standard_counters) / sizeof(standard_counters[0]);
}

static const char *name_of_standard(unsigned int i)
{
	return standard_counters[i].name;
}

static int write_standard(struct device *v, struct text *out, unsigned int i)
{
	return write_known(v, out, &standard_counters[i]);
}

/* The folder hw_counters: ours, then those that others know. */
enum { OWN_COUNTERS = COUNTER_COUNT + PORT_COUNTER_COUNT };

static unsigned int count_counters(struct device *v)
{
	return OWN_COUNTERS + sizeof(hw_counters) / sizeof(hw_counters[0]);
}

static const char *name_of_counter(unsigned int i)
{
	if (i >= OWN_COUNTERS)
		return hw_counters[i - OWN_COUNTERS].name;
	return i < COUNTER_COUNT ? counter_name(i) : port_counter_name(i - COUNTER_COUNT);
}

static int write_counter(struct device *v, struct text *out, unsigned int i)
{
	if (i >= OWN_COUNTERS)
		return write_known(v, out, &hw_counters[i - OWN_COUNTERS]);
	return put_text(out, "%llu\n", (unsigned long long)own_counter(v, i));
}

/* ---- resources ---- */

/* Not in a kernel's sysfs: what lib/host/preload reports to `rdma resource` by netlink. */
static int write_resources(struct device *v, struct text *out, unsigned int i)
{
	struct held_contexts held = held_contexts(v);

	return put_text(out, "qp %llu cq %llu srq %llu\n", (unsigned long long)held.qps,
			(unsigned long long)held.cqs, (unsigned long long)held.srqs);
}

/* ---- the table ---- */

static const struct attribute attributes[] = {
	{.name = "node_type", .write = write_node_type},
	{.name = "node_guid", .write = write_guid},
	{.name = "sys_image_guid", .write = write_guid},
	{.name = "node_desc", .write = write_description},
	{.name = "fw_ver", .write = write_version},
	{.name = "hw_rev", .write = write_hex, .number = 1}, /* as in lib/host/verbs */
	{.name = "hca_type", .write = write_board},
	{.name = "board_id", .write = write_board},
	{.name = "resources", .live = true, .write = write_resources},
	{.name = "ports/1/state", .live = true, .write = write_state},
	{.name = "ports/1/phys_state", .live = true, .write = write_physical_state},
	{.name = "ports/1/rate", .live = true, .write = write_rate},
	{.name = "ports/1/link_layer", .write = write_link_layer},
	{.name = "ports/1/lid", .write = write_hex},
	{.name = "ports/1/lid_mask_count", .write = write_number},
	{.name = "ports/1/sm_lid", .write = write_hex},
	{.name = "ports/1/sm_sl", .write = write_number},
	/* communication management, IP-based GIDs */
	{.name = "ports/1/cap_mask", .write = write_hex, .number = 1u << 16 | 1u << 26},
	{.name = "ports/1/gids", .live = true, .write = write_gid, .count = count_gids},
	{.name = "ports/1/gid_attrs/types",
	 .live = true,
	 .write = write_gid_type,
	 .count = count_gids},
	{.name = "ports/1/gid_attrs/ndevs",
	 .live = true,
	 .write = write_gid_interface,
	 .count = count_gids},
	{.name = "ports/1/pkeys", .write = write_pkey, .count = count_one},
	{.name = "ports/1/counters",
	 .live = true,
	 .write = write_standard,
	 .count = count_standard,
	 .entry = name_of_standard},
	{.name = "ports/1/hw_counters",
	 .live = true,
	 .write = write_counter,
	 .count = count_counters,
	 .entry = name_of_counter},
	{.name = "device/numa_node", .write = write_numa},
	{.name = "device/local_cpus", .write = write_cpus},
	{.name = "device/local_cpulist", .write = write_cpus, .number = 1},
	{.name = "device/vendor", .write = write_hex},
	{.name = "device/device", .write = write_hex},
};

enum { ATTRIBUTES = sizeof(attributes) / sizeof(attributes[0]) };

/* Number of the entry of that name in a folder; -1: none. */
static int find_entry(struct device *v, const struct attribute *a, const char *name)
{
	unsigned int count = a->count(v);
	char number[16];

	for (unsigned int i = 0; i < count; i++) {
		snprintf(number, sizeof(number), "%u", i);
		if (strcmp(name, a->entry ? a->entry(i) : number) == 0)
			return (int)i;
	}
	return -1;
}

int attribute_read(struct device *v, const char *name, char *text, unsigned int bytes)
{
	struct text out = {.at = text, .bytes = bytes};

	for (unsigned int k = 0; k < ATTRIBUTES; k++) {
		const struct attribute *a = &attributes[k];
		size_t length = strlen(a->name);
		int i;

		if (strncmp(name, a->name, length) != 0)
			continue;
		if (!a->count && !name[length])
			return a->write(v, &out, a->number);
		if (!a->count || name[length] != '/')
			continue;
		i = find_entry(v, a, name + length + 1);
		return i < 0 ? -ENOENT : a->write(v, &out, i);
	}
	return -ENOENT;
}

int attributes_each(struct device *v,
		    int (*visit)(void *ctx, struct device *v, const char *name, bool live),
		    void *ctx)
{
	char name[ATTRIBUTE_NAME_MAX];
	int ret = 0;

	for (unsigned int k = 0; k < ATTRIBUTES && !ret; k++) {
		const struct attribute *a = &attributes[k];

		if (!a->count)
			ret = visit(ctx, v, a->name, a->live);
		for (unsigned int i = 0; a->count && i < a->count(v) && !ret; i++) {
			if (a->entry)
				snprintf(name, sizeof(name), "%s/%s", a->name, a->entry(i));
			else
				snprintf(name, sizeof(name), "%s/%u", a->name, i);
			ret = visit(ctx, v, name, a->live);
		}
	}
	return ret;
}
