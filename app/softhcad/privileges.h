/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRIVILEGES_H
#define PRIVILEGES_H
/*
 * Gives up what the daemon does not need: before EAL starts, all capabilities but those of its
 * ports; once the ports are open, the user that started it, if it is to become another; once
 * everything runs, what only starting took. Control thread.
 */
#include <sys/types.h>
#include "config/config.h"
#include "runtime_folder.h"

/* Capabilities that opening a port of that kind takes and this process lacks, as text; NULL:
 * none. */
const char *privileges_lacking(const struct port_config *port);

/*
 * Before any other thread exists. Keeps of the process's capabilities those that its ports take,
 * those by which other users' programs can register System V segments, and for the start those that
 * changing users and setting the socket's group take; programs that it might execute gain none;
 * core dumps leave out shared memory and hugepages, which hold the clients' data and packets. Logs
 * what fails, and goes on.
 */
void privileges_limit(const struct config *c);

/* The user that the daemon becomes; the current one if it is not root, or stays root. */
uid_t privileges_user(const struct config *c);

/*
 * The ports are open: if the process is root and [daemon] user is set, becomes that user, in all
 * threads, after giving it EAL's folder and, if the control socket is the system's, its folder. 0;
 * -ENOENT: there is no such user; another -errno. Logged.
 */
int privileges_become_user(const struct config *c, const struct runtime_folder *folder);

/* Everything has started: this thread keeps only what ports and clients' memory take. Logs a
 * failure. */
void privileges_drop(const struct config *c);

#endif
