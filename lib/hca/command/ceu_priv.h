/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CEU_PRIV_H
#define CEU_PRIV_H
/* What the files of the CEU share. */
#include "command/ceu.h"

enum {
	CEU_WAIT_MAX = 10000, /* quiescent states that a module may need to let go of a QP */
};

/* A QP on its way out; then it is in ceu.leaving. */
enum leaving { QP_NOT_LEAVING, QP_GIVEN_UP, QP_TOLD };

struct ceu {
	struct ceu_config config;
	struct control_qp_attr *shadow; /* by QP index: attributes as they were set, for QUERY_QP */
	uint32_t *leaving;		/* indices of QPs that some module still holds */
	uint8_t *busy;			/* by QP index: enum leaving */
	uint32_t leaving_count;
	struct ceu_init_hca init; /* while up */
	bool up;		  /* from INIT_HCA to CLOSE_HCA */
	bool may_trim;		  /* some chunk of contexts has come out of use */
	bool batch;
	bool owed; /* something was taken away in this batch: quiesce at its end */
};

/* Waits for the data path, now or at the end of the batch. */
void ceu_settle(struct ceu *ceu);

/* The same as a table's answer: 0, -EINVAL, else the state. */
enum ceu_status ceu_status_of(int err);

/* QUERY_DEV_LIM, QUERY_ADAPTER: ceu_exec()'s contract, as of all commands below. */
enum ceu_status ceu_query_dev_lim(const struct ceu *ceu, struct ceu_dev_lim *out);
enum ceu_status ceu_query_adapter(struct ceu_adapter *out);
/* INIT_HCA, CLOSE_HCA. */
enum ceu_status ceu_hca_init(struct ceu *ceu, const struct ceu_init_hca *in);
enum ceu_status ceu_hca_close(struct ceu *ceu);
/* MAP_ICM, UNMAP_ICM of chunks of contexts. */
enum ceu_status ceu_icm_map(struct ceu *ceu, uint32_t count, const struct ceu_map_icm *in);
enum ceu_status ceu_icm_unmap(struct ceu *ceu, const struct ceu_unmap_icm *in);
/* Gives back all chunks of a table, none of whose contexts is in use. */
void ceu_icm_close(struct ceu *ceu, enum ceu_context kind);
/* Where contexts of that kind lie; NULL: there are none. */
struct icm *ceu_area(const struct ceu *ceu, enum ceu_context kind);
/* A context goes out of use: icm_leave(). */
void ceu_context_leave(struct ceu *ceu, enum ceu_context kind, uint32_t index);
/* SW2HW_MPT, HW2SW_MPT. */
enum ceu_status ceu_mpt_make(struct ceu *ceu, uint32_t index, const struct mpt_entry *entry);
enum ceu_status ceu_mpt_free(struct ceu *ceu, uint32_t key);
enum ceu_status ceu_mtt_write(struct ceu *ceu, uint32_t count, const struct ceu_write_mtt *in);
/* What VirtToPhys has to do with INIT_HCA, CLOSE_HCA, and MAP_ICM and UNMAP_ICM of TPT chunks. The
 * mailbox's size was checked, nothing else; `count` is the modifier's. CLOSE_HCA: BAD_SYS_STATE
 * while an MPT entry is in use. */
enum ceu_status ceu_tpt_init(struct ceu *ceu, const struct ceu_init_hca *in);
enum ceu_status ceu_tpt_close(struct ceu *ceu);
enum ceu_status ceu_icm_map_tpt(struct ceu *ceu, uint32_t count, const struct ceu_map_icm *in);
enum ceu_status ceu_icm_unmap_tpt(struct ceu *ceu, const struct ceu_unmap_icm *in);
/* SW2HW_CQ, HW2SW_CQ, RESIZE_CQ. */
enum ceu_status ceu_cq_make(struct ceu *ceu, uint32_t cqn, const struct ceu_cq *in);
enum ceu_status ceu_cq_free(struct ceu *ceu, uint32_t cqn);
enum ceu_status ceu_cq_resize(struct ceu *ceu, uint32_t cqn, const struct ceu_resize_cq *in);
/* SW2HW_EQ, HW2SW_EQ, MAP_EQ. */
enum ceu_status ceu_eq_make(struct ceu *ceu, uint32_t eqn, const struct ceu_eq *in);
enum ceu_status ceu_eq_free(struct ceu *ceu, uint32_t eqn);
enum ceu_status ceu_eq_map(struct ceu *ceu, uint32_t modifier, const struct ceu_event_mask *in);
/* SW2HW_QP, HW2SW_QP, MODIFY_QP, QUERY_QP. */
enum ceu_status ceu_qp_make(struct ceu *ceu, uint32_t qpn, const struct ceu_qp *in);
enum ceu_status ceu_qp_free(struct ceu *ceu, uint32_t qpn);
enum ceu_status ceu_qp_modify(struct ceu *ceu, uint16_t op, uint32_t qpn,
			      const struct ceu_modify *in);
enum ceu_status ceu_qp_query(struct ceu *ceu, uint32_t qpn, struct control_qp_attr *out);
/* SW2HW_SRQ, HW2SW_SRQ, ARM_SRQ, QUERY_SRQ. */
enum ceu_status ceu_srq_make(struct ceu *ceu, uint32_t srqn, const struct ceu_srq *in);
enum ceu_status ceu_srq_free(struct ceu *ceu, uint32_t srqn);
enum ceu_status ceu_srq_arm(struct ceu *ceu, uint32_t srqn, const struct ceu_srq_limit *in);
enum ceu_status ceu_srq_query(struct ceu *ceu, uint32_t srqn, struct control_srq_attr *out);
/* ATTACH_MGM, DETACH_MGM. */
enum ceu_status ceu_group_attach(struct ceu *ceu, uint32_t qpn, const struct ceu_multicast *in);
enum ceu_status ceu_group_detach(struct ceu *ceu, uint32_t qpn, const struct ceu_multicast *in);
/* The SRQ of that number, or NULL. */
struct srq *ceu_srq_find(const struct ceu *ceu, uint32_t srqn);
/* Can entries of that stride hold receive descriptors? */
bool ceu_receive_ring_ok(uint32_t entries, uint32_t stride);
/* Waits until every lcore has polled. */
void ceu_quiesce(struct ceu *ceu);
/* Tells every module to let go of a QP that was given up, after every lcore has polled. */
void ceu_qp_tell(struct ceu *ceu, struct qp *q);
/* Has every module let go of a QP that was given up? Then clears their fields. */
bool ceu_qp_left(struct ceu *ceu, struct qp *q);

#endif
