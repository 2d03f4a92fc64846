/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Builds a struct config: from the built-in HCAs, from a file, from --set options.
 *
 * rte_cfgfile parses files but gives no positions. So a file is scanned first: lines that
 * rte_cfgfile would refuse, truncate or fold are refused here with their number, and its n-th
 * section and entry are those of the n-th such line of the scan.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <rte_cfgfile.h>
#include "config_file.h"
#include "setting.h"

enum {
	LINE_BYTES = CFG_NAME_LEN + CFG_VALUE_LEN, /* as rte_cfgfile, with a margin */
	LINES_MAX = 4096,
	ENTRIES_MAX = 256, /* per section; there are fewer settings */
	COMMENT = '#',
};

/* Line numbers of what rte_cfgfile will return: each section, followed by its entries. */
struct scan {
	const char *path;
	unsigned items;
	unsigned line[LINES_MAX];
	unsigned at; /* cursor of the second pass */
};

static int fail_at(struct config_error *error, const char *path, unsigned line, const char *format,
		   ...) __attribute__((format(printf, 4, 5)));

static int fail_at(struct config_error *error, const char *path, unsigned line, const char *format,
		   ...)
{
	va_list arguments;
	int used = line ? snprintf(error->text, sizeof(error->text), "%.200s:%u: ", path, line)
			: snprintf(error->text, sizeof(error->text), "%.200s: ", path);

	va_start(arguments, format);
	vsnprintf(error->text + used, sizeof(error->text) - used, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

struct hca_section *config_find_hca(struct config *c, const char *name)
{
	for (unsigned i = 0; i < c->hcas; i++) {
		if (strcmp(c->hca[i].name, name) == 0)
			return &c->hca[i];
	}
	return NULL;
}

/* Does an HCA that has not been removed name it as its peer? */
static bool is_peer(const struct config *c, const char *name)
{
	for (unsigned i = 0; i < c->hcas; i++) {
		const struct hca_section *h = &c->hca[i];

		if (!h->removed && h->port.type == PORT_RING && strcmp(h->port.peer, name) == 0)
			return true;
	}
	return false;
}

/* The place that it had, a new one, or that of another one that has been removed; NULL: there is
 * none. */
static struct hca_section *place_for(struct config *c, const char *name)
{
	struct hca_section *h = config_find_hca(c, name);

	if (h)
		return h;
	if (c->hcas < HCA_MAX)
		return &c->hca[c->hcas++];
	for (unsigned i = 0; i < c->hcas; i++)
		if (c->hca[i].removed && !is_peer(c, c->hca[i].name))
			return &c->hca[i];
	return NULL;
}

int config_add_hca(struct config *c, const char *name, struct hca_section **out, struct reason *why)
{
	struct hca_section *h = config_find_hca(c, name);

	if (strlen(name) >= sizeof(h->name) || !name_is_valid(name) || strchr(name, '-') ||
	    strcmp(name, "daemon") == 0)
		return refuse(
			why,
			"'%.60s' cannot name an HCA: a letter, then letters, digits and _, %d at "
			"most",
			name, CONFIG_NAME_BYTES - 1);
	if (h && !h->removed)
		return refuse(why, "HCA '%s' exists already", name);
	h = place_for(c, name);
	if (!h)
		return refuse(why, "more than %d HCAs", HCA_MAX);
	memset(h, 0, sizeof(*h));
	memset(h->cpu, 0xff, sizeof(h->cpu)); /* CONFIG_CPU_AUTO */
	setting_defaults(SCOPE_HCA, h);
	memcpy(h->name, name, strlen(name));
	memcpy(h->port.name, name, strlen(name));
	*out = h;
	return 0;
}

void config_defaults(struct config *c)
{
	struct hca_section *h = NULL;
	struct reason why;
	int ret = 0;

	memset(c, 0, sizeof(*c));
	setting_defaults(SCOPE_DAEMON, &c->daemon);
	for (unsigned i = 0; i < default_hca_count && !ret; i++) {
		const struct default_hca *d = &default_hcas[i];

		if (default_hca_begins(i))
			ret = config_add_hca(c, d->name, &h, &why);
		if (!ret)
			ret = setting_parse(setting_find(SCOPE_HCA, d->key), d->key, d->value, h,
					    &why);
	}
	if (ret) {
		fprintf(stderr, "settings.def: built-in HCAs: %s\n", why.text);
		abort();
	}
}

/* Strips a comment and the white space at both ends. Returns the first character. */
static char *file_trim(char *line)
{
	char *end;

	line[strcspn(line, "#")] = '\0';
	line += strspn(line, " \t\r\n");
	end = line + strlen(line);
	while (end > line && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return line;
}

/* Classifies one line. 1: a section or an entry; 0: blank; -EINVAL. */
static int scan_line(char *line, bool in_section, struct reason *why)
{
	char *equals;
	size_t key_bytes;

	line = file_trim(line);
	if (!*line)
		return 0;
	if (strchr(line, '\\'))
		return refuse(why, "backslashes have no meaning here");
	if (*line == '[') {
		if (line[strlen(line) - 1] != ']')
			return refuse(why, "the section's ']' is missing");
		return strlen(line) - 2 < CFG_NAME_LEN
			       ? 1
			       : refuse(why, "the section's name is too long");
	}
	if (!in_section)
		return refuse(why, "comes before the first section");
	equals = strchr(line, '=');
	if (!equals)
		return refuse(why, "neither [section] nor key = value");
	key_bytes = equals - line;
	while (key_bytes && isspace((unsigned char)line[key_bytes - 1]))
		key_bytes--;
	if (key_bytes == 0 || key_bytes >= CFG_NAME_LEN)
		return refuse(why, key_bytes ? "the key is too long" : "the key is missing");
	return strlen(equals) < CFG_VALUE_LEN ? 1 : refuse(why, "the value is too long");
}

static int scan_stream(FILE *file, struct scan *scan, struct config_error *error)
{
	char line[LINE_BYTES];
	struct reason why;

	for (unsigned number = 1; fgets(line, sizeof(line), file); number++) {
		int ret;

		if (strlen(line) == sizeof(line) - 1 && line[sizeof(line) - 2] != '\n')
			return fail_at(error, scan->path, number, "the line is too long (%d)",
				       LINE_BYTES - 2);
		ret = scan_line(line, scan->items > 0, &why);
		if (ret < 0)
			return fail_at(error, scan->path, number, "%s", why.text);
		if (ret && scan->items == LINES_MAX)
			return fail_at(error, scan->path, number, "more than %d settings",
				       LINES_MAX);
		if (ret)
			scan->line[scan->items++] = number;
	}
	if (ferror(file))
		return fail_at(error, scan->path, 0, "%s", strerror(errno));
	return 0;
}

static int scan_file(struct scan *scan, struct config_error *error)
{
	FILE *file = fopen(scan->path, "re");
	int ret;

	if (!file) {
		ret = -errno;
		fail_at(error, scan->path, 0, "%s", strerror(-ret));
		return ret;
	}
	ret = scan_stream(file, scan, error);
	fclose(file);
	return ret;
}

/* Maps a section's name to its scope and the struct of its settings. */
static int open_section(struct config *c, const char *name, enum setting_scope *scope, void **base,
			struct reason *why)
{
	struct hca_section *h = NULL;
	int ret;

	if (strcmp(name, "daemon") == 0) {
		*scope = SCOPE_DAEMON;
		*base = &c->daemon;
		return 0;
	}
	if (strncmp(name, "hca ", 4) != 0)
		return refuse(why, "unknown section [%s]; there are [daemon] and [hca NAME]", name);
	ret = config_add_hca(c, name + 4 + strspn(name + 4, " \t"), &h, why);
	*scope = SCOPE_HCA;
	*base = h;
	return ret;
}

static void note_line(enum setting_scope scope, void *base, const char *key, unsigned line)
{
	if (scope == SCOPE_HCA)
		setting_note_line(base, key ? setting_find(scope, key) : NULL, line);
}

static bool appears_before(const struct rte_cfgfile_entry *entries, int n)
{
	for (int i = 0; i < n; i++) {
		if (strcmp(entries[i].name, entries[n].name) == 0)
			return true;
	}
	return false;
}

/* One section as rte_cfgfile returns it; scan->at is at its line. */
static int apply_section(struct config *c, struct rte_cfgfile *file, int index, struct scan *scan,
			 struct config_error *error)
{
	struct rte_cfgfile_entry entries[ENTRIES_MAX];
	char name[CFG_NAME_LEN];
	enum setting_scope scope = SCOPE_DAEMON;
	struct reason why;
	void *base = NULL;
	int n = rte_cfgfile_section_entries_by_index(file, index, name, entries, ENTRIES_MAX);
	unsigned line = scan->line[scan->at++];

	if (open_section(c, name, &scope, &base, &why))
		return fail_at(error, scan->path, line, "%s", why.text);
	note_line(scope, base, NULL, line);
	if (n == ENTRIES_MAX)
		return fail_at(error, scan->path, line, "more than %d settings", ENTRIES_MAX - 1);
	for (int i = 0; i < n; i++) {
		line = scan->line[scan->at++];
		if (appears_before(entries, i))
			return fail_at(error, scan->path, line, "%s is set twice", entries[i].name);
		if (setting_apply(scope, base, entries[i].name, entries[i].value, &why))
			return fail_at(error, scan->path, line, "%s", why.text);
		note_line(scope, base, entries[i].name, line);
	}
	return 0;
}

static int apply_file(struct config *c, struct scan *scan, struct config_error *error)
{
	const struct rte_cfgfile_parameters parameters = {.comment_character = COMMENT};
	struct rte_cfgfile *file =
		rte_cfgfile_load_with_params(scan->path, CFG_FLAG_EMPTY_VALUES, &parameters);
	int sections, items = 0, daemons = 0, ret = 0;

	if (!file)
		return fail_at(error, scan->path, 0, "cannot be read as a configuration");
	sections = rte_cfgfile_num_sections(file, NULL, 0);
	for (int i = 0; i < sections; i++) {
		char name[CFG_NAME_LEN];

		items += 1 + rte_cfgfile_section_num_entries_by_index(file, name, i);
		daemons += strcmp(name, "daemon") == 0;
	}
	if ((unsigned)items != scan->items)
		ret = fail_at(error, scan->path, 0, "changed while it was read");
	if (!ret && daemons > 1)
		ret = fail_at(error, scan->path, 0, "has more than one section [daemon]");
	for (int i = 0; i < sections && !ret; i++)
		ret = apply_section(c, file, i, scan, error);
	rte_cfgfile_close(file);
	return ret;
}

int config_read(struct config *c, const char *path, struct config_error *error)
{
	struct scan scan = {.path = path};
	int ret = scan_file(&scan, error);

	if (ret)
		return ret;
	memset(c, 0, sizeof(*c));
	setting_defaults(SCOPE_DAEMON, &c->daemon);
	return apply_file(c, &scan, error);
}

int config_assign(struct config *c, const char *assignment, struct config_error *error)
{
	char section[CONFIG_NAME_BYTES], key[CFG_NAME_LEN];
	size_t dot = strcspn(assignment, "."), equals = strcspn(assignment, "=");
	struct hca_section *h = NULL;
	struct reason why;
	bool daemon;

	snprintf(error->text, sizeof(error->text),
		 "not of the form daemon.key=value or NAME.key=value");
	if (!assignment[equals] || dot >= equals || dot >= sizeof(section) ||
	    equals - dot - 1 >= sizeof(key))
		return -EINVAL;
	snprintf(section, sizeof(section), "%.*s", (int)dot, assignment);
	snprintf(key, sizeof(key), "%.*s", (int)(equals - dot - 1), assignment + dot + 1);
	daemon = strcmp(section, "daemon") == 0;
	if (!daemon)
		h = config_find_hca(c, section);
	if (!daemon && (!h || h->removed))
		refuse(&why, "there is no HCA '%s'", section);
	else if (setting_apply(daemon ? SCOPE_DAEMON : SCOPE_HCA, daemon ? (void *)&c->daemon : h,
			       key, assignment + equals + 1, &why) == 0) {
		note_line(daemon ? SCOPE_DAEMON : SCOPE_HCA, h, key, 0);
		return 0;
	}
	snprintf(error->text, sizeof(error->text), "%s", why.text);
	return -EINVAL;
}

int config_set(struct config *c, const char *assignment, struct config_error *error)
{
	struct config_error why;
	int ret = config_assign(c, assignment, &why);

	if (ret)
		snprintf(error->text, sizeof(error->text), "--set %.200s: %.300s", assignment,
			 why.text);
	return ret;
}
