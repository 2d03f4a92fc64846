/* SPDX-License-Identifier: BSD-3-Clause */
/* `softhca limits`: the resources that programs share, how much of each is held, by whom, and the
 * refusals. */
#include <stdio.h>
#include <string.h>
#include "columns.h"
#include "view.h"

static const struct named_text texts[] = {
#define SHARE(name, scope, total, reserve, user, client, refusal, attack, text) {#name, text},
#define DATA_SHARE(name, user, client, floor, attack, text)			{#name, text},
#include "base/shares.def"
	{NULL, NULL},
};

static void row_text(const json_t *row, char text[CELL_BYTES])
{
	const struct named_text *t = texts;

	while (t->name && strcmp(t->name, text_of(row, "name")) != 0)
		t++;
	snprintf(text, CELL_BYTES, "%s", t->name ? t->text : "");
}

static void print_limits(const json_t *answer, bool all)
{
	static const struct column row[] = {SHARE_VIEW(COLUMN)};
	static const struct column holder[] = {HOLDER_VIEW(COLUMN)};
	const struct objects_table rows = {NULL, row, COUNT_OF(row), all ? "which are" : NULL,
					   row_text};
	const struct objects_table holders = {NULL, holder, COUNT_OF(holder), NULL, NULL};

	print_objects(json_object_get(answer, "rows"), &rows, "");
	puts("\nholders");
	print_objects(json_object_get(answer, "holders"), &holders, "  ");
	print_rest(json_object_get(answer, "holders"), number_of(answer, "holder_count"));
}

int view_limits(struct connection *c, const struct request *r)
{
	json_t *answer = connection_ask(c, "limits", NULL);

	if (!answer)
		return EXIT_CODE_FAILURE;
	keep_hca(json_object_get(answer, "rows"), "hca", r->hca);
	keep_hca(json_object_get(answer, "holders"), "hca", r->hca);
	if (!print_json_answer(c, r, "/softhca/limits", answer))
		print_limits(answer, r->all);
	json_decref(answer);
	return EXIT_CODE_OK;
}
