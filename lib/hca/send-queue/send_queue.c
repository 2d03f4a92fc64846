/* SPDX-License-Identifier: BSD-3-Clause */
/* The doorbell_wqe stage: its modules in the order in which a descriptor passes them. */
#include "pipeline/module_run.h"
#include "data_pack.h"
#include "doorbell_processing.h"
#include "send-queue/send_queue.h"
#include "wqe_parse.h"
#include "wqe_scheduler.h"

int send_queue_create(struct engine *e)
{
	int err = dbp_create(e);

	if (!err)
		err = ws_create(e);
	if (!err)
		err = wp_create(e);
	return err;
}

void send_queue_destroy(struct engine *e)
{
	wp_destroy(e);
	ws_destroy(e);
	dbp_destroy(e);
}

unsigned doorbell_wqe_poll(struct engine *e)
{
	unsigned n = module_run(e, MODULE_DBP, dbp_poll), parsed = 0, more;

	/* A queue pair has one chain with WQEParse at a time: a burst may take several turns. */
	do {
		n += module_run(e, MODULE_WS, ws_poll);
		more = module_run(e, MODULE_WP, wp_poll);
		parsed += more;
	} while (more && parsed < BURST && ws_has_work(e));
	return n + parsed + module_run(e, MODULE_DP, dp_poll);
}
