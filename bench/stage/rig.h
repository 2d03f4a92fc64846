/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_RIG_H
#define STAGE_RIG_H
/*
 * Two whole HCAs in this process, joined by a ring port. Each engine has a client on either HCA, and
 * these two have an RC queue pair each, connected. A client's structures (queues, doorbells, records)
 * are driven directly: no client library, no daemon; other threads are the caller's.
 */
#include <stdbool.h>
#include <stdint.h>
#include "hca/hca.h"
#include "host-abi/cqe.h"
#include "host-abi/doorbell.h"
#include "host-abi/wqe.h"

struct ceu;
struct port;

enum {
	RIG_SLOTS = 1024,    /* WQEs of each queue */
	RIG_WQE_BYTES = 128, /* stride of the send queue */
	RIG_RQ_STRIDE = 64,
	RIG_CQ_LOG = 12,
	RIG_DATA_BYTES = 1 << 20,
	RIG_ENGINES_MAX = 2,
};

/* What a client shares, and where it is in its queues. */
struct rig_client {
	struct client_page *page;
	uint8_t *sq, *rq;
	struct qp_record *record;
	struct cqe *cq;
	struct cq_record *cq_record;
	uint8_t *data;				      /* out: first half, in: second half */
	uint32_t doorbells, posted, received, polled; /* free running */
	uint32_t qpn, cqn, key;
};

struct rig_side {
	struct hca *hca;
	struct ceu *ceu;
	struct port *port;
	struct rig_client client[RIG_ENGINES_MAX]; /* of each engine */
	uint8_t mac[6], ip[16];
};

struct rig {
	struct rig_side side[2]; /* 0: requester, 1: responder */
	struct rte_mempool *packets, *descriptors, *clones;
};

struct rig_options {
	enum congestion_control cc; /* of the queue pairs */
	unsigned engines;	    /* of each HCA; 0: one */
	bool spread;		    /* the stages of an HCA run on several lcores */
};

/* EAL is up. 0, or -1 with the reason on stderr. Nothing is freed: the process ends with it. */
int rig_create(struct rig *r, const struct rig_options *o);

/*
 * Posts n messages of that engine's client of side 0 (USER_RDMA_WRITE, USER_SEND, USER_RDMA_READ,
 * USER_ATOMIC_FA): chains of `list` descriptors, a doorbell for each chain, the last of each chain
 * signaled; for SENDs receives at side 1 as well. Short WRITEs and SENDs are not inline.
 */
void rig_post(struct rig *r, unsigned engine, enum user_opcode opcode, uint32_t bytes, unsigned n,
	      unsigned list);

/*
 * Takes the completions of that engine's client of one side. Returns messages completed: on side 0 according to the offsets
 * of the descriptors, on side 1 receives; -1: one failed (reported on stderr).
 */
int rig_poll(struct rig *r, unsigned engine, unsigned side);

#endif
