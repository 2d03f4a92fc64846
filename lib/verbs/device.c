/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of devices: those of the daemon at SOFTHCA_SOCKET or its usual place. Any thread.
 *
 * The environment decides (softhca run): where no daemon listens there is no device, which is how
 * programs expect to hear that a machine has no hardware.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "verbs_priv.h"

void device_hold(struct shca_device *d)
{
	__atomic_add_fetch(&d->users, 1, __ATOMIC_RELAXED);
}

void device_release(struct shca_device *d)
{
	if (__atomic_sub_fetch(&d->users, 1, __ATOMIC_ACQ_REL) == 0)
		free(d);
}

static struct shca_device *device_new(const struct softhca_device_attr *attr, int index)
{
	struct shca_device *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->ibv.node_type = IBV_NODE_CA;
	d->ibv.transport_type = IBV_TRANSPORT_IB;
	snprintf(d->ibv.name, sizeof(d->ibv.name), "%s", attr->name);
	snprintf(d->ibv.dev_name, sizeof(d->ibv.dev_name), "uverbs%d", index);
	snprintf(d->ibv.dev_path, sizeof(d->ibv.dev_path), "/sys/class/infiniband_verbs/uverbs%d",
		index);
	snprintf(d->ibv.ibdev_path, sizeof(d->ibv.ibdev_path), "/sys/class/infiniband/%s",
		attr->name);
	d->guid = htobe64(attr->guid);
	d->index = index;
	d->users = 1;
	return d;
}

VERBS_PUBLIC struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list = calloc(2, sizeof(list[0]));
	struct softhca_device_attr attr;
	struct softhca_context *hca = list ? softhca_open(NULL, NULL) : NULL;
	struct shca_device *d = NULL;

	if (num_devices)
		*num_devices = 0;
	if (!list)
		return NULL;
	if (hca) {
		softhca_query_device(hca, &attr);
		softhca_close(hca);
		d = device_new(&attr, 0);
	}
	list[0] = d ? &d->ibv : NULL;
	if (num_devices)
		*num_devices = d != NULL;
	return list;
}

VERBS_PUBLIC void ibv_free_device_list(struct ibv_device **list)
{
	for (struct ibv_device **d = list; *d; d++)
		device_release(to_shca_device(*d));
	free(list);
}

VERBS_PUBLIC const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

VERBS_PUBLIC __be64 ibv_get_device_guid(struct ibv_device *device)
{
	return to_shca_device(device)->guid;
}

VERBS_PUBLIC int ibv_get_device_index(struct ibv_device *device)
{
	return to_shca_device(device)->index;
}

/* ---- what programs look up beside the library ---- */

const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

VERBS_PUBLIC const char *ibv_get_sysfs_path(void)
{
	const char *path = secure_getenv("SYSFS_PATH");

	return path && path[0] ? path : "/sys";
}

/* The bytes without the end of line, as a string where there is room for its end; -1 with errno. */
VERBS_PUBLIC int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[IBV_SYSFS_PATH_MAX + IBV_SYSFS_NAME_MAX];
	ssize_t n;
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, buf, size);
	close(fd);
	if (n <= 0)
		return (int)n;
	if (buf[n - 1] == '\n')
		buf[--n] = 0;
	else if ((size_t)n < size)
		buf[n] = 0;
	return (int)n;
}

/* ---- providers and forks ---- */

void ibv_register_driver(const char *name, void *init);
/* What providers of old releases call when they are loaded: none is needed here. */
VERBS_PUBLIC void ibv_register_driver(const char *name, void *init)
{
}

/* Registered memory is safe across fork() whether it is asked for or not: lib/sharing. */
VERBS_PUBLIC int ibv_fork_init(void)
{
	return 0;
}

VERBS_PUBLIC enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

VERBS_PUBLIC int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

VERBS_PUBLIC int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}
