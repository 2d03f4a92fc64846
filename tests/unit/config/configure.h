/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_CONFIG_CONFIGURE_H
#define UNIT_CONFIG_CONFIGURE_H
/* A configuration made of settings. */
#include "test.h"
#include "setting.h"

enum { SETS_MAX = 8 };

/* The default configuration with settings, up to the first NULL. Not checked. */
static inline void configure(struct config *c, const char *const set[SETS_MAX])
{
	struct config_error error;

	config_defaults(c);
	for (unsigned k = 0; k < SETS_MAX && set[k]; k++)
		assert_int_equal(config_set(c, set[k], &error), 0);
}

/* The same, and it is accepted. */
static inline void configure_checked(struct config *c, const char *const set[SETS_MAX])
{
	struct config_error error;

	configure(c, set);
	assert_int_equal(config_check(c, "test", &error), 0);
}

#endif
