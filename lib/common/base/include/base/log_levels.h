/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_LOG_LEVELS_H
#define BASE_LOG_LEVELS_H
/* Which messages the daemon logs: a level for all modules, and other levels for some of them. */
#include <stdint.h>

/* Parts of the daemon that log; their names are the words of the setting log_level. */
#define LOG_MODULES(X)                                                                             \
	X(daemon)  /* start, changes, HCAs, lcores */                                              \
	X(control) /* programs on the control socket */                                            \
	X(cm)	   /* the connection manager */                                                    \
	X(port)

enum log_module {
#define LOG_MODULE_ID(name) LOG_##name,
	LOG_MODULES(LOG_MODULE_ID)
#undef LOG_MODULE_ID
		LOG_MODULE_COUNT
};

extern const char *const log_module_names[LOG_MODULE_COUNT];

enum log_level { LEVEL_ERROR, LEVEL_WARNING, LEVEL_NOTICE, LEVEL_INFO, LEVEL_DEBUG, LEVEL_COUNT };

extern const char *const log_level_names[LEVEL_COUNT];

struct log_levels {
	uint8_t all; /* enum log_level: the least severe messages that are logged ... */
	uint8_t module
		[LOG_MODULE_COUNT]; /* ... but of that module: 1 + enum log_level; 0: as all */
};

#endif
