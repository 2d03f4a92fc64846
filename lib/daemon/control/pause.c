/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pauses modules and steps them, for those who may change the daemon, at HCAs that allow it. A
 * module stays paused until the connection that asked for it ends, unless it said `keep`: a client
 * that dies or forgets leaves a running daemon. While any module is paused, time stands at all HCAs
 * that allow it, so that none of their timers expires: they may be each other's peers. Control
 * thread.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "capture.h"
#include "objects.h"
#include "pause.h"
#include "session.h"
#include "settings.h"
#include "pipeline/stepping.h"
#include "wire/opcode.h"

enum { STEP_WAITS_MAX = 1000 }; /* quiescent states that a step may take; one is enough */

/* ---- texts ---- */

/* Appends to the text of a reply, as far as there is room. */
static void __attribute__((format(printf, 2, 3)))
say(struct control_change_reply *out, const char *format, ...)
{
	size_t used = strlen(out->text);
	va_list list;

	va_start(list, format);
	vsnprintf(out->text + used, sizeof(out->text) - used, format, list);
	va_end(list);
}

static int __attribute__((format(printf, 3, 4)))
refuse(struct control_change_reply *out, int error, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(out->text, sizeof(out->text), format, list);
	va_end(list);
	out->error = error;
	return 0;
}

static void say_modules(struct control_change_reply *out, const struct device *d, uint32_t modules,
			const char *what)
{
	if (!modules)
		return;
	say(out, "%s%s:", out->text[0] ? "\n" : "", d->config.name);
	for (unsigned int i = 0; i < MODULE_COUNT; i++)
		if (modules & 1u << i)
			say(out, " %s", module_infos[i].name);
	say(out, " %s", what);
}

/* ---- what is meant ---- */

/* The modules of that name, or of the stage of that name, by bit; 0: there are none that could
 * stand. */
static uint32_t modules_named(const char *name)
{
	uint32_t modules = 0;

	for (unsigned int i = 0; i < MODULE_COUNT; i++) {
		const struct module_info *m = &module_infos[i];

		if (module_caller(i) == MODULE_COUNT &&
		    (!name[0] || strcmp(name, m->name) == 0 ||
		     strcmp(name, stage_infos[m->stage].name) == 0))
			modules |= 1u << i;
	}
	return modules;
}

static bool is_meant(const struct device *d, const struct control_pause *in)
{
	return !in->device[0] || strcmp(in->device, d->config.name) == 0;
}

bool device_may_stop(const struct device *d)
{
	return d->config.ops.may_stop && d->config.ops.may_stop(d->config.ctx);
}

/* 0; -errno; with *modules 0 the reply says what is wrong. */
static int pause_check(struct client *client, const struct control_pause *in,
		       struct control_change_reply *out, uint32_t *modules)
{
	*modules = 0;
	if (in->version != CONTROL_VERSION)
		return -EPROTO;
	if (!client_may_change(client))
		return -EPERM;
	if (!memchr(in->device, 0, sizeof(in->device)) || !memchr(in->name, 0, sizeof(in->name)))
		return -EINVAL;
	if (in->device[0] && !device_named(client->control, in->device))
		return refuse(out, -ENODEV, "there is no HCA %s", in->device);
	*modules = modules_named(in->name);
	if (!*modules)
		return refuse(out, -EINVAL, "no stage or module %s that could stand", in->name);
	return 0;
}

/* ---- paused modules ---- */

static struct engine *engines_end(const struct device *d)
{
	return d->config.hca->engines + d->config.hca->config.engines;
}

static void tell_engines(const struct device *d, bool stop_time)
{
	for (struct engine *e = d->config.hca->engines; e < engines_end(d); e++) {
		if (stop_time)
			engine_stop_time(e);
		stepping_set(e, d->paused);
	}
}

static void start_time(const struct device *d)
{
	for (struct engine *e = d->config.hca->engines; e < engines_end(d); e++)
		engine_start_time(e);
}

static bool any_paused(struct control *c)
{
	bool any = false;

	FOR_EACH_DEVICE (d, c)
		any |= d->paused != 0;
	return any;
}

