/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the command line and checks that its options fit together. Touches nothing else. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include "softhca/softhca.h"
#include "options.h"

#define SPAN_MAX (1ull << 36)

enum long_option {
	OPT_PAIR = 256,
	OPT_VERIFY,
	OPT_JSON,
	OPT_DEMO,
	OPT_SOAK,
	OPT_DEAD,
	OPT_GAP,
	OPT_LIMIT,
	OPT_RANDOM,
	OPT_RETRY,
	OPT_SEED,
	OPT_SOCKET,
	OPT_SPAN,
	OPT_SRQ,
	OPT_HELP
};

static const struct option long_options[] = {
	{"size", required_argument, NULL, 's'},
	{"iters", required_argument, NULL, 'n'},
	{"duration", required_argument, NULL, 'D'},
	{"qp", required_argument, NULL, 'q'},
	{"mtu", required_argument, NULL, 'm'},
	{"tx-depth", required_argument, NULL, 't'},
	{"rx-depth", required_argument, NULL, 'r'},
	{"connection", required_argument, NULL, 'c'},
	{"all", no_argument, NULL, 'a'},
	{"bidirectional", no_argument, NULL, 'b'},
	{"events", no_argument, NULL, 'e'},
	{"inline_size", required_argument, NULL, 'I'},
	{"post_list", required_argument, NULL, 'l'},
	{"cq-mod", required_argument, NULL, 'Q'},
	{"port", required_argument, NULL, 'p'},
	{"ib-dev", required_argument, NULL, 'd'},
	{"gid-index", required_argument, NULL, 'x'},
	{"atomic_type", required_argument, NULL, 'A'},
	{"qp-timeout", required_argument, NULL, 'u'},
	{"retry", required_argument, NULL, OPT_RETRY},
	{"pair", required_argument, NULL, OPT_PAIR},
	{"gap", required_argument, NULL, OPT_GAP},
	{"random", no_argument, NULL, OPT_RANDOM},
	{"span", required_argument, NULL, OPT_SPAN},
	{"srq", no_argument, NULL, OPT_SRQ},
	{"verify", no_argument, NULL, OPT_VERIFY},
	{"json", no_argument, NULL, OPT_JSON},
	{"demo", no_argument, NULL, OPT_DEMO},
	{"soak", required_argument, NULL, OPT_SOAK},
	{"dead-peer", no_argument, NULL, OPT_DEAD},
	{"limit", required_argument, NULL, OPT_LIMIT},
	{"seed", required_argument, NULL, OPT_SEED},
	{"socket", required_argument, NULL, OPT_SOCKET},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static const char help_text[] =
	"usage: softhca-perf TEST [options]           the server\n"
	"       softhca-perf TEST [options] SERVER    the client\n"
	"       softhca-perf TEST [options] --pair DEV1,DEV2   both sides in one process\n"
	"       softhca-perf --demo | --soak N | --dead-peer   [options] --pair DEV1,DEV2\n"
	"TEST: {write,write_imm,send,send_imm,read,atomic,atomic_write,flush}_{bw,lat}\n"
	"  -s, --size BYTES         of a message (65536; latency 8; of atomics and flushes always "
	"8)\n"
	"  -a, --all                all sizes from 2 to 2^23\n"
	"  -n, --iters N            messages of a queue pair (5000; latency 1000)\n"
	"  -D, --duration SECONDS   run for that time instead\n"
	"  -q, --qp N               queue pairs (1; soak 4)\n"
	"  -m, --mtu BYTES          path MTU, 256 to 4096 (the ports' maximum)\n"
	"  -t, --tx-depth N         requests outstanding on a queue pair (128)\n"
	"  -r, --rx-depth N         receive requests posted (512)\n"
	"  -c, --connection TYPE    RC, UC or UD (RC)\n"
	"  -b, --bidirectional      both sides send\n"
	"  -e, --events             sleep for completions instead of polling\n"
	"  -I, --inline_size BYTES  send messages up to this length inline (0; latency 64)\n"
	"  -l, --post_list N        requests posted by one call (1)\n"
	"  -Q, --cq-mod N           one completion for N requests (64)\n"
	"  -A, --atomic_type TYPE   CMP_AND_SWAP or FETCH_AND_ADD (FETCH_AND_ADD)\n"
	"  -p, --port N             TCP port of the exchange (18515)\n"
	"  -d, --ib-dev NAME        HCA (the daemon's first)\n"
	"  -x, --gid-index N        (1: the first address of the configuration)\n"
	"  -u, --qp-timeout N       timeout, 4.096 usec times 2^N (14; soak 12)\n"
	"      --retry N            how often a request is sent again before it fails, 0 to 7 (7)\n"
	"      --pair DEV1,DEV2     both sides here, on two HCAs of one daemon\n"
	"      --gap USEC           latency: let that much time pass before each message (0)\n"
	"      --random             post to the queue pairs in random order, not in turns\n"
	"      --span BYTES         walk through that much memory at either end, instead of using\n"
	"                           the same buffers again\n"
	"      --srq                all queue pairs of a side receive through one SRQ\n"
	"      --verify             check every byte of every message; one more column has the\n"
	"                           rate with writing and checking them\n"
	"      --seed N             of the data and of random choices (from the clock)\n"
	"      --socket PATH        of the daemon (as the library finds it)\n"
	"      --json               print JSON instead of a table\n"
	"      --limit FILE         output of softhca-limit (--demo runs it otherwise)\n"
	"      --demo               all operations, both directions, every byte checked\n"
	"      --soak N             N random operations, each checked, on a lossy wire\n"
	"      --dead-peer          what a dead peer costs the others\n";

static int usage(const char *why, const char *what)
{
	fprintf(stderr, "softhca-perf: %s%s%s (--help lists the options)\n", why, what ? ": " : "",
		what ? what : "");
	return -1;
}

static int parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-' || *out < min || *out > max)
		return usage("not a number in its range", text);
	return 0;
}

