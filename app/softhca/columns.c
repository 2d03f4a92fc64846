/* SPDX-License-Identifier: BSD-3-Clause */
/* See columns.h. */
#include <string.h>
#include "columns.h"
#include "table.h"

unsigned long long number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void add_speed(struct table *t, unsigned long long mbps)
{
	if (mbps == 0)
		table_add(t, "-");
	else if (mbps % 1000)
		table_add(t, "%llu Mbit/s", mbps);
	else
		table_add(t, "%llu Gbit/s", mbps / 1000);
}

static void add_cell(struct table *t, const json_t *object, const struct column *c)
{
	long long value = json_integer_value(json_object_get(object, c->key));

	switch (c->unit) {
	case UNIT_TEXT:
	case UNIT_SECRET_TEXT:
		table_add(t, "%s", text_of(object, c->key));
		break;
	case UNIT_ID:
	case UNIT_LEVEL:
	case UNIT_COUNT:
	case UNIT_BYTES:
	case UNIT_KIB:
	case UNIT_MIB:
	case UNIT_SECONDS:
	case UNIT_MS:
		table_add(t, "%llu", value);
		break;
	case UNIT_SECRET:
		table_add(t, json_object_get(object, c->key) ? "%lld" : "-", value);
		break;
	case UNIT_MEMORY:
		table_add(t, "%.1f", value / 1048576.0);
		break;
	case UNIT_MBPS:
		add_speed(t, value);
		break;
	case UNIT_PERMILLE:
		table_add(t, "%lld.%lld", value / 10, value % 10);
		break;
	case UNIT_NODE:
		table_add(t, value < 0 ? "-" : "%lld", value);
		break;
	case UNIT_DISTANCE:
		table_add(t, value ? "%lld" : "-", value);
		break;
	}
}

static void begin_table(struct table *table, const struct objects_table *t, bool rates)
{
	char head[CELL_BYTES];
	size_t used = snprintf(head, sizeof(head), "%s", t->name ? t->name : "");

	for (unsigned i = 0; i < t->count && used < sizeof(head); i++) {
		const struct column *c = &t->columns[i];

		if (c->heading)
			used += snprintf(head + used, sizeof(head) - used, "%s%s%s",
					 used ? "|" : "", c->unit == UNIT_TEXT ? "" : ">",
					 c->heading);
		if (c->heading && rates && c->unit == UNIT_COUNT && used < sizeof(head))
			used += snprintf(head + used, sizeof(head) - used, "|>a second");
	}
	if (t->last && used < sizeof(head))
		snprintf(head + used, sizeof(head) - used, "|%s", t->last);
	table_begin(table, head);
}

/* Counts may wrap at any width, so a count that fell has no rate. */
static void add_rate(struct table *t, const json_t *last, const json_t *object, const char *key,
		     double seconds)
{
	unsigned long long before = number_of(last, key), now = number_of(object, key);

	if (last && now >= before)
		table_add(t, "%.0f", (now - before) / seconds);
	else
		table_add(t, "-");
}

void print_changes(json_t *objects, const json_t *last, double seconds,
		   const struct objects_table *t, const char *margin)
{
	char text[CELL_BYTES];
	struct table table;
	const char *name;
	json_t *object;

	begin_table(&table, t, seconds > 0);
	json_object_foreach(objects, name, object)
	{
		if (t->name)
			table_add(&table, "%s", name);
		for (unsigned i = 0; i < t->count; i++) {
			const struct column *c = &t->columns[i];

			if (c->heading)
				add_cell(&table, object, c);
			if (c->heading && seconds > 0 && c->unit == UNIT_COUNT)
				add_rate(&table, json_object_get(last, name), object, c->key,
					 seconds);
		}
		if (t->last) {
			t->last_text(object, text);
			table_add(&table, "%s", text);
		}
	}
	table_end(&table, stdout, margin);
}

void print_objects(json_t *objects, const struct objects_table *t, const char *margin)
{
	print_changes(objects, NULL, 0, t, margin);
}

void print_rest(const json_t *listed, unsigned long long count)
{
	if (json_object_size(listed) < count)
		printf("  and %llu more\n", count - json_object_size(listed));
}

void keep_hca(json_t *objects, const char *key, const char *hca)
{
	const char *name, *its;
	json_t *one;
	void *next;

	if (!hca)
		return;
	json_object_foreach_safe(objects, next, name, one)
	{
		its = key ? text_of(one, key) : name;
		if (its[0] && strcmp(its, hca) != 0)
			json_object_del(objects, name);
	}
}

bool print_json_answer(const struct connection *c, const struct request *r, const char *view,
		       json_t *answer)
{
	json_t *kept = r->json && r->hca ? json_pack("{s:O}", view, answer) : NULL;

	if (kept)
		json_dumpf(kept, stdout, JSON_COMPACT);
	if (r->json)
		puts(kept ? "" : c->answer);
	json_decref(kept);
	return r->json;
}
