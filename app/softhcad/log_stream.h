/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LOG_STREAM_H
#define LOG_STREAM_H
/*
 * Sends the log to stderr in the form that its reader expects: on a terminal each line begins with
 * the time of day; elsewhere lines stay as they are. If the journal reads stderr, whole lines go to
 * its socket with their fields (journal.h); others, and those that the socket does not take, go to
 * stderr with their priority in front (sd-daemon(3)). Once, before the first line and before the
 * sandbox. Out of memory, the log stays as DPDK prints it. journal: the path of that socket.
 */
void log_stream_open(const char *journal);

#endif
