/* SPDX-License-Identifier: BSD-3-Clause */
/* See change.h. What differs is config_merge()'s to find; here it is logged and applied. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/log.h"
#include "base/shares.h"
#include "change.h"
#include "cm-thread/cm_thread.h"
#include "control/control.h"
#include "daemon.h"
#include "notify.h"
#include "pending.h"
#include "removal.h"

enum { STATUS_BYTES = CONFIG_ERROR_BYTES + 64, CHANGER_BYTES = 64 };

/* Who asked for a change, and what of it a running daemon cannot apply. */
struct report {
	char who[CHANGER_BYTES];
	char held[VERDICT_BYTES / 2]; /* names, with commas; the last may be cut */
};

/* Moves the HCA to other addresses, before anything else that depends on them is applied. */
static void change_addresses(struct daemon *d, unsigned i)
{
	if (!device_moves(&d->devices[i]))
		return;
	device_move(&d->devices[i]);
	control_gids_changed(d->control, i);
	cm_thread_moved(d->cm);
}

/* Applies all of the running configuration that can change, although most of it is as before. 0;
 * -ENOMEM: not all was applied, with *error, and logged; the next change tries again. */
static int apply_all(struct daemon *d, struct config_error *error)
{
	const struct daemon_config *c = &d->config.daemon;
	int failed = 0;

	log_set_levels(&c->log_level);
	lcores_set_idle(&d->lcores, c);
	shares_set_user_part(d->shares, c->user_share);
	shares_set_total(d->shares, SHARE_connections, 0, c->connections);
	control_set_hello_timeout(d->control, c->hello_timeout_s * 1000);
	removal_begin(d);
	FOR_EACH_DEVICE (i, d) {
		int ret;

		if (d->devices[i].leaves)
			continue;
		change_addresses(d, i);
		ret = device_change(&d->devices[i]);

		if (!ret)
			continue;
		snprintf(error->text, sizeof(error->text),
			 "applied, but hca %s: not impaired on all queues: %s",
			 d->devices[i].section->name, strerror(-ret));
		LOG(ERR, "%s", error->text);
		failed = ret;
	}
	control_debug_changed(d->control);
	return failed;
}

static const char *or_nothing(const char *text)
{
	return text[0] ? text : "nothing";
}

static void report_restart(struct report *r, const struct config_change *c)
{
	size_t used = strlen(r->held);

	snprintf(r->held + used, sizeof(r->held) - used, "%s%s%s%s", used ? ", " : "",
		 c->key ? c->section : "hca ", c->key ? "." : "", c->key ? c->key : c->section);
}

/* ctx: struct report */
static void log_change(void *ctx, const struct config_change *c)
{
	struct report *r = ctx;
	const char *who = r->who, *before = or_nothing(c->before), *after = or_nothing(c->after);

	if (!c->runtime)
		report_restart(r, c);
	if (!c->key && c->runtime)
		LOG(NOTICE, "%s: hca %s was %s, applied", who, c->section, after);
	else if (!c->key)
		LOG(WARNING, "%s: hca %s was %s: needs a restart", who, c->section, after);
	else if (c->runtime)
		LOG(NOTICE, "%s: %s.%s: %s -> %s, applied", who, c->section, c->key, before, after);
	else
		LOG(WARNING, "%s: %s.%s: %s -> %s: needs a restart", who, c->section, c->key,
		    before, after);
}

/* Checks what would apply if *asked were requested, with or without the HCAs that it adds. 0;
 * -EINVAL with *error. */
static int preview(struct daemon *d, const struct config *asked, bool add, struct config *checked,
		   struct config_error *error)
{
	int ret;

	*checked = d->written;
	config_merge(checked, asked, add, NULL, NULL);
	ret = config_check(checked, options_origin(&d->options), error);
	return ret ? ret : config_fits(&d->config, checked, error);
}

/*
 * Makes *asked, which is not checked yet, the configuration as far as possible. It must be valid as
 * a whole, and what can be applied must be valid together with what cannot change: HCAs that do not
 * fit need a restart, unless they `must` be added. Returns the number of differences; -EINVAL with
 * *error: nothing has changed; -ENOMEM with *error: it has, except for what apply_all() reports.
 */
static int change_settings(struct daemon *d, const struct config *asked, bool must,
			   struct report *r, struct config_error *error)
{
	static struct config checked; /* too large for a stack; one thread */
	bool add = true;
	int ret;

	checked = *asked;
	ret = config_check(&checked, options_origin(&d->options), error);
	if (ret)
		return ret;
	ret = preview(d, asked, add, &checked, error);
	if (ret && !must) {
		LOG(NOTICE, "%s: without the HCAs that were added: %s", r->who, error->text);
		add = false;
		ret = preview(d, asked, add, &checked, error);
	}
	if (ret)
		return ret;
	ret = (int)config_merge(&d->written, asked, add, log_change, r);
	config_adopt(&d->config, &checked);
	return apply_all(d, error) ? -ENOMEM : ret;
}

