/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SYSTEM_VERBS_LATER_H
#define TESTS_SYSTEM_VERBS_LATER_H
/* What the header of libibverbs 45 has and that of 44 has not, for programs that are written to the
 * later one: FLUSH. */
#include <infiniband/verbs.h>

enum { IBV_ACCESS_FLUSH_GLOBAL = 1 << 8, IBV_ACCESS_FLUSH_PERSISTENT = 1 << 9 };
enum { IBV_QP_EX_WITH_FLUSH = 1 << 11 };
enum { IBV_WC_FLUSH = 8 };
enum ibv_placement_type { IBV_FLUSH_GLOBAL = 1, IBV_FLUSH_PERSISTENT = 2 };
enum ibv_selectivity_level { IBV_FLUSH_RANGE = 0, IBV_FLUSH_MR = 1 };

/* There struct ibv_qp_ex ends in one more function. */
struct later_qp_ex {
	struct ibv_qp_ex ex;
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
			 uint8_t type, uint8_t level);
};

static inline void ibv_wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
				size_t len, uint8_t type, uint8_t level)
{
	((struct later_qp_ex *)qp)->wr_flush(qp, rkey, remote_addr, len, type, level);
}

#endif
