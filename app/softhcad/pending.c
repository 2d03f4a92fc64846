/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon.h"
#include "pending.h"

unsigned pending_section_from(const struct daemon *d, unsigned i)
{
	while (i < d->config.hcas && (d->config.hca[i].removed || d->devices[i].section))
		i++;
	return i;
}

bool pending_additions(const struct daemon *d)
{
	FOR_EACH_DEVICE (i, d)
		if (d->devices[i].arrives)
			return true;
	return pending_section_from(d, 0) < d->config.hcas;
}

bool pending_removals(const struct daemon *d)
{
	FOR_EACH_DEVICE (i, d)
		if (d->devices[i].leaves)
			return true;
	return false;
}

bool pending_changes(const struct daemon *d)
{
	return pending_additions(d) || pending_removals(d);
}
