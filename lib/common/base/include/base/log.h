/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_LOG_H
#define BASE_LOG_H
/* Logging of the daemon: DPDK's rte_log, with a log type for each module, "softhca.cm" for
 * instance. Never on the data path. */
#include <rte_log.h>
#include "base/log_levels.h"

/* The module of a source file; libraries of other modules are compiled with another. */
#ifndef LOG_AS
#define LOG_AS LOG_daemon
#endif

extern int log_types[LOG_MODULE_COUNT];

/* level: ERR, WARNING, NOTICE, INFO, DEBUG. A newline is added. */
#define LOG(level, fmt, ...)                                                                       \
	rte_log(RTE_LOG_##level, (uint32_t)log_types[LOG_AS], "softhca: " fmt "\n", ##__VA_ARGS__)

/* From now on. EAL sets levels of its own when it starts. */
void log_set_levels(const struct log_levels *levels);

#endif
