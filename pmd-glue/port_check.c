/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of port_create's arguments; see port_check.h. */
#include <errno.h>
#include <string.h>

#include <rte_mbuf.h>

#include "base/limits.h"
#include "base/log.h"
#include "control.h"
#include "port_check.h"

static bool ends_within(const char *s, size_t bytes)
{
	return strnlen(s, bytes) < bytes;
}

static bool is_probability(double p)
{
	return p >= 0 && p <= 1; /* false for NaN */
}

static bool address_is_good(const struct port_address *a)
{
	static const uint8_t none[16];

	if (memcmp(a->ip, none, 16) == 0 || ip_is_multicast(a->ip))
		return false;
	return a->v6 != ip_is_v4_mapped(a->ip) && a->prefix_len <= (a->v6 ? 128 : 32);
}

static bool addresses_are_good(const struct port_config *c)
{
	if (c->addresses.count > PORT_ADDRESSES_MAX)
		return false;
	for (unsigned int i = 0; i < c->addresses.count; i++) {
		if (!address_is_good(&c->addresses.at[i]))
			return false;
	}
	return (!c->gateways.has_v4 || ip_is_v4_mapped(c->gateways.v4)) &&
	       (!c->gateways.has_v6 || !ip_is_v4_mapped(c->gateways.v6));
}

static bool impairment_is_good(const struct port_impairment *i)
{
	return is_probability(i->loss) && is_probability(i->duplicate) &&
	       is_probability(i->reorder) && is_probability(i->corrupt) &&
	       is_probability(i->mark) && i->delay_us <= 1000000 && i->jitter_us <= 1000000 &&
	       i->rate_mbps <= 400000;
}

/* Commas and brackets would end an argument of a driver. */
static bool device_is_good(const struct port_config *c)
{
	if (c->type == PORT_RING)
		return c->peer[0] != '\0';
	return c->device[0] != '\0' && !strpbrk(c->device, ",[]\"'");
}

static bool backup_is_good(const struct port_config *c)
{
	if (!c->backup[0])
		return c->bond_mode == BOND_ACTIVE_BACKUP;
	return c->type == PORT_AF_PACKET && c->failover_ms != 0 && !strpbrk(c->backup, ",[]\"'") &&
	       strcmp(c->backup, c->device) != 0;
}

/* What is wrong, or NULL. */
static const char *find_fault(const struct port_config *c)
{
	if ((unsigned int)c->type >= PORT_TYPE_COUNT)
		return "unknown type";
	if (!ends_within(c->device, PORT_DEVICE_BYTES) ||
	    !ends_within(c->backup, PORT_DEVICE_BYTES) || !ends_within(c->peer, PORT_NAME_BYTES) ||
	    !ends_within(c->capture_path, PORT_PATH_BYTES))
		return "a name is too long";
	if (!device_is_good(c))
		return c->type == PORT_RING ? "a ring port needs a peer"
					    : "device name missing or bad";
	if (!backup_is_good(c))
		return "the backup is the device itself, the port is not of type af_packet, or "
		       "bond_mode needs a backup";
	if (c->icrc_omitted && c->type != PORT_MEMIF)
		return "only memif can do without ICRC";
	if (c->mac[0] & 1)
		return "the MAC address is a multicast address";
	if (!addresses_are_good(c))
		return "an IP address, prefix or gateway is bad";
	if (c->vlan > 4094)
		return "VLAN id is above 4094";
	if (c->mtu_bytes && c->mtu_bytes < MTU_BYTES_MIN + PORT_ROCE_OVERHEAD)
		return "the MTU is too small for RoCE with path MTU 256";
	if (c->queues < 1 || c->queues > PORT_QUEUES_MAX)
		return "number of queues out of range";
	if (!impairment_is_good(&c->impairment))
		return "an impairment is not a probability, or a delay is above 1 s";
	return NULL;
}

int port_check_config(const struct port_config *c)
{
	const char *fault;

	if (!ends_within(c->name, PORT_NAME_BYTES) || c->name[0] == '\0') {
		LOG(ERR, "a port's name is empty or too long");
		return -EINVAL;
	}
	fault = find_fault(c);
	if (!fault)
		return 0;
	LOG(ERR, "port %s: %s", c->name, fault);
	return -EINVAL;
}

int port_check_pools(const struct port_config *c, struct rte_mempool *packet_pool,
		     struct rte_mempool *clone_pool)
{
	if (rte_pktmbuf_priv_size(clone_pool) < rte_pktmbuf_priv_size(packet_pool)) {
		LOG(ERR, "port %s: clones have a smaller private area than packets", c->name);
		return -EINVAL;
	}
	if (rte_pktmbuf_data_room_size(packet_pool) < RTE_PKTMBUF_HEADROOM + 512) {
		LOG(ERR, "port %s: packet buffers are too small", c->name);
		return -EINVAL;
	}
	return 0;
}
