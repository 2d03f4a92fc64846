/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared resources: the rows of shares.def, how much of each is held, by whom, and
 * the refusals. Changes nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/shares.h"
#include "daemon.h"
#include "limits_view.h"
#include "views.h"

enum {
	HOLDERS_LISTED_MAX = 48, /* an answer of telemetry has 16 KiB */
	DATA_HOLDERS_LISTED_MAX = 16,
};

struct limit_row {
	const char *name, *hca;
	uint64_t total, used, assured, user_most, client_most, refused;
};

struct limit_holder {
	const char *name, *hca;
	char pid[16];
	uint32_t uid;
	uint64_t held, most, refused;
};

VIEW_OF(row_of, limit_row, SHARE_VIEW)
VIEW_OF(holder_of, limit_holder, HOLDER_VIEW)

static const struct {
	const char *name;
	unsigned user, client, floor;
} data_rows[] = {
#define DATA_SHARE(name, user, client, floor, attack, text) {#name, user, client, floor},
#include "base/shares.def"
};

static const char *hca_name(const struct daemon *d, unsigned hca)
{
	return d->config.hca[hca].name;
}

/* ---- what there is ---- */

static void put_share(const struct daemon *d, enum share row, unsigned hca, json_t *rows,
		      unsigned n)
{
	struct share_info i;
	struct limit_row r;

	shares_info(d->shares, row, hca, &i);
	r = (struct limit_row){.name = share_rows[row].name,
			       .hca = share_rows[row].of_hca ? hca_name(d, hca) : "",
			       .total = i.total,
			       .used = i.used,
			       .assured = i.assured,
			       .user_most = i.user_most,
			       .client_most = i.client_most,
			       .refused = i.refused};
	dict_put_numbered(rows, n, row_of(&r));
}

static void put_data_share(const struct daemon *d, enum data_share row, unsigned hca, json_t *rows,
			   unsigned n)
{
	const struct hca *h = d->devices[hca].hca;
	uint64_t total = hca_share_total(h, row);
	const struct limit_row r = {.name = data_rows[row].name,
				    .hca = hca_name(d, hca),
				    .total = total,
				    .used = hca_share_held(h, row, HCA_ALL_CLIENTS),
				    .assured = data_rows[row].floor,
				    .user_most = total * data_rows[row].user / 100,
				    .client_most = total * data_rows[row].client / 100};

	dict_put_numbered(rows, n, row_of(&r));
}

static void put_rows(const struct daemon *d, json_t *to)
{
	json_t *rows = dict_new();
	unsigned n = 0;

	for (unsigned row = 0; rows && row < SHARE_COUNT; row++) {
		if (!share_rows[row].of_hca)
			put_share(d, row, 0, rows, n++);
		else
			FOR_EACH_DEVICE (hca, d)
				put_share(d, row, hca, rows, n++);
	}
	for (unsigned row = 0; rows && row < DATA_SHARE_COUNT; row++)
		FOR_EACH_DEVICE (hca, d)
			put_data_share(d, row, hca, rows, n++);
	dict_put(to, "rows", rows);
}

/* ---- who holds it ---- */

struct listing {
	json_t *to;
	unsigned listed, most, count; /* count: also those that find no room */
};

static void limits_list(struct listing *l, const struct limit_holder *h)
{
	if (l->to && l->listed < l->most)
		dict_put_numbered(l->to, l->listed++, holder_of(h));
	l->count++;
}

static void list_shares(const struct daemon *d, struct listing *l)
{
	struct share_holder holder[HOLDERS_LISTED_MAX];
	unsigned n = shares_holders(d->shares, holder, HOLDERS_LISTED_MAX);

	for (unsigned i = 0; i < n && i < HOLDERS_LISTED_MAX; i++) {
		const struct share_holder *s = &holder[i];
		struct limit_holder h = {.name = share_rows[s->row].name,
					 .hca = share_rows[s->row].of_hca ? hca_name(d, s->hca)
									  : "",
					 .pid = "all",
					 .uid = s->uid,
					 .held = s->held,
					 .most = s->most,
					 .refused = s->refused};

		if (s->pid)
			snprintf(h.pid, sizeof(h.pid), "%d", s->pid);
		limits_list(l, &h);
	}
	if (n > HOLDERS_LISTED_MAX)
		l->count += n - HOLDERS_LISTED_MAX;
}

/* What the clients of an HCA hold of a row of the data path. */
static void list_data_share(const struct daemon *d, struct listing *l, enum data_share row,
			    unsigned hca, const struct control_client_info *client, unsigned n)
{
	const struct hca *h = d->devices[hca].hca;
	struct limit_holder one = {.name = data_rows[row].name,
				   .hca = hca_name(d, hca),
				   .most = hca_share_total(h, row) * data_rows[row].client / 100};

	for (unsigned i = 0; i < n; i++) {
		if (strcmp(client[i].device, one.hca) != 0)
			continue;
		one.held = hca_share_held(h, row, client[i].index);
		one.uid = client[i].uid;
		snprintf(one.pid, sizeof(one.pid), "%d", client[i].pid);
		if (one.held)
			limits_list(l, &one);
	}
}

static void list_data_shares(const struct daemon *d, struct listing *l)
{
	unsigned n = control_clients(d->control, NULL, 0);
	struct control_client_info *client = calloc(n ? n : 1, sizeof(*client));

	if (!client)
		return;
	n = RTE_MIN(n, control_clients(d->control, client, n));
	for (unsigned row = 0; row < DATA_SHARE_COUNT; row++)
		FOR_EACH_DEVICE (hca, d)
			list_data_share(d, l, row, hca, client, n);
	free(client);
}

void limits_put(const struct daemon *d, json_t *to)
{
	struct listing l = {.to = dict_new(), .most = DATA_HOLDERS_LISTED_MAX};

	put_rows(d, to);
	list_data_shares(d, &l);
	l.most = HOLDERS_LISTED_MAX;
	list_shares(d, &l);
	dict_u64(to, "holder_count", l.count);
	dict_put(to, "holders", l.to);
}
