/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See removal.h. The connection manager goes first, as it sends through the HCA; then the clients;
 * then the HCA itself. Its section and its index stay, marked, until another HCA takes them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "cm-thread/cm_thread.h"
#include "control/control.h"
#include "daemon.h"
#include "pending.h"
#include "removal.h"
#include "sysfs_tree.h"

void removal_begin(struct daemon *d)
{
	FOR_EACH_DEVICE (i, d)
		d->devices[i].leaves = d->devices[i].section->removed;
}

static void removal_complete(struct daemon *d, unsigned i)
{
	struct device *v = &d->devices[i];
	const char *name = v->section->name;

	control_remove_device(d->control, i);
	if (d->shown)
		sysfs_tree_remove_device(d->config.daemon.socket, name, i);
	device_remove(v, d->devices, d->device_count);
	LOG(NOTICE, "hca %s: removed", name);
}

void removal_turn(struct daemon *d)
{
	FOR_EACH_DEVICE (i, d)
		if (d->devices[i].leaves && cm_thread_remove(d->cm, i))
			removal_complete(d, i);
}

static bool is_leaving(const struct daemon *d, const char *hca)
{
	FOR_EACH_DEVICE (i, d)
		if (d->devices[i].leaves && strcmp(d->devices[i].section->name, hca) == 0)
			return true;
	return false;
}

int removal_ask(void *ctx, const struct control_changer *who, const char *hca, bool again,
		char *text, unsigned int bytes)
{
	struct daemon *d = ctx;
	int ret;

	if (is_leaving(d, hca))
		return -EAGAIN;
	snprintf(text, bytes, "%s: removed", hca);
	if (again)
		return 0;
	if (pending_additions(d)) {
		snprintf(text, bytes, "another HCA is being added: try again");
		return -EBUSY;
	}
	ret = config_remove_hca(&d->written, hca);
	if (ret) {
		snprintf(text, bytes,
			 ret == -EBUSY ? "%s is the last HCA: stop the daemon instead"
				       : "there is no HCA '%s'",
			 hca);
		return ret == -ENOENT ? -ENODEV : ret;
	}
	config_remove_hca(&d->config, hca);
	LOG(NOTICE, "pid %d: user %u: hca %s is being removed", (int)who->pid, (unsigned)who->uid,
	    hca);
	removal_begin(d);
	return -EAGAIN;
}
