/* SPDX-License-Identifier: BSD-3-Clause */
/* See libraries.h. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ask.h"
#include "libraries.h"

static bool found(struct libraries *l, const char *drop_in, const char *preload)
{
	int n = snprintf(l->folder, sizeof(l->folder), "%s", drop_in);

	if (n >= (int)sizeof(l->folder) ||
	    snprintf(l->drop_in, PATH_MAX, "%s/" DROP_IN, drop_in) >= PATH_MAX ||
	    snprintf(l->preload, PATH_MAX, "%s/" PRELOAD, preload) >= PATH_MAX)
		return false;
	return access(l->drop_in, R_OK) == 0 && access(l->preload, R_OK) == 0;
}

/* The folder of this program; "" if unknown. */
static void own_folder(char out[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
	char *slash;

	out[n > 0 ? n : 0] = 0;
	slash = strrchr(out, '/');
	if (slash)
		*slash = 0;
}

/* Looks next to this program in a build folder, then relative to it as installed, so that the tree
 * may be moved, then at the configured path. */
static bool find_usual(struct libraries *l)
{
	char here[PATH_MAX], a[PATH_MAX + 64], b[PATH_MAX + 64];

	own_folder(here);
	snprintf(a, sizeof(a), "%s/../lib/host/verbs", here);
	snprintf(b, sizeof(b), "%s/../lib/host/preload", here);
	if (found(l, a, b))
		return true;
	snprintf(a, sizeof(a), "%s/../" SOFTHCA_LIBDIR_BELOW "/softhca", here);
	return found(l, a, a) || found(l, SOFTHCA_LIBDIR "/softhca", SOFTHCA_LIBDIR "/softhca");
}

static void shorten(char path[PATH_MAX])
{
	char real[PATH_MAX];

	if (realpath(path, real))
		memcpy(path, real, PATH_MAX);
}

int libraries_find(const char *folder, struct libraries *l)
{
	const char *given = folder ? folder : getenv("SOFTHCA_LIBDIR");

	if (given && *given ? !found(l, given, given) : !find_usual(l)) {
		fprintf(stderr, "softhca: %s or %s is missing: see softhca run --help\n",
			l->drop_in, l->preload);
		return -1;
	}
	/* Resolve the folder only, so that links in it keep their names. */
	shorten(l->folder);
	snprintf(l->drop_in, PATH_MAX, "%.4000s/" DROP_IN, l->folder);
	shorten(l->preload);
	if (!strpbrk(l->drop_in, " :") && !strpbrk(l->preload, " :"))
		return 0;
	fprintf(stderr,
		"softhca: the dynamic loader accepts no folder name with a blank or colon: %s\n",
		l->folder);
	return -1;
}

int socket_absolute(const char *given, char out[PATH_MAX])
{
	char usual[ASK_PATH_BYTES], here[PATH_MAX];
	int n;

	if (!given || !*given) {
		if (ask_socket_path("", usual))
			return -ENAMETOOLONG;
		given = usual;
	}
	if (given[0] == '/' || !getcwd(here, sizeof(here)))
		n = snprintf(out, PATH_MAX, "%s", given);
	else
		n = snprintf(out, PATH_MAX, "%.3900s/%s", here, given);
	return n >= PATH_MAX ? -ENAMETOOLONG : 0;
}
