/* SPDX-License-Identifier: BSD-3-Clause */
/* The header_parse stage: transmit, then receive. */
#include "header_parser.h"
#include "link/link.h"
#include "pipeline/module_run.h"
#include "tx_arbiter.h"

int link_create(struct engine *e)
{
	int err = txa_create(e);

	return err ? err : hp_create(e);
}

void link_destroy(struct engine *e)
{
	hp_destroy(e);
	txa_destroy(e);
}

unsigned header_parse_poll(struct engine *e)
{
	unsigned n = module_run(e, MODULE_TXA, txa_poll);

	return n + module_run(e, MODULE_HP, hp_poll);
}
