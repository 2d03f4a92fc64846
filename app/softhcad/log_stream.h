/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LOG_STREAM_H
#define LOG_STREAM_H
/*
 * Sends the log to stderr in the form that its reader expects: on a terminal each line begins with the
 * time of day; elsewhere lines stay as they are. If the journal reads stderr it gets whole lines with their fields over its
 * socket (journal.h), others, and those that it does not take there, with their priority in front (sd-daemon(3)).
 * Once, before the first line and before the sandbox. Without memory the log stays what DPDK makes of it. journal: the path
 * of that socket.
 */
void log_stream_open(const char *journal);

#endif
