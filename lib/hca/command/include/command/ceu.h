/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMAND_CEU_H
#define COMMAND_CEU_H
/*
 * The CEU, the command execution unit: the one way in which contexts and the TPT change. Its
 * callers (the control socket, tests) hand it what the hardware reads from a mailbox.
 *
 * Control thread only; not reentrant. Parameters in a mailbox may come from a client: they are
 * checked here (attributes, transitions, ranges), addresses in the daemon come from the caller and
 * are trusted. Commands that take something away return when no lcore can still hold it.
 *
 * Formats: doc/formats.md#commands, doc/formats.md#queue-pair-context.
 */
#include <stdbool.h>
#include <stdint.h>
#include "completion/completion.h"
#include "congestion/rules.h"
#include "context/multicast.h"
#include "context/qp_context.h"
#include "context/srq.h"
#include "host-abi/control.h"
#include "virt-to-phys/v2p.h"

/* Opcodes of the command interface; commands.def says what each takes and does. */
enum ceu_op {
#define COMMAND(NAME, opcode, run, when)	  CEU_##NAME = opcode,
#define COMMAND_IN(NAME, opcode, run, in, when)	  CEU_##NAME = opcode,
#define COMMAND_OUT(NAME, opcode, run, out, when) CEU_##NAME = opcode,
#define COMMAND_MODIFY(NAME, opcode, to, mailbox) CEU_##NAME = opcode,
#include "command/commands.def"
};

enum ceu_status {
	CEU_OK = 0x00,
	CEU_BAD_OP = 0x02,	  /* unknown */
	CEU_BAD_PARAM = 0x03,	  /* mailbox or modifier */
	CEU_BAD_SYS_STATE = 0x04, /* the object is not in the state that the command needs */
	CEU_BAD_NVMEM = 0x05,	  /* here: the daemon has no memory for contexts */
};

/* SW2HW_QP: the constant properties of a QP. The memory stays mapped until HW2SW_QP returns. */
struct ceu_qp {
	uint8_t service; /* enum qp_service */
	uint8_t sq_signal_all;
	uint16_t client;
	uint16_t engine; /* < engine_count */
	uint16_t user;	 /* of the client, < USERS_MAX */
	uint32_t pd;
	uint32_t cqn_snd, cqn_rcv;
	uint8_t *sq;
	uint32_t sq_bytes; /* multiple of 64, not 0 */
	uint32_t rq_stride;
	uint8_t *rq;	     /* NULL: none */
	uint32_t rq_entries; /* power of two; 0 if rq is NULL */
	struct qp_record *record;
	uint32_t srqn; /* of the same client and engine, rq is NULL then; 0: receives come from rq
			*/
};

/* SW2HW_SRQ. The memory stays mapped until HW2SW_SRQ returns. */
struct ceu_srq {
	uint32_t pd; /* of the local keys in its descriptors */
	uint16_t client;
	uint16_t engine;  /* of all QPs that receive through it; < engine_count */
	uint32_t entries; /* power of two */
	uint32_t stride;  /* bytes, as a receive queue's */
	uint8_t *ring;
	struct srq_record *record;
};

/* ARM_SRQ: raises an event when fewer descriptors are left, possibly at once; 0: none. */
struct ceu_srq_limit {
	uint32_t limit; /* <= entries */
};

/* What a path needs beside the client's attributes; resolved by the caller. Read only with
 * QP_ATTR_AV and, for the source, in RST2INIT of a UD QP. */
struct ceu_path {
	uint8_t dst_mac[6], src_mac[6];
	bool has_vlan;
	uint16_t vlan_tci;
	uint8_t src_ip[16]; /* the GID at gid_index of the address */
};

/* MODIFY_QP. attr.state is ignored: the opcode gives the new state. */
struct ceu_modify {
	struct control_qp_attr attr;
	struct ceu_path path;
	struct ceu_path alternate; /* with QP_ATTR_ALT_PATH */
};

/* INIT_HCA: where in the ICM's virtual address space each kind of context begins (multiples of
 * CEU_ICM_CHUNK_BYTES), and how many there are, as logarithms. The contexts' part and the TPT's are
 * two spaces. */
struct ceu_init_hca {
	uint64_t qpc_base, srqc_base, cqc_base;
	uint64_t mpt_base, mtt_base;
	uint8_t log_qps, log_srqs, log_cqs, log_mpts, log_mtts;
	uint8_t reserved[3];
};

