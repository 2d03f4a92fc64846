/* SPDX-License-Identifier: BSD-3-Clause */
/* `softhca clients`: the programs that use the daemon. */
#include <stdio.h>
#include <string.h>
#include "columns.h"
#include "view.h"

json_t *clients_ask(struct connection *c)
{
	return connection_ask_pages(c, "clients", "", "clients");
}

static void filter(json_t *clients, const struct request *r)
{
	const char *id;
	json_t *one;
	void *next;

	json_object_foreach_safe(clients, next, id, one)
	{
		if ((r->hca && strcmp(r->hca, text_of(one, "hca")) != 0 &&
		     strcmp(r->hca, text_of(one, "captures")) != 0) ||
		    (r->pid && number_of(one, "pid") != r->pid))
			json_object_del(clients, id);
	}
}

int view_clients(struct connection *c, const struct request *r)
{
	static const struct column columns[] = {CLIENT_VIEW(COLUMN) CLIENT_MORE_VIEW(COLUMN)};
	const struct objects_table t = {">id", columns, COUNT_OF(columns), NULL, NULL};
	json_t *answer = clients_ask(c);

	if (!answer)
		return EXIT_CODE_FAILURE;
	filter(json_object_get(answer, "clients"), r);
	if (r->json) {
		json_dumpf(answer, stdout, JSON_COMPACT);
		puts("");
	} else {
		printf("%llu clients\n", number_of(answer, "client_count"));
		print_objects(json_object_get(answer, "clients"), &t, "  ");
	}
	json_decref(answer);
	return EXIT_CODE_OK;
}
