/* SPDX-License-Identifier: BSD-3-Clause */
/* The doorbell_wqe stage: its modules in the order in which a descriptor passes them. */
#include "send_queue_priv.h"

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
	unsigned n = dbp_poll(e);

	n += ws_poll(e);
	n += wp_poll(e);
	return n + dp_poll(e);
}
