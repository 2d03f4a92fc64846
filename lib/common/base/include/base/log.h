/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_LOG_H
#define BASE_LOG_H
/* Logging of the daemon: DPDK's rte_log under one log type, "softhca". Never on the data path. */
#include <rte_log.h>

extern int softhca_logtype;

/* level: ERR, WARNING, NOTICE, INFO, DEBUG. A newline is added. */
#define LOG(level, fmt, ...)                                                                       \
	rte_log(RTE_LOG_##level, softhca_logtype, "softhca: " fmt "\n", ##__VA_ARGS__)

#endif
