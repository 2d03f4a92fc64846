/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SETTINGS_H
#define SETTINGS_H
/* The settings of a running daemon, as `softhca set` and completion know them: asked for over its
 * control socket. */
#include <stdbool.h>
#include "host-abi/control.h"

enum { SETTINGS_MAX = 512 };

struct settings {
	int fd; /* connected to the daemon */
	unsigned count;
	struct control_setting setting[SETTINGS_MAX];
};

/* Connects to the daemon at that control socket (NULL: as usual) and asks for all of them. 0;
 * -errno with nothing left. */
int settings_open(const char *socket, struct settings *s);
void settings_close(struct settings *s);

/* Does this name the setting: HCA.KEY, daemon.KEY, or KEY alone (hca: then only that HCA's, or the
 * daemon's)? */
bool setting_is(const struct control_setting *s, const char *name, const char *hca);

#endif
