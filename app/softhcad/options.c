/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of softhcad: reads the configuration, applies options, checks the result. Starts
 * nothing. */
#include <getopt.h>
#include <string.h>
#include "environment.h"
#include "options.h"

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
	      "      --check              check the configuration, and whether this machine has "
	      "what it\n"
	      "                           needs, and exit\n"
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

static enum options_outcome options_parse(int argc, char **argv, struct options *o)
{
	int option;

	while ((option = getopt_long(argc, argv, "c:vh", long_options, NULL)) != -1) {
		switch (option) {
		case 'c':
			o->file = optarg;
			break;
		case OPTION_SET:
			if (o->sets == OPTIONS_SETS_MAX)
				return refuse_usage("too many --set");
			o->set[o->sets++] = optarg;
			break;
		case OPTION_SOCKET:
			o->socket = optarg;
			break;
		case OPTION_CHECK:
			o->check = true;
			break;
		case OPTION_NO_SANDBOX:
			o->no_sandbox = true;
			break;
		case 'v':
			o->verbose = true;
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

const char *options_origin(const struct options *o)
{
	return o->file ? o->file : "configuration";
}

/* An HCA that names no address shares those of its interface, as an adapter in hardware does. */
static void options_take_addresses(struct config *c)
{
	for (unsigned i = 0; i < c->hcas; i++) {
		struct port_config *p = &c->hca[i].port;

		if (!p->addresses.count)
			port_kernel_addresses(p->type, p->device, &p->addresses);
	}
}

int options_config(const struct options *o, struct config *written, struct config_error *error)
{
	char set_socket[PATHS_BYTES_MAX + 32];
	int ret = 0;

	if (o->file)
		ret = config_read(written, o->file, error);
	else
		config_defaults(written);
	for (unsigned i = 0; i < o->sets && !ret; i++)
		ret = config_set(written, o->set[i], error);
	if (!ret && o->socket) {
		snprintf(set_socket, sizeof(set_socket), "daemon.socket=%s", o->socket);
		ret = config_set(written, set_socket, error);
	}
	if (o->verbose)
		written->daemon.log_level = (struct log_levels){.all = LEVEL_DEBUG};
	if (!ret)
		options_take_addresses(written);
	return ret;
}

enum options_outcome options_read(int argc, char **argv, struct options *o, struct config *written,
				  struct config *config)
{
	struct config_error error;
	enum options_outcome outcome = options_parse(argc, argv, o);
	int ret;

	if (outcome != OPTIONS_RUN)
		return outcome;
	ret = options_config(o, written, &error);
	*config = *written;
	if (!ret)
		ret = config_check(config, options_origin(o), &error);
	if (ret) {
		fprintf(stderr, "softhcad: %s\n", error.text);
		return OPTIONS_USAGE;
	}
	if (o->check && environment_check(config))
		return OPTIONS_FAILED;
	if (o->check) {
		printf("softhcad: %s: ok\n", options_origin(o));
		return OPTIONS_DONE;
	}
	return OPTIONS_RUN;
}
