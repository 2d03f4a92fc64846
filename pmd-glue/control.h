/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_CONTROL_H
#define PMD_GLUE_CONTROL_H
/*
 * Shared by the files of the control thread's side: routes, requests, answers, and the kernel's
 * view of an interface. Control thread only.
 */
#include <rte_ether.h>
#include <rte_mbuf.h>

#include "base/ip.h"
#include "port_internal.h"

/* ---- route.c ---- */

/* Index of the port's address ip, or -1. */
int route_own_address(const struct port *port, const uint8_t ip[16]);

bool ip_is_multicast(const uint8_t ip[16]);  /* a group, or 255.255.255.255 */
bool ip_is_link_local(const uint8_t ip[16]); /* fe80::/10 */

/* The MAC address of a multicast group or of the IPv4 broadcast address. */
void multicast_mac(const uint8_t ip[16], uint8_t mac[6]);

/* Whether some address of the port has ip in its prefix (IPv6 link-local: always). */
bool route_is_on_link(const struct port *port, const uint8_t ip[16]);

/* The next hop to ip; NULL: no route. */
const uint8_t *route_next_hop(const struct port *port, const uint8_t ip[16]);

/* The port's source address for ip, of the same family: one with ip in its prefix, else the
 * first of the family; NULL if there is none. */
const struct port_address *route_source(const struct port *port, const uint8_t ip[16]);

/* ---- ask.c ---- */

/* Sends the ARP request or neighbour solicitation for ip. May be lost: it will be repeated. */
void ask_for(struct port *port, const uint8_t ip[16]);

/*
 * Allocates a frame with `bytes` zeroed bytes after its Ethernet (and VLAN) header; *l3 points to
 * them. NULL, counted: no buffer. The caller owns it until control_send.
 */
struct rte_mbuf *control_frame(struct port *port, const uint8_t dst_mac[6], uint16_t type,
			       uint16_t bytes, void **l3);

/* Passes a frame to the data path for sending; takes ownership. */
void control_send(struct port *port, struct rte_mbuf *m);

/* Advertises (RFC 4861 7.2.4, 7.2.6) that the IPv6 address is at our MAC address, to whoever asked,
 * at the MAC address `to`, or to all (NULL). False: no buffer. May be lost. */
bool advertise(struct port *port, const uint8_t ip[16], const uint8_t to[16], const uint8_t mac[6]);

/* Tells neighbours that the address is at our MAC address. May be lost. */
void announce(struct port *port, const struct port_address *own);

/* Records ip's MAC if it is sane; create: even if unsolicited. */
void learn(struct port *port, const uint8_t ip[16], const uint8_t mac[6], bool create);

/* ---- answer_v4.c, answer_v6.c ---- */

/*
 * One received frame, l3: its header after Ethernet and VLAN, `bytes` from there to the end. All of
 * it is untrusted. The caller keeps the frame; answers are new frames.
 */
void answer_arp(struct port *port, const struct rte_ether_hdr *ether, const uint8_t *l3,
		uint32_t bytes);
void answer_icmp(struct port *port, const struct rte_ether_hdr *ether, const uint8_t *l3,
		 uint32_t bytes);
void answer_icmpv6(struct port *port, const struct rte_ether_hdr *ether, const uint8_t *l3,
		   uint32_t bytes);

/* ---- kernel.c: the interface as the kernel sees it ---- */

/* Interface MTU in bytes, or -errno. */
int kernel_mtu(const char *name);
/* 0 or -errno. */
int kernel_set_mtu(const char *name, uint16_t mtu_bytes);
/* Administratively up and with carrier. */
bool kernel_is_running(const char *name);
/* Whether the port shares its interface with the kernel, which then answers for its own addresses.
 */
bool kernel_shares(enum port_type type);
/* Stores in port->kernel_has which of the port's addresses the kernel has on its interface. */
void kernel_refresh(struct port *port);

#endif
