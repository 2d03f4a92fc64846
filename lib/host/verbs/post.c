/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests: converts those of verbs to libsofthca's (hot). Most are identical, field by field,
 * and go through untouched; those with a pointer to one of our objects are copied to the stack, a
 * few at a time. Never allocates.
 */
#include <string.h>
#include "handles.h"
#include "operations.h"
#include "qp.h"

enum { CHUNK = 16 };

#define SAME_PLACE(type, field)                                                                    \
	static_assert(offsetof(struct softhca_##type, field) ==                                    \
			      offsetof(struct ibv_##type, field),                                  \
		      #field)
SAME_PLACE(sge, addr);
SAME_PLACE(sge, length);
SAME_PLACE(sge, lkey);
SAME_PLACE(recv_wr, wr_id);
SAME_PLACE(recv_wr, next);
SAME_PLACE(recv_wr, sg_list);
SAME_PLACE(recv_wr, num_sge);
SAME_PLACE(send_wr, wr_id);
SAME_PLACE(send_wr, next);
SAME_PLACE(send_wr, sg_list);
SAME_PLACE(send_wr, num_sge);
SAME_PLACE(send_wr, opcode);
SAME_PLACE(send_wr, send_flags);
SAME_PLACE(send_wr, imm_data);
SAME_PLACE(send_wr, invalidate_rkey);
SAME_PLACE(send_wr, wr.rdma.remote_addr);
SAME_PLACE(send_wr, wr.rdma.rkey);
SAME_PLACE(send_wr, wr.atomic.remote_addr);
SAME_PLACE(send_wr, wr.atomic.compare_add);
SAME_PLACE(send_wr, wr.atomic.swap);
SAME_PLACE(send_wr, wr.atomic.rkey);
static_assert(sizeof(struct softhca_sge) == sizeof(struct ibv_sge), "entries of a list");
static_assert((int)SOFTHCA_SEND_INLINE == (int)IBV_SEND_INLINE, "flags");

#define OPERATION(id, code, services, traits, packets, wr, wc, call)                               \
	static_assert((int)SOFTHCA_WR_##wr == (int)IBV_WR_##wr, "opcodes");
#define NATIVE_OPERATION(...)
#include "host-abi/user_opcodes.def"

#define OPERATION(id, code, services, traits, packets, wr, wc, call) | 1 << IBV_WR_##wr
#define NATIVE_OPERATION(...)
enum {
	/* A bit for each opcode that libsofthca knows. */
	KNOWN = 0
#include "host-abi/user_opcodes.def"
	,
	/* Those whose work requests are the same in both. */
	UNCHANGED = KNOWN & ~(1 << IBV_WR_BIND_MW),
};

static inline bool is_one_of(uint32_t opcodes, enum ibv_wr_opcode opcode)
{
	return opcodes >> (opcode & 31) & 1;
}

void bind_info_convert(const struct ibv_mw_bind_info *from, struct softhca_mw_bind_info *to)
{
	to->mr = from->mr ? to_shca_mr(from->mr)->mr : NULL;
	to->addr = from->addr;
	to->length = from->length;
	/* Windows exist for peers; programs set this right as they would for a region. */
	to->access = from->mw_access_flags & ~(uint32_t)IBV_ACCESS_LOCAL_WRITE;
}

static void convert(enum ibv_qp_type type, const struct ibv_send_wr *from,
		    struct softhca_send_wr *to)
{
	to->wr_id = from->wr_id;
	to->sg_list = (struct softhca_sge *)from->sg_list;
	to->num_sge = from->num_sge;
	to->opcode = from->opcode < 32 && is_one_of(KNOWN, from->opcode) ? from->opcode : NO_OPCODE;
	to->send_flags = from->send_flags;
	to->imm_data = from->imm_data;
	if (type == IBV_QPT_UD) {
		to->wr.ud.ah = from->wr.ud.ah ? to_shca_ah(from->wr.ud.ah)->ah : NULL;
		to->wr.ud.remote_qpn = from->wr.ud.remote_qpn;
		to->wr.ud.remote_qkey = from->wr.ud.remote_qkey;
	} else if (from->opcode == IBV_WR_BIND_MW) {
		to->wr.bind_mw.mw = from->bind_mw.mw ? to_shca_mw(from->bind_mw.mw)->mw : NULL;
		to->wr.bind_mw.rkey = from->bind_mw.rkey;
		bind_info_convert(&from->bind_mw.bind_info, &to->wr.bind_mw.bind_info);
	} else {
		memcpy(&to->wr, &from->wr, sizeof(from->wr));
	}
}

/* Posts the first requests of a list that is not empty. *rest: those after them. Returns as
 * ibv_post_send(). */
static int post_chunk(struct shca_qp *qp, struct ibv_send_wr *list, struct ibv_send_wr **bad,
		      struct ibv_send_wr **rest)
{
	struct softhca_send_wr wr[CHUNK], *stopped = NULL;
	int n = 0, rc;

	for (*rest = list; *rest && n < CHUNK; *rest = (*rest)->next, n++) {
		convert(qp->ibv.qp_type, *rest, &wr[n]);
		wr[n].next = &wr[n + 1];
	}
	wr[n - 1].next = NULL;
	rc = softhca_post_send(qp->qp, wr, &stopped);
	if (likely(!rc))
		return 0;
	for (n = 0; &wr[n] != stopped; n++)
		list = list->next;
	*bad = list;
	return -rc;
}

static __attribute__((noinline)) int post_converted(struct shca_qp *qp, struct ibv_send_wr *wr,
						    struct ibv_send_wr **bad)
{
	int rc = 0;

	while (wr && !rc)
		rc = post_chunk(qp, wr, bad, &wr);
	return rc;
}

int shca_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct shca_qp *qp = to_shca_qp(ibv);
	struct softhca_send_wr *stopped;
	int rc;

	if (ibv->qp_type == IBV_QPT_UD)
		return post_converted(qp, wr, bad);
	rc = softhca_post_send_of(qp->qp, UNCHANGED, (struct softhca_send_wr *)wr, &stopped);
	if (likely(!rc))
		return 0;
	wr = (struct ibv_send_wr *)stopped; /* those before it are posted */
	if (rc == -EOPNOTSUPP)
		return post_converted(qp, wr, bad);
	*bad = wr;
	return -rc;
}

int shca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return -softhca_post_recv(to_shca_qp(qp)->qp, (struct softhca_recv_wr *)wr,
				  (struct softhca_recv_wr **)bad);
}

int shca_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return -softhca_post_srq_recv(to_shca_srq(srq)->srq, (struct softhca_recv_wr *)wr,
				      (struct softhca_recv_wr **)bad);
}
