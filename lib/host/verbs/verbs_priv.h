/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_PRIV_H
#define VERBS_PRIV_H
/*
 * What the files of the drop-in libibverbs share: its objects. Each begins with the public
 * structure that the program holds, and refers to the object of libsofthca that does the work.
 *
 * Functions of the public interface return as their man pages say: pointers with errno, 0 or a
 * positive errno value (ibv_poll_cq(): a count, or negative). Those of libsofthca return -errno.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>
#include "softhca/softhca.h"

/* The header defines macros of these names. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define likely(x)    __builtin_expect(!!(x), 1)
#define unlikely(x)  __builtin_expect(!!(x), 0)
#define VERBS_PUBLIC __attribute__((visibility("default")))

#define container(ptr, type, member) ((type *)((uintptr_t)(ptr)-offsetof(type, member)))

enum { VERBS_PORT = 1 };

/* Numbers that libibverbs 44 has no names for: those of version 45. */
enum {
	LATER_ACCESS_FLUSH_GLOBAL = 1 << 8,
	LATER_ACCESS_FLUSH_PERSISTENT = 1 << 9,
	LATER_QP_EX_WITH_FLUSH = 1 << 11,
};

/* What programs built with version 45 take for struct ibv_qp_ex. */
struct later_qp_ex {
	struct ibv_qp_ex ex;
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
			 uint8_t type, uint8_t level);
};
static_assert(offsetof(struct later_qp_ex, wr_flush) ==
		      offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void *),
	      "built with a later header: take its name");

/* Converts 0 or -errno to 0 or errno; also sets errno, for callers that look there. */
static inline int verbs_status(int rc)
{
	if (rc < 0)
		errno = -rc;
	return rc < 0 ? -rc : rc;
}

/* The same for functions that return -1 with errno. */
static inline int verbs_minus_one(int rc)
{
	if (rc < 0)
		errno = -rc;
	return rc < 0 ? -1 : 0;
}

/*
 * A device in a list, or open: freed with its last user. Providers' libraries in the program
 * (libmlx5, libefa) recognise their own devices by a pointer right behind the public structure: it
 * must be readable, and not theirs.
 */
struct shca_device {
	struct ibv_device ibv;
	uint64_t providers_private[8]; /* 0 */
	uint64_t guid;		       /* network order */
	int index;
	uint32_t users; /* lists and contexts; device.c's lock */
	struct shca_device *next;
};
static_assert(offsetof(struct shca_device, providers_private) == sizeof(struct ibv_device),
	      "what providers look at");

/* The kinds of objects that a program holds. */
enum handle_kind {
	HANDLE_CONTEXT,
	HANDLE_PD,
	HANDLE_TD,
	HANDLE_MR,
	HANDLE_MW,
	HANDLE_AH,
	HANDLE_CHANNEL,
	HANDLE_CQ,
	HANDLE_SRQ,
	HANDLE_QP,
	HANDLE_KINDS
};

/* An object's entry in handles.c, private to that file. */
struct handle {
	struct handle *next;
	const struct softhca_context *hca;
	void *object; /* libsofthca's, for PDs and MRs, which can be imported */
	uint32_t number;
	enum handle_kind kind;
	bool leaving; /* being destroyed */
};

struct shca_context {
	struct verbs_context verbs; /* ends with the struct ibv_context that the program holds */
	struct handle handle;
	struct softhca_context *hca; /* shared with the original by an imported context */
	struct shca_context *next;   /* of all that are open; context.c's lock */
	struct softhca_device_attr attr;
};

struct shca_td {
	struct ibv_td ibv;
	struct handle handle;
	uint32_t users; /* parent domains that name it; atomic */
};

struct shca_pd {
	struct ibv_pd ibv;
	struct handle handle;
	struct softhca_pd *pd;	/* of a parent domain: its parent's */
	struct shca_pd *parent; /* NULL: not a parent domain */
	struct shca_td *td;	/* a parent domain's; or NULL */
	uint32_t users;		/* references, pd_hold(); atomic */
};

struct shca_mr {
	struct ibv_mr ibv;
	struct handle handle;
	struct softhca_mr *mr;
};

struct shca_mw {
	struct ibv_mw ibv;
	struct handle handle;
	struct softhca_mw *mw;
};

struct shca_ah {
	struct ibv_ah ibv;
	struct handle handle;
	struct softhca_ah *ah;
};

struct shca_channel {
	struct ibv_comp_channel ibv;
	struct handle handle;
	struct softhca_channel *channel;
};

/*
 * CQs, SRQs and QPs: the `user` pointer of libsofthca's object is this structure, so that an event
 * leads to it; the program's own is in the public structure.
 */
struct shca_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex; /* begins as ibv_cq does */
	};
	struct handle handle;
	struct softhca_cq *cq;
	bool single_thread;
	bool now_read; /* an extended poll's current entry is in `now`: cq_ex.c */
	struct softhca_wc now;
};

struct shca_srq {
	struct ibv_srq ibv;
	struct handle handle;
	struct softhca_srq *srq;
};

struct shca_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex; /* begins as ibv_qp does */
		struct later_qp_ex later;
	};
	struct handle handle;
	struct softhca_qp *qp;
	bool is_ex; /* made with send_ops_flags */
	bool sig_all;
	struct ibv_qp_cap cap;
};

static inline struct shca_device *to_shca_device(struct ibv_device *d)
{
	return container(d, struct shca_device, ibv);
}

static inline struct shca_context *to_shca_context(struct ibv_context *c)
{
	return container(c, struct shca_context, verbs.context);
}

static inline struct shca_pd *to_shca_pd(struct ibv_pd *pd)
{
	return container(pd, struct shca_pd, ibv);
}

static inline struct shca_mr *to_shca_mr(struct ibv_mr *mr)
{
	return container(mr, struct shca_mr, ibv);
}

static inline struct shca_mw *to_shca_mw(struct ibv_mw *mw)
{
	return container(mw, struct shca_mw, ibv);
}

static inline struct shca_ah *to_shca_ah(struct ibv_ah *ah)
{
	return container(ah, struct shca_ah, ibv);
}

static inline struct shca_channel *to_shca_channel(struct ibv_comp_channel *c)
{
	return container(c, struct shca_channel, ibv);
}

static inline struct shca_cq *to_shca_cq(struct ibv_cq *cq)
{
	return container(cq, struct shca_cq, ibv);
}

static inline struct shca_srq *to_shca_srq(struct ibv_srq *srq)
{
	return container(srq, struct shca_srq, ibv);
}

static inline struct shca_qp *to_shca_qp(struct ibv_qp *qp)
{
	return container(qp, struct shca_qp, ibv);
}

/* Returned for unknown objects. */
static inline int no_such_object(void)
{
	errno = EINVAL;
	return EINVAL;
}

static inline void *none_for_no_such_object(void)
{
	errno = EINVAL;
	return NULL;
}

#endif
