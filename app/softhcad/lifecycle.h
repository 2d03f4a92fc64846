/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIFECYCLE_H
#define LIFECYCLE_H
/* Starts, runs and stops a daemon. Control thread. */
#include "daemon.h"

/* Does a daemon listen on that control socket? Checked before EAL starts, to report it clearly. */
bool daemon_is_running(const char *socket_path);

/*
 * Creates everything except EAL, which is up, and starts the lcores on these CPUs. On failure the
 * log has the reason and nothing remains. 0 or -errno. Control thread.
 */
int daemon_start(struct daemon *d, const struct config_cpus *cpus);

/* Stops and frees everything in the reverse order. Control thread. */
void daemon_stop(struct daemon *d);

/* Serves the control socket, the ports and timers until a signal sets *stop_requested; reads the
 * configuration again when one sets *reload_requested, which it clears. */
void daemon_run(struct daemon *d, const volatile int *stop_requested,
		volatile int *reload_requested);

#endif
