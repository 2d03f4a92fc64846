/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers a kernel's RDMA_NL_NLDEV requests (rdma/rdma_netlink.h) about the daemon's devices, their
 * ports, resources and counters. Asks the daemon each time. Changes are refused (EOPNOTSUPP). Any
 * thread; no locks, no heap.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "host-abi/sysfs.h"
#include "netlink.h"
#include "softhca/softhca.h"
#include "view.h"

enum {
	DEVICES = 16,
	PORT = 1,
	NODE_TYPE_CA = 1,
	STATE_DOWN = 1,
	STATE_ACTIVE = 4,
	PHYS_STATE_DISABLED = 3,
	PHYS_STATE_LINK_UP = 5,
	TEXT_BYTES = 480,
	/* Reserved for the end of an answer: DONE, or the acknowledgement. */
	CLOSING_BYTES = NLMSG_SPACE(sizeof(struct nlmsgerr)),
};

struct answer {
	uint8_t *to; /* NLDEV_ANSWER_BYTES */
	size_t n;
	const struct nlmsghdr *request;
};

/* What the request asks about. */
struct question {
	uint16_t command;
	bool all;	 /* a dump: all devices */
	uint32_t device; /* else: this one */
};

/* ---- building ---- */

static bool room(const struct answer *a, size_t bytes)
{
	return a->n + bytes + CLOSING_BYTES <= NLDEV_ANSWER_BYTES;
}

/* Omitted where there is no room: callers check room() first. */
static void nldev_put(struct answer *a, uint16_t type, const void *value, size_t bytes)
{
	struct nlattr h = {.nla_len = (uint16_t)(NLA_HDRLEN + bytes), .nla_type = type};

	if (!room(a, NLA_HDRLEN + NLA_ALIGN(bytes)))
		return;
	memset(a->to + a->n, 0, NLA_HDRLEN + NLA_ALIGN(bytes));
	memcpy(a->to + a->n, &h, sizeof(h));
	memcpy(a->to + a->n + NLA_HDRLEN, value, bytes);
	a->n += NLA_HDRLEN + NLA_ALIGN(bytes);
}

static void put_text(struct answer *a, uint16_t type, const char *text)
{
	nldev_put(a, type, text, strlen(text) + 1);
}

static void put_u8(struct answer *a, uint16_t type, uint8_t n)
{
	nldev_put(a, type, &n, sizeof(n));
}

static void put_u32(struct answer *a, uint16_t type, uint32_t n)
{
	nldev_put(a, type, &n, sizeof(n));
}

static void put_u64(struct answer *a, uint16_t type, uint64_t n)
{
	nldev_put(a, type, &n, sizeof(n));
}

/* Begins a nested attribute, which end_nest() ends, given the result. */
static size_t nest(struct answer *a, uint16_t type)
{
	size_t at = a->n;

	nldev_put(a, type | NLA_F_NESTED, "", 0);
	return at;
}

static void end_nest(struct answer *a, size_t at)
{
	uint16_t bytes = (uint16_t)(a->n - at);

	memcpy(a->to + at, &bytes, sizeof(bytes));
}

/* A name and its number, nested in an attribute of `type`; the two are type + 1 and type + 2. */
static void put_entry(struct answer *a, uint16_t type, const char *name, uint64_t value)
{
	size_t entry;

	if (!room(a, 3 * NLA_HDRLEN + NLA_ALIGN(strlen(name) + 1) + sizeof(value)))
		return;
	entry = nest(a, type);
	put_text(a, type + 1, name);
	put_u64(a, type + 2, value);
	end_nest(a, entry);
}

static size_t nldev_begin(struct answer *a, uint16_t type, uint16_t flags)
{
	struct nlmsghdr h = {.nlmsg_type = type,
			     .nlmsg_flags = flags,
			     .nlmsg_seq = a->request->nlmsg_seq,
			     .nlmsg_pid = (uint32_t)getpid()};
	size_t at = a->n;

	memcpy(a->to + at, &h, sizeof(h));
	a->n += NLMSG_HDRLEN;
	return at;
}

static void nldev_end(struct answer *a, size_t at)
{
	uint32_t bytes = (uint32_t)(a->n - at);

	memcpy(a->to + at, &bytes, sizeof(bytes));
}

