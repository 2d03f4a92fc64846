/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFIG_CONFIG_FILE_H
#define CONFIG_CONFIG_FILE_H
/* HCAs of a configuration. */
#include "config/config.h"
#include "words.h"

/* Adds an HCA with default settings to *c, at the end, or in the place of one that has been
 * removed. 0; -EINVAL with *why (name, too many). */
int config_add_hca(struct config *c, const char *name, struct hca_section **out,
		   struct reason *why);

/* The HCA of that name, or NULL. */
struct hca_section *config_find_hca(struct config *c, const char *name);

#endif
