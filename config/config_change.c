/* SPDX-License-Identifier: BSD-3-Clause */
/* What distinguishes two configurations, setting by setting, and which of it a running daemon can
 * apply. Pure. */
#include <errno.h>
#include <string.h>
#include "config_file.h"
#include "setting.h"

/* A comparison of two configurations. */
struct merge {
	config_change_fn *tell;
	void *ctx;
	unsigned changes;
};

static void change_tell(struct merge *m, const struct config_change *c)
{
	m->changes++;
	if (m->tell)
		m->tell(m->ctx, c);
}

/* Settings of one section. Those that can change while the daemon runs are copied. */
static void merge_section(struct merge *m, enum setting_scope scope, const char *name, void *now,
			  const void *asked)
{
	for (unsigned i = 0; i < setting_count; i++) {
		const struct setting *s = &settings[i];
		struct config_change c = {.section = name, .key = s->key, .runtime = s->runtime};

		if (s->scope != scope)
			continue;
		setting_text(s, now, c.before);
		setting_text(s, asked, c.after);
		if (strcmp(c.before, c.after) == 0)
			continue;
		if (s->runtime)
			memcpy((char *)now + s->offset, (const char *)asked + s->offset, s->bytes);
		change_tell(m, &c);
	}
}

/* The HCA of that name, unless it has been removed. */
static struct hca_section *find_present(const struct config *c, const char *name)
{
	struct hca_section *h = config_find_hca((struct config *)(uintptr_t)c, name);

	return h && !h->removed ? h : NULL;
}

/* Those of *now that *asked has, too. */
static unsigned count_common(const struct config *now, const struct config *asked)
{
	unsigned n = 0;

	for (unsigned i = 0; i < now->hcas; i++)
		n += !now->hca[i].removed && find_present(asked, now->hca[i].name);
	return n;
}

/* Gives it a place in *now. False: there is none. */
static bool take_over(struct config *now, const struct hca_section *asked)
{
	struct hca_section *h;
	struct reason why;

	if (config_add_hca(now, asked->name, &h, &why))
		return false;
	*h = *asked;
	return true;
}

/* Whether there are any that need a restart. */
static bool merge_added(struct merge *m, struct config *now, const struct config *asked, bool may)
{
	bool missing = false;

	for (unsigned i = 0; i < asked->hcas; i++) {
		const struct hca_section *h = &asked->hca[i];
		struct config_change c = {.section = h->name, .after = "added"};

		if (h->removed || find_present(now, c.section))
			continue;
		c.runtime = may && config_may_add(h) && take_over(now, h);
		missing |= !c.runtime;
		change_tell(m, &c);
	}
	return missing;
}

/* Takes over the places of ends of rings that do not exist yet. */
static void merge_places(struct config *now, const struct config *asked)
{
	for (unsigned i = 0; i < asked->hcas; i++)
		if (asked->hca[i].removed && !config_find_hca(now, asked->hca[i].name))
			take_over(now, &asked->hca[i]);
}

static void merge_removed(struct merge *m, struct config *now, const struct config *asked, bool may)
{
	for (unsigned i = 0; i < now->hcas; i++) {
		const struct config_change c = {
			.section = now->hca[i].name, .runtime = may, .after = "removed"};

		if (now->hca[i].removed || find_present(asked, c.section))
			continue;
		now->hca[i].removed = may;
		change_tell(m, &c);
	}
}

int config_remove_hca(struct config *c, const char *name)
{
	struct hca_section *h = find_present(c, name);

	if (!h)
		return -ENOENT;
	if (count_common(c, c) == 1)
		return -EBUSY;
	h->removed = true;
	return 0;
}

unsigned config_merge(struct config *now, const struct config *asked, bool add,
		      config_change_fn *fn, void *ctx)
{
	struct merge m = {.tell = fn, .ctx = ctx};
	const bool some_stay = count_common(now, asked) > 0;
	bool missing;

	merge_section(&m, SCOPE_DAEMON, "daemon", &now->daemon, &asked->daemon);
	for (unsigned i = 0; i < now->hcas; i++) {
		const struct hca_section *other = find_present(asked, now->hca[i].name);

		if (other && !now->hca[i].removed)
			merge_section(&m, SCOPE_HCA, now->hca[i].name, &now->hca[i], other);
	}
	/* Removes none if others need a restart, as after a renaming, and never all. */
	missing = merge_added(&m, now, asked, add);
	merge_removed(&m, now, asked, !missing && some_stay);
	if (add)
		merge_places(now, asked);
	return m.changes;
}

/* Copies the HCAs that *running lacks, each to the same place, with all derived values. */
static void adopt_added(struct config *running, const struct config *checked)
{
	for (unsigned i = 0; i < checked->hcas; i++) {
		const struct hca_section *from = &checked->hca[i];
		struct hca_section *to = &running->hca[i];

		if (i >= running->hcas || strcmp(to->name, from->name) != 0 ||
		    (to->removed && !from->removed))
			*to = *from;
	}
	running->hcas = checked->hcas;
}

void config_adopt(struct config *running, const struct config *checked)
{
	adopt_added(running, checked);
	config_merge(running, checked, false, NULL, NULL);
	for (unsigned i = 0; i < running->hcas; i++)
		running->hca[i].settings.payload_refs = checked->hca[i].settings.payload_refs;
}

unsigned config_setting_count(const struct config *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < setting_count; i++)
		n += settings[i].scope == SCOPE_DAEMON ? 1 : count_common(c, c);
	return n;
}

/* The number of rows of a scope, which *index is not among; else *found is the row. */
static bool row_at(enum setting_scope scope, unsigned *index, const struct setting **found)
{
	for (unsigned i = 0; i < setting_count; i++) {
		if (settings[i].scope != scope)
			continue;
		*found = &settings[i];
		if ((*index)-- == 0)
			return true;
	}
	return false;
}

int config_setting(const struct config *c, unsigned index, struct config_value *out)
{
	const struct setting *s;
	const void *base = &c->daemon;
	unsigned hca = 0;

	out->section = "daemon";
	if (!row_at(SCOPE_DAEMON, &index, &s)) {
		while (hca < c->hcas && (c->hca[hca].removed || !row_at(SCOPE_HCA, &index, &s)))
			hca++;
		if (hca == c->hcas)
			return -ENOENT;
		base = &c->hca[hca];
		out->section = c->hca[hca].name;
	}
	out->key = s->key;
	out->runtime = s->runtime;
	out->doc = s->doc;
	setting_text(s, base, out->text);
	return 0;
}