static int parse_u32(const char *text, uint64_t min, uint64_t max, uint32_t *out)
{
	uint64_t value;

	if (parse_number(text, min, max, &value))
		return -1;
	*out = (uint32_t)value;
	return 0;
}

/* "write_imm_bw" -> kind and mode. Of names with the same beginning the longest comes first. */
static int parse_test(struct options *o, const char *text)
{
	static const struct {
		const char *name;
		enum kind kind;
	} tests[] = {
		{"write_imm", KIND_WRITE_IMM}, {"write", KIND_WRITE},
		{"send_imm", KIND_SEND_IMM},   {"send", KIND_SEND},
		{"read", KIND_READ},	       {"atomic_write", KIND_ATOMIC_WRITE},
		{"atomic", KIND_FETCH_ADD},    {"flush", KIND_FLUSH},
	};

	for (unsigned i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		size_t n = strlen(tests[i].name);

		if (strncmp(text, tests[i].name, n))
			continue;
		o->kind = tests[i].kind;
		if (!strcmp(text + n, "_bw"))
			o->mode = MODE_BW;
		else if (!strcmp(text + n, "_lat"))
			o->mode = MODE_LAT;
		else
			break;
		return 0;
	}
	return usage("no such test", text);
}

static int parse_service(struct options *o, const char *text)
{
	if (!strcasecmp(text, "RC"))
		o->service = SOFTHCA_QP_RC;
	else if (!strcasecmp(text, "UC"))
		o->service = SOFTHCA_QP_UC;
	else if (!strcasecmp(text, "UD"))
		o->service = SOFTHCA_QP_UD;
	else
		return usage("no such connection type", text);
	return 0;
}

static int parse_atomic(struct options *o, const char *text)
{
	if (!strcmp(text, "CMP_AND_SWAP"))
		o->kind = KIND_CMP_SWAP;
	else if (!strcmp(text, "FETCH_AND_ADD"))
		o->kind = KIND_FETCH_ADD;
	else
		return usage("no such atomic", text);
	return 0;
}

static int parse_device(char out[DEVICE_NAME_BYTES], const char *name, size_t n)
{
	if (n == 0 || n >= DEVICE_NAME_BYTES)
		return usage("not a device name", name);
	memcpy(out, name, n);
	out[n] = 0;
	return 0;
}

