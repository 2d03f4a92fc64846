/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TABLE_H
#define TABLE_H
/* A table of text with aligned columns. Collected first, then printed. */
#include <stdbool.h>
#include <stdio.h>

enum { TABLE_COLUMNS_MAX = 24 };

struct table {
	unsigned columns, cells;
	bool right[TABLE_COLUMNS_MAX]; /* numbers are right-aligned */
	char **cell;		       /* `cells` of them, row by row; the first row is the head */
};

/* Starts a table with that head, a list of words separated by '|'; a leading '>' marks a column of
 * numbers. */
void table_begin(struct table *t, const char *head);
/* Adds the next cell, row by row. */
void table_add(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the table, each line after the margin, and frees it. Without rows: prints "none". On a
 * terminal the last column, if it is of words, is folded to its width. */
void table_end(struct table *t, FILE *out, const char *margin);

#endif
