/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of softhcad: reads the configuration, applies options, checks the result. Starts
 * nothing. */
#include <getopt.h>
#include <string.h>
#include "options.h"

enum { SETS_MAX = 256 };

enum {
	OPTION_SET = 256,
	OPTION_SOCKET,
	OPTION_CHECK,
	OPTION_NO_SANDBOX,
	OPTION_PRINT_CONFIG,
	OPTION_VERSION
};

static const struct option long_options[] = {
	{"config", required_argument, NULL, 'c'},
	{"set", required_argument, NULL, OPTION_SET},
	{"socket", required_argument, NULL, OPTION_SOCKET},
	{"check", no_argument, NULL, OPTION_CHECK},
	{"no-sandbox", no_argument, NULL, OPTION_NO_SANDBOX},
	{"print-config", no_argument, NULL, OPTION_PRINT_CONFIG},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPTION_VERSION},
	{0},
};

/* The request of the command line. */
struct request {
	const char *file, *socket;
	const char *set[SETS_MAX];
	unsigned sets;
	bool check, verbose, no_sandbox;
};

static void print_usage(FILE *out)
{
	fputs("usage: softhcad [-c FILE] [--set SECTION.KEY=VALUE]... [--socket PATH] [--check] "
	      "[--no-sandbox] [-v]\n"
	      "       softhcad --print-config | --help | --version\n",
	      out);
}

static void print_help(void)
{
	print_usage(stdout);
	fputs("\nThe softhca daemon: one or more RDMA HCAs in software. Without -c it runs the\n"
	      "configuration printed by --print-config: two HCAs connected to each other, which\n"
	      "need no device, no root and no hugepages.\n\n"
	      "  -c, --config FILE        read the configuration from FILE\n"
	      "      --set SECTION.KEY=VALUE  change one setting; SECTION is daemon or the name of "
	      "an HCA\n"
	      "      --socket PATH        the same as --set daemon.socket=PATH\n"
	      "      --check              check the configuration and exit\n"
	      "      --no-sandbox         allow all system calls, to find out whether one is "
	      "missing\n"
	      "      --print-config       print the built-in configuration, with comments, and "
	      "exit\n"
	      "  -v, --verbose            the same as --set daemon.log_level=debug\n"
	      "  -h, --help               print this and exit\n"
	      "      --version            print the version and exit\n\n"
	      "exit status: 0 stopped by SIGTERM or SIGINT; 1 failure; 2 usage or "
	      "configuration\n\n",
	      stdout);
	config_help(stdout);
}

static enum options_outcome refuse_usage(const char *reason)
{
	if (reason)
		fprintf(stderr, "softhcad: %s\n", reason);
	print_usage(stderr);
	return OPTIONS_USAGE;
}

static enum options_outcome options_parse(int argc, char **argv, struct request *r)
{
	int option;

	while ((option = getopt_long(argc, argv, "c:vh", long_options, NULL)) != -1) {
		switch (option) {
		case 'c':
			r->file = optarg;
			break;
		case OPTION_SET:
			if (r->sets == SETS_MAX)
				return refuse_usage("too many --set");
			r->set[r->sets++] = optarg;
			break;
		case OPTION_SOCKET:
			r->socket = optarg;
			break;
		case OPTION_CHECK:
			r->check = true;
			break;
		case OPTION_NO_SANDBOX:
			r->no_sandbox = true;
			break;
		case 'v':
			r->verbose = true;
			break;
		case OPTION_PRINT_CONFIG:
			config_print(stdout);
			return OPTIONS_DONE;
		case OPTION_VERSION:
			printf("softhcad %s\n", SOFTHCA_VERSION);
			return OPTIONS_DONE;
		case 'h':
			print_help();
			return OPTIONS_DONE;
		default:
			return refuse_usage(NULL); /* getopt_long() has printed the reason */
		}
	}
	return optind < argc ? refuse_usage("unexpected argument") : OPTIONS_RUN;
}

static int read_config(const struct request *r, struct config *config, struct config_error *error)
{
	char set_socket[PATHS_BYTES_MAX + 32];
	int ret = 0;

	if (r->file)
		ret = config_read(config, r->file, error);
	else
		config_defaults(config);
	for (unsigned i = 0; i < r->sets && !ret; i++)
		ret = config_set(config, r->set[i], error);
	if (!ret && r->socket) {
		snprintf(set_socket, sizeof(set_socket), "daemon.socket=%s", r->socket);
		ret = config_set(config, set_socket, error);
	}
	if (r->verbose)
		config->daemon.log_level = CONFIG_LOG_DEBUG;
	return ret ? ret : config_check(config, r->file ? r->file : "configuration", error);
}

enum options_outcome options_read(int argc, char **argv, struct config *config, bool *no_sandbox)
{
	struct request request = {.file = NULL};
	struct config_error error;
	enum options_outcome outcome = options_parse(argc, argv, &request);

	if (outcome != OPTIONS_RUN)
		return outcome;
	if (read_config(&request, config, &error)) {
		fprintf(stderr, "softhcad: %s\n", error.text);
		return OPTIONS_USAGE;
	}
	*no_sandbox = request.no_sandbox;
	if (request.check) {
		printf("softhcad: %s: ok\n", request.file ? request.file : "configuration");
		return OPTIONS_DONE;
	}
	return OPTIONS_RUN;
}
