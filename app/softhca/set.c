/* SPDX-License-Identifier: BSD-3-Clause */
/* `softhca set`: the daemon's settings, listed and changed over its control socket. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <jansson.h>
#include "ask.h"
#include "columns.h"
#include "commands.h"
#include "settings.h"
#include "table.h"
#include "target.h"

enum { NAME_BYTES = 128 };

int settings_open(const char *socket, struct settings *s)
{
	struct control_get_setting in = {.version = CONTROL_VERSION};
	int ret = 0;

	s->count = 0;
	s->fd = ask_connect(socket);
	if (s->fd < 0)
		return s->fd;
	for (; !ret && in.index < SETTINGS_MAX; s->count += !ret, in.index++)
		ret = ask(s->fd, CONTROL_GET_SETTING, &in, sizeof(in), &s->setting[in.index],
			  sizeof(s->setting[0]), -1, NULL);
	if (!ret || ret == -ENOENT)
		return 0;
	close(s->fd);
	return ret;
}

void settings_close(struct settings *s)
{
	close(s->fd);
}

bool setting_is(const struct control_setting *s, const char *name, const char *hca)
{
	const size_t section = strlen(s->section);
	const bool named = strncmp(name, s->section, section) == 0 && name[section] == '.' &&
			   strcmp(name + section + 1, s->key) == 0;

	return named || (strcmp(name, s->key) == 0 && (!hca || strcmp(s->section, hca) == 0 ||
						       strcmp(s->section, "daemon") == 0));
}

/* What they mean, from the daemon's own table. */
static const struct named_text texts[] = {
#define SETTING(scope, key, kind, field, unit, def, min, max, change, doc) {key, doc " (" unit ")"},
#include "settings.def"
	{NULL, NULL},
};

static const char *text_of_setting(const char *key)
{
	const struct named_text *t = texts;

	while (t->name && strcmp(t->name, key) != 0)
		t++;
	return t->name ? t->text : "";
}

/* The settings asked for: the one of that name (of every HCA, if it names none), or all. */
static bool is_meant(const struct control_setting *s, const struct request *r)
{
	if (r->object)
		return setting_is(s, r->object, r->hca);
	return (r->all || s->runtime) && (!r->hca || strcmp(s->section, r->hca) == 0);
}

static void set_print_table(const struct settings *all, const struct request *r)
{
	const bool texts_too = r->object || r->all;
	struct table t;

	table_begin(&t, texts_too ? "setting|value|changes|which is" : "setting|value|changes");
	for (unsigned i = 0; i < all->count; i++) {
		const struct control_setting *s = &all->setting[i];

		if (!is_meant(s, r))
			continue;
		table_add(&t, "%s.%s", s->section, s->key);
		table_add(&t, "%s%s", s->value, s->shortened ? "..." : "");
		table_add(&t, "%s", s->runtime ? "at run time" : "at restart");
		if (texts_too)
			table_add(&t, "%s", text_of_setting(s->key));
	}
	table_end(&t, stdout, "");
}

static void print_json(const struct settings *all, const struct request *r)
{
	json_t *sections = json_object();

	for (unsigned i = 0; i < all->count; i++) {
		const struct control_setting *s = &all->setting[i];

		if (!is_meant(s, r))
			continue;
		if (!json_object_get(sections, s->section))
			json_object_set_new(sections, s->section, json_object());
		json_object_set_new(
			json_object_get(sections, s->section), s->key,
			json_pack("{s:s, s:b}", "value", s->value, "runtime", (int)s->runtime));
	}
	json_dumpf(sections, stdout, JSON_COMPACT);
	puts("");
	json_decref(sections);
}

static int change(const struct settings *all, const struct control_setting *s, const char *value)
{
	struct control_set in = {.version = CONTROL_VERSION};
	struct control_change_reply out = {0};
	int n = snprintf(in.assignment, sizeof(in.assignment), "%s.%s=%s", s->section, s->key,
			 value);
	int ret = n < (int)sizeof(in.assignment)
			  ? ask(all->fd, CONTROL_SET, &in, sizeof(in), &out, sizeof(out), -1, NULL)
			  : -ENAMETOOLONG;

	return changed(s->key, ONLY_ADMINS_MAY("change settings"), ret, &out);
}

static int refuse_name(const struct settings *all, const char *name)
{
	const char *dot = strchr(name, '.'), *names[SETTINGS_MAX];
	bool section = !dot;

	for (unsigned i = 0; i < all->count; i++) {
		names[i] = all->setting[i].key;
		section |= dot && strncmp(all->setting[i].section, name, dot - name) == 0 &&
			   !all->setting[i].section[dot - name];
	}
	if (section)
		return refuse_setting(dot ? dot + 1 : name, names, all->count);
	print_no_hca(name, (int)(dot - name));
	return EXIT_CODE_USAGE;
}

static int show_or_change(const struct settings *all, const struct request *r)
{
	unsigned meant = 0;
	int code = EXIT_CODE_OK;

	for (unsigned i = 0; i < all->count; i++) {
		if (!is_meant(&all->setting[i], r))
			continue;
		meant++;
		if (r->value && !code)
			code = change(all, &all->setting[i], r->value);
	}
	if (r->object && !meant)
		return refuse_name(all, r->object);
	if (!meant && r->hca) {
		print_no_hca(r->hca, -1);
		return EXIT_CODE_FAILURE;
	}
	if (r->value)
		return code;
	if (r->json)
		print_json(all, r);
	else
		set_print_table(all, r);
	return EXIT_CODE_OK;
}

/* "NAME=VALUE" is taken, too, as softhcad and softhca add take it. */
static void set_split(struct request *r, char name[NAME_BYTES])
{
	size_t n = r->object ? strcspn(r->object, "=") : 0;

	if (!n || !r->object[n] || r->value || n >= NAME_BYTES)
		return;
	memcpy(name, r->object, n);
	name[n] = '\0';
	r->value = r->object + n + 1;
	r->object = name;
}

int view_set(struct connection *unused, const struct request *given)
{
	static struct settings all;
	struct request wanted = *given;
	const struct request *r = &wanted;
	int ret = settings_open(r->socket, &all), code;
	char name[NAME_BYTES];

	set_split(&wanted, name);
	if (ret)
		return target_missing(r, ret);
	code = show_or_change(&all, r);
	settings_close(&all);
	return code;
}