/* Ends an answer: DONE for a dump, else an error or 0. */
static void close_answer(struct answer *a, bool dump, int error)
{
	struct nlmsgerr e = {.error = error, .msg = *a->request};
	size_t at =
		nldev_begin(a, dump && !error ? NLMSG_DONE : NLMSG_ERROR, dump ? NLM_F_MULTI : 0);
	size_t bytes = dump && !error ? sizeof(e.error) : sizeof(e);

	memcpy(a->to + a->n, &e, bytes);
	a->n += NLMSG_ALIGN(bytes);
	nldev_end(a, at);
}

/* ---- devices, ports, resources, counters ---- */

static void put_device(struct answer *a, const struct softhca_device_info *d)
{
	char text[TEXT_BYTES] = "";
	int n = softhca_read_attribute(NULL, d->name, "fw_ver", text, sizeof(text) - 1);

	text[n > 0 ? strcspn(text, "\n") : 0] = 0;
	put_u32(a, RDMA_NLDEV_ATTR_PORT_INDEX, PORT);
	put_text(a, RDMA_NLDEV_ATTR_FW_VERSION, text);
	put_u64(a, RDMA_NLDEV_ATTR_NODE_GUID, d->guid);
	put_u64(a, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, d->guid);
	put_u8(a, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, NODE_TYPE_CA);
	put_text(a, RDMA_NLDEV_ATTR_DEV_PROTOCOL, "roce");
}

static void put_port(struct answer *a, const struct softhca_device_info *d)
{
	bool active = d->port.state == SOFTHCA_PORT_ACTIVE;

	put_u32(a, RDMA_NLDEV_ATTR_PORT_INDEX, PORT);
	put_u8(a, RDMA_NLDEV_ATTR_PORT_STATE, active ? STATE_ACTIVE : STATE_DOWN);
	put_u8(a, RDMA_NLDEV_ATTR_PORT_PHYS_STATE,
	       active ? PHYS_STATE_LINK_UP : PHYS_STATE_DISABLED);
}

/* The attribute is a line of names and counts. */
static void put_resources(struct answer *a, const struct softhca_device_info *d)
{
	char text[TEXT_BYTES] = "", name[16];
	unsigned long long count;
	size_t all = nest(a, RDMA_NLDEV_ATTR_RES_SUMMARY);
	int used;

	(void)softhca_read_attribute(NULL, d->name, "resources", text, sizeof(text) - 1);
	for (const char *at = text; sscanf(at, "%15s %llu%n", name, &count, &used) == 2; at += used)
		put_entry(a, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY, name, count);
	end_nest(a, all);
}

/* Counters of 0 are left out, since all do not fit a datagram. */
static void put_counter(struct answer *a, const char *device, const char *name)
{
	char path[NAME_MAX + 32], text[TEXT_BYTES] = "";
	uint64_t value;

	snprintf(path, sizeof(path), "ports/1/hw_counters/%s", name);
	if (softhca_read_attribute(NULL, device, path, text, sizeof(text) - 1) <= 0)
		return;
	value = strtoull(text, NULL, 10);
	if (value)
		put_entry(a, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY, name, value);
}

