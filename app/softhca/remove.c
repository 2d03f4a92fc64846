/* SPDX-License-Identifier: BSD-3-Clause */
/* `softhca remove`: takes an HCA out of the running daemon. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "commands.h"
#include "target.h"
#include "view.h"

int view_remove(struct connection *unused, const struct request *r)
{
	const char *hca = r->object ? r->object : r->hca;
	struct control_remove_hca in = {.version = CONTROL_VERSION};

	(void)unused;
	if (!hca) {
		fputs("softhca: remove which HCA? 'softhca status' lists them\n", stderr);
		return EXIT_CODE_USAGE;
	}
	if (snprintf(in.device, sizeof(in.device), "%s", hca) >= (int)sizeof(in.device))
		return failed(hca, strerror(ENAMETOOLONG));
	return ask_change(r, CONTROL_REMOVE_HCA, &in, sizeof(in), hca,
			  ONLY_ADMINS_MAY("remove HCAs"));
}
