/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_H
#define DAEMON_H
/*
 * Everything that a running daemon consists of, in order of creation. The control thread owns it.
 * Telemetry's threads read it, holding `lock`, which the control thread holds whenever it is not
 * waiting.
 */
#include <pthread.h>
#include <stdbool.h>
#include "config/config.h"
#include "device.h"
#include "lcores.h"
#include "options.h"
#include "pools.h"
#include "runtime_folder.h"
#include "verdict.h"
#include "watchdog.h"

struct daemon {
	struct options options;
	struct config written; /* what applies, as somebody wrote it ... */
	struct config config;  /* ... and checked: with all that follows from it */
	struct runtime_folder runtime;
	uint32_t memory_mib; /* reserved without hugepages; 0: hugepages are used */
	struct lcores lcores;
	struct pools pools;
	/* That of each section; some may have been removed: FOR_EACH_DEVICE. */
	struct device devices[HCA_MAX];
	unsigned device_count;
	struct verdicts verdicts;
	uint64_t turns; /* of the control thread; atomic, for the watchdog */
	struct watched watched[WATCHDOG_THREADS_MAX];
	bool shown; /* sysfs_tree_make() was called */
	struct shares *shares;
	struct control *control;
	struct cm_thread *cm; /* atomic; NULL: no connection manager */
	pthread_mutex_t lock;
};

/* The first device from index i on that has not been removed, or device_count. */
static inline unsigned daemon_device_from(const struct daemon *d, unsigned i)
{
	while (i < d->device_count && !d->devices[i].section)
		i++;
	return i;
}
#define FOR_EACH_DEVICE(i, d)                                                                      \
	for (unsigned i = daemon_device_from(d, 0); i < (d)->device_count;                         \
	     i = daemon_device_from(d, i + 1))

#endif
