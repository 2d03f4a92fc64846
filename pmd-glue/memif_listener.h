/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_MEMIF_LISTENER_H
#define PMD_GLUE_MEMIF_LISTENER_H
/*
 * The listening sockets of memif servers, where a client that comes or goes at the wrong moment
 * would end the process (seen with DPDK 22.11):
 *
 * - When the last port of a socket closes, the driver frees the socket's state, but closes neither
 *   the socket nor connections that have not yet said which port they want, and EAL goes on calling
 *   it for these. So a device of ours stays at each socket until the process ends and removes the
 *   files.
 * - The driver also frees a client that is gone before it could be greeted, and EAL goes on. So
 *   greetings never fail (sendmsg() in memif_listener.c): the driver then reads the end of the
 *   connection, which it handles well.
 *
 * Control thread, with the gate shut (memif_gate.h).
 */
#include <stdbool.h>

/* Keeps the server's socket at `path`, which a device has just opened. 0; -ENOSPC: too many are
 * kept already; -errno of EAL. */
int memif_listener_keep(const char *path);

/* Is it kept? */
bool memif_listener_kept(const char *path);

#endif
