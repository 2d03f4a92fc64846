/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SERVICE_DATAGRAMS_H
#define CM_SERVICE_DATAGRAMS_H
/* The same for UD: service ID resolution. The CM thread's alone. */
#include "ucm.h"

int ucm_sidr_connect(struct ucm_id *id, const struct rdma_ucm_conn_param *p);
int ucm_sidr_accept(struct ucm_id *id, const struct rdma_ucm_conn_param *p);
int ucm_sidr_reject(struct ucm_id *id, const void *data, uint8_t bytes);
void ucm_sidr_event(struct ucm_id *id, const struct cm_event *e);

#endif
