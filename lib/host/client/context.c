/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection to the daemon: open, request, close; queries about the device. Any thread; one
 * request at a time uses the socket. Once the daemon has died every request fails with -ENOTCONN.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "ask.h"
#include "base/limits.h"
#include "context.h"
#include "cq.h"
#include "doorbell.h"
#include "events.h"
#include "qp.h"
#include "regions.h"
#include "registration.h"
#include "srq.h"
#include "host-abi/cm_channel.h"

/* Limits of what a daemon may announce: the sizes of queues are computed in 32 bits. */
enum { QPS_MAX = 1 << QPN_INDEX_BITS_MAX, ENTRIES_MAX = 1 << 30, WQE_MAX = 1 << 12 };

/* A hint to the core that this thread spins. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

void spin_wait(struct spin *l)
{
	unsigned int spins = 0;

	do {
		while (__atomic_load_n(&l->held, __ATOMIC_RELAXED)) {
			if (++spins % 256 == 0)
				sched_yield();
			else
				cpu_relax();
		}
	} while (__atomic_exchange_n(&l->held, 1, __ATOMIC_ACQUIRE));
}

void node_add(struct softhca_context *ctx, struct node *node, enum node_kind kind)
{
	node->ctx = ctx;
	node->kind = kind;
	node->users = node->events = node->acked = 0;
	node->prev = NULL;
	node->next = ctx->nodes[kind];
	if (node->next)
		node->next->prev = node;
	ctx->nodes[kind] = node;
	ctx->node_count++;
}

void node_remove(struct node *node)
{
	node->ctx->node_count--;
	if (node->next)
		node->next->prev = node->prev;
	if (node->prev)
		node->prev->next = node->next;
	else
		node->ctx->nodes[node->kind] = node->next;
}

/* ---- requests ---- */

static int ctx_died(struct softhca_context *ctx)
{
	__atomic_store_n(&ctx->dead, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_exchange_n(&ctx->dead_announced, 1, __ATOMIC_SEQ_CST))
		events_dead(ctx);
	return -ENOTCONN;
}

bool ctx_gone(struct softhca_context *ctx)
{
	struct pollfd p = {.fd = ctx->fd, .events = POLLRDHUP};

	if (!ctx_dead(ctx) && poll(&p, 1, 0) > 0 &&
	    (p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)))
		__atomic_store_n(&ctx->dead, 1, __ATOMIC_SEQ_CST);
	return ctx_dead(ctx);
}

bool ctx_alive(struct softhca_context *ctx)
{
	if (!ctx_gone(ctx))
		return true;
	ctx_died(ctx);
	return false;
}

int ctx_call(struct softhca_context *ctx, enum control_type type, const void *body, uint32_t bytes,
	     void *reply, uint32_t reply_bytes, int fd, int *fd_out)
{
	int rc;

	if (ctx_dead(ctx))
		return -ENOTCONN;
	pthread_mutex_lock(&ctx->rpc);
	rc = ask_looking(ctx->fd, type, body, bytes, reply, reply_bytes, fd, fd_out, &ctx->look);
	pthread_mutex_unlock(&ctx->rpc);
	return rc == -ENOTCONN ? ctx_died(ctx) : rc;
}

int ctx_call_number(struct softhca_context *ctx, enum control_type type, uint32_t number)
{
	struct control_number in = {.number = number};

	return ctx_call(ctx, type, &in, sizeof(in), NULL, 0, -1, NULL);
}

int node_destroy(const struct node *node, enum control_type type, uint32_t number)
{
	int rc = node->users ? -EBUSY : ctx_call_number(node->ctx, type, number);

	return rc == -ENOTCONN ? 0 : rc;
}

int ctx_call_for_number(struct softhca_context *ctx, enum control_type type, const void *body,
			uint32_t bytes, uint32_t *number)
{
	struct control_number out = {0};
	int rc = ctx_call(ctx, type, body, bytes, &out, sizeof(out), -1, NULL);

	*number = out.number;
	return rc;
}

/* ---- open and close ---- */

