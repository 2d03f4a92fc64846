/* SPDX-License-Identifier: BSD-3-Clause */
/* softhca run: sets the environment of a libibverbs program and executes it; see run.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ask.h"
#include "run.h"
#include "softhca/softhca.h"
#include "target.h"

enum {
	EXIT_FAILED = 125,
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
	DEVICES_SHOWN = 16,
	VALUE_BYTES = 4 * PATH_MAX,
};

#define DROP_IN "libibverbs.so.1"
#define PRELOAD "libsofthca-preload.so"

struct run {
	const char *socket, *libdir; /* as given, or NULL */
	bool verbose;
};

/* The two libraries, and the folder to search first. */
struct libraries {
	char drop_in[PATH_MAX], preload[PATH_MAX], folder[PATH_MAX];
};

static void usage(FILE *out)
{
	fputs("usage: softhca run [-v] [--socket PATH] [--libdir FOLDER] [--] PROGRAM "
	      "[ARGUMENT]...\n\n"
	      "Runs a libibverbs program, and all that it starts, on softhca's "
	      "devices.\n\n"
	      "  -v, --verbose     show the environment and the devices\n"
	      "  --socket PATH     control socket of the daemon (SOFTHCA_SOCKET, or the default)\n"
	      "  --libdir FOLDER   folder of " DROP_IN " and " PRELOAD "\n"
	      "                    (SOFTHCA_LIBDIR, or as installed or built)\n\n"
	      "exit status: the program's; 125 softhca run failed, 126 PROGRAM cannot be run, 127 "
	      "it "
	      "does not exist\n",
	      out);
}

/* -1: continue; else the exit code. */
static int run_parse_arguments(int argc, char **argv, struct run *r)
{
	enum { OPTION_SOCKET = 256, OPTION_LIBDIR };
	static const struct option options[] = {{"verbose", no_argument, NULL, 'v'},
						{"socket", required_argument, NULL, OPTION_SOCKET},
						{"libdir", required_argument, NULL, OPTION_LIBDIR},
						{"help", no_argument, NULL, 'h'},
						{0}};
	int option;

	/* +: arguments after PROGRAM are PROGRAM's. */
	while ((option = getopt_long(argc, argv, "+vh", options, NULL)) != -1) {
		switch (option) {
		case 'v':
			r->verbose = true;
			break;
		case OPTION_SOCKET:
			r->socket = optarg;
			break;
		case OPTION_LIBDIR:
			r->libdir = optarg;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return EXIT_FAILED;
		}
	}
	if (optind < argc)
		return -1;
	fputs("softhca run: missing PROGRAM\n", stderr);
	usage(stderr);
	return EXIT_FAILED;
}

/* ---- find the libraries ---- */

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

/* Next to this program in a build folder; relative to it as installed, so the tree may be moved; at
 * the configured path. */
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

static int find_libraries(const struct run *r, struct libraries *l)
{
	const char *given = r->libdir ? r->libdir : getenv("SOFTHCA_LIBDIR");

	if (given && *given ? !found(l, given, given) : !find_usual(l)) {
		fprintf(stderr, "softhca run: %s or %s is missing: see --libdir\n", l->drop_in,
			l->preload);
		return EXIT_FAILED;
	}
	/* Resolve the folder only, so that links in it keep their names. */
	shorten(l->folder);
	snprintf(l->drop_in, PATH_MAX, "%.4000s/" DROP_IN, l->folder);
	shorten(l->preload);
	if (!strpbrk(l->drop_in, " :") && !strpbrk(l->preload, " :"))
		return 0;
	fprintf(stderr,
		"softhca run: the dynamic loader accepts no folder name with a blank or colon: "
		"%s\n",
		l->folder);
	return EXIT_FAILED;
}

/* ---- the daemon ---- */

