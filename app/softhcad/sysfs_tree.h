/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SYSFS_TREE_H
#define SYSFS_TREE_H
/*
 * The files beside the control socket that programs see as /sys/class/infiniband and
 * /dev/infiniband (host-abi/sysfs.h says what lies where). Beside the socket, because who may have
 * the socket may have them: other containers too, without asking; and because they go with the
 * daemon: a program that is killed leaves nothing behind. Control thread.
 */
struct device;

/* Makes the tree; what a former daemon left there goes. What cannot be made is logged and no
 * reason not to run. */
void sysfs_tree_make(const char *socket_path, struct device *devices, unsigned count);
/* Removes it. */
void sysfs_tree_remove(const char *socket_path);

#endif
