/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ATTRIBUTES_H
#define ATTRIBUTES_H
/*
 * What the files below /sys/class/infiniband/DEVICE/ would hold if a kernel knew the device: one
 * table of names and functions. The tree on disk (sysfs_tree.h) and the control socket's answers
 * (CONTROL_READ_ATTRIBUTE) are generated from it. Control thread.
 */
#include <stdbool.h>

struct device;

enum { ATTRIBUTE_TEXT_MAX = 480, ATTRIBUTE_NAME_MAX = 96 };

/*
 * Writes the text of an attribute, ending with a newline, not NUL-terminated. name: "fw_ver",
 * "ports/1/gids/0"; "device/..." for the underlying device. Returns its length; -ENOENT: unknown.
 */
int attribute_read(struct device *v, const char *name, char *text, unsigned int bytes);

/* Calls visit for each attribute. live: its text may change. Returns the first nonzero result, or
 * 0. */
int attributes_each(struct device *v,
		    int (*visit)(void *ctx, struct device *v, const char *name, bool live),
		    void *ctx);

#endif
