/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PATH_OPTIONS_H
#define PATH_OPTIONS_H
/* The command line of softhca-perf: perftest's letters where perftest has the thing. */
#include <stdbool.h>
#include <stdint.h>
#include "kind.h"

enum mode { MODE_BW, MODE_LAT, MODE_DEMO, MODE_SOAK, MODE_DEAD_PEER };
enum { QPS_MAX = 16384, DEVICE_NAME_BYTES = 32, SIZE_ALL_LOG_MAX = 23, UD_BYTES_MAX = 4096 };

struct options {
	enum mode mode;
	enum kind kind;
	uint8_t service;     /* enum softhca_qp_type */
	uint32_t size;	     /* of a message, bytes */
	bool all_sizes;	     /* -a: 2^1 .. 2^23 instead */
	uint32_t iterations; /* messages of a QP */
	uint32_t duration_s; /* not 0: run for that time instead of `iterations` */
	uint32_t qps;
	uint32_t mtu;		     /* bytes; 0: the ports' maximum */
	uint32_t tx_depth, rx_depth; /* requests outstanding on a QP */
	uint32_t inline_bytes;	     /* messages up to this length are sent inline */
	uint32_t post_list;	     /* requests posted by one call */
	uint32_t cq_mod;	     /* requests per completion */
	uint64_t span;	 /* bytes of memory that messages walk through at either end; 0: the
			  least that the test needs */
	uint32_t gap_us; /* latency: before each message */
	bool bidirectional;
	bool srq;    /* all QPs of a side receive through one SRQ */
	bool events; /* sleep for completions instead of polling */
	bool verify; /* every byte of every message is checked */
	bool random; /* post to the queue pairs in random order */
	bool json;
	uint16_t tcp_port;
	uint32_t gid_index;
	uint32_t qp_timeout;		   /* code: 4.096 usec times 2^n; 0: for ever */
	uint32_t retries;		   /* retry_cnt */
	uint64_t seed;			   /* of data and of random choices */
	const char *socket;		   /* the daemon's; NULL: the library's default */
	const char *server;		   /* host to connect to; NULL: be the server */
	char device[2][DEVICE_NAME_BYTES]; /* pair mode: both; else the first, "" is the daemon's
					      first */
	bool pair;			   /* both sides in this process, no TCP */
	const char *limit;		   /* file with the output of softhca-limit; NULL: run it */
	uint32_t soak_operations;
};

/* -a: the largest size is 2 to the power of this. UD messages are one packet. */
unsigned options_log_max(const struct options *o);

/*
 * Fills *o from the command line. 0; 1: help was printed; -1: the reason was printed to stderr.
 * Strings stay argv's.
 */
int options_parse(struct options *o, int argc, char **argv);

#endif
