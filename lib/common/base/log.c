/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <rte_common.h>
#include "base/log.h"

#define NAME(name) #name,
const char *const log_module_names[] = {LOG_MODULES(NAME)};
const char *const log_level_names[] = {"error", "warning", "notice", "info", "debug"};

int log_types[LOG_MODULE_COUNT];

RTE_INIT(register_types)
{
	for (unsigned i = 0; i < LOG_MODULE_COUNT; i++) {
		char name[32];

		snprintf(name, sizeof(name), "softhca.%s", log_module_names[i]);
		log_types[i] = rte_log_register_type_and_pick_level(name, RTE_LOG_INFO);
	}
}

void log_set_levels(const struct log_levels *levels)
{
	for (unsigned i = 0; i < LOG_MODULE_COUNT; i++) {
		uint8_t level = levels->module[i] ? levels->module[i] - 1 : levels->all;

		rte_log_set_level((uint32_t)log_types[i], RTE_LOG_ERR + level);
	}
}
