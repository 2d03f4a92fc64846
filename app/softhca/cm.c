/* SPDX-License-Identifier: BSD-3-Clause */
/* `softhca cm`: the connection manager's identifiers and counters. */
#include <stdio.h>
#include "columns.h"
#include "view.h"

const struct named_text cm_counter_texts[] = {
#define CM_COUNTER(name, text) {#name, text},
#include "cm/counters.def"
	{NULL, NULL},
};

const struct named_text cm_port_counter_texts[] = {
#define CM_PORT_COUNTER(name, text) {#name, text},
#include "cm-thread/cm_port.def"
	{NULL, NULL},
};

static void print_ids(const json_t *answer)
{
	static const struct column columns[] = {CM_ID_VIEW(COLUMN)};
	const struct objects_table t = {NULL, columns, COUNT_OF(columns), NULL, NULL};
	unsigned long long count = number_of(answer, "id_count");

	printf("%llu identifiers\n", count);
	print_objects(json_object_get(answer, "ids"), &t, "  ");
	print_rest(json_object_get(answer, "ids"), count);
}

static void print_cm(const json_t *answer, bool all)
{
	json_t *port;
	const char *hca;

	if (!json_object_get(answer, "ids")) {
		puts("there is no connection manager: daemon.cm is off");
		return;
	}
	print_ids(answer);
	puts("counters");
	print_counters(json_object_get(answer, "counters"), NULL, cm_counter_texts, all);
	json_object_foreach(json_object_get(answer, "ports"), hca, port)
	{
		printf("%s, QP 1\n", hca);
		print_counters(port, NULL, cm_port_counter_texts, all);
	}
}

int view_cm(struct connection *c, const struct request *r)
{
	json_t *answer = connection_ask(c, "cm", NULL);

	if (!answer)
		return EXIT_CODE_FAILURE;
	keep_hca(json_object_get(answer, "ids"), "hca", r->hca);
	keep_hca(json_object_get(answer, "ports"), NULL, r->hca);
	if (!print_json_answer(c, r, "/softhca/cm", answer))
		print_cm(answer, r->all);
	json_decref(answer);
	return EXIT_CODE_OK;
}
