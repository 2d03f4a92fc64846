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
#include "libraries.h"
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

struct run {
	const char *socket, *libdir; /* as given, or NULL */
	bool verbose;
};

static void usage(FILE *out)
{
	fputs("usage: softhca run [-v] [--socket PATH] [--libdir FOLDER] [--] PROGRAM "
	      "[ARGUMENT]...\n\n"
	      "Runs a libibverbs program, and all that it starts, on softhca's "
	      "devices.\n\n"
	      "  -v, --verbose     show the environment and the devices; on a terminal, how far\n"
	      "                    registrations of many GB are\n"
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

/* ---- the daemon ---- */

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
	int n = socket_absolute(r->socket ? r->socket : getenv("SOFTHCA_SOCKET"), path);

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
	if (!code && r->verbose)
		code = set(r, "SOFTHCA_VERBOSE", "1");
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
	code = libraries_find(r.libdir, &libraries) ? EXIT_FAILED : 0;
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