enum {
	CEU_ICM_CHUNK_BYTES = ICM_CHUNK_BYTES,
	CEU_ICM_PAGES = ICM_CHUNK_PAGES, /* of 4 KiB in a chunk */
	CEU_ICM_MAPS_MAX = 64,
};

/* Op modifier of MAP_ICM and UNMAP_ICM, here in the uppermost bits of the modifier. */
#define CEU_ICM_CONTEXTS (1u << 24)
#define CEU_ICM_TPT	 (2u << 24)

/* MAP_ICM. The CEU chooses the physical page: a table is one array in the daemon, so its memory
 * comes from where the table lies. */
struct ceu_map_icm {
	struct {
		uint64_t virt; /* multiple of CEU_ICM_CHUNK_BYTES */
		uint64_t page; /* 63:12: 0; 11:0: pages, CEU_ICM_PAGES */
	} chunk[CEU_ICM_MAPS_MAX];
};

/* UNMAP_ICM. */
struct ceu_unmap_icm {
	uint64_t virt;	/* multiple of CEU_ICM_CHUNK_BYTES */
	uint32_t pages; /* multiple of CEU_ICM_PAGES */
	uint32_t reserved;
};

struct ceu_multicast {
	uint8_t mgid[16]; /* ff00::/8, or v4-mapped 224.0.0.0/4 */
};

enum { CEU_MTT_MAX = 512 };

/* WRITE_MTT: daemon addresses of pages, multiples of 4 KiB; 0: no page there. */
struct ceu_write_mtt {
	uint64_t first; /* index of the first entry */
	uint64_t page[CEU_MTT_MAX];
};

struct ceu_cq {
	uint32_t client;
	uint32_t log_entries;
	struct cqe *buffer;
	struct cq_record *record;
};

/* RESIZE_CQ: see cq_resize(). The CQ keeps its record. When the command returns, nothing touches
 * the old buffer any more. */
struct ceu_resize_cq {
	uint32_t log_entries;
	uint32_t reserved;
	struct cqe *buffer;
};

/* MAP_EQ: bits 1 << enum eqe_type. Completion events need no mapping: a CQ names its EQ. */
struct ceu_event_mask {
	uint64_t types;
};
#define CEU_EVENTS_ALL                                                                             \
	(1u << EQE_COMM_EST | 1u << EQE_SQ_DRAINED | 1u << EQE_CQ_ERROR |                          \
	 1u << EQE_WQ_CATAS_ERROR | 1u << EQE_LOCAL_CATAS_ERROR | 1u << EQE_PORT_CHANGE |          \
	 1u << EQE_WQ_INVAL_REQ_ERROR | 1u << EQE_WQ_ACCESS_ERROR | 1u << EQE_SRQ_ERROR |          \
	 1u << EQE_LAST_WQE | 1u << EQE_SRQ_LIMIT | 1u << EQE_GID_CHANGE | 1u << EQE_PATH_MIG |    \
	 1u << EQE_PATH_MIG_ERR)

struct ceu_eq {
	struct client_page *page;
	int eventfd; /* stays the caller's */
};

struct ceu_dev_lim {
	uint32_t log_max_qps, log_max_srqs, log_max_cqs, log_max_eqs, log_max_mpts, log_max_mtts;
	uint32_t max_sg, max_rd_atomic;
	uint32_t max_mtu; /* 5 = 4096 */
	uint32_t log_min_page;
};

struct ceu_adapter {
	char board_id[16];
};

/* How the CEU waits for the data path. */
struct ceu_hooks {
	void *ctx;
	/* Returns once every lcore has finished the poll it was in and begun another, or is not
	 * running. NULL: no stage polls, none holds anything. */
	void (*quiesce)(void *ctx);
};

/* The tables that it writes; all stay the caller's. */
struct ceu_config {
	struct qp_table *qps;
	struct srq_table *srqs;		   /* NULL: there are no SRQs */
	struct multicast_table *multicast; /* NULL: there are no groups */
	struct v2p *v2p;
	struct completion *completion;
	struct engine *engines;
	unsigned int engine_count;
	struct counters *counters; /* the control thread's */
	uint8_t mtu_code_max;	   /* 1..5; 0: 5 */
	struct ceu_hooks hooks;
};

struct ceu;

