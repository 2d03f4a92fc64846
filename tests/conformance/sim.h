/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFORMANCE_SIM_H
#define CONFORMANCE_SIM_H
/*
 * Two whole HCAs, or more, a simulated wire or network between them, virtual time; and a client of
 * each that writes descriptors into memory as a real one does. Deterministic: the same seed gives
 * the same run. No sockets, no threads, no sleep.
 */
#include "command/ceu.h"
#include "hca/hca.h"
#include "host-abi/cqe.h"
#include "host-abi/doorbell.h"
#include "host-abi/wqe.h"
#include "link/link_port.h"
#include "pipeline/message.h"
#include "sim_network.h"

enum {
	SIM_NODES_MAX = 32,
	SIM_QPS = 8,	    /* that the helpers of these tests use */
	SIM_QPS_MAX = 1200, /* that a node may have */
	SIM_SQ_ENTRIES = 512,
	SIM_RQ_ENTRIES = 512,
	SIM_SRQ_ENTRIES = 64,
	SIM_CQ_LOG = 10,
	SIM_STRIDE = 128,
	SIM_RQ_STRIDE = 64,
	SIM_FOLD = 8 << 20
};

/* Faults of the wire, decided per frame by a seeded generator; probabilities per million. */
struct sim_faults {
	uint32_t loss_ppm, duplicate_ppm, reorder_ppm, corrupt_ppm;
	uint64_t drop_mask;   /* bit i: drop the i-th frame that leaves node 0 (first 64) */
	uint64_t drop_mask_b; /* the same for node 1 */
	uint32_t delay_ns;    /* reordered and duplicated frames come up to this much later; 0: 20
				 us */
	uint32_t most_lost;   /* 0: any number; else no more than this many are lost, corrupted, or
				 so late that a Loss timer of 1 ms takes them for lost */
};

struct sim_frame {
	struct rte_mbuf *m;
	uint64_t at_ns;
};

#define SIM_WIRE_FRAMES 4096
struct sim_wire_end {
	struct link_port port;
	struct sim *sim;
	int node;
	struct sim_frame queue[SIM_WIRE_FRAMES]; /* frames on their way to this node */
	unsigned count;
	uint64_t sent; /* frames that left this node */
};

struct sim_qp {
	uint32_t qpn, psn;
	uint8_t *sq, *rq;
	struct qp_record *record;
	uint32_t posted, rq_posted;
};

/* A shared receive queue. Tags are never used twice. */
struct sim_srq {
	uint32_t srqn; /* 0: none */
	uint8_t *ring;
	struct srq_record *record;
	uint32_t posted;
};

struct sim_node {
	struct hca *hca; /* NULL: a test acts as this node */
	struct ceu *ceu;
	struct client_page *page;
	uint32_t doorbells;
	struct client_page *other_page; /* of the second client: sim_params.own */
	uint32_t other_doorbells;
	uint8_t *memory; /* one region: the client's data */
	uint8_t *pages;	 /* sim_params.paged: the same pages, as the HCA has them */
	uint64_t memory_bytes;
	uint64_t va;  /* address of its first byte for descriptors and peers */
	uint32_t key; /* of all of it, every right */
	void *mapped; /* sim_map() */
	uint64_t mapped_bytes;
	struct cqe *cq;
	struct cq_record *cq_record;
	uint32_t cqn, cq_taken;
	struct sim_srq srq;
	struct sim_qp qp[SIM_QPS_MAX];
	uint8_t ip[16];
};

/* A node's numbers; NULL: the simulation chooses. QP i has the number qpn + i. */
struct sim_identity {
	uint32_t qpn, psn, key; /* psn: the first that it sends */
	uint64_t va;		/* of the first byte of its memory */
	uint8_t ip[16];
};

/* A connection between two nodes. */
struct sim_flow {
	uint8_t from, to;
};