static void notify_reloading(void)
{
	struct timespec now;
	char state[64];

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		 (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
	notify_service(state);
}

/* A pipe, which a shell may have made for the start, cannot be read a second time and would block
 * us. 0; -EINVAL with *error. */
static int check_file(const struct options *o, struct config_error *error)
{
	struct stat st;

	if (!o->file || stat(o->file, &st) || S_ISREG(st.st_mode))
		return 0; /* reading it tells what else is wrong */
	snprintf(error->text, sizeof(error->text), "%.200s: not a regular file", o->file);
	return -EINVAL;
}

static void tell_manager(int ret, const struct config_error *error)
{
	char state[STATUS_BYTES];

	snprintf(state, sizeof(state), "READY=1\nSTATUS=%s%s",
		 ret < 0 ? "Not reloaded: " : "Running", ret < 0 ? error->text : "");
	notify_service(state);
}

static struct report report_to(const struct control_changer *who, const char *what)
{
	struct report r = {.held = ""};

	snprintf(r.who, sizeof(r.who), "pid %d: user %u%s", (int)who->pid, (unsigned)who->uid,
		 what);
	return r;
}

/* As change_settings(). text: the outcome, for the caller; it is logged, too. */
static int reload(struct daemon *d, struct report *r, char *text, unsigned bytes)
{
	static struct config asked;
	struct config_error error;
	int ret;

	notify_reloading();
	ret = check_file(&d->options, &error);
	if (!ret)
		ret = options_config(&d->options, &asked, &error);
	if (!ret)
		ret = change_settings(d, &asked, false, r, &error);
	if (ret < 0)
		snprintf(text, bytes, "%s%s",
			 ret == -ENOMEM ? "" : "nothing has changed: ", error.text);
	else
		snprintf(text, bytes, "%d difference%s%s%s", ret, ret == 1 ? "" : "s",
			 r->held[0] ? "; these need a restart: " : "", r->held);
	tell_manager(ret, &error);
	if (ret < 0)
		LOG(ERR, "%s: %s", r->who, text);
	else
		LOG(NOTICE, "%s: %s", r->who, text);
	return ret;
}

void change_reload(struct daemon *d)
{
	struct report r = {.who = "reload"};
	char text[VERDICT_BYTES];

	reload(d, &r, text, sizeof(text));
}

int change_read(void *ctx, uint32_t index, struct control_setting *out)
{
	static struct config_value v;
	const struct daemon *d = ctx;
	int ret = config_setting(&d->config, index, &v);

	if (ret)
		return ret;
	snprintf(out->section, sizeof(out->section), "%s", v.section);
	snprintf(out->key, sizeof(out->key), "%s", v.key);
	out->runtime = v.runtime;
	out->shortened =
		snprintf(out->value, sizeof(out->value), "%s", v.text) >= (int)sizeof(out->value);
	return 0;
}

/* The difference that one assignment makes. */
static void copy_change(void *ctx, const struct config_change *c)
{
	*(struct config_change *)ctx = *c;
}

/* `what` may begin with the key, which is not repeated. */
static int change_text(char *text, unsigned bytes, const char *assignment, const char *what,
		       int error)
{
	size_t name = strcspn(assignment, "="), section = strcspn(assignment, "."), key;

	key = section < name ? name - section - 1 : name;
	if (strncmp(what, assignment + name - key, key) == 0 && strncmp(what + key, ": ", 2) == 0)
		what += key + 2;
	snprintf(text, bytes, "%.*s: %s", (int)strcspn(assignment, "="), assignment, what);
	return error;
}

int change_reload_ask(void *ctx, const struct control_changer *who, uint32_t *ticket, char *text,
		      unsigned bytes)
{
	struct report r = report_to(who, ": reload");
	struct daemon *d = ctx;
	int ret;

	if (*ticket)
		return verdict_of(&d->verdicts, *ticket, text, bytes);
	if (pending_changes(d))
		return -EAGAIN;
	ret = reload(d, &r, text, bytes);
	if (ret < 0)
		return ret;
	if (!pending_changes(d))
		return 0;
	*ticket = verdict_begin(&d->verdicts, text);
	return -EAGAIN;
}

int change_one(void *ctx, const struct control_changer *who, const char *assignment, char *text,
	       unsigned bytes)
{
	static struct config asked, now;
	static struct config_change c;
	struct daemon *d = ctx;
	struct report r = report_to(who, "");
	struct config_error error;
	int ret;

	asked = now = d->written;
	if (config_assign(&asked, assignment, &error))
		return change_text(text, bytes, assignment, error.text, -EINVAL);
	if (!config_merge(&now, &asked, false, copy_change, &c))
		return apply_all(d, &error)
			       ? change_text(text, bytes, assignment, error.text, -ENOMEM)
			       : change_text(text, bytes, assignment, "as before", 0);
	if (!c.runtime)
		return change_text(text, bytes, assignment, "needs a restart", -EBUSY);
	ret = change_settings(d, &asked, true, &r, &error);
	if (ret < 0)
		return change_text(text, bytes, assignment, error.text, ret);
	snprintf(text, bytes, "%s.%s: %s -> %s", c.section, c.key, or_nothing(c.before),
		 or_nothing(c.after));
	return 0;
}

int change_add(struct daemon *d, const struct control_changer *who, const char *hca,
	       const char *settings, struct config_error *error)
{
	struct report r = report_to(who, "");
	static struct config asked;
	int ret;

	asked = d->written;
	ret = config_add(&asked, hca, settings, error);
	if (ret)
		return ret;
	/* They are opened with the daemon's rights. */
	if (config_names_files(&asked, hca) && who->uid != 0 && who->uid != geteuid()) {
		snprintf(error->text, sizeof(error->text),
			 "only root and the daemon's own user may name files (port = memif, "
			 "capture)");
		return -EPERM;
	}
	ret = change_settings(d, &asked, true, &r, error);
	return ret == -EINVAL ? ret : 0; /* the failure concerns another HCA, and is logged */
}
