/* SPDX-License-Identifier: BSD-3-Clause */
/* The header_parse stage: transmit, then receive. */
#include "header_parser.h"
#include "link/link.h"
#include "link/link_port.h"
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

/* For the requester, which does not see the port. */
static void pass_relinked(struct engine *e)
{
	uint32_t relinked = __atomic_load_n(&e->link->relinked, __ATOMIC_RELAXED);

	if (unlikely(relinked != __atomic_load_n(&e->relinked, __ATOMIC_RELAXED)))
		__atomic_store_n(&e->relinked, relinked, __ATOMIC_RELAXED);
}

/* Has the port sent frames of its own accord? That is work, too: their receiver may sleep. */
static unsigned note_sent_later(struct engine *e)
{
	uint32_t now = __atomic_load_n(&e->link->sent_later, __ATOMIC_RELAXED);

	if (likely(now == e->sent_later))
		return 0;
	e->sent_later = now;
	return 1;
}

unsigned header_parse_poll(struct engine *e)
{
	unsigned n;

	pass_relinked(e);
	n = module_run(e, MODULE_TXA, txa_poll);
	e->transmitted = n > 0;
	n += module_run(e, MODULE_HP, hp_poll);
	return n + note_sent_later(e);
}

unsigned link_transmit(struct engine *e)
{
	return e->transmitted ? 0 : module_run(e, MODULE_TXA, txa_poll);
}