struct sim_params {
	uint8_t service; /* enum qp_service */
	uint8_t mtu;	 /* 1..5 */
	uint8_t traffic_class, sl;
	uint16_t vlan; /* 0: none */
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer, max_rd_atomic;
	uint8_t alternate_timeout; /* of the alternate path, between sim_alternate_ip() of both */
	uint8_t mig_state;	   /* enum control_mig_state, for QP_ATTR_PATH_MIG_STATE */
	uint32_t psn;		   /* initial PSN of every QP */
	uint32_t qkey;		   /* of every UD QP; 0: 0x11111111 */
	unsigned qps;
	unsigned own; /* QPs from this one on are a second client's, of another user; 0: none */
	uint64_t memory_bytes;
	uint64_t seed;
	bool no_credits;
	bool ipv6;
	bool srq;	 /* all QPs of a node receive through one SRQ */
	uint16_t access; /* rights of the peer: enum access_flags */
	bool paged; /* the regions are pages of 4 KiB, which lie in another order for the HCA */
	bool busy;  /* at times another lcore holds what their translation needs */
	bool payload_refs; /* as between ring ports: frames refer to their payload, and have no ICRC */
	bool singly; /* with payload_refs: as over a driver, which reads the payload; no trains */
	bool icrcs;  /* with payload_refs: they have one */
	bool whole_trains; /* the wire keeps trains whole: its faults hit all packets of one */
	bool equal;	   /* the peers have agreed on selective repeat */
	bool alone;	   /* node 0 only: rig.h speaks for node 1 */
	unsigned packets;  /* packet buffers; 0: enough */
	unsigned clones;   /* buffers that refer to others; 0: packet buffers serve */
	uint32_t descriptor_share;	  /* hca_config.descriptor_share */
	struct engine_settings *settings; /* NULL: defaults */
	const struct sim_identity *identity[2];
	unsigned nodes; /* 0: two; more need flows, and a network */
	/* For each i < qps which two nodes have a QP i, joined to each other; NULL: both of two.
	 * Stays the caller's. */
	const struct sim_flow *flows;
	const struct sim_network_config *network; /* NULL: a wire without a rate */
};
#define SIM_PARAMS_DEFAULT                                                                         \
	{                                                                                          \
		.service = SERVICE_RC, .mtu = 3, .timeout = 8, .alternate_timeout = 8,             \
		.mig_state = CONTROL_MIG_REARM, .retry_cnt = 7, .rnr_retry = 7,                    \
		.min_rnr_timer = 1, .max_rd_atomic = 16, .psn = 0x100, .qps = 1,                   \
		.memory_bytes = 4 << 20, .seed = 1, .access = 0xe,                                 \
	}

struct sim {
	struct sim_params params; /* used by later sim_modify() calls; tests may change it */
	uint64_t now_ns, polled_ns;
	uint64_t stolen_ns; /* since polled_ns; sim_steal() */
	unsigned
		wire_room; /* frames that may be in flight to a node; the port takes no more. 0: any
			       number */
	uint64_t step_ns;  /* time of one step: 1 µs; a test that only waits may increase it */
	uint64_t rng;
	struct sim_faults faults;
	struct sim_network *net; /* NULL: none */
	uint32_t no_room;	 /* frames lost because the simulation had no place for them */
	uint32_t
		lost; /* frames lost, corrupted, much too late, since sim_create() or sim_reset() */
	struct rte_mempool *packets, *descriptors, *clones;
	unsigned nodes, qps; /* QPs of each node */
	struct sim_node *node;
	struct sim_wire_end *end;
	/* A test may inspect each frame that leaves `from`, before the faults; not NULL return: the
	 * frame is dropped. */
	bool (*tap)(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg);
	void *tap_arg;
};

/* Starts EAL once (no hugepages, no root), makes both sides and connects qp[i] with qp[i]. */
struct sim *sim_create(const struct sim_params *p);
void sim_destroy(struct sim *s);
/* The same two HCAs for another run: the first p->qps QPs go through RST and are reconnected as
 * *p says (service, sizes and the number of QPs stay as they are); the wire, the CQs, the event
 * queues and the frame numbers of the drop masks are reset, the generator starts with p->seed. The
 * simulation must be idle. */
void sim_reset(struct sim *s, const struct sim_params *p);

/*
 * Moves a QP to another state through the CEU, one transition, with the attributes that it requires
 * and those named in `optional` (enum qp_attr_mask), of s->params. Into RST its queues are empty
 * again.
 */
void sim_modify(struct sim *s, int node, unsigned qp, enum qp_state to, uint32_t optional);

/* A node's address on its alternate paths. */
void sim_alternate_ip(const struct sim *s, int node, uint8_t ip[16]);

/* Destroys a QP as it is and makes another one in its place, in RST, with another number. */
void sim_renew(struct sim *s, int node, unsigned qp);

/*
 * One more region of a node, every right, a multiple of SIM_FOLD bytes: address space in which
 * every SIM_FOLD bytes are the same memory. Returns where it begins, as an offset for
 * sim_sge.offset and sim_wr.remote; *key goes with it. Once for each node.
 */
uint64_t sim_map(struct sim *s, int node, uint64_t bytes, uint32_t *key);

