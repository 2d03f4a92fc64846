/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LOG_STREAM_H
#define LOG_STREAM_H
/*
 * Sends the log to stderr in the form that its reader expects: on a terminal each line begins with the
 * time of day, in the journal with its priority (sd-daemon(3)), which the journal takes away; elsewhere lines stay
 * as they are. Once, before the first line and before the sandbox. Without memory the log stays what
 * DPDK makes of it.
 */
void log_stream_open(void);

#endif
