/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints the physical limits of this machine, one 'name value unit' a line. Brings EAL up on the
 * main lcore alone, without hugepages and without devices.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include "wire/crc.h"
#include "limit.h"

enum {
	PINGPONGS_BUSY = 20000,
	PINGPONGS_BLOCKING = 4000,
	LONG_MESSAGE_BYTES = 1 << 20,
	DRAM_MIB_MAX = 16384,
};

static int usage(FILE *out, int code)
{
	fputs("usage: softhca-limit [MILLISECONDS [REPETITIONS [MIB]]]\n"
	      "\n"
	      "  MILLISECONDS      of one repetition of a measurement (50)\n"
	      "  REPETITIONS       of which the median counts (5)\n"
	      "  MIB               that copy-dram walks through at either end; 0: without it (0)\n",
	      out);
	return code;
}

static int init_eal(char *program)
{
	char *args[] = {program,	   "--no-huge", "-m", "128",	     "--no-pci",
			"--no-telemetry",  "-l",	"0",  "--no-shconf", "--log-level",
			"lib.eal:warning", NULL};

	return rte_eal_init(sizeof(args) / sizeof(*args) - 1, args);
}

static void print_topology(const char *when)
{
	double ns = limit_topology();

	printf("core-to-core-%s %.0f ns (round trip of a cache line: %s)\n", when, ns,
	       ns > 0 ? limit_topology_name(ns) : "one CPU only");
}

static void print_pingpong(const char *name, enum pingpong_transport transport)
{
	printf("%s-blocking %.0f ns one way, 8 bytes over loopback\n", name,
	       udp_tcp_pingpong(transport, false, PINGPONGS_BLOCKING, 0, 1));
	printf("%s-busy %.0f ns one way, 8 bytes over loopback\n", name,
	       udp_tcp_pingpong(transport, true, PINGPONGS_BUSY, 0, 1));
}

int main(int argc, char **argv)
{
	struct limit_params params = LIMIT_PARAMS_DEFAULT;
	double bulk, copy, copy_long, copy_dram = 0, messages, by_burst;
	unsigned int dram_mib = 0;

	if (argc > 1 && !strcmp(argv[1], "--help"))
		return usage(stdout, 0);
	if (argc > 1)
		params.repetition_ms = (unsigned int)atoi(argv[1]);
	if (argc > 2)
		params.repetitions = (unsigned int)atoi(argv[2]);
	if (argc > 3)
		dram_mib = (unsigned int)atoi(argv[3]);
	if (params.repetition_ms == 0 || params.repetitions == 0 || dram_mib > DRAM_MIB_MAX)
		return usage(stderr, 2);
	if (init_eal(argv[0]) < 0) {
		fprintf(stderr, "%s: EAL: %s\n", argv[0], rte_strerror(rte_errno));
		return 1;
	}
	print_topology("before");
	bulk = limit_bulk_bytes_per_s(&params);
	copy = limit_copy_bytes_per_s(&params, LIMIT_MESSAGE_BYTES, LIMIT_MESSAGE_BYTES);
	copy_long = limit_copy_bytes_per_s(&params, LONG_MESSAGE_BYTES, LONG_MESSAGE_BYTES);
	if (dram_mib)
		copy_dram = limit_copy_bytes_per_s(&params, LIMIT_MESSAGE_BYTES,
						   (size_t)dram_mib << 20);
	messages = limit_messages_per_s(&params);
	params.icrc_by_burst = true;
	by_burst = limit_messages_per_s(&params);
	printf("crc %s\n", wire_crc_name());
	printf("bulk %.2f GB/s (%.1f Gbit/s, 4096-byte packets, 1 core plays both sides)\n",
	       bulk * 1e-9, bulk * 8e-9);
	printf("copy %.2f GB/s (%.1f Gbit/s, the same bytes without CRC or packets)\n", copy * 1e-9,
	       copy * 8e-9);
	printf("copy-1m %.2f GB/s (%.1f Gbit/s, the same of 1 MiB)\n", copy_long * 1e-9,
	       copy_long * 8e-9);
	if (dram_mib)
		printf("copy-dram %.2f GB/s (%.1f Gbit/s, the same, walking through %u MiB)\n",
		       copy_dram * 1e-9, copy_dram * 8e-9, dram_mib);
	printf("messages %.2f M/s (64-byte writes, each acknowledged, 1 core plays both sides)\n",
	       messages * 1e-6);
	printf("messages-icrc-by-burst %.2f M/s (the same, ICRCs in a separate pass)\n",
	       by_burst * 1e-6);
	print_pingpong("udp", PINGPONG_UDP);
	print_pingpong("tcp", PINGPONG_TCP);
	print_topology("after");
	rte_eal_cleanup();
	return bulk > 0 && copy > 0 && copy_long > 0 && (copy_dram > 0 || !dram_mib) &&
			       messages > 0 && by_burst > 0
		       ? 0
		       : 1;
}
