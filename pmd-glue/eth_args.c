/* SPDX-License-Identifier: BSD-3-Clause */
/* Device names, arguments and pools per driver. The numbers were measured, or are
 * what the drivers of DPDK 22.11 check. Control thread. */
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>

#include "base/limits.h"
#include "base/log.h"
#include "eth_args.h"

enum {
	/* Both rings of a queue pair fit into the usual limit of locked memory, 8 MiB. */
	AF_PACKET_FRAMES = 896,
	AF_PACKET_FRAMES_PER_BLOCK = 64, /* of 64-byte multiples: blocks are whole pages */
	AF_PACKET_HEADER = 32, /* what the driver takes off a frame to compare with a buffer */
	MEMIF_RING_LOG2 = 9,
	AF_XDP_CHUNK_BYTES = 4096, /* the kernel wants no more than a page per frame */
	AF_XDP_BUFFERS = 8191,
	AF_XDP_CACHE = 256,
};

static const char *driver_of(enum port_type type)
{
	switch (type) {
	case PORT_MEMIF:
		return "net_memif";
	case PORT_AF_PACKET:
		return "net_af_packet";
	case PORT_TAP:
		return "net_tap";
	case PORT_AF_XDP:
		return "net_af_xdp";
	case PORT_RING:
	case PORT_PCI:
	case PORT_TYPE_COUNT:
		break;
	}
	return "";
}

void eth_args_name(const struct port *port, const struct eth_device *d,
		   char name[PORT_DEVICE_BYTES])
{
	const struct port_config *c = &port->config;

	if (c->type == PORT_PCI)
		snprintf(name, PORT_DEVICE_BYTES, "%s", c->device);
	else
		snprintf(name, PORT_DEVICE_BYTES, "%s%u%s", driver_of(c->type), port->index,
			 d == &port->eth[0] ? "" : "_backup");
}

static uint32_t af_packet_frame(uint32_t room)
{
	return RTE_ALIGN_FLOOR(room + AF_PACKET_HEADER, 64);
}

_Static_assert(2 * AF_PACKET_FRAMES *
			       (PACKET_ROOM_BYTES - RTE_PKTMBUF_HEADROOM + AF_PACKET_HEADER) <
		       8 << 20,
	       "one queue pair of an af_packet port needs no right to lock memory");

uint64_t port_locked_bytes(const struct port_config *c)
{
	uint64_t ring = (uint64_t)af_packet_frame(PACKET_ROOM_BYTES - RTE_PKTMBUF_HEADROOM) *
			AF_PACKET_FRAMES;

	return c->type == PORT_AF_PACKET ? 2 * ring * c->queues * (c->backup[0] ? 2 : 1) : 0;
}

/*
 * A frame of the kernel's ring must hold a RoCE packet with path MTU 4096 and not be larger than
 * our buffers; the default of 2048 does the first for path MTU 1024 only.
 */
static void af_packet_args(const struct port *port, const char *device, char *args)
{
	uint32_t room = rte_pktmbuf_data_room_size(port->packet_pool) - RTE_PKTMBUF_HEADROOM;
	uint32_t frame = af_packet_frame(room);

	snprintf(args, ETH_ARGS_BYTES, "iface=%s,qpairs=%u,blocksz=%u,framesz=%u,framecnt=%u",
		 device, port->config.queues, frame * AF_PACKET_FRAMES_PER_BLOCK, frame,
		 AF_PACKET_FRAMES);
}

/* Copying, not zero-copy: nothing of ours is mapped into the other process
 * (doc/architecture.md#trust). */
static void memif_args(const struct port *port, char *args)
{
	const struct port_config *c = &port->config;

	snprintf(args, ETH_ARGS_BYTES,
		 "role=%s,id=%u,socket=%s,socket-abstract=no,bsize=%u,rsize=%u,"
		 "mac=" RTE_ETHER_ADDR_PRT_FMT,
		 c->memif_server ? "server" : "client", c->memif_id, c->device,
		 RTE_ALIGN_CEIL(FRAME_BYTES_MAX, 64), MEMIF_RING_LOG2, port->mac[0], port->mac[1],
		 port->mac[2], port->mac[3], port->mac[4], port->mac[5]);
}

void eth_args(const struct port *port, const char *device, char args[ETH_ARGS_BYTES])
{
	const struct port_config *c = &port->config;

	args[0] = '\0';
	if (c->type == PORT_AF_PACKET)
		af_packet_args(port, device, args);
	else if (c->type == PORT_MEMIF)
		memif_args(port, args);
	else if (c->type == PORT_TAP)
		snprintf(args, ETH_ARGS_BYTES, "iface=%s", c->device);
	else if (c->type == PORT_AF_XDP)
		snprintf(args, ETH_ARGS_BYTES, "iface=%s,start_queue=0,queue_count=%u", c->device,
			 c->queues);
}

static uint32_t element_bytes(uint32_t priv, uint32_t room)
{
	return rte_mempool_calc_obj_size(sizeof(struct rte_mbuf) + priv + room, 0, NULL);
}

struct rte_mempool *eth_rx_pool(struct port *port)
{
	uint32_t priv = rte_pktmbuf_priv_size(port->packet_pool);
	uint32_t room = AF_XDP_CHUNK_BYTES;
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *pool;

	if (port->config.type != PORT_AF_XDP)
		return port->packet_pool;
	while (room > 1024 && element_bytes(priv, room) > AF_XDP_CHUNK_BYTES)
		room -= 64;
	snprintf(name, sizeof(name), "port%u_af_xdp", port->index);
	pool = rte_pktmbuf_pool_create(name, AF_XDP_BUFFERS, AF_XDP_CACHE, priv, room,
				       port->config.socket);
	if (!pool)
		LOG(ERR, "port %s: no memory for the buffers that af_xdp needs", port->config.name);
	return pool;
}