static int socket_path(const struct run *r, char out[PATH_MAX])
{
	const char *given = r->socket ? r->socket : getenv("SOFTHCA_SOCKET");
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

/* Prints the short form of an IPv6 address: ::ffff:192.168.77.1 for an IPv4 address. */
static void show_gid(const char *socket, const char *device, unsigned int index)
{
	char name[32], text[64] = "", gid[INET6_ADDRSTRLEN];
	struct in6_addr bytes;

	snprintf(name, sizeof(name), "ports/1/gids/%u", index);
	if (softhca_read_attribute(socket, device, name, text, sizeof(text) - 1) <= 0)
		return;
	text[strcspn(text, "\n")] = 0;
	if (inet_pton(AF_INET6, text, &bytes) == 1)
		fprintf(stderr, "softhca run:   GID %u: %s\n", index,
			inet_ntop(AF_INET6, &bytes, gid, sizeof(gid)));
}

static void show_devices(const char *socket, const struct softhca_device_info *list, int n)
{
	for (int i = 0; i < n && i < DEVICES_SHOWN; i++) {
		fprintf(stderr, "softhca run: device %s, port %s, %u Mb/s\n", list[i].name,
			list[i].port.state == SOFTHCA_PORT_ACTIVE ? "active" : "down",
			list[i].port.speed_mbps);
		for (unsigned int gid = 0; gid < list[i].port.gid_count; gid++)
			show_gid(socket, list[i].name, gid);
	}
	fputs("softhca run: as on every RoCE device, connections use GIDs. Give programs that take "
	      "a "
	      "GID index\n"
	      "softhca run: one (ibv_rc_pingpong -g 1), or they fail to modify their QP to RTR.\n",
	      stderr);
}

static int find_daemon(const struct run *r, char path[PATH_MAX])
{
	struct softhca_device_info list[DEVICES_SHOWN];
	int n = socket_path(r, path);

	if (!n)
		n = softhca_device_list(path, list, DEVICES_SHOWN);
	if (n >= 0) {
		if (r->verbose)
			show_devices(path, list, n);
		return 0;
	}
	if (n == -EPROTO)
		fprintf(stderr, "softhca run: the daemon at %s has another version\n", path);
	else
		target_explain("softhca run", path, n);
	if (n == -ENOENT || n == -ECONNREFUSED)
		fputs("Start one (softhcad), or name its socket: --socket or SOFTHCA_SOCKET.\n",
		      stderr);
	return EXIT_FAILED;
}

/* ---- the environment ---- */

static int set(const struct run *r, const char *name, const char *value)
{
	if (setenv(name, value, 1)) {
		perror("softhca run: environment");
		return EXIT_FAILED;
	}
	if (r->verbose)
		fprintf(stderr, "softhca run: %s=%s\n", name, value);
	return 0;
}

/* Prepends to the present value. */
static int put_before(const struct run *r, const char *name, const char *value)
{
	const char *old = getenv(name);
	char both[VALUE_BYTES];

	if (!old || !*old)
		return set(r, name, value);
	if (snprintf(both, sizeof(both), "%s:%s", value, old) >= (int)sizeof(both)) {
		fprintf(stderr, "softhca run: %s is too long\n", name);
		return EXIT_FAILED;
	}
	return set(r, name, both);
}

static int set_environment(const struct run *r, const struct libraries *l, const char *socket)
{
	char preload[2 * PATH_MAX];
	int code = set(r, "SOFTHCA_SOCKET", socket);

	/* For programs that load libibverbs.so by name later; and for those linked with it,
	 * whatever their search path. */
	if (!code)
		code = put_before(r, "LD_LIBRARY_PATH", l->folder);
	snprintf(preload, sizeof(preload), "%s:%s", l->drop_in, l->preload);
	if (!code)
		code = put_before(r, "LD_PRELOAD", preload);
	/* A program with AddressSanitizer would refuse to start: it requires its runtime to come
	 * before preloaded libraries. Ours replace no allocator, so either order works. */
	return code ? code : put_before(r, "ASAN_OPTIONS", "verify_asan_link_order=0");
}

int run_program(int argc, char **argv)
{
	static struct libraries libraries;
	char socket[PATH_MAX];
	struct run r = {.socket = NULL};
	int code = run_parse_arguments(argc, argv, &r);

	if (code >= 0)
		return code;
	code = find_libraries(&r, &libraries);
	if (!code)
		code = find_daemon(&r, socket);
	if (!code)
		code = set_environment(&r, &libraries, socket);
	if (code)
		return code;
	execvp(argv[optind], argv + optind);
	code = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
	fprintf(stderr, "softhca run: %s: %s\n", argv[optind], strerror(errno));
	return code;
}