static int parse_pair(struct options *o, const char *text)
{
	const char *comma = strchr(text, ',');

	if (!comma)
		return usage("--pair wants DEV1,DEV2", text);
	o->pair = true;
	if (parse_device(o->device[0], text, (size_t)(comma - text)))
		return -1;
	return parse_device(o->device[1], comma + 1, strlen(comma + 1));
}

static int parse_mtu(struct options *o, const char *text)
{
	if (parse_u32(text, 256, 4096, &o->mtu))
		return -1;
	if (o->mtu & (o->mtu - 1))
		return usage("not a path MTU", text);
	return 0;
}

static int parse_port(struct options *o, const char *text)
{
	uint64_t value;

	if (parse_number(text, 1, 65535, &value))
		return -1;
	o->tcp_port = (uint16_t)value;
	return 0;
}

/* Options with an argument; 0 or -1. */
static int parse_valued(struct options *o, int option, const char *text)
{
	switch (option) {
	case 's':
		return parse_u32(text, 0, 1u << 30, &o->size);
	case 'n':
		return parse_u32(text, 1, UINT32_MAX, &o->iterations);
	case 'D':
		return parse_u32(text, 1, 86400, &o->duration_s);
	case 'q':
		return parse_u32(text, 1, QPS_MAX, &o->qps);
	case 'm':
		return parse_mtu(o, text);
	case 't':
		return parse_u32(text, 1, 8192, &o->tx_depth);
	case 'r':
		return parse_u32(text, 1, 8192, &o->rx_depth);
	case 'c':
		return parse_service(o, text);
	case 'I':
		return parse_u32(text, 0, 4096, &o->inline_bytes);
	case 'l':
		return parse_u32(text, 1, 256, &o->post_list);
	case 'Q':
		return parse_u32(text, 1, 4096, &o->cq_mod);
	case 'p':
		return parse_port(o, text);
	case 'd':
		return parse_device(o->device[0], text, strlen(text));
	case 'x':
		return parse_u32(text, 0, 255, &o->gid_index);
	case 'u':
		return parse_u32(text, 0, 31, &o->qp_timeout);
	case OPT_RETRY:
		return parse_u32(text, 0, 7, &o->retries);
	case 'A':
		return parse_atomic(o, text);
	case OPT_PAIR:
		return parse_pair(o, text);
	case OPT_GAP:
		return parse_u32(text, 0, 1000000, &o->gap_us);
	case OPT_SEED:
		return parse_number(text, 0, UINT64_MAX, &o->seed);
	case OPT_SPAN:
		return parse_number(text, 1, SPAN_MAX, &o->span);
	case OPT_SOAK:
		o->mode = MODE_SOAK;
		return parse_u32(text, 1, UINT32_MAX, &o->soak_operations);
	case OPT_LIMIT:
		o->limit = text;
		return 0;
	case OPT_SOCKET:
		o->socket = text;
		return 0;
	}
	return usage("unknown or incomplete option", NULL);
}

/* Options without an argument. False: it is none. */
static bool parse_flag(struct options *o, int option)
{
	switch (option) {
	case 'a':
		o->all_sizes = true;
		return true;
	case 'b':
		o->bidirectional = true;
		return true;
	case 'e':
		o->events = true;
		return true;
	case OPT_RANDOM:
		o->random = true;
		return true;
	case OPT_SRQ:
		o->srq = true;
		return true;
	case OPT_VERIFY:
		o->verify = true;
		return true;
	case OPT_JSON:
		o->json = true;
		return true;
	case OPT_DEMO:
		o->mode = MODE_DEMO;
		return true;
	case OPT_DEAD:
		o->mode = MODE_DEAD_PEER;
		return true;
	}
	return false;
}

