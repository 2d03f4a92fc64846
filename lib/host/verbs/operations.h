/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_OPERATIONS_H
#define VERBS_OPERATIONS_H
/* What context.c puts into a context's table of operations: ibv_*() of the same name without
 * shca_. */
#include "verbs_priv.h"

/* query.c */
int shca_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *attr, size_t bytes);
int shca_query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t bytes);
int shca_query_rt_values(struct ibv_context *c, struct ibv_values_ex *values);
/* domain.c */
struct ibv_pd *shca_alloc_parent_domain(struct ibv_context *c,
					struct ibv_parent_domain_init_attr *attr);
struct ibv_td *shca_alloc_td(struct ibv_context *c, struct ibv_td_init_attr *attr);
int shca_dealloc_td(struct ibv_td *td);
/* memory.c, windows.c */
struct ibv_mr *shca_alloc_null_mr(struct ibv_pd *pd);
struct ibv_mw *shca_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int shca_dealloc_mw(struct ibv_mw *mw);
int shca_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
/* cq.c */
struct ibv_cq_ex *shca_create_cq_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *attr);
int shca_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int shca_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* srq.c */
struct ibv_srq *shca_create_srq_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *attr);
int shca_get_srq_num(struct ibv_srq *srq, uint32_t *number);
int shca_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* qp.c, post.c */
struct ibv_qp *shca_create_qp_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *attr);
int shca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int shca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

#endif
