/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_HANDLES_H
#define VERBS_HANDLES_H
/* Which objects the program holds. */
#include "verbs_priv.h"

/* `number`: the handle that the program sees; 0: a new one, unique in this process, which is
 * returned. `object`: for handle_find(). */
uint32_t handle_add(struct handle *h, enum handle_kind kind, const struct softhca_context *hca,
		    uint32_t number, void *object);
/* Does the program hold such an object? The pointer is not dereferenced otherwise. `leaving`: also
 * one that is being destroyed. */
bool handle_known(const struct handle *h, enum handle_kind kind, bool leaving);
/* The same, and marks it as being destroyed: only one caller succeeds. */
bool handle_take(struct handle *h, enum handle_kind kind);
/* Completes the destruction of an object, which returned rc: removes the handle, or, on an error,
 * makes it usable again. Returns verbs_status(rc). */
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

#endif
