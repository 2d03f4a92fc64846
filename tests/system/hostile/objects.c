/* SPDX-License-Identifier: BSD-3-Clause */
/* The attacker's objects: working ones on both HCAs, and random numbers. */
#include <stdlib.h>
#include <string.h>
#include "../../../bench/path/verify.h"
#include "hostile.h"

uint64_t draw(struct attacker *a)
{
	return verify_mix(a->state++);
}

uint32_t below(struct attacker *a, uint32_t n)
{
	return (uint32_t)(draw(a) >> 32) % n;
}

uint64_t nasty(struct attacker *a)
{
	static const uint64_t boundary[] = {0,
					    1,
					    2,
					    3,
					    0x1f,
					    0x3f,
					    0x40,
					    0x7f,
					    0x80,
					    0xff,
					    0x100,
					    0xfff,
					    0x1000,
					    0xffff,
					    0x10000,
					    0xffffff,
					    0x7fffffff,
					    0x80000000,
					    0x80000001,
					    0xfffffffe,
					    0xffffffff,
					    0x100000000,
					    0x7fffffffffffffff,
					    0x8000000000000000,
					    0xffffffffffffffff};

	if (below(a, 3) == 0)
		return draw(a);
	return boundary[below(a, sizeof(boundary) / sizeof(boundary[0]))];
}

static void have(const void *object)
{
	if (!object)
		exit(SET_UP_FAILED);
}

static struct softhca_qp *make_qp(struct side *s, enum which which)
{
	static const uint8_t type[WHICH_COUNT] = {SOFTHCA_QP_RC, SOFTHCA_QP_UC, SOFTHCA_QP_UD,
						  SOFTHCA_QP_RC};
	struct softhca_qp_init_attr attr = {.send_cq = s->cq,
					    .recv_cq = s->cq,
					    .type = type[which],
					    .cap = {.max_send_wr = 16,
						    .max_recv_wr = 16,
						    .max_send_sge = 4,
						    .max_recv_sge = 4,
						    .max_inline_data = 200}};

	if (which == SHARED) {
		attr.srq = s->srq;
		attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
	}
	return softhca_create_qp(s->pd, &attr);
}

static void make_side(struct side *s, const char *device)
{
	struct softhca_srq_init_attr srq = {.max_wr = 16, .max_sge = 4};

	s->ctx = softhca_open(NULL, device);
	have(s->ctx);
	s->pd = softhca_alloc_pd(s->ctx);
	have(s->pd);
	s->cq = softhca_create_cq(s->ctx, 64, NULL, NULL);
	s->srq = softhca_create_srq(s->pd, &srq);
	s->area = softhca_alloc(s->ctx, AREA_BYTES);
	have(s->cq);
	have(s->srq);
	have(s->area);
	s->mr = softhca_reg_mr(s->pd, s->area, AREA_BYTES, 0xf);
	s->read_only = softhca_reg_mr(s->pd, s->area, 4096, 0);
	have(s->mr);
	have(s->read_only);
	for (unsigned which = 0; which < WHICH_COUNT; which++) {
		s->qp[which] = make_qp(s, which);
		have(s->qp[which]);
	}
}

static void join(struct attacker *a, enum which which)
{
	struct softhca_connect_attr attr;
	struct softhca_endpoint at[SIDES];

	softhca_connect_defaults(a->side[0].ctx, &attr);
	attr.timeout = 8;
	attr.retry_cnt = attr.rnr_retry = 1;
	for (unsigned i = 0; i < SIDES; i++)
		if (softhca_local_endpoint(a->side[i].qp[which], 0, &at[i]))
			exit(SET_UP_FAILED);
	for (unsigned i = 0; i < SIDES; i++)
		(void)softhca_connect_qp(a->side[i].qp[which], &at[i], &at[!i], &attr);
}

void objects_make(struct attacker *a)
{
	struct softhca_ah_attr ah = {0};

	make_side(&a->side[0], "left");
	make_side(&a->side[1], "right");
	for (unsigned i = 0; i < SIDES; i++) {
		if (softhca_query_gid(a->side[!i].ctx, 0, ah.dgid))
			exit(SET_UP_FAILED);
		a->side[i].ah = softhca_create_ah(a->side[i].pd, &ah);
		have(a->side[i].ah);
	}
	for (unsigned which = 0; which < WHICH_COUNT; which++)
		join(a, which);
}

void objects_rejoin(struct attacker *a, enum which which)
{
	struct softhca_qp_attr attr = {.state = SOFTHCA_QPS_RESET};

	for (unsigned i = 0; i < SIDES; i++)
		if (softhca_modify_qp(a->side[i].qp[which], &attr, SOFTHCA_QP_STATE) == -ENOTCONN)
			exit(0);
	join(a, which);
}

void objects_revive(struct attacker *a, enum which which)
{
	struct softhca_qp_attr attr;

	for (unsigned i = 0; i < SIDES; i++) {
		int rc = softhca_query_qp(a->side[i].qp[which], &attr);

		if (rc == -ENOTCONN)
			exit(0);
		if (rc || attr.state != SOFTHCA_QPS_RTS) {
			objects_rejoin(a, which);
			return;
		}
	}
}
