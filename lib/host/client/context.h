/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_CONTEXT_H
#define CLIENT_CONTEXT_H
/* Requests of a context to its daemon, its objects and its end. */
#include "client_priv.h"

/* ask(), one request at a time for the context. */
int ctx_call(struct softhca_context *ctx, enum control_type type, const void *body, uint32_t bytes,
	     void *reply, uint32_t reply_bytes, int fd, int *fd_out);
/* The same, with one number as the request or as the reply. */
int ctx_call_number(struct softhca_context *ctx, enum control_type type, uint32_t number);
int ctx_call_for_number(struct softhca_context *ctx, enum control_type type, const void *body,
			uint32_t bytes, uint32_t *number);
/* Is the daemon alive? Checks the socket; if not, wakes everyone waiting for events. Takes
 * event_lock. */
bool ctx_alive(struct softhca_context *ctx);
/* The same for callers that hold locks: only records the death. */
bool ctx_gone(struct softhca_context *ctx);
/* The CPU that this thread is on, plus 1, as in uar_page; 0: not known. glibc has it from the
 * kernel's restartable sequences, without a system call. */
static inline uint32_t cpu_here(void)
{
	return (uint32_t)(sched_getcpu() + 1);
}

/* Publishes this thread's CPU to an engine, which does not spin on a CPU that its clients need. */
static inline void publish_cpu(struct uar_page *uar)
{
	uint32_t *published = &uar->client_cpu, cpu = cpu_here();

	if (unlikely(__atomic_load_n(published, __ATOMIC_RELAXED) != cpu))
		__atomic_store_n(published, cpu, __ATOMIC_RELAXED);
}

static inline bool ctx_dead(const struct softhca_context *ctx)
{
	return __atomic_load_n(&ctx->dead, __ATOMIC_RELAXED);
}

/* Converts the port's attributes to those of the API. */
void port_attr_of(const struct control_port_reply *r, struct softhca_port_attr *attr);

/* Object lists; context.lock is held. */
void node_add(struct softhca_context *ctx, struct node *node, enum node_kind kind);
void node_remove(struct node *node);
/* Has the daemon destroy the object; succeeds if the daemon has died. 0; -EBUSY: others depend on
 * it; -errno. */
int node_destroy(const struct node *node, enum control_type type, uint32_t number);

#endif
