/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of devices: those of the daemon at SOFTHCA_SOCKET or its usual place. Any thread.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* The environment decides (softhca run): a daemon that is not there has no devices. */
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
