/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFIG_LOG_LEVELS_H
#define CONFIG_LOG_LEVELS_H
#include "config/config.h"
#include "words.h"

/* Parses the value of log_level. 0; -EINVAL with *why. */
int parse_log_levels(const char *value, struct log_levels *levels, struct reason *why);

#endif
