/* SPDX-License-Identifier: BSD-3-Clause */
/* `softhca reload`: makes the running daemon read its configuration again. What systemctl reload
 * runs: unlike SIGHUP it fails where the daemon refuses the file. */
#include "commands.h"
#include "target.h"
#include "view.h"

int view_reload(struct connection *unused, const struct request *r)
{
	const struct control_reload in = {.version = CONTROL_VERSION};

	(void)unused;
	return ask_change(r, CONTROL_RELOAD, &in, sizeof(in), "reload",
			  ONLY_ADMINS_MAY("reload the configuration"));
}
