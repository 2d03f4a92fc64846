/* SPDX-License-Identifier: BSD-3-Clause */
/* See filter.h. libpcap does it all. */
#include <stdio.h>
#include <pcap/pcap.h>
#include "filter.h"

enum { FRAME_BYTES_MAX = 65535 };

static struct bpf_program program;
static bool filters;

bool filter_set(const char *expression)
{
	pcap_t *ethernet;

	if (!expression)
		return true;
	ethernet = pcap_open_dead(DLT_EN10MB, FRAME_BYTES_MAX);
	filters = ethernet &&
		  pcap_compile(ethernet, &program, expression, 1, PCAP_NETMASK_UNKNOWN) == 0;
	if (!filters)
		fprintf(stderr, "softhca: filter '%s': %s\n", expression,
			ethernet ? pcap_geterr(ethernet) : "out of memory");
	if (ethernet)
		pcap_close(ethernet);
	return filters;
}

bool filter_passes(const struct pcapng_frame *frame)
{
	const struct pcap_pkthdr header = {.caplen = frame->captured, .len = frame->original};

	return !filters || pcap_offline_filter(&program, &header, frame->bytes);
}
