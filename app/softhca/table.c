/* SPDX-License-Identifier: BSD-3-Clause */
/* Aligned tables. Exits when out of memory: there is nothing to clean up. */
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "table.h"

enum { FOLDED_MIN = 24 }; /* columns; in fewer it would be a tower of words */

static void *checked(void *memory)
{
	if (memory)
		return memory;
	fputs("softhca: out of memory\n", stderr);
	exit(1);
}

static void append(struct table *t, unsigned index, char *text)
{
	t->cell = checked(realloc(t->cell, (index + 1) * sizeof(*t->cell)));
	t->cell[index] = text;
}

void table_begin(struct table *t, const char *head)
{
	*t = (struct table){.cells = 0};
	while (head) {
		const char *bar = strchr(head, '|');
		bool right = *head == '>';
		const char *from = head + right;

		t->right[t->columns] = right;
		append(t, t->columns++, checked(bar ? strndup(from, bar - from) : strdup(from)));
		head = bar ? bar + 1 : NULL;
	}
	t->cells = t->columns;
}

void table_add(struct table *t, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	append(t, t->cells++, checked(text));
}

static unsigned width_of(const struct table *t, unsigned column)
{
	unsigned widest = 0;

	for (unsigned i = column; i < t->cells; i += t->columns) {
		unsigned width = strlen(t->cell[i]);

		widest = width > widest ? width : widest;
	}
	return widest;
}

/* Of the terminal; elsewhere no line is too long. */
static unsigned columns_of(FILE *out)
{
	struct winsize size;
	int fd = fileno(out);

	return fd >= 0 && isatty(fd) && !ioctl(fd, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col
										     : UINT_MAX;
}

/* The last cell of a line that begins at column `indent`, in several lines if need be. */
static void print_folded(FILE *out, const char *text, unsigned indent, unsigned columns)
{
	unsigned room = indent + FOLDED_MIN <= columns ? columns - indent : UINT_MAX;

	while (strlen(text) > room) {
		unsigned n = room;

		while (n && text[n] != ' ')
			n--;
		if (!n)
			break;
		fprintf(out, "%.*s\n%*s", (int)n, text, (int)indent, "");
		text += n + 1;
	}
	fprintf(out, "%s\n", text);
}

/* Of a line that begins at column `indent`, of `columns`. */
static void print_row(const struct table *t, FILE *out, unsigned first, const unsigned *width,
		      unsigned indent, unsigned columns)
{
	for (unsigned i = 0; i < t->columns; i++) {
		const char *text = t->cell[first + i];

		if (t->right[i])
			fprintf(out, "%*s", (int)width[i], text);
		else if (i + 1 < t->columns)
			fprintf(out, "%-*s", (int)width[i], text);
		else
			print_folded(out, text, indent, columns);
		if (i + 1 < t->columns)
			fputs("  ", out);
		else if (t->right[i])
			fputs("\n", out);
		indent += width[i] + 2;
	}
}

void table_end(struct table *t, FILE *out, const char *margin)
{
	const unsigned columns = columns_of(out);
	unsigned width[TABLE_COLUMNS_MAX];

	for (unsigned i = 0; i < t->columns; i++)
		width[i] = width_of(t, i);
	if (t->cells == t->columns)
		fprintf(out, "%snone\n", margin);
	for (unsigned i = 0; i < t->cells && t->cells > t->columns; i += t->columns) {
		fputs(margin, out);
		print_row(t, out, i, width, strlen(margin), columns);
	}
	for (unsigned i = 0; i < t->cells; i++)
		free(t->cell[i]);
	free(t->cell);
}
