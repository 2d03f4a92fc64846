/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_MEMIF_LISTENER_H
#define PMD_GLUE_MEMIF_LISTENER_H
/*
 * The listening sockets of memif servers, where a client that comes or goes at the wrong moment would end the process (seen with
 * DPDK 22.11):
 *
 * - With the last port at a socket the driver frees what belongs to it, but closes neither it nor the connections that
 *   have not said yet which port they want, and EAL goes on calling it for these. So a device stays at each socket until
 *   the process ends, which removes the files.
 * - A client that has gone before it is greeted is freed as well, and EAL goes on. So greetings do not fail: the driver then
 *   reads the end of the connection, which it handles well.
 *
 * Control thread, with the gate shut (memif_gate.h).
 */
#include <stdbool.h>

/* Makes sure that the server's socket at `path` stays, which a device has just opened. 0; -ENOSPC: so many others
 * do already; -errno of EAL. */
int memif_listener_keep(const char *path);

/* Does it? */
bool memif_listener_kept(const char *path);

#endif
