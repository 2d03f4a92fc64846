/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NOTIFY_H
#define NOTIFY_H

/* Notifies the service manager ("READY=1", "STOPPING=1") through $NOTIFY_SOCKET, if set. Never
 * fails. */
void notify_service(const char *state);

#endif
