/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SERVICE_REQUESTS_H
#define CM_SERVICE_REQUESTS_H
/* Requests: those that arrive, and the private data of ours. The CM thread's alone. */
#include "ucm.h"

void *ucm_request(void *ctx, struct cm_connection *c, const struct cm_path *path,
		  const struct cm_message *m, uint16_t *reason);
/* The private data of a REQ or SIDR_REQ: header and the program's. Returns its length; -EINVAL: too
 * long. */
int ucm_request_data(const struct ucm_id *id, const struct rdma_ucm_conn_param *p,
		     uint8_t data[CM_PRIVATE_MAX], uint16_t type);

#endif
