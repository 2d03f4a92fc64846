/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_ETH_ARGS_H
#define PMD_GLUE_ETH_ARGS_H
/*
 * What each driver needs to carry RoCE: device names and arguments, and separate buffers where ours
 * do not fit. Control thread.
 */
#include "port_internal.h"

enum { ETH_ARGS_BYTES = 512 };

/* Name of the DPDK device: a PCI address, or a new virtual one ("net_tap3"). */
void eth_args_name(const struct port *port, const struct eth_device *d,
		   char name[PORT_DEVICE_BYTES]);

/* The arguments of a virtual device on `device`; empty for PCI. */
void eth_args(const struct port *port, const char *device, char args[ETH_ARGS_BYTES]);

/*
 * The pool of the receive queues: packet_pool, or for af_xdp one of the port's own, whose elements
 * fit into a page, as af_xdp requires. NULL: no memory.
 */
struct rte_mempool *eth_rx_pool(struct port *port);

#endif
