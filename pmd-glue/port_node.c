/* SPDX-License-Identifier: BSD-3-Clause */
/* The NUMA node of a port's device, according to the kernel, before EAL has probed any device: it
 * decides the choice of lcores, which EAL needs first. Control thread. */
#include <stdio.h>
#include "pmd-glue/port.h"

enum { NODE_UNKNOWN = -1 }; /* the kernel's word, too */

int port_node(const struct port_config *config, const char *sysfs)
{
	char path[PORT_PATH_BYTES + PORT_DEVICE_BYTES];
	int node = NODE_UNKNOWN;
	FILE *file;

	if (config->type == PORT_PCI)
		snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/numa_node", sysfs,
			 config->device);
	else if (config->type == PORT_AF_PACKET || config->type == PORT_AF_XDP)
		snprintf(path, sizeof(path), "%s/class/net/%s/device/numa_node", sysfs,
			 config->device);
	else
		return NODE_UNKNOWN;
	file = fopen(path, "re");
	if (!file)
		return NODE_UNKNOWN;
	if (fscanf(file, "%d", &node) != 1 || node < 0)
		node = NODE_UNKNOWN;
	fclose(file);
	return node;
}
