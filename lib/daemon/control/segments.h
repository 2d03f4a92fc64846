/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_SEGMENTS_H
#define CONTROL_SEGMENTS_H
/* System V segments. */
#include <stdbool.h>
#include <sys/types.h>

/* Is that process in the daemon's IPC namespace? May it attach any segment there,
 * whatever its mode (CAP_IPC_OWNER in the daemon's user namespace)? */
bool segments_same_namespace(pid_t pid);
bool segments_all_allowed(pid_t pid);

#endif