/* A scatter-gather entry of a node's memory, by offset. */
struct sim_sge {
	uint64_t offset;
	uint32_t length;
	uint32_t key; /* 0: the node's own key */
};

struct sim_wr {
	uint8_t opcode; /* enum user_opcode */
	bool fence, unsignaled, solicited, is_inline;
	uint32_t imm;
	uint64_t remote; /* offset in the peer's memory */
	uint32_t rkey;	 /* 0: the peer's key */
	uint64_t swap_add, compare;
	struct sim_sge sge[4];
	unsigned sges;
	const void *units; /* of a local operation, behind the next unit; at most 112 bytes */
	unsigned unit_bytes;
	uint32_t ud_qpn, ud_qkey;
	uint8_t ud_traffic_class, ud_sl;
	const uint8_t *ud_group; /* 16 bytes; NULL: to the peer */
};

/* A request of one entry of memory; then other fields: SIM_WR(USER_RDMA_WRITE, 0, 100, .remote = 64). */
#define SIM_WR(operation, from, bytes, ...)                                                        \
	((struct sim_wr){.opcode = operation, .sge = {{from, bytes, 0}}, .sges = 1, __VA_ARGS__})

/* enum user_trait of each operation. */
static const uint8_t sim_traits[USER_OPCODES] = {
#define OPERATION(id, code, services, traits, packets, wr, wc, call) [USER_##id] = traits,
#include "host-abi/user_opcodes.def"
};

/* Posts one send request and rings. Returns the WQE's offset, which names it in its completion. */
uint32_t sim_post(struct sim *s, int node, unsigned qp, const struct sim_wr *wr);
/* Posts a receive of at most two entries. */
uint32_t sim_post_recv_list(struct sim *s, int node, unsigned qp, const struct sim_sge *sge,
			    unsigned sges);
/* Posts a receive of one entry (length 0: none). */
uint32_t sim_post_recv(struct sim *s, int node, unsigned qp, uint64_t offset, uint32_t length);

/* Posts a receive of one entry into the node's SRQ. Returns the tag that its completion will have
 * as wqe_offset. */
uint32_t sim_post_srq_recv(struct sim *s, int node, uint64_t offset, uint32_t length);

/* Next completion of that node, if there is one. */
bool sim_poll_cq(struct sim *s, int node, struct cqe *out);

/* Next event of that node's client, if there is one. */
bool sim_poll_event(struct sim *s, int node, struct eqe *out);

/* Lets time pass in steps of step_ns, polling both HCAs. */
void sim_run(struct sim *s, uint64_t ns);
/* That much time passes while others have the CPU: frames arrive, but are not polled. */
void sim_steal(struct sim *s, uint64_t ns);
/* The same until the next frame arrives or timer may expire, but no longer than `ns`. */
void sim_steal_to_due(struct sim *s, uint64_t ns);
/* One step; if nothing happens in it, time advances to the next event, at most to end_ns. False:
 * nothing is due any more, time stays. */
bool sim_advance(struct sim *s, uint64_t end_ns);
/* Advances until nothing is due. False: something still was after `ns`. */
bool sim_settle(struct sim *s, uint64_t ns);
/* Runs until that node has a completion, at most `ns`. False: none came. */
bool sim_wait(struct sim *s, int node, struct cqe *out, uint64_t ns);

struct qp *sim_context(struct sim *s, int node, unsigned qp);
uint64_t sim_counter(struct sim *s, int node, enum counter which);
void sim_print_counters(struct sim *s);
/* Are all buffers, timers and ring places back? Prints what is not. */
bool sim_quiet(struct sim *s);

uint64_t sim_random(struct sim *s);

/* A frame leaves node `from`: tap and faults, then it is on its way. */
void sim_wire_send(struct sim *s, int from, const uint8_t *frame, unsigned bytes);
/* One step of step_ns. Returns how many elements the HCAs handled. */
unsigned sim_step(struct sim *s);
extern const uint8_t sim_macs[SIM_NODES_MAX][6];

/* sim_wire.c, for sim.c: the port of a node; what the network has brought by now; when the next frame
 * arrives; how many are on their way; away with them. */
uint16_t sim_wire_tx(struct link_port *port, uint16_t queue, struct rte_mbuf **frames, uint16_t n);
uint16_t sim_wire_rx(struct link_port *port, uint16_t queue, struct rte_mbuf **frames, uint16_t n);
void sim_wire_arrive(struct sim *s);
uint64_t sim_wire_due(const struct sim *s);
unsigned sim_wire_count(const struct sim *s);
void sim_wire_empty(struct sim *s);

#endif
