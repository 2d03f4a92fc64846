/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared resources for telemetry: the rows of shares.def, how much of each is held, by whom, and
 * the refusals. Changes nothing.
 */
#include <stdio.h>
#include "base/shares.h"
#include "daemon.h"
#include "limits_view.h"
#include "views.h"

enum { HOLDERS_LISTED_MAX = 64 }; /* an answer of telemetry has 16 KiB */

static const char *hca_name(const struct daemon *d, enum share row, unsigned hca)
{
	return share_rows[row].of_hca ? d->devices[hca].section->name : "";
}

static struct rte_tel_data *row_of(const struct share_info *it, const char *hca)
{
	struct rte_tel_data *to = dict_new();

	if (to) {
		SHARE_VIEW(PUT)
	}
	return to;
}

static void put_rows(const struct daemon *d, struct rte_tel_data *to)
{
	struct rte_tel_data *rows = dict_new();
	struct share_info info;
	uint32_t n = 0;

	for (unsigned row = 0; rows && row < SHARE_COUNT; row++) {
		for (unsigned hca = 0; hca < (share_rows[row].of_hca ? d->device_count : 1);
		     hca++) {
			shares_info(d->shares, row, hca, &info);
			dict_put_numbered(rows, n++, row_of(&info, hca_name(d, row, hca)));
		}
	}
	dict_put(to, "rows", rows);
}

static struct rte_tel_data *holder_of(const struct daemon *d, const struct share_holder *it)
{
	const char *hca = hca_name(d, it->row, it->hca);
	struct rte_tel_data *to = dict_new();
	char pid[16] = "all";

	if (it->pid)
		snprintf(pid, sizeof(pid), "%d", it->pid);
	if (to) {
		HOLDER_VIEW(PUT)
	}
	return to;
}

void limits_put(const struct daemon *d, struct rte_tel_data *to)
{
	struct share_holder holder[HOLDERS_LISTED_MAX];
	struct rte_tel_data *a = dict_new();
	unsigned count = shares_holders(d->shares, holder, HOLDERS_LISTED_MAX);

	put_rows(d, to);
	rte_tel_data_add_dict_u64(to, "holder_count", count);
	for (unsigned i = 0; a && i < count && i < HOLDERS_LISTED_MAX; i++)
		dict_put_numbered(a, i, holder_of(d, &holder[i]));
	dict_put(to, "holders", a);
}
