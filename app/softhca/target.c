/* SPDX-License-Identifier: BSD-3-Clause */
/* See target.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "config/paths.h"
#include "target.h"

static int telemetry_path(const struct request *r, char *path, size_t bytes)
{
	const char *named = r->socket ? r->socket : getenv("SOFTHCA_SOCKET");
	char usual[PATHS_BYTES_MAX], prefix[64];
	int ret = 0;

	if (!named || !named[0]) {
		ret = paths_default_socket(usual, sizeof(usual));
		named = usual;
	}
	if (!ret && r->prefix)
		return paths_telemetry(named, r->prefix, path, bytes);
	if (!ret)
		ret = paths_prefix(named, prefix, sizeof(prefix));
	return ret ? ret : paths_telemetry(named, prefix, path, bytes);
}

int target_connect(const struct request *r, struct connection *c)
{
	char path[PATHS_BYTES_MAX];
	int ret = telemetry_path(r, path, sizeof(path));

	return ret ? ret : connection_open(c, path);
}

int failed(const char *what, const char *why)
{
	fprintf(stderr, "softhca: %s: %s\n", what, why);
	return EXIT_CODE_FAILURE;
}

int target_missing(const struct request *r, int error)
{
	char path[PATHS_BYTES_MAX];

	if (telemetry_path(r, path, sizeof(path)))
		path[0] = '\0';
	fprintf(stderr, "softhca: no daemon answers at %s: %s\n", path, strerror(-error));
	return EXIT_CODE_FAILURE;
}
