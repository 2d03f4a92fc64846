/* SPDX-License-Identifier: BSD-3-Clause */
/* softhca, the command-line tool: queries a running softhcad through DPDK's telemetry socket. Loads
 * no DPDK library. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include "config/paths.h"
#include "run.h"
#include "view.h"

enum { OPTION_SOCKET = 256, OPTION_PREFIX, OPTION_HCA, OPTION_DOT, OPTION_PROBE, OPTION_VERSION };

static const struct option long_options[] = {
	{"socket", required_argument, NULL, OPTION_SOCKET},
	{"prefix", required_argument, NULL, OPTION_PREFIX},
	{"hca", required_argument, NULL, OPTION_HCA},
	{"interval", required_argument, NULL, 'i'},
	{"json", no_argument, NULL, 'j'},
	{"all", no_argument, NULL, 'a'},
	{"dot", no_argument, NULL, OPTION_DOT},
	{"probe", no_argument, NULL, OPTION_PROBE},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPTION_VERSION},
	{0},
};

static const struct command {
	const char *name;
	int (*view)(struct connection *c, const struct request *r);
	bool offline; /* needs the daemon only for --json */
} commands[] = {
	{"status", view_status, false},	   {"qp", view_qp, false},
	{"fifos", view_fifos, false},	   {"counters", view_counters, false},
	{"held", view_held, false},	   {"cm", view_cm, false},
	{"limits", view_limits, false},	   {"runtime", view_runtime, false},
	{"topology", view_topology, true},
};

/* The daemon to query. */
struct target {
	const char *socket, *prefix;
};

static void print_usage(FILE *out)
{
	fputs("usage: softhca [--socket PATH | --prefix NAME] [--hca NAME] [--json] [show] "
	      "COMMAND\n"
	      "       softhca run [-v] [--socket PATH] [--] PROGRAM [ARGUMENT]...\n\n"
	      "  status [--probe]  ports, lcores, memory, clients; --probe measures the lcores' "
	      "distances\n"
	      "  qp [QPN]          queue pairs, or one in full (with --hca)\n"
	      "  fifos             channels between modules: occupancy, high-water mark, full, "
	      "empty\n"
	      "  counters [--all]  nonzero counters; all, with their descriptions\n"
	      "  held              resources held for clients, including the connection manager\n"
	      "  limits [--all]    what programs share: how much one may have, who holds how much, "
	      "who was "
	      "refused\n"
	      "  runtime           what each module does and costs, over an interval: -i SECONDS "
	      "(1)\n"
	      "  cm [--all]        the connection manager: programs' identifiers, counters\n"
	      "  topology [--dot]  the pipeline, drawn from its table, and its placement; "
	      "--dot for graphviz\n"
	      "  run               runs a libibverbs program on these devices (softhca run "
	      "--help)\n\n"
	      "  --socket PATH     control socket of the daemon, as given to softhcad\n"
	      "  --prefix NAME     the daemon's DPDK process name, if daemon.prefix is "
	      "set\n"
	      "  --json            print the daemon's answers as JSON\n"
	      "  --help, --version\n\n"
	      "exit status: 0; 1 no daemon, or it refused; 2 usage\n",
	      out);
}

static int refuse(const char *what, const char *name)
{
	fprintf(stderr, "softhca: %s%s\n", what, name);
	print_usage(stderr);
	return EXIT_CODE_USAGE;
}

static int telemetry_path(const struct target *target, char *path, size_t bytes)
{
	const char *named = target->socket ? target->socket : getenv("SOFTHCA_SOCKET");
	char usual[PATHS_BYTES_MAX], prefix[64];
	int ret = 0;

	if (!named || !named[0]) {
		ret = paths_default_socket(usual, sizeof(usual));
		named = usual;
	}
	if (!ret && target->prefix)
		return paths_telemetry(named, target->prefix, path, bytes);
	if (!ret)
		ret = paths_prefix(named, prefix, sizeof(prefix));
	return ret ? ret : paths_telemetry(named, prefix, path, bytes);
}

static int run_command(const struct command *command, const struct target *target,
		       const struct request *r)
{
	static struct connection connection;
	char path[PATHS_BYTES_MAX];
	int ret, code;

	ret = telemetry_path(target, path, sizeof(path));
	if (!ret)
		ret = connection_open(&connection, path);
	if (ret && command->offline && !r->json)
		return command->view(NULL, r);
	if (ret) {
		fprintf(stderr, "softhca: no daemon answers at %s: %s\n", path, strerror(-ret));
		return EXIT_CODE_FAILURE;
	}
	code = command->view(&connection, r);
	connection_close(&connection);
	return code;
}

/* -1: continue; else the exit code. */
static int parse_arguments(int argc, char **argv, struct target *target, struct request *r)
{
	int option;
	char *end;

	while ((option = getopt_long(argc, argv, "jahi:", long_options, NULL)) != -1) {
		switch (option) {
		case OPTION_SOCKET:
			target->socket = optarg;
			break;
		case OPTION_PREFIX:
			target->prefix = optarg;
			break;
		case OPTION_HCA:
			r->hca = optarg;
			break;
		case 'i':
			r->interval_s = strtod(optarg, &end);
			if (*end || !(r->interval_s > 0 && r->interval_s <= 3600))
				return refuse("not a number of seconds: ", optarg);
			break;
		case 'j':
			r->json = true;
			break;
		case 'a':
			r->all = true;
			break;
		case OPTION_DOT:
			r->dot = true;
			break;
		case OPTION_PROBE:
			r->probe = true;
			break;
		case 'h':
			print_usage(stdout);
			return EXIT_CODE_OK;
		case OPTION_VERSION:
			printf("softhca %s\n", SOFTHCA_VERSION);
			return EXIT_CODE_OK;
		default:
			print_usage(stderr);
			return EXIT_CODE_USAGE;
		}
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct request r = {.interval_s = 1};
	struct target target = {.socket = NULL};
	int code;

	if (argc > 1 && strcmp(argv[1], "run") == 0)
		return run_program(argc - 1, argv + 1);
	code = parse_arguments(argc, argv, &target, &r);
	if (code >= 0)
		return code;
	if (optind == argc)
		return refuse("missing command", "");
	if (strcmp(argv[optind], "show") == 0 && optind + 1 < argc)
		optind++; /* as in "show runtime" */
	if (strcmp(argv[optind], "qp") == 0 && optind + 2 == argc)
		r.object = argv[argc - 1];
	else if (optind + 1 != argc)
		return refuse("unexpected argument ", argv[optind + 1]);
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(argv[optind], commands[i].name) == 0)
			return run_command(&commands[i], &target, &r);
	}
	return refuse("unknown command ", argv[optind]);
}