/* Makes the data path pause what device.paused says, and waits for it. Time stops first and starts
 * last, when every lcore has noted for how long it stood. */
static void pause_apply(struct control *c)
{
	const bool any = any_paused(c);

	FOR_EACH_DEVICE (d, c)
		tell_engines(d, any && device_may_stop(d));
	ceu_quiesce(device_first(c)->config.ceu);
	FOR_EACH_DEVICE (d, c)
		if (!any || !device_may_stop(d))
			start_time(d);
}

/* The modules that are paused until that client ends; NULL: until they are resumed. */
static uint32_t held_by(const struct device *d, const struct client *client)
{
	uint32_t modules = 0;

	for (unsigned int i = 0; i < MODULE_COUNT; i++)
		if (d->paused & 1u << i && d->holder[i] == client)
			modules |= 1u << i;
	return modules;
}

static void pause_hold(struct device *d, uint32_t modules, struct client *holder)
{
	d->paused |= modules;
	for (unsigned int i = 0; i < MODULE_COUNT; i++)
		if (modules & 1u << i)
			d->holder[i] = holder;
}

/* Ends the connections that hold no module any more, except the one that asked for it (or NULL). */
static void end_holders(struct control *c, const struct client *asking)
{
	for (struct client *client = c->clients; client; client = client->next) {
		uint32_t held = 0;

		if (!client->holds)
			continue;
		FOR_EACH_DEVICE (d, c)
			held |= held_by(d, client);
		client->holds = held;
		if (!held && client != asking)
			client_lost(client);
	}
}

int run_pause(struct call *call)
{
	const struct control_pause *in = call->body;
	struct control_change_reply *out = call->reply;
	struct client *client = call->client;
	struct control *c = client->control;
	bool allowed = false;
	uint32_t modules;
	int rc = pause_check(client, in, out, &modules);

	if (rc || !modules)
		return rc;
	FOR_EACH_DEVICE (d, c) {
		uint32_t ours = in->keep ? modules : modules & ~d->paused;

		if (!is_meant(d, in) || !device_may_stop(d))
			continue;
		allowed = true;
		if (!ours)
			continue;
		pause_hold(d, ours, in->keep ? NULL : client);
		client->holds |= !in->keep;
		say_modules(out, d, ours, "paused");
		CLIENT_LOG(client, NOTICE, "user %u pauses %s of %s", (unsigned int)client->uid,
			   in->name[0] ? in->name : "all", d->config.name);
	}
	if (!allowed)
		return refuse(out, -EACCES, "the setting debug of %s is off",
			      in->device[0] ? in->device : "every HCA");
	if (!out->text[0])
		return refuse(out, -EBUSY, "%s is paused already", in->name);
	pause_apply(c);
	end_holders(c, client); /* theirs may be paused until resumed now */
	return 0;
}

int run_resume(struct call *call)
{
	const struct control_pause *in = call->body;
	struct control_change_reply *out = call->reply;
	struct client *client = call->client;
	struct control *c = client->control;
	uint32_t modules;
	int rc = pause_check(client, in, out, &modules);

	if (rc || !modules)
		return rc;
	FOR_EACH_DEVICE (d, c) {
		uint32_t resumed = is_meant(d, in) ? modules & d->paused : 0;

		d->paused &= ~resumed;
		say_modules(out, d, resumed, "resumed");
		if (resumed)
			CLIENT_LOG(client, NOTICE, "user %u resumes %s of %s",
				   (unsigned int)client->uid, in->name[0] ? in->name : "all",
				   d->config.name);
	}
	if (!out->text[0])
		say(out, "nothing was paused");
	pause_apply(c);
	end_holders(c, client);
	return 0;
}

void pause_device_end(struct control *c, struct device *d)
{
	if (!d->paused)
		return;
	d->paused = 0;
	pause_apply(c);
	end_holders(c, NULL);
}

void control_debug_changed(struct control *c)
{
	captures_debug_changed(c);
	if (!any_paused(c))
		return;
	FOR_EACH_DEVICE (d, c) {
		if (!d->paused || device_may_stop(d))
			continue;
		d->paused = 0;
		LOG(NOTICE, "%s runs again: its setting debug is off", d->config.name);
	}
	pause_apply(c);
	end_holders(c, NULL);
}

