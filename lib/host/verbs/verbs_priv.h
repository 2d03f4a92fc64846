/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_PRIV_H
#define VERBS_PRIV_H
/*
 * What the files of the drop-in libibverbs share: its objects. Each begins with the public
 * structure that the program holds, and refers to the object of libsofthca that does the work.
 *
 * Functions of the public interface return as their man pages say: pointers with errno, 0 or a
 * positive errno value (ibv_poll_cq(): a count or -1). Those of libsofthca return -errno.
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
	struct softhca_wc now; /* current entry of an extended poll: cq_ex.c */
	uint32_t empty;	       /* empty polls; atomic */
	uint32_t polled;       /* atomic; 1: a thread is between start_poll() and end_poll() */
	bool single_thread;
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
	struct shca_batch *batch; /* requests between wr_start() and wr_complete(): qp_ex.c */
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

/* ---- handles.c ---- */

/* `number`: the handle that the program sees; 0: a new one, unique in this process, which is
 * returned. `object`: for handle_find(). */
uint32_t handle_add(struct handle *h, enum handle_kind kind, const struct softhca_context *hca,
		    uint32_t number, void *object);
/* Does the program hold such an object? The pointer is not dereferenced otherwise. `leaving`: also
 * one that is being destroyed. */
bool handle_known(const struct handle *h, enum handle_kind kind, bool leaving);
/* The same, and marks it as being destroyed: only one caller succeeds. */
bool handle_take(struct handle *h, enum handle_kind kind);
/* Completes the destruction of an object, which returned rc: removes the handle, or, on an error, makes
 * it usable again. Returns verbs_status(rc). */
int handle_end(struct handle *h, int rc);
/* The object added under that number, or NULL. */
void *handle_find(const struct softhca_context *hca, enum handle_kind kind, uint32_t number);
/* Removes all entries of a connection that ends. */
void handles_forget(const struct softhca_context *hca);
/*
 * Inline functions of verbs.h dereference some objects before they call us. Those are never freed
 * but reused, so that a destroyed one remains readable. NULL: none to reuse.
 */
void handle_retire(struct handle *h, enum handle_kind kind);
struct handle *handle_revive(enum handle_kind kind);

/*
 * TYPE_known(): does the program hold it, with its original handle? TYPE_there(): also while it is
 * being destroyed, which waits for the program. TYPE_take(): it is known, and being destroyed from
 * now on. The pointer may be anything.
 */
#define HANDLE_OF(ptr, type, member)                                                               \
	((struct handle *)((uintptr_t)(ptr)-offsetof(type, member) + offsetof(type, handle)))
#define OBJECT(name, public, private, member, object_kind, intact)                                 \
	static inline bool name##_there(const struct public *o)                                    \
	{                                                                                          \
		const struct handle *h = HANDLE_OF(o, struct private, member);                     \
                                                                                                   \
		return handle_known(h, object_kind, true) && (intact);                             \
	}                                                                                          \
	static inline bool name##_known(const struct public *o)                                    \
	{                                                                                          \
		const struct handle *h = HANDLE_OF(o, struct private, member);                     \
                                                                                                   \
		return handle_known(h, object_kind, false) && (intact);                            \
	}                                                                                          \
	static inline bool name##_take(struct public *o)                                           \
	{                                                                                          \
		return name##_known(o) &&                                                          \
		       handle_take(HANDLE_OF(o, struct private, member), object_kind);             \
	}
OBJECT(context, ibv_context, shca_context, verbs.context, HANDLE_CONTEXT, true)
OBJECT(td, ibv_td, shca_td, ibv, HANDLE_TD, true)
OBJECT(channel, ibv_comp_channel, shca_channel, ibv, HANDLE_CHANNEL, true)
OBJECT(pd, ibv_pd, shca_pd, ibv, HANDLE_PD, o->handle == h->number)
OBJECT(mr, ibv_mr, shca_mr, ibv, HANDLE_MR, o->handle == h->number)
OBJECT(mw, ibv_mw, shca_mw, ibv, HANDLE_MW, o->handle == h->number)
OBJECT(ah, ibv_ah, shca_ah, ibv, HANDLE_AH, o->handle == h->number)
OBJECT(cq, ibv_cq, shca_cq, ibv, HANDLE_CQ, o->handle == h->number)
OBJECT(srq, ibv_srq, shca_srq, ibv, HANDLE_SRQ, o->handle == h->number)
OBJECT(qp, ibv_qp, shca_qp, ibv, HANDLE_QP, o->handle == h->number)
#undef OBJECT

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

/* ---- device.c ---- */

/* Adds or drops a user of a device. */
void device_hold(struct shca_device *d);
void device_release(struct shca_device *d);

/* ---- the context's operations ---- */

/* query.c */
int shca_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *attr, size_t bytes);
int shca_query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t bytes);
int shca_query_rt_values(struct ibv_context *c, struct ibv_values_ex *values);

/* context.c */
/* Opens the context named by `cmd_fd`, a duplicate of its descriptor, once more; owns the
 * descriptor on success. NULL with errno. */
struct ibv_context *context_import(int cmd_fd);

/* domain.c */
/* Wraps a PD of libsofthca for the program; `handle` 0: a new one. NULL with errno. */
struct ibv_pd *pd_show(struct ibv_context *c, struct softhca_pd *pd, uint32_t handle);
/* Adds or drops a reference to the PD, which cannot be deallocated while it has any. */
void pd_hold(struct ibv_pd *pd);
void pd_release(struct ibv_pd *pd);
struct ibv_pd *shca_alloc_parent_domain(struct ibv_context *c,
					struct ibv_parent_domain_init_attr *attr);
struct ibv_td *shca_alloc_td(struct ibv_context *c, struct ibv_td_init_attr *attr);
int shca_dealloc_td(struct ibv_td *td);

/* memory.c, windows.c */
/* As pd_show(). */
struct ibv_mr *mr_show(struct ibv_pd *pd, struct softhca_mr *mr, uint32_t handle);
struct ibv_mr *shca_alloc_null_mr(struct ibv_pd *pd);
struct ibv_mw *shca_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int shca_dealloc_mw(struct ibv_mw *mw);
int shca_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* cq.c, cq_ex.c */
struct ibv_cq_ex *shca_create_cq_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *attr);
int shca_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int shca_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* A poll found nothing: yields now and then. */
void found_empty(struct shca_cq *cq);
/* Sets the functions of an extended CQ that `wc_flags` request. */
void cq_ex_fill(struct shca_cq *cq, uint64_t wc_flags);

/* srq.c */
struct ibv_srq *shca_create_srq_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *attr);
int shca_get_srq_num(struct ibv_srq *srq, uint32_t *number);
int shca_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* qp.c, qp_ex.c, post.c */
struct ibv_qp *shca_create_qp_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *attr);
/* Sets the wr_*() of a QP that `ops` (IBV_QP_EX_WITH_*) requests. 0, EOPNOTSUPP. */
int qp_ex_fill(struct shca_qp *qp, uint64_t ops);
void qp_ex_free(struct shca_qp *qp);
int shca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int shca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* Converts bind information to libsofthca's form. */
void bind_info_convert(const struct ibv_mw_bind_info *from, struct softhca_mw_bind_info *to);

#endif
