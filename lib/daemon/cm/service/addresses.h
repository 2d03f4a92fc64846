/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SERVICE_ADDRESSES_H
#define CM_SERVICE_ADDRESSES_H
/* Properties of addresses. The CM thread's alone. */
#include "ucm.h"

/* Bytes of its structure; 0: unknown family. */
unsigned int ucm_address_bytes(const union ucm_address *a);
/* Copies an address of a command, without its scope ID. 0; -EINVAL: too long, or not its family's
 * length. */
int ucm_address_copy(union ucm_address *to, const void *from, size_t bytes);
/* The same from a command with room for only IPv4 and IPv6; the caller checks the family. */
void ucm_address_copy_ip(union ucm_address *to, const struct sockaddr_in6 *from);
bool ucm_address_zero(const union ucm_address *a);
bool ucm_address_loopback(const union ucm_address *a);
/* Zero or loopback: implies no device. */
bool ucm_address_any(const union ucm_address *a);
bool ucm_address_same_host(const union ucm_address *a, const union ucm_address *b);
bool ucm_address_multicast(const union ucm_address *a);
uint16_t ucm_address_port(const union ucm_address *a);
void ucm_address_set_port(union ucm_address *a, uint16_t port);
/* Zero where there is no address. */
void ucm_address_gid(const union ucm_address *a, uint8_t gid[16]);
/* Sets the host, and the family if there is none. */
void ucm_address_set_gid(union ucm_address *a, const uint8_t gid[16]);
void ucm_address_set_loopback(union ucm_address *a);
uint64_t ucm_service_id(const struct ucm_id *id, const union ucm_address *a);
/* Sets an address that is all zeroes. */
void ucm_ip_address(union ucm_address *a, uint8_t version, const uint8_t gid[16], uint16_t port);

#endif
