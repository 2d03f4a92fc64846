/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of devices: those of the daemon at SOFTHCA_SOCKET or its usual place. Any thread.
 *
 * The environment decides (softhca run): where no daemon listens there is no device, as programs
 * expect of a machine without the hardware.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "device.h"
#include "handles.h"

/* Devices in a list or open: a device that is found again is the same object as long as it has a
 * user. */
static struct shca_device *known;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

void device_hold(struct shca_device *d)
{
	pthread_mutex_lock(&known_lock);
	d->users++;
	pthread_mutex_unlock(&known_lock);
}

void device_release(struct shca_device *d)
{
	struct shca_device **at = &known;
	bool last;

	pthread_mutex_lock(&known_lock);
	last = --d->users == 0;
	if (last) {
		while (*at != d)
			at = &(*at)->next;
		*at = d->next;
	}
	pthread_mutex_unlock(&known_lock);
	if (last)
		free(d);
}

static struct shca_device *device_new(const struct softhca_device_info *info)
{
	struct shca_device *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->ibv.node_type = IBV_NODE_CA;
	d->ibv.transport_type = IBV_TRANSPORT_IB;
	snprintf(d->ibv.name, sizeof(d->ibv.name), "%s", info->name);
	snprintf(d->ibv.dev_name, sizeof(d->ibv.dev_name), "uverbs%u", info->index);
	snprintf(d->ibv.dev_path, sizeof(d->ibv.dev_path), "/sys/class/infiniband_verbs/uverbs%u",
		 info->index);
	snprintf(d->ibv.ibdev_path, sizeof(d->ibv.ibdev_path), "/sys/class/infiniband/%s",
		 info->name);
	d->guid = htobe64(info->guid);
	d->index = (int)info->index;
	d->next = known;
	known = d;
	return d;
}

/* Adds a user. NULL: no memory. */
static struct shca_device *device_find(const struct softhca_device_info *info)
{
	struct shca_device *d;

	pthread_mutex_lock(&known_lock);
	for (d = known; d; d = d->next)
		if (d->index == (int)info->index && d->guid == htobe64(info->guid) &&
		    strcmp(d->ibv.name, info->name) == 0)
			break;
	if (!d)
		d = device_new(info);
	if (d)
		d->users++;
	pthread_mutex_unlock(&known_lock);
	return d;
}

/* All devices of the daemon, *count of them. The caller frees. NULL with errno. */
static struct softhca_device_info *ask_daemon(int *count)
{
	struct softhca_device_info *info = NULL, *more;
	int room = 0, n = 1;

	while (n > room) {
		room = n;
		more = realloc(info, (size_t)room * sizeof(info[0]));
		if (!more) {
			free(info);
			return NULL;
		}
		info = more;
		n = softhca_device_list(NULL, info, (unsigned int)room);
	}
	*count = n < 0 ? 0 : n; /* no daemon, or an incompatible one */
	return info;
}

VERBS_PUBLIC struct ibv_device **ibv_get_device_list(int *num_devices)
{
	int n = 0, found = 0;
	struct softhca_device_info *info = ask_daemon(&n);
	struct ibv_device **list = info ? calloc((size_t)n + 1, sizeof(list[0])) : NULL;

	for (int i = 0; list && i < n; i++) {
		struct shca_device *d = device_find(&info[i]);

		if (d)
			list[found++] = &d->ibv;
	}
	free(info);
	if (num_devices)
		*num_devices = found;
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

/* ---- what programs look up besides the library ---- */

const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

VERBS_PUBLIC const char *ibv_get_sysfs_path(void)
{
	const char *path = secure_getenv("SYSFS_PATH");

	return path && path[0] ? path : "/sys";
}

/* What the file at `path` holds, or would hold if it existed: the daemon knows what belongs to its
 * devices. Returns its length, -1 with errno. */
static ssize_t read_sysfs(const char *path, char *buf, size_t size)
{
	static const char devices[] = "/sys/class/infiniband/";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char device[IBV_SYSFS_NAME_MAX];
	const char *name;
	ssize_t n;

	if (fd >= 0) {
		n = read(fd, buf, size);
		close(fd);
		return n;
	}
	if (strncmp(path, devices, sizeof(devices) - 1) != 0)
		return -1;
	path += sizeof(devices) - 1;
	name = strchr(path, '/');
	if (!name || (size_t)(name - path) >= sizeof(device))
		return -1;
	memcpy(device, path, (size_t)(name - path));
	device[name - path] = 0;
	n = softhca_read_attribute(NULL, device, name + 1, buf, (unsigned int)size);
	if (n < 0)
		errno = (int)-n;
	return n < 0 ? -1 : n;
}

/* Reads it without the newline, terminated if there is room. Returns the length, -1 with errno. */
VERBS_PUBLIC int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[IBV_SYSFS_PATH_MAX + IBV_SYSFS_NAME_MAX];
	ssize_t n;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	n = read_sysfs(path, buf, size);
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
/* Called by providers of old releases when they are loaded: none is needed here. */
VERBS_PUBLIC void ibv_register_driver(const char *name, void *init)
{
}

/* Registered memory is always safe across fork(): lib/host/share-in-place. */
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
