/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of settings as text: a commented file, and the list in --help. Writes to the stream it
 * is given and nothing else. */
#include <inttypes.h>
#include <string.h>
#include "setting.h"

enum { TEXT_COLUMNS = 96 };

/* Words of a text, folded, each line behind `margin`. */
static void print_folded(FILE *out, const char *margin, const char *text)
{
	size_t column = 0, length;

	while (*text) {
		length = strcspn(text, " ");
		if (column && column + 1 + length > TEXT_COLUMNS) {
			fputc('\n', out);
			column = 0;
		}
		column += fprintf(out, "%s", column ? " " : margin);
		column += fwrite(text, 1, length, out);
		text += length;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

/* The sentence, and in parentheses unit and range, as far as there are any. */
static void describe(const struct setting *s, char *text, size_t bytes)
{
	bool ranged = s->max > 0 && s->kind != KIND_PROBABILITY && s->kind != KIND_PERMISSIONS;

	if (ranged && s->max == UINT64_MAX)
		snprintf(text, bytes, "%s (from %" PRIu64 ")", s->doc, s->min);
	else if (ranged)
		snprintf(text, bytes, "%s (%s%s%" PRIu64 "..%" PRIu64 ")", s->doc, s->unit,
			 *s->unit ? ", " : "", s->min, s->max);
	else
		snprintf(text, bytes, "%s (%s)", s->doc, s->unit);
}

/* The value that a built-in HCA gives to a setting, or NULL. */
static const char *given(const char *hca, const struct setting *s)
{
	for (unsigned i = 0; i < default_hca_count; i++) {
		if (strcmp(default_hcas[i].name, hca) == 0 &&
		    strcmp(default_hcas[i].key, s->key) == 0)
			return default_hcas[i].value;
	}
	return NULL;
}

/* A setting as it stands in the file: live where it is given, as a comment where it is the default.
 */
static void print_setting(FILE *out, const struct setting *s, const char *value)
{
	fprintf(out, "%s%s =%s%s\n", value ? "" : "#", s->key, value || *s->def ? " " : "",
		value ? value : s->def);
}

static void print_section(FILE *out, enum setting_scope scope, const char *hca, bool explained)
{
	char text[512];

	for (unsigned i = 0; i < setting_count; i++) {
		const struct setting *s = &settings[i];
		const char *value = hca ? given(hca, s) : NULL;

		if (s->scope != scope || (!explained && !value))
			continue;
		describe(s, text, sizeof(text));
		if (explained) {
			fputc('\n', out);
			print_folded(out, "# ", text);
		}
		print_setting(out, s, value);
	}
}

void config_print(FILE *out)
{
	bool explained = true;

	fputs("# Configuration of softhcad, as it is without a file. Made by: softhcad "
	      "--print-config\n"
	      "# A setting behind a single # is at its default. There is nothing else to set.\n"
	      "\n[daemon]\n",
	      out);
	print_section(out, SCOPE_DAEMON, NULL, true);
	for (unsigned i = 0; i < default_hca_count; i++) {
		if (!default_hca_begins(i))
			continue;
		fprintf(out, "\n[hca %s]\n", default_hcas[i].name);
		print_section(out, SCOPE_HCA, default_hcas[i].name, explained);
		explained = false;
	}
}

static void help_scope(FILE *out, enum setting_scope scope)
{
	char text[512];

	for (unsigned i = 0; i < setting_count; i++) {
		const struct setting *s = &settings[i];

		if (s->scope != scope)
			continue;
		describe(s, text, sizeof(text));
		fprintf(out, "  %s =%s%s\n", s->key, *s->def ? " " : "", s->def);
		print_folded(out, "      ", text);
	}
}

void config_help(FILE *out)
{
	fputs("settings in section [daemon], with their defaults\n", out);
	help_scope(out, SCOPE_DAEMON);
	fputs("\nsettings in sections [hca NAME], with their defaults\n", out);
	help_scope(out, SCOPE_HCA);
}