void pause_client_end(struct client *client)
{
	struct control *c = client->control;

	if (!client->holds)
		return;
	client->holds = false;
	FOR_EACH_DEVICE (d, c) {
		uint32_t resumed = held_by(d, client);

		d->paused &= ~resumed;
		if (resumed)
			CLIENT_LOG(client, NOTICE, "has gone: %s runs again", d->config.name);
	}
	pause_apply(c);
}

/* ---- steps ---- */

static void say_element(struct control_change_reply *out, const struct step_element *element)
{
	const struct trace_record *what = &element->what;
	const char *name = wire_opcode_name(what->opcode);

	if (what->kind == TRACE_PACKET)
		say(out, " (QP %u, %s, PSN %u, %u bytes)", (unsigned int)element->qpn,
		    name ? name : "?", (unsigned int)what->psn, (unsigned int)what->bytes);
	else if (element->qpn)
		say(out, " (QP %u)", (unsigned int)element->qpn);
}

static void say_step(struct control_change_reply *out, const struct device *d,
		     const struct engine *e, enum module_id id, const struct step_report *r)
{
	const char *before = ": ";

	say(out, "%s%s", out->text[0] ? "\n" : "", d->config.name);
	if (e->count > 1)
		say(out, " engine %u", e->index);
	say(out, " %s", module_infos[id].name);
	for (unsigned int i = 0; i < CHANNEL_COUNT; i++)
		if (r->taken[i]) {
			say(out, "%stook %u from %s", before, (unsigned int)r->taken[i],
			    channel_infos[i].name);
			before = ", ";
		}
	say_element(out, &r->last);
	for (unsigned int i = 0; i < CHANNEL_COUNT; i++)
		if (r->put[i]) {
			say(out, "%sput %u into %s", before, (unsigned int)r->put[i],
			    channel_infos[i].name);
			before = ", ";
		}
	if (before[0] == ':')
		say(out, ": served %u", (unsigned int)r->elements);
}

/* Steps of a module in one engine. How many there were; -ETIMEDOUT: its lcore does not poll. */
static int step_engine(struct control *c, struct engine *e, enum module_id id, uint32_t steps,
		       struct step_report *report)
{
	stepping_ask(e, id, steps);
	for (unsigned int i = 0; i < STEP_WAITS_MAX; i++) {
		ceu_quiesce(device_first(c)->config.ceu);
		if (stepping_done(e, report))
			return (int)report->steps;
	}
	stepping_ask(e, id, 0);
	return -ETIMEDOUT;
}

/* In the first engine that has something to do. */
static int step_module(struct control *c, struct device *d, enum module_id id, uint32_t steps,
		       struct control_change_reply *out)
{
	struct step_report report;
	int done = 0;

	for (struct engine *e = d->config.hca->engines; e < engines_end(d); e++) {
		done = step_engine(c, e, id, steps, &report);
		if (done < 0)
			return done;
		if (!done)
			continue;
		say_step(out, d, e, id, &report);
		return 0;
	}
	say(out, "%s%s %s: nothing to do, or no room for it", out->text[0] ? "\n" : "",
	    d->config.name, module_infos[id].name);
	return 0;
}

int run_step(struct call *call)
{
	const struct control_pause *in = call->body;
	struct control_change_reply *out = call->reply;
	struct control *c = call->client->control;
	uint32_t modules;
	int rc = pause_check(call->client, in, out, &modules);

	if (rc || !modules)
		return rc;
	if (in->steps == 0 || in->steps > CONTROL_STEPS_MAX)
		return -EINVAL;
	FOR_EACH_DEVICE (d, c)
		for (unsigned int i = 0; i < MODULE_COUNT && !rc; i++)
			if (is_meant(d, in) && modules & d->paused & 1u << i)
				rc = step_module(c, d, i, in->steps, out);
	if (!rc && !out->text[0])
		return in->name[0] ? refuse(out, -EINVAL, "%s is not paused", in->name)
				   : refuse(out, -EINVAL, "nothing is paused");
	return rc;
}
