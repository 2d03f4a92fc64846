/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_GROUPS_H
#define PMD_GLUE_GROUPS_H
/*
 * A port's multicast groups: the messages that inform routers and switches, IGMPv3 (RFC 3376) and
 * MLDv2 (RFC 3810), and the queries received. Nothing received is trusted. Control thread.
 */
#include <rte_ether.h>

#include "port_internal.h"

/* Sends reports that are due. Cheap if none is. */
void groups_turn(struct port *port, uint64_t now_ms);

/* igmp.c, mld.c: send one report of n >= 1 records; it may be lost. Ports without a source address
 * send nothing. */
void igmp_report(struct port *port, const struct membership_record *records, unsigned int n);
void mld_report(struct port *port, const struct membership_record *records, unsigned int n);

/* A received frame of that protocol, see answer_icmp() in control.h. */
void take_igmp(struct port *port, const uint8_t *l3, uint32_t bytes);
void take_mld(struct port *port, const uint8_t *l3, uint32_t bytes);

#endif
