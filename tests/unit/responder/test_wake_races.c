/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair fails while ExecutionEngine serves an earlier wake of it: in every order its receives
 * are flushed. */
#include "../intruder.h"

#define __atomic_load_n(...)	 (other_lcore(), __atomic_load_n(__VA_ARGS__))
#define __atomic_store_n(...)	 (other_lcore(), __atomic_store_n(__VA_ARGS__))
#define __atomic_exchange_n(...) (other_lcore(), __atomic_exchange_n(__VA_ARGS__))
#include "ee_error.c"
#undef __atomic_load_n
#undef __atomic_store_n
#undef __atomic_exchange_n
#include "responder_fixture.h"

enum { ORDERS_MAX = 100 };

static void qp_fails(void)
{
	qp_set_error(&fx->e, fx->qp);
}

TEST(ee_wakes__a_failure_in_the_middle)
{
	bool came_by = true;

	for (unsigned at = 0; came_by; at++) {
		assert_in_range(at, 0, ORDERS_MAX);
		fx_teardown(state);
		fx_setup(state);
		fx_post_simple(0, 100);
		wake_post(&fx->e.wake[WAKE_EE], &fx->qp->wake[WAKE_EE], fx->qp->index);
		intruder = qp_fails;
		intrude_at = at;
		ee_wakes(&fx->e);
		came_by = !intruder;
		intruder = NULL;
		if (!came_by)
			qp_fails();
		while (ee_wakes(&fx->e))
			;
		fx_assert_cqe(USER_INVALID, 0, SYNDROME_WR_FLUSH, 0);
		fx_assert_no_cqe();
	}
}
