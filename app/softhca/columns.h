/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLUMNS_H
#define COLUMNS_H
/* Tables made from the lists of views.def: PORT_VIEW(COLUMN) is the columns of a table of ports. */
#include <jansson.h>
#include "../views.def"
#include "view.h"

enum { CELL_BYTES = 512 };

enum unit {
	UNIT_TEXT,
	UNIT_ID,
	UNIT_SECRET,
	UNIT_SECRET_TEXT,
	UNIT_LEVEL,
	UNIT_COUNT,
	UNIT_BYTES,
	UNIT_MEMORY,
	UNIT_KIB,
	UNIT_MIB,
	UNIT_MBPS,
	UNIT_SECONDS,
	UNIT_MS,
	UNIT_PERMILLE,
	UNIT_NODE,
	UNIT_DISTANCE,
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct column {
	const char *key, *heading; /* heading NULL: not in the table */
	enum unit unit;
};
#define COLUMN(key, heading, unit, read) {#key, heading, UNIT_##unit},

/* A table of objects. */
struct objects_table {
	const char *name; /* heading of what they are called by; '>' in front: a number; NULL: they
			   * have no names to be shown */
	const struct column *columns;
	unsigned count;
	/* A last column, of what the objects hold beside single values; NULL: none. */
	const char *last;
	void (*last_text)(const json_t *object, char text[CELL_BYTES]);
};

/* Prints the objects, an answer's dictionary of dictionaries, as a table, each line after the
 * margin. */
void print_objects(json_t *objects, const struct objects_table *t, const char *margin);

/* The same with one more column for each count: its rise per second since `last`, the same objects
 * that many seconds ago. 0 seconds: without these columns. */
void print_changes(json_t *objects, const json_t *last, double seconds,
		   const struct objects_table *t, const char *margin);

/* A number or a text of an answer; 0 or "" if missing. */
unsigned long long number_of(const json_t *object, const char *key);
const char *text_of(const json_t *object, const char *key);

/* Prints below a table how many of `count` objects the daemon did not list. */
void print_rest(const json_t *listed, unsigned long long count);

/* Removes the objects of a dictionary whose `key` names another HCA (key NULL: whose own name is
 * another HCA's). hca NULL: removes none. */
void keep_hca(json_t *objects, const char *key, const char *hca);

/* With --json: prints the answer to "/softhca/NAME", as it came, or with --hca what keep_hca() left
 * of it. False: no --json. */
bool print_json_answer(const struct connection *c, const struct request *r, const char *view,
		       json_t *answer);

#endif