/* An entry of getdents64(). */
struct entry {
	uint64_t inode;
	int64_t next;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

static void put_counters_in(struct answer *a, const char *device, int folder)
{
	uint64_t buffer[512];
	long n;

	while ((n = syscall(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < n;) {
			const struct entry *e = (const void *)((const char *)buffer + at);

			if (e->name[0] != '.')
				put_counter(a, device, e->name);
			at += e->bytes;
		}
	}
}

static void put_counters(struct answer *a, const struct softhca_device_info *d)
{
	char path[PATH_MAX], tree[PATH_MAX];
	size_t all;
	int folder;

	put_u32(a, RDMA_NLDEV_ATTR_PORT_INDEX, PORT);
	all = nest(a, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	snprintf(path, sizeof(path), SYSFS_CLASS "/%s/ports/1/hw_counters", d->name);
	folder = (int)syscall(SYS_openat, AT_FDCWD, view_path(path, tree),
			      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder >= 0) {
		put_counters_in(a, d->name, folder);
		close(folder);
	}
	end_nest(a, all);
}

/* NULL: a command that we do not answer. */
static void (*teller(uint16_t command))(struct answer *, const struct softhca_device_info *)
{
	switch (command) {
	case RDMA_NLDEV_CMD_GET:
		return put_device;
	case RDMA_NLDEV_CMD_PORT_GET:
		return put_port;
	case RDMA_NLDEV_CMD_RES_GET:
		return put_resources;
	case RDMA_NLDEV_CMD_STAT_GET:
		return put_counters;
	default:
		return NULL;
	}
}

/* ---- requests ---- */

/* Puts in the devices that the question names. 0; -ENODEV: no such device; -EOPNOTSUPP. */
static int nldev_report(struct answer *a, const struct question *q)
{
	struct softhca_device_info list[DEVICES];
	int n = softhca_device_list(NULL, list, DEVICES);
	void (*put_what)(struct answer *, const struct softhca_device_info *) = teller(q->command);
	bool found = q->all;

	if (!put_what)
		return -EOPNOTSUPP;
	for (int i = 0; i < n && i < DEVICES; i++) {
		size_t at;

		if ((!q->all && list[i].index != q->device) || !room(a, TEXT_BYTES))
			continue;
		found = true;
		at = nldev_begin(a, a->request->nlmsg_type, q->all ? NLM_F_MULTI : 0);
		put_u32(a, RDMA_NLDEV_ATTR_DEV_INDEX, list[i].index);
		put_text(a, RDMA_NLDEV_ATTR_DEV_NAME, list[i].name);
		put_what(a, &list[i]);
		nldev_end(a, at);
	}
	return found ? 0 : -ENODEV;
}

/* The device that a request names; UINT32_MAX: none. at: its attributes. */
static uint32_t device_in(const uint8_t *at, size_t bytes)
{
	struct nlattr h;
	uint32_t device;

	while (bytes >= sizeof(h)) {
		memcpy(&h, at, sizeof(h));
		if (h.nla_len < NLA_HDRLEN || h.nla_len > bytes)
			break;
		if (h.nla_type == RDMA_NLDEV_ATTR_DEV_INDEX &&
		    h.nla_len == NLA_HDRLEN + (int)sizeof(device)) {
			memcpy(&device, at + NLA_HDRLEN, sizeof(device));
			return device;
		}
		if ((size_t)NLA_ALIGN(h.nla_len) >= bytes)
			break;
		at += NLA_ALIGN(h.nla_len);
		bytes -= NLA_ALIGN(h.nla_len);
	}
	return UINT32_MAX;
}

static void answer_one(struct answer *a, const uint8_t *attributes, size_t bytes)
{
	const struct nlmsghdr *h = a->request;
	struct question q = {.command = RDMA_NL_GET_OP(h->nlmsg_type),
			     .all = (h->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP,
			     .device = device_in(attributes, bytes)};
	int error = RDMA_NL_GET_CLIENT(h->nlmsg_type) == RDMA_NL_NLDEV ? nldev_report(a, &q)
								       : -EOPNOTSUPP;

	if (q.all || error || h->nlmsg_flags & NLM_F_ACK)
		close_answer(a, q.all, error);
}

size_t nldev_answer(const void *from, size_t bytes, uint8_t to[NLDEV_ANSWER_BYTES])
{
	const uint8_t *at = from;
	struct nlmsghdr h;
	struct answer a = {.to = to, .request = &h};

	while (bytes >= sizeof(h) && room(&a, TEXT_BYTES)) {
		memcpy(&h, at, sizeof(h));
		if (h.nlmsg_len < sizeof(h) || h.nlmsg_len > bytes)
			break;
		if (h.nlmsg_flags & NLM_F_REQUEST)
			answer_one(&a, at + NLMSG_HDRLEN, h.nlmsg_len - NLMSG_HDRLEN);
		if (NLMSG_ALIGN(h.nlmsg_len) >= bytes)
			break;
		at += NLMSG_ALIGN(h.nlmsg_len);
		bytes -= NLMSG_ALIGN(h.nlmsg_len);
	}
	return a.n;
}
