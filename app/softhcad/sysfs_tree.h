/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SYSFS_TREE_H
#define SYSFS_TREE_H
/*
 * The files next to the control socket that programs see as /sys/class/infiniband and
 * /dev/infiniband (layout: host-abi/sysfs.h). Every process with the socket has the files, also in
 * other containers; and they disappear with the daemon, so a killed program leaves nothing behind.
 * Control thread.
 */
struct device;

/* Creates the tree, and removes what a former daemon left. Failures are logged but not fatal. */
void sysfs_tree_make(const char *socket_path, struct device *devices, unsigned count);
/* Adds one device to it. The same. */
void sysfs_tree_add_device(const char *socket_path, struct device *v, unsigned int index);
/* Removes what shows one device, of that name and index. */
void sysfs_tree_remove_device(const char *socket_path, const char *device, unsigned int index);
/* Removes it. */
void sysfs_tree_remove(const char *socket_path);

#endif
