/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_HCA_H
#define HCA_HCA_H
/*
 * One whole HCA: tables, engines, link. The daemon runs one or more; the conformance tests drive
 * them with their own wire and clock.
 */
#include <stdint.h>
#include "base/limits.h"
#include "base/peer_list.h"
#include "base/shares.h"
#include "completion/completion.h"
#include "context/multicast.h"
#include "context/qp_context.h"
#include "context/srq.h"
#include "pipeline/engine.h"
#include "virt-to-phys/v2p.h"

/* Resources of one engine, near the lcores that run it. */
struct engine_place {
	int socket;					    /* NUMA node or SOCKET_ID_ANY */
	struct rte_mempool *packets, *descriptors, *clones; /* packets NULL: the HCA's are taken */
};

struct hca_config {
	char name[32];
	unsigned engines;	       /* 1..ENGINES_MAX */
	uint32_t qps, cqs, srqs, mpts; /* table sizes, powers of two */
	uint32_t mtts;		       /* pages of memory that is not contiguous; power of two */
	uint32_t mpt_cache_bytes, mtt_cache_bytes; /* powers of two, >= 64 and 32 */
	int socket; /* NUMA node of the tables that all engines share, or SOCKET_ID_ANY */
	struct engine_place place[ENGINES_MAX]; /* packets NULL: on `socket`, with these pools: */
	struct engine_settings settings;
	struct rte_mempool *packets,
		*descriptors;	    /* shared by the HCAs of a daemon; stay the caller's */
	struct rte_mempool *clones; /* no data room needed; NULL: packets serve; the caller's */
	uint32_t descriptor_share;  /* descriptors that one engine may hold; 0: a quarter */
	struct link_port *link;	    /* stays the caller's */
	struct wire_path
		gids[GID_TABLE_MAX]; /* by GID index: source MAC, source IP, VLAN of that address */
	unsigned gid_count;
	struct peer_list admitted; /* as hca_admit() */
};

struct hca {
	struct hca_config config;
	struct qp_table qps;
	struct srq_table srqs;
	struct multicast_table multicast;
	struct v2p v2p;
	struct v2p_port *v2p_ports; /* engines x STAGE_COUNT */
	struct completion completion;
	struct rte_mempool *events;
	struct engine *engines;	  /* config.engines of them */
	struct counters counters; /* of the control thread */
	struct peer_list admitted[2];
	unsigned admitted_at; /* which of these applies; control thread */
};

/* Fills *c with the defaults of hca/settings.def; pools, link and addresses remain to be given. */
void hca_config_defaults(struct hca_config *c);

/* 0, -ENOMEM, -EINVAL, -EEXIST (name in use). Control thread, EAL initialised. */
int hca_create(const struct hca_config *config, struct hca **out);
/* All lcores have stopped polling it. Where other HCAs go on, hca_drop_orphans() has been called
 * for each. */
void hca_destroy(struct hca *h);

/* Drops the packets that h has received from `sender`, an HCA of the same daemon that is about to
 * be destroyed, if they refer to its clients' memory: as if they had been lost on the wire. No
 * lcore polls either HCA. */
void hca_drop_orphans(struct hca *h, const struct hca *sender);

/*
 * One lcore runs all stages of the HCA, so that what only they touch needs no locked instructions.
 * `frames_too`: no other thread holds references to frames that the HCA sends or receives, either.
 * To be called before the lcore polls; otherwise each stage may run on a different lcore.
 */
void hca_on_one_lcore(struct hca *h, bool frames_too);

/* One lcore polls all stages of that engine, in their order. To be called before it does. */
void hca_engine_on_one_lcore(struct hca *h, unsigned engine);

/* Replaces the GIDs, up to GID_TABLE_MAX of them: datagrams use the new ones from now on, a
 * connected queue pair keeps its address. No lcore may be running a stage of the HCA. */
void hca_move(struct hca *h, const struct wire_path *gids, unsigned count);

/* Applies those of the settings that can change while lcores run (RUNTIME in hca/settings.def), and
 * payload_refs; the others are as before. Every module sees them from its next poll on. Control
 * thread. */
void hca_change_settings(struct hca *h, const struct engine_settings *s);

/* Sets who may send datagrams from now on; the caller must refuse connections itself.
 * `quiesce(ctx)` waits until each lcore has begun another round. Control thread. */
void hca_admit(struct hca *h, const struct peer_list *peers, void (*quiesce)(void *ctx), void *ctx);
/* As set. Control thread. */
static inline const struct peer_list *hca_admitted(const struct hca *h)
{
	return &h->admitted[h->admitted_at];
}

/* Polls one stage of one engine once; e->now_ns has been set. Returns elements handled. */
unsigned hca_poll_stage(struct engine *e, enum stage_id stage);

/* Polls all stages of all engines once at that time: tests and single-lcore use. Returns elements
 * handled. */
unsigned hca_poll(struct hca *h, uint64_t now_ns);

/*
 * The amount of each resource that the engines share out themselves, and how much of it a client
 * holds (HCA_ALL_CLIENTS: all of them). Any thread; may be a moment old.
 */
enum { HCA_ALL_CLIENTS = CLIENTS_MAX };
uint64_t hca_share_total(const struct hca *h, enum data_share which);
uint64_t hca_share_held(const struct hca *h, enum data_share which, unsigned client);

/* Sum of a counter over all stages and the control thread. */
uint64_t hca_counter(const struct hca *h, enum counter which);

/*
 * Taking a QP off the data path (the CEU's 2RST and destruction), on the control thread:
 *   1. __atomic_store qp->qpn = 0: it is no longer found; messages in the rings that name it are
 *      dropped;
 *   2. wait until every lcore has polled: none holds a pointer found before;
 *   3. hca_close_qp(): asks every module to release it (lists, buffers, timers);
 *   4. poll hca_qp_closed() until true: all of them have; the context may be zeroed and reused.
 */
void hca_close_qp(struct hca *h, struct qp *q);
bool hca_qp_closed(const struct qp *q);

/* The engine that a client's first QP belongs to (qp.engine); the next ones are spread over the
 * others, too. */
unsigned hca_client_engine(const struct hca *h, uint32_t client);
/* The NUMA node of that engine, for the client's queues and pages; NODE_ANY: any. */
int hca_client_node(const struct hca *h, uint32_t client);

/* Adds a client's doorbell page for one engine to those that its DoorbellProcessing polls; index <
 * CLIENTS_MAX. Control thread. */
void hca_client_attach(struct hca *h, uint32_t client, unsigned engine, struct uar_page *uar);
/* Removes all of a client's. The caller quiesces before it frees the pages. Control thread. */
void hca_client_detach(struct hca *h, uint32_t client);

#endif
