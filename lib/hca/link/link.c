/* SPDX-License-Identifier: BSD-3-Clause */
/* The header_parse stage: transmit, then receive. */
#include "link_priv.h"

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
	unsigned n = txa_poll(e);

	return n + hp_poll(e);
}
