/* SPDX-License-Identifier: BSD-3-Clause */
/* In a build without libmicrohttpd there is no HTTP server: see http.h. */
#include <stdio.h>
#include "http.h"

const char *http_header(const struct http_get *get, const char *name)
{
	return NULL;
}

const char *http_argument(const struct http_get *get, const char *name)
{
	return NULL;
}

struct http_reply http_words(enum http_status status, const char *type, const char *words)
{
	return (struct http_reply){.status = status};
}

int http_serve(const struct http_server *server, const struct request *r)
{
	fputs("softhca: built without libmicrohttpd, so it serves nothing; "
	      "'softhca metrics' and 'softhca all' print the same, once\n",
	      stderr);
	return EXIT_CODE_FAILURE;
}
