/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_H
#define DAEMON_H
/*
 * All that a running daemon consists of, in the order in which it is made. The control thread owns
 * it. Telemetry reads it from threads of its own and takes `lock` for that; the control thread
 * holds it whenever it does not wait.
 */
#include <pthread.h>
#include <stdbool.h>
#include "config/config.h"
#include "device.h"
#include "lcores.h"
#include "pools.h"

struct daemon {
	struct config config;
	uint32_t memory_mib; /* reserved without hugepages; 0: hugepages are used */
	struct lcores lcores;
	struct pools pools;
	struct device devices[HCA_MAX];
	unsigned device_count;
	bool shown; /* sysfs_tree_make() was called */
	struct control *control;
	struct cm_thread *cm; /* atomic; NULL: there is no connection manager */
	pthread_mutex_t lock;
};

/* Does somebody listen on that control socket already? Asked before EAL is started, for the sake of
 * the message. */
bool daemon_is_running(const char *socket_path);

/*
 * Makes everything but EAL, which is up, and starts the lcores, on these CPUs. On failure the log
 * says why and nothing remains. 0 or -errno. Control thread.
 */
int daemon_start(struct daemon *d, const struct config_cpus *cpus);

/* Stops and frees everything in the reverse order. Control thread. */
void daemon_stop(struct daemon *d);

/* Serves the control socket, the ports and what is due, until *stop_requested is set by a signal.
 */
void daemon_run(struct daemon *d, const volatile int *stop_requested);

#endif
