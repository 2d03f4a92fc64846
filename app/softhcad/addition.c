/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See addition.h. The order is that of the start: create port, tables and pipeline; put the stages
 * into the loops of the lcores; then let programs open it, the connection manager among them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "addition.h"
#include "base/log.h"
#include "change.h"
#include "cm-thread/cm_thread.h"
#include "cm_start.h"
#include "control/control.h"
#include "daemon.h"
#include "device_ops.h"
#include "eal.h"
#include "pending.h"
#include "placement.h"
#include "removal.h"
#include "sysfs_tree.h"

/* Puts it into the loops and reconnects the lcores. */
static int join_lcores(struct daemon *d, struct device *v)
{
	int ret;

	lcores_pause(&d->lcores);
	ret = placement_place(&d->lcores, v);
	for (unsigned i = 0; ret && i < d->lcores.count; i++)
		lcore_loop_remove(&d->lcores.loops[i], v->hca);
	placement_connect(&d->lcores, d->devices, d->device_count);
	lcores_resume(&d->lcores);
	return ret;
}

static int open_to_programs(struct daemon *d, unsigned i)
{
	struct device *v = &d->devices[i];
	struct control_device described;
	int ret;

	device_settle(v);
	device_describe(v, &described);
	ret = control_add_device(d->control, i, &described);
	if (ret)
		return ret;
	if (d->shown)
		sysfs_tree_add_device(d->config.daemon.socket, v, i);
	v->arrives = true;
	ret = cm_add(d, i);
	if (ret) /* it has to leave as it came */
		LOG(ERR, "hca %s: connection manager: %s", v->section->name, strerror(-ret));
	return 0;
}

static void explain(const struct daemon *d, const struct hca_section *h, int error,
		    struct config_error *why)
{
	int used = snprintf(why->text, sizeof(why->text), "hca %s: %s", h->name, strerror(-error));

	if (error == -ENOMEM)
		eal_explain_memory(h, d->memory_mib, why->text + used, sizeof(why->text) - used);
	else
		snprintf(why->text + used, sizeof(why->text) - used,
			 ": the daemon's log says more");
}

/* 0; -errno with *why. */
static int addition_create(struct daemon *d, unsigned i, struct config_error *why)
{
	struct hca_section *h = &d->config.hca[i];
	struct device *v = &d->devices[i];
	int ret = placement_join(&d->lcores, h, "/sys", why);

	if (ret)
		return ret;
	ret = device_create(v, h, &d->pools, &d->lcores);
	if (ret) {
		explain(d, h, ret, why);
		return ret;
	}
	d->device_count = RTE_MAX(d->device_count, i + 1);
	ret = join_lcores(d, v);
	if (!ret)
		ret = open_to_programs(d, i);
	if (!ret)
		return 0;
	device_remove(v, d->devices, d->device_count);
	explain(d, h, ret, why);
	return ret;
}

/* Frees its section and its place. */
static void addition_forget(struct daemon *d, unsigned i)
{
	config_remove_hca(&d->written, d->config.hca[i].name);
	config_remove_hca(&d->config, d->config.hca[i].name);
}

static void addition_fail(struct daemon *d, unsigned i, int error, const struct config_error *why)
{
	LOG(ERR, "not added: %s", why->text);
	verdict_fail(&d->verdicts, error, why->text);
	addition_forget(d, i);
}

static void create_missing(struct daemon *d)
{
	struct config_error why;

	for (unsigned i = pending_section_from(d, 0); i < d->config.hcas;
	     i = pending_section_from(d, i + 1)) {
		int ret = addition_create(d, i, &why);

		if (ret)
			addition_fail(d, i, ret, &why);
	}
}

static void addition_complete(struct daemon *d, unsigned i)
{
	struct device *v = &d->devices[i];
	int ret = cm_thread_added(d->cm, i);
	struct config_error why;

	if (ret == -EAGAIN)
		return;
	v->arrives = false;
	if (!ret) {
		LOG(NOTICE, "hca %s: added", v->section->name);
		return;
	}
	snprintf(why.text, sizeof(why.text),
		 "hca %s: the connection manager cannot open it: the daemon's log says more",
		 v->section->name);
	addition_fail(d, i, ret, &why);
	removal_begin(d);
}

void addition_turn(struct daemon *d)
{
	FOR_EACH_DEVICE (i, d)
		if (d->devices[i].arrives)
			addition_complete(d, i);
	if (!pending_removals(d))
		create_missing(d);
}

/* The control thread creates it later, as that takes more time than a user has in a turn. */
int addition_ask(void *ctx, const struct control_changer *who, const char *hca,
		 const char *settings, uint32_t *ticket, char *text, unsigned int bytes)
{
	struct daemon *d = ctx;
	struct config_error why;
	int ret;

	if (*ticket)
		return verdict_of(&d->verdicts, *ticket, text, bytes);
	if (pending_removals(d) || pending_additions(d)) {
		snprintf(text, bytes, "another HCA is being %s: try again",
			 pending_removals(d) ? "removed" : "added");
		return -EBUSY;
	}
	ret = change_add(d, who, hca, settings, &why);
	if (ret) {
		snprintf(text, bytes, "%s", why.text);
		return ret;
	}
	snprintf(text, bytes, "%s: added", hca);
	*ticket = verdict_begin(&d->verdicts, text);
	return -EAGAIN;
}
