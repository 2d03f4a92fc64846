/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_RIG_H
#define STAGE_RIG_H
/*
 * Two whole HCAs in this process, joined by a ring port, with one RC queue pair on each, connected.
 * A client's structures (queues, doorbells, records) are driven directly: no client library, no
 * daemon, no other thread.
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
};

struct rig_side {
	struct hca *hca;
	struct ceu *ceu;
	struct port *port;
	struct rig_client client;
	uint8_t mac[6], ip[16];
	uint32_t qpn, cqn, key;
};

struct rig {
	struct rig_side side[2]; /* 0: requester, 1: responder */
	struct rte_mempool *packets, *descriptors, *clones;
};

/* EAL is up. Queue pairs are under congestion control `cc`. 0, or -1 with the reason on stderr. Nothing is freed: the process ends with it. */
int rig_create(struct rig *r, enum congestion_control cc);

/*
 * Posts n messages of side 0 (USER_RDMA_WRITE, USER_SEND, USER_RDMA_READ, USER_ATOMIC_FA): chains of
 * `list` descriptors, a doorbell for each chain, the last of each chain signaled; for SENDs receives
 * at side 1 as well. Short WRITEs and SENDs are not inline.
 */
void rig_post(struct rig *r, enum user_opcode opcode, uint32_t bytes, unsigned n, unsigned list);

/*
 * Takes the completions of one side. Returns messages completed: on side 0 according to the offsets
 * of the descriptors, on side 1 receives; -1: one failed (reported on stderr).
 */
int rig_poll(struct rig *r, unsigned side);

#endif
