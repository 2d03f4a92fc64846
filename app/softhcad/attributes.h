/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ATTRIBUTES_H
#define ATTRIBUTES_H
/*
 * What the files below /sys/class/infiniband/DEVICE/ would hold if a kernel knew the device: one
 * table of names and of who writes their texts. The tree on disk (sysfs_tree.h) and the control
 * socket (CONTROL_READ_ATTRIBUTE) are made from it. Control thread.
 */
#include <stdbool.h>

struct device;

enum { ATTRIBUTE_TEXT_MAX = 480, ATTRIBUTE_NAME_MAX = 96 };

/*
 * The text of an attribute, ends with a newline, no 0. name: "fw_ver", "ports/1/gids/0"; those of
 * the device below it begin with "device/". Bytes; -ENOENT: there is no such attribute.
 */
int attribute_read(struct device *v, const char *name, char *text, unsigned int bytes);

/* Calls visit for each attribute there is. live: its text may change. Returns the first value that
 * is not 0, or 0. */
int attributes_each(struct device *v,
		    int (*visit)(void *ctx, struct device *v, const char *name, bool live),
		    void *ctx);

#endif