/* HELLO: passes the page of doorbells and event queue, receives the bell, then the kick. 0, -errno. */
static int hello(struct softhca_context *ctx, const char *device)
{
	struct control_hello in = {.version = CONTROL_VERSION};
	struct cm_channel_hcas hcas;
	void *page = MAP_FAILED;
	int fd, rc;

	if (device && strlen(device) >= sizeof(in.device))
		return -ENODEV;
	ask_hcas(&hcas);
	strcpy(in.device, device ? device : hcas.name[0]);
	fd = sealed_memory(sizeof(struct client_page), &page);
	if (fd < 0)
		return -errno;
	ctx->page = page;
	for (unsigned int i = 0; i < UAR_PAGES; i++)
		fifo_init(&ctx->fifo[i], &ctx->page->uar[i]);
	rc = ctx_call(ctx, CONTROL_HELLO, &in, sizeof(in), &ctx->hello, sizeof(ctx->hello), fd,
		      &ctx->bell);
	close(fd);
	if (rc)
		return rc;
	if (ctx->bell < 0 || ctx->hello.version != CONTROL_VERSION)
		return -EPROTO;
	rc = ctx_call(ctx, CONTROL_GET_KICK, NULL, 0, NULL, 0, -1, &ctx->kick);
	return !rc && ctx->kick < 0 ? -EPROTO : rc;
}

static bool believable(const struct control_hello_reply *limit)
{
	return limit->max_qp <= QPS_MAX && limit->max_cqe <= ENTRIES_MAX &&
	       limit->max_qp_wr <= ENTRIES_MAX && limit->max_srq_wr <= ENTRIES_MAX &&
	       limit->max_sge <= WQE_MAX && limit->max_inline_bytes <= WQE_MAX;
}

static int tables(struct softhca_context *ctx)
{
	uint32_t n;

	if (!believable(&ctx->hello))
		return -EPROTO;
	n = round_up(ctx->hello.max_qp, 1);
	ctx->qp_mask = n - 1;
	ctx->qps = calloc(n, sizeof(ctx->qps[0]));
	return ctx->qps ? 0 : -ENOMEM;
}

static void context_free(struct softhca_context *ctx)
{
	if (ctx->page)
		munmap(ctx->page, sizeof(*ctx->page));
	event_queue_destroy(&ctx->async);
	if (ctx->bell >= 0)
		close(ctx->bell);
	if (ctx->kick >= 0)
		close(ctx->kick);
	if (ctx->wake >= 0)
		close(ctx->wake);
	if (ctx->fd >= 0)
		close(ctx->fd);
	free(ctx->qps);
	pthread_mutex_destroy(&ctx->lock);
	pthread_mutex_destroy(&ctx->rpc);
	pthread_mutex_destroy(&ctx->event_lock);
	pthread_cond_destroy(&ctx->acked);
	free(ctx);
}

static struct softhca_context *context_new(void)
{
	struct softhca_context *ctx = aligned_alloc(64, sizeof(*ctx));

	if (!ctx)
		return NULL;
	memset(ctx, 0, sizeof(*ctx));
	ctx->fd = ctx->bell = ctx->kick = ctx->wake = ctx->async.fd = -1;
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_mutex_init(&ctx->rpc, NULL);
	pthread_mutex_init(&ctx->event_lock, NULL);
	pthread_cond_init(&ctx->acked, NULL);
	return ctx;
}

struct softhca_context *softhca_open(const char *socket_path, const char *device)
{
	int fd = ask_connect(socket_path);

	if (fd >= 0)
		return softhca_open_socket(fd, device);
	errno = -fd;
	return NULL;
}

struct softhca_context *softhca_open_socket(int fd, const char *device)
{
	struct softhca_context *ctx = context_new();
	int rc;

	if (!ctx) {
		close(fd);
		errno = ENOMEM;
		return NULL;
	}
	registration_watch();
	ctx->fd = fd;
	rc = hello(ctx, device);
	if (!rc)
		rc = tables(ctx);
	if (!rc)
		rc = event_queue_create(&ctx->async);
	if (!rc)
		return ctx;
	context_free(ctx);
	errno = -rc;
	return NULL;
}

