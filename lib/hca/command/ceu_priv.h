/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CEU_PRIV_H
#define CEU_PRIV_H
/* What the files of the CEU share. */
#include "command/ceu.h"

enum {
	CEU_WAIT_MAX = 10000, /* most quiescent states that a module needs to release a QP */
};

/* Progress of a QP's removal, during which it is in ceu.leaving. */
enum leaving { QP_NOT_LEAVING, QP_UNLISTED, QP_NOTIFIED };

struct ceu {
	struct ceu_config config;
	struct cc_rules cc_rules;
	struct control_qp_attr *shadow; /* by QP index: attributes as they were set, for QUERY_QP */
	uint32_t *leaving;		/* indices of QPs that some module still holds */
	uint8_t *busy;			/* by QP index: enum leaving */
	uint32_t leaving_count;
	uint64_t lives;		  /* of queue pairs, begun so far */
	struct ceu_init_hca init; /* while up */
	bool up;		  /* from INIT_HCA to CLOSE_HCA */
	bool may_trim;		  /* some chunk of contexts has come out of use */
	bool batch;
	bool settle_due; /* something was removed in this batch: quiesce at its end */
};

/* Waits for the data path, now or at the end of the batch. */
void ceu_settle(struct ceu *ceu);

/* The status for a table's answer: 0, -EINVAL; anything else: CEU_BAD_SYS_STATE. */
enum ceu_status ceu_status_of(int err);

/* The commands: ceu_exec()'s contract; the mailbox has its size. */
#define COMMAND(NAME, opcode, run, when) enum ceu_status run(struct ceu *ceu, uint32_t modifier);
#define COMMAND_IN(NAME, opcode, run, type, when)                                                  \
	enum ceu_status run(struct ceu *ceu, uint32_t modifier, const struct type *in);
#define COMMAND_OUT(NAME, opcode, run, type, when)                                                 \
	enum ceu_status run(struct ceu *ceu, uint32_t modifier, struct type *out);
#include "command/commands.def"
/* MODIFY_QP by that opcode, which leads to state `to`; in: NULL if there is no mailbox. */
enum ceu_status ceu_qp_modify(struct ceu *ceu, uint16_t op, enum qp_state to, uint32_t qpn,
			      const struct ceu_modify *in);

/* qp_migration.c: enum control_mig_state of the QP. */
uint32_t ceu_migration_state(const struct qp *q);
/* May the QP be in that state of migration when it enters `to`? REARM: from MIGRATED, with an
 * alternate path, into RTS. MIGRATED: from ARMED. Or it is in that state already. */
bool ceu_migration_ok(const struct qp *q, enum qp_state to, const struct control_qp_attr *a);
/* Does nothing if the QP has migrated meanwhile. */
void ceu_migration_set(struct ceu *ceu, struct qp *q, uint32_t to);
/* If the QP has migrated, QUERY_QP's path attributes become those of the alternate path. */
void ceu_migration_follow(struct ceu *ceu, const struct qp *q);

/* Unmaps all chunks of a table, none of whose contexts is in use. */
void ceu_icm_close(struct ceu *ceu, enum ceu_context kind);
/* Where contexts of that kind lie; NULL: there are none. */
struct icm *ceu_area(const struct ceu *ceu, enum ceu_context kind);
/* A context is no longer used: icm_leave(). */
void ceu_context_leave(struct ceu *ceu, enum ceu_context kind, uint32_t index);
/* VirtToPhys's part of INIT_HCA, CLOSE_HCA, and of MAP_ICM and UNMAP_ICM for TPT chunks. Only the
 * mailbox's size has been checked; `count` is the modifier's. CLOSE_HCA: BAD_SYS_STATE while an
 * MPT entry is in use. */
enum ceu_status ceu_tpt_init(struct ceu *ceu, const struct ceu_init_hca *in);
enum ceu_status ceu_tpt_close(struct ceu *ceu);
enum ceu_status ceu_tpt_map(struct ceu *ceu, uint32_t count, const struct ceu_map_icm *in);
enum ceu_status ceu_tpt_unmap(struct ceu *ceu, const struct ceu_unmap_icm *in);
/* The SRQ of that number, or NULL. */
struct srq *ceu_srq_find(const struct ceu *ceu, uint32_t srqn);
/* Can entries of that stride hold receive descriptors? */
bool ceu_receive_ring_ok(uint32_t entries, uint32_t stride);
/* Asks every module to release a QP whose number was cleared, after every lcore has polled. */
void ceu_qp_notify(struct ceu *ceu, struct qp *q);
/* While QPs leave, modules that hold something of them run even if they are paused (stepping.h). */
void ceu_set_releasing(struct ceu *ceu, bool releasing);
/* Has every module released that QP? If so, clears their fields. */
bool ceu_qp_left(struct ceu *ceu, struct qp *q);

#endif
