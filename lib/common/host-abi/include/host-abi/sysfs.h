/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_ABI_SYSFS_H
#define HOST_ABI_SYSFS_H
/*
 * The tree of files that the daemon keeps next to its control socket, and that lib/host/preload
 * shows to programs in place of the kernel's:
 *
 *	SOCKET.sysfs/sys/class/infiniband/hca0 -> the device below sys/devices
 *	SOCKET.sysfs/sys/class/infiniband_verbs/{abi_version, uverbs0 ->}
 *	SOCKET.sysfs/sys/devices/virtual/softhca/hca0/          what "device" leads to
 *	SOCKET.sysfs/sys/devices/virtual/softhca/hca0/infiniband/hca0/ports/1/...
 *	SOCKET.sysfs/sys/devices/virtual/softhca/hca0/infiniband_verbs/uverbs0/
 *	SOCKET.sysfs/dev/infiniband/uverbs0 -> /dev/null        a character device, nothing more
 *	SOCKET.sysfs/dev/infiniband/rdma_cm -> /dev/null        opened: a channel (cm_channel.h)
 *
 * An empty file is live: its content is requested from the daemon (CONTROL_READ_ATTRIBUTE) when it
 * is opened, by its path below .../infiniband/DEVICE/.
 */
#define SYSFS_TREE_SUFFIX   ".sysfs"
#define SYSFS_DEVICES	    "/sys/devices/virtual/softhca"
#define SYSFS_CLASS	    "/sys/class/infiniband"
#define SYSFS_VERBS_CLASS   "/sys/class/infiniband_verbs"
#define SYSFS_DEVICE_FOLDER "/dev/infiniband"
#define SYSFS_RDMA_CM	    "/dev/infiniband/rdma_cm"

#endif
