/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef JOURNAL_H
#define JOURNAL_H
/*
 * The journal's own protocol (systemd's JOURNAL_NATIVE_PROTOCOL): a datagram for each line, with
 * fields by which journalctl can select lines. We take our fields from the beginning of the line:
 * "softhca: port hca0: link up". Nothing here waits for the journal or allocates memory.
 */
#include <stdbool.h>
#include <stddef.h>

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/* Before the first line. path: of the journal's socket. The socket stays open. */
void journal_open(const char *path);

/* A line without its newline, of that priority (syslog's, 0 to 7). module: whose it is; NULL: it
 * begins with the name. False: the journal has not taken it, because it is not there, or is busy.
 * Any thread. */
bool journal_send(int priority, const char *module, const char *line, size_t length);

#endif
