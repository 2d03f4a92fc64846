/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices that come and go while EAL runs. Control thread. */
#include <errno.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_eal.h>

#include "base/log.h"
#include "pmd-glue/port.h"

int port_eal_vdev(const char *name, const char *args)
{
	int error = rte_eal_hotplug_add("vdev", name, args);

	if (error == 0)
		return 0;
	LOG(ERR, "device %s,%s: %s", name, args, strerror(-error));
	return error == -EEXIST ? -EEXIST : -ENODEV;
}

int port_eal_remove(const char *bus, const char *name)
{
	return rte_eal_hotplug_remove(bus, name);
}
