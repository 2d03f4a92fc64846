/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Port spaces: who owns which port, by a kernel's rules: different addresses may share a port, so
 * may users of SO_REUSEADDR, and IPv4 and IPv6 if each is restricted to its family. Runs in the CM
 * thread.
 */
#include <endian.h>
#include <errno.h>
#include "addresses.h"
#include "ids.h"
#include "numbers.h"
#include "ports.h"

/* Service IDs of the IP port spaces (IBTA A11.3): 00000000 01 PP port. */
#define SPACE_MASK	 (~0xffffull)
#define SPACE_SID(space) ((uint64_t)(space) << 16)

enum { EPHEMERAL_FIRST = 32768, EPHEMERAL_LAST = 60999, PRIVILEGED = 1024 };

static struct ucm_port *ucm_port_at(struct cm_service *s, uint16_t space, uint16_t port)
{
	unsigned int at;

	switch (space) {
	case RDMA_PS_TCP:
		at = 0;
		break;
	case RDMA_PS_UDP:
		at = 1;
		break;
	case RDMA_PS_IB:
		at = 2;
		break;
	case RDMA_PS_IPOIB:
		at = 3;
		break;
	default:
		return NULL;
	}
	return &s->ports[at * UCM_PORTS + port];
}

static struct ucm_port *own_port(const struct ucm_id *id)
{
	return ucm_port_at(id->channel->service, id->port_space, id->port);
}

static int ucm_port_take(struct ucm_id *id, uint16_t space, uint16_t port)
{
	struct ucm_port *p = ucm_port_at(id->channel->service, space, port);
	int rc = share_take(&id->channel->shares, SHARE_cm_ports, 1);

	if (rc)
		return rc;
	ucm_address_set_port(&id->source, port);
	id->port_space = space;
	id->port = port;
	LIST_INSERT_HEAD(&p->bound, id, of_port);
	p->count++;
	return 0;
}

void ucm_port_release(struct ucm_id *id)
{
	if (!id->port_space)
		return;
	own_port(id)->count--;
	LIST_REMOVE(id, of_port);
	id->port_space = 0;
	share_give(&id->channel->shares, SHARE_cm_ports, 1);
}

/* Is it reached through that HCA? */
static bool uses(const struct ucm_id *id, const char *hca)
{
	return id->at.chosen ? strcmp(ucm_device(id)->name, hca) == 0
			     : cm_channel_uses(&id->channel->hcas, hca);
}

/* Can a request match both? Not if they use different HCAs, as when each has a network namespace of
 * its own. */
static bool ucm_ports_overlap(const struct ucm_id *id, const struct ucm_id *other)
{
	const struct cm_channel_hcas *hcas = &id->channel->hcas;
	bool may = !hcas->name[0][0];

	if (id->at.chosen)
		return uses(other, ucm_device(id)->name);
	if (other->at.chosen)
		return uses(id, ucm_device(other)->name);
	for (unsigned int i = 0; i < CM_CHANNEL_HCAS && !may; i++)
		may = hcas->name[i][0] && uses(other, hcas->name[i]);
	return may;
}

/* 0; -EADDRINUSE; -EADDRNOTAVAIL (one is for any address, as in a kernel). */
static int conflict(const struct ucm_id *id, const struct ucm_id *other, bool reuse)
{
	if (other->state != UCM_LISTENING && reuse && other->reuseaddr)
		return 0;
	if (id->afonly && other->afonly && id->source.family != other->source.family)
		return 0;
	if (ucm_address_any(&id->source) || ucm_address_any(&other->source))
		return ucm_ports_overlap(id, other) ? -EADDRNOTAVAIL : 0;
	return ucm_address_same_host(&id->source, &other->source) ? -EADDRINUSE : 0;
}

static int check_list(const struct ucm_id *id, const struct ucm_id_list *list, bool reuse)
{
	const struct ucm_id *other;

	LIST_FOREACH (other, list, of_port) {
		int ret = other == id ? 0 : conflict(id, other, reuse);

		if (ret)
			return ret;
	}
	return 0;
}

static int ucm_port_check(const struct ucm_id *id, const struct ucm_port *p, bool reuse)
{
	int ret = check_list(id, &p->listening, reuse);

	return ret ? ret : check_list(id, &p->bound, reuse);
}