/* The daemon frees its side when the connection closes: only our memory is freed here. */
static void free_nodes(struct softhca_context *ctx)
{
	while (ctx->nodes[NODE_QP]) {
		struct softhca_qp *qp = (struct softhca_qp *)ctx->nodes[NODE_QP];

		node_remove(&qp->node);
		qp_free(qp);
	}
	while (ctx->nodes[NODE_CQ]) {
		struct softhca_cq *cq = (struct softhca_cq *)ctx->nodes[NODE_CQ];

		node_remove(&cq->node);
		cq_free(cq);
	}
	while (ctx->nodes[NODE_SRQ]) {
		struct softhca_srq *srq = (struct softhca_srq *)ctx->nodes[NODE_SRQ];

		node_remove(&srq->node);
		srq_free(srq);
	}
	for (int kind = 0; kind < NODE_KINDS; kind++)
		while (ctx->nodes[kind]) {
			struct node *node = ctx->nodes[kind];
			size_t before = kind == NODE_MR	  ? offsetof(struct mr_object, node)
					: kind == NODE_MW ? offsetof(struct mw_object, node)
							  : 0;

			node_remove(node);
			if (kind == NODE_CHANNEL)
				event_queue_destroy(&((struct softhca_channel *)node)->queue);
			free((uint8_t *)node - before);
		}
}

int softhca_close(struct softhca_context *ctx)
{
	if (!ctx)
		return 0;
	events_stop(ctx);
	shutdown(ctx->fd, SHUT_RDWR);
	free_nodes(ctx);
	memory_close(ctx);
	context_free(ctx);
	return 0;
}

/* ---- queries ---- */

int softhca_query_device(struct softhca_context *ctx, struct softhca_device_attr *attr)
{
	const struct control_hello_reply *h = &ctx->hello;

	*attr = (struct softhca_device_attr){
		.guid = h->guid,
		.max_qp = h->max_qp,
		.max_cq = h->max_cq,
		.max_mr = h->max_mr,
		.max_pd = h->max_pd,
		.max_qp_wr = h->max_qp_wr,
		.max_cqe = h->max_cqe,
		.max_srq = h->max_srq,
		.max_srq_wr = h->max_srq_wr,
		.max_mw = h->max_mw,
		.max_fast_reg_pages = h->max_fast_reg_pages,
		.max_sge = h->max_sge,
		.max_inline_bytes = h->max_inline_bytes,
		.max_rd_atomic = h->max_rd_atomic,
		.gid_count = h->gid_count,
		.max_mr_bytes = h->max_mr_bytes,
		.max_mcast_groups = h->max_mcast_groups,
		.max_mcast_qps = h->max_mcast_qps,
		.max_mcast_attach = h->max_mcast_attach,
	};
	memcpy(attr->name, h->device, sizeof(attr->name));
	attr->name[sizeof(attr->name) - 1] = 0;
	return 0;
}

int softhca_query_port(struct softhca_context *ctx, struct softhca_port_attr *attr)
{
	struct control_port_reply r;
	int rc = ctx_call(ctx, CONTROL_QUERY_PORT, NULL, 0, &r, sizeof(r), -1, NULL);

	if (rc)
		return rc;
	port_attr_of(&r, attr);
	return 0;
}

int softhca_query_gid(struct softhca_context *ctx, uint32_t index, uint8_t gid[16])
{
	struct control_number in = {.number = index};
	struct control_gid_reply r;
	int rc = ctx_call(ctx, CONTROL_QUERY_GID, &in, sizeof(in), &r, sizeof(r), -1, NULL);

	if (!rc)
		memcpy(gid, r.gid, 16);
	return rc;
}

struct softhca_pd *softhca_alloc_pd(struct softhca_context *ctx)
{
	struct softhca_pd *pd = calloc(1, sizeof(*pd));
	int rc = pd ? ctx_call_for_number(ctx, CONTROL_ALLOC_PD, NULL, 0, &pd->number) : -ENOMEM;

	if (rc) {
		free(pd);
		errno = -rc;
		return NULL;
	}
	pthread_mutex_lock(&ctx->lock);
	node_add(ctx, &pd->node, NODE_PD);
	pthread_mutex_unlock(&ctx->lock);
	return pd;
}

int softhca_free_pd(struct softhca_pd *pd)
{
	struct softhca_context *ctx = pd->node.ctx;
	int rc;

	pthread_mutex_lock(&ctx->lock);
	rc = node_destroy(&pd->node, CONTROL_FREE_PD, pd->number);
	if (!rc) {
		node_remove(&pd->node);
		free(pd);
	}
	pthread_mutex_unlock(&ctx->lock);
	return rc;
}
