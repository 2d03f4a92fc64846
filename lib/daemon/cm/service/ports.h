/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SERVICE_PORTS_H
#define CM_SERVICE_PORTS_H
/* Port spaces. The CM thread's alone. */
#include "ucm.h"

/* Binds the identifier to the port of its source address, or to a free one. 0; -EADDRINUSE;
 * -EADDRNOTAVAIL; -EACCES; -EPROTONOSUPPORT. */
int ucm_port_bind(struct ucm_id *id);
/* Listens at its port. 0; -EADDRINUSE; -EADDRNOTAVAIL. */
int ucm_port_listen(struct ucm_id *id);
void ucm_port_release(struct ucm_id *id);
/* The listener at a service ID, on that device, for a destination (NULL: none given), the most
 * specific one; NULL: none. */
struct ucm_id *ucm_port_listener(struct cm_service *s, uint64_t service_id, unsigned int device,
				 const struct cm_ip_addressing *ip);

#endif
