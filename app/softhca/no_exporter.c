/* SPDX-License-Identifier: BSD-3-Clause */
/* `softhca exporter` in a build without libmicrohttpd. */
#include <stdio.h>
#include "view.h"

int view_exporter(struct connection *c, const struct request *r)
{
	fputs("softhca: built without libmicrohttpd, so there is no exporter; "
	      "'softhca metrics' prints the same, e.g. for node_exporter's text files\n",
	      stderr);
	return EXIT_CODE_FAILURE;
}