/* 0, -ENOMEM, -EINVAL (a table is missing). */
int ceu_create(const struct ceu_config *config, struct ceu **out);
/* Frees the unit; the tables keep what they hold. NULL is allowed. */
void ceu_destroy(struct ceu *ceu);
/* Sets the rules that choose the congestion control of connected QPs, existing ones included. Also
 * to be called when the setting `cc` has changed. */
void ceu_set_cc_rules(struct ceu *ceu, const struct cc_rules *rules);
/* Sets the port's largest path MTU, which may change with its link. */
void ceu_set_mtu_max(struct ceu *ceu, uint8_t mtu_code);

/*
 * Executes one command. `in` and `out` must have exactly the size of the command's mailbox
 * structure (0 and NULL where it has none). Returns CEU_OK, or why the command failed; then nothing
 * has changed.
 */
enum ceu_status ceu_exec(struct ceu *ceu, uint16_t op, uint32_t modifier, const void *in,
			 uint32_t in_bytes, void *out, uint32_t out_bytes);

/* A driver's first command: INIT_HCA with everything that QUERY_DEV_LIM allows. */
enum ceu_status ceu_start(struct ceu *ceu);

/* To be called before a context is created: MAP_ICM of the chunks that contain the number, unless
 * they are mapped; SW2HW_* refuses contexts without memory with BAD_SYS_STATE. */
enum ceu_context { CEU_CONTEXT_QP, CEU_CONTEXT_SRQ, CEU_CONTEXT_CQ, CEU_CONTEXTS };
enum ceu_status ceu_map_context(struct ceu *ceu, enum ceu_context kind, uint32_t number);

/* To be called periodically: UNMAP_ICM of chunks without used numbers, except one of each kind.
 * Waits for the data path if there are any. Returns the number unmapped. */
uint32_t ceu_trim_contexts(struct ceu *ceu);

/*
 * Between these two, commands that remove something (HW2SW_*, unmap) return at once;
 * ceu_batch_end() waits once for all of them. Until it returns, nothing that they held may be
 * reused or unmapped. Not nested.
 */
void ceu_batch_begin(struct ceu *ceu);
void ceu_batch_end(struct ceu *ceu);

/* Waits until every lcore has polled. */
void ceu_quiesce(struct ceu *ceu);

/*
 * Checks QPs removed by HW2SW_QP that some module has not released yet (struct qp, closed). Until
 * all have, SW2HW_QP of the index is refused with BAD_SYS_STATE. To be called periodically. Returns
 * the number still waiting.
 */
uint32_t ceu_tidy(struct ceu *ceu);
/* The result of the last call. */
uint32_t ceu_leaving(const struct ceu *ceu);

/* The opcode that moves a QP from one state to another; CEU_BAD_TRANSITION if none does. */
#define CEU_BAD_TRANSITION (-1)
int ceu_modify_op(enum qp_state from, enum qp_state to);

/* The status as -errno: 0, -EOPNOTSUPP, -EINVAL, -EBUSY, -ENOMEM. */
int ceu_errno(enum ceu_status status);

/* One row of the table of transitions: what ibv_modify_qp() requires and allows for the service. */
struct ceu_transition {
	uint8_t from, to;	     /* enum qp_state */
	uint8_t op;		     /* enum ceu_op */
	uint8_t services;	     /* bit 1 << enum qp_service */
	uint32_t required, optional; /* enum qp_attr_mask; QP_ATTR_STATE is always allowed */
};
/* The row, or NULL: there is no such transition for that service. Read only, static. */
const struct ceu_transition *ceu_transition_find(enum qp_state from, enum qp_state to,
						 enum qp_service service);

/*
 * The peer of this queue pair announced, when they connected, that its receive queue gives no
 * end-to-end credits: the queue pair sends without limit (C9-153) until it is reset.
 */
void ceu_peer_gives_no_credits(struct ceu *ceu, uint32_t qpn);

/*
 * Enhanced connection establishment: what a queue pair offers beyond the standard; once
 * ceu_qp_agree() was called in RST or INIT, and in all later states, what was agreed. Bits of enum
 * qp_agreed. 0: nothing.
 */
uint8_t ceu_qp_offers(struct ceu *ceu, uint32_t qpn);
/* The peer has these features: those that both have are agreed until the queue pair is reset. In
 * RST and INIT only. CEU_OK, CEU_BAD_PARAM, CEU_BAD_SYS_STATE. */
enum ceu_status ceu_qp_agree(struct ceu *ceu, uint32_t qpn, uint8_t features);

#endif