/* Defaults that depend on the test. UINT32_MAX: not given. */
static void settle(struct options *o)
{
	bool lat = o->mode == MODE_LAT;

	if (o->size == UINT32_MAX)
		o->size = lat ? 8 : o->service == SOFTHCA_QP_UD ? 1024 : 65536;
	if (kinds[o->kind].bytes)
		o->size = kinds[o->kind].bytes;
	if (o->iterations == UINT32_MAX)
		o->iterations = lat ? 1000 : 5000;
	if (o->qps == UINT32_MAX)
		o->qps = o->mode == MODE_SOAK ? 4 : 1;
	if (o->qp_timeout == UINT32_MAX) /* soak: 17 ms, because it loses packets all the time */
		o->qp_timeout = o->mode == MODE_SOAK ? 12 : 14;
	if (o->inline_bytes == UINT32_MAX)
		o->inline_bytes = lat ? 64 : 0;
	/* So that a whole list has room again and again. */
	if (o->post_list > (o->tx_depth + 1) / 2)
		o->post_list = (o->tx_depth + 1) / 2;
	if (o->post_list > o->rx_depth)
		o->post_list = o->rx_depth;
	/* A completion for each quarter of the depth at least, so that posting never stops for it.
	 */
	if (o->cq_mod > (o->tx_depth + 3) / 4)
		o->cq_mod = (o->tx_depth + 3) / 4;
}

unsigned options_log_max(const struct options *o)
{
	uint32_t bytes = o->mtu ? o->mtu : UD_BYTES_MAX;

	return o->service == SOFTHCA_QP_UD ? (unsigned)__builtin_ctz(bytes) : SIZE_ALL_LOG_MAX;
}

static int check(const struct options *o)
{
	const struct kind_info *k = &kinds[o->kind];

	if (o->service == SOFTHCA_QP_UD && (k->inbound || !k->lands_in_recv))
		return usage("UD can only send", NULL);
	if (o->service == SOFTHCA_QP_UC && k->inbound)
		return usage("UC can only send and write", NULL);
	if (o->service == SOFTHCA_QP_UD && o->size > (o->mtu ? o->mtu : UD_BYTES_MAX))
		return usage("a UD message is one packet", NULL);
	if (o->mode >= MODE_DEMO && !o->pair)
		return usage("this needs --pair", NULL);
	if (o->mode == MODE_LAT && o->bidirectional)
		return usage("latency has one direction", NULL);
	if (o->mode == MODE_LAT && o->qps > 1)
		return usage("latency is measured on one queue pair", NULL);
	if (o->mode == MODE_LAT && !k->inbound && !k->receives && o->size == 0)
		return usage("the arrival of a 0-byte write cannot be observed", NULL);
	if (o->service != SOFTHCA_QP_RC && k->bytes)
		return usage("atomics need RC", NULL);
	if (o->all_sizes && k->bytes)
		return usage("atomics have one size", NULL);
	if (o->srq && (o->mode >= MODE_DEMO || !k->receives))
		return usage("--srq is for tests that receive", NULL);
	if (o->srq && o->verify) /* whose message lands where is not known before */
		return usage("--srq cannot be verified", NULL);
	if (o->span && (o->mode != MODE_BW || o->all_sizes))
		return usage("--span is for throughput of one size", NULL);
	if (o->gap_us && o->mode != MODE_LAT)
		return usage("--gap is for latency", NULL);
	if (o->pair && o->server)
		return usage("--pair has no server", NULL);
	return 0;
}

int options_parse(struct options *o, int argc, char **argv)
{
	int option;

	*o = (struct options){.mode = MODE_BW,
			      .kind = KIND_WRITE,
			      .service = SOFTHCA_QP_RC,
			      .size = UINT32_MAX,
			      .iterations = UINT32_MAX,
			      .inline_bytes = UINT32_MAX,
			      .qps = UINT32_MAX,
			      .tx_depth = 128,
			      .gid_index = 1,
			      .rx_depth = 512,
			      .post_list = 1,
			      .cq_mod = 64,
			      .tcp_port = 18515,
			      .qp_timeout = UINT32_MAX,
			      .retries = 7,
			      .seed = (uint64_t)time(NULL)};
	if (argc > 1 && argv[1][0] != '-') {
		if (parse_test(o, argv[1]))
			return -1;
		argc--;
		argv++;
	}
	while ((option = getopt_long(argc, argv, "s:n:D:q:m:t:r:c:abeI:l:Q:p:d:x:A:u:",
				     long_options, NULL)) != -1) {
		if (option == OPT_HELP) {
			fputs(help_text, stdout);
			return 1;
		}
		if (!parse_flag(o, option) && parse_valued(o, option, optarg))
			return -1;
	}
	if (optind + 1 < argc)
		return usage("too many arguments", argv[optind + 1]);
	o->server = optind < argc ? argv[optind] : NULL;
	settle(o);
	return check(o);
}