/* Takes the first free port from a random one on, except the last one assigned. */
static int take_any(struct ucm_id *id, uint16_t space)
{
	struct cm_service *s = id->channel->service;
	unsigned int count = EPHEMERAL_LAST - EPHEMERAL_FIRST + 1;
	unsigned int start = ucm_random() % count;

	for (unsigned int i = 0; i < count; i++) {
		uint16_t port = (uint16_t)(EPHEMERAL_FIRST + (start + i) % count);

		if (port == s->last_port || ucm_port_at(s, space, port)->count)
			continue;
		s->last_port = port;
		return ucm_port_take(id, space, port);
	}
	return -EADDRNOTAVAIL;
}

/* The port space of an AF_IB address, by its service ID and mask; 0: unknown. */
static uint16_t space_of_sid(struct ucm_id *id)
{
	static const uint16_t spaces[] = {RDMA_PS_IB, RDMA_PS_TCP, RDMA_PS_UDP};
	struct ucm_sockaddr_ib *a = &id->source.ib;
	uint64_t mask = be64toh(a->sid_mask) & SPACE_MASK;
	uint64_t sid = be64toh(a->sid) & mask;

	for (unsigned int i = 0; i < 3; i++) {
		uint16_t port;

		if (id->space != RDMA_PS_IB && id->space != spaces[i])
			continue;
		if (sid != (SPACE_SID(spaces[i]) & mask))
			continue;
		port = ucm_address_port(&id->source);
		a->sid = htobe64(SPACE_SID(spaces[i]) | port);
		a->sid_mask |= htobe64(SPACE_MASK);
		return spaces[i];
	}
	return 0;
}

int ucm_port_bind(struct ucm_id *id)
{
	uint16_t port = ucm_address_port(&id->source), space = id->space;
	const struct ucm_port *p;
	int ret;

	if (id->source.family == UCM_AF_IB)
		space = space_of_sid(id);
	if (!space)
		return -EPROTONOSUPPORT;
	if (!port)
		return take_any(id, space);
	if (port < PRIVILEGED && id->channel->user)
		return -EACCES;
	p = ucm_port_at(id->channel->service, space, port);
	ret = p->count < UCM_PORT_SHARERS ? ucm_port_check(id, p, id->reuseaddr) : -EADDRNOTAVAIL;
	return ret ? ret : ucm_port_take(id, space, port);
}

int ucm_port_listen(struct ucm_id *id)
{
	struct ucm_port *p;
	int ret;

	ASSERT(id->port_space);
	p = own_port(id);
	ret = id->reuseaddr ? ucm_port_check(id, p, false) : 0;
	if (ret)
		return ret;
	LIST_REMOVE(id, of_port);
	LIST_INSERT_HEAD(&p->listening, id, of_port);
	return 0;
}

/* How well a listener matches a destination; 0: not at all. */
static int fit(const struct ucm_id *id, unsigned int device, const struct cm_ip_addressing *ip)
{
	uint16_t family = id->source.family;
	uint8_t gid[16];

	if (!ucm_may_use(id->channel, device) || (id->at.chosen && id->at.device != device))
		return 0;
	if (family == UCM_AF_IB)
		return 2;
	if (!ip)
		return 0;
	if (ucm_address_any(&id->source) && !id->afonly)
		return 1;
	if (ip->version != (family == AF_INET ? 4 : 6))
		return 0;
	if (ucm_address_any(&id->source))
		return 2;
	ucm_address_gid(&id->source, gid);
	return memcmp(gid, ip->destination, sizeof(gid)) ? 0 : 3;
}

struct ucm_id *ucm_port_listener(struct cm_service *s, uint64_t service_id, unsigned int device,
				 const struct cm_ip_addressing *ip)
{
	struct ucm_id *id, *best = NULL;
	const struct ucm_port *p;
	int best_fit = 0;

	p = service_id >> 32 ? NULL
			     : ucm_port_at(s, (uint16_t)(service_id >> 16), (uint16_t)service_id);
	if (!p)
		return NULL;
	LIST_FOREACH (id, &p->listening, of_port) {
		int f = fit(id, device, ip);

		if (f > best_fit) {
			best_fit = f;
			best = id;
		}
	}
	return best;
}
