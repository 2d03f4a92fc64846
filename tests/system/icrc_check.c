/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: icrc_check FOLDER
 * Reads every *.pcap of the folder and checks each RoCEv2 frame: headers, lengths, ICRC. Frames of
 * other protocols are counted and left alone. Exit code 0: at least one RoCEv2 frame and none
 * wrong.
 */
#include <stdio.h>
#include "golden.h"
#include "wire/crc.h"
#include "wire/encap.h"

struct tally {
	unsigned long roce, other, wrong;
};

static bool icrc_right(const struct golden_frame *g, const struct wire_frame *f)
{
	const uint8_t *l3 = g->bytes + f->l3_offset;
	unsigned n = f->transport_end - f->l3_offset;

	return wire_icrc(l3, n, f->is_ipv6) == wire_icrc_load(g->bytes + f->transport_end);
}

static void complain(struct tally *t, const struct golden_capture *c, size_t index, const char *why)
{
	t->wrong++;
	fprintf(stderr, "%s: frame %zu: %s\n", c->name, index + 1, why);
}

static void check_capture(const struct golden_capture *c, struct tally *t)
{
	for (size_t i = 0; i < c->count; i++) {
		const struct golden_frame *g = &c->frames[i];
		struct wire_frame f;
		enum wire_error error = wire_parse_frame(g->bytes, g->length, &f);

		/* Neighbour discovery, ARP and what a kernel on the same wire says. */
		if (error == WIRE_ERR_NOT_ROCE) {
			t->other++;
			continue;
		}
		t->roce++;
		if (error != WIRE_OK)
			complain(t, c, i, "does not parse");
		else if (!icrc_right(g, &f))
			complain(t, c, i, "ICRC is wrong");
	}
}

int main(int argc, char **argv)
{
	struct golden golden;
	struct tally t = {0};

	if (argc != 2 || golden_load(&golden, argv[1])) {
		fprintf(stderr, "usage: %s FOLDER   (with captures as classic pcap)\n", argv[0]);
		return 2;
	}
	for (size_t i = 0; i < golden.count; i++)
		check_capture(&golden.captures[i], &t);
	golden_free(&golden);
	printf("%lu RoCE frames, %lu others, %lu wrong\n", t.roce, t.other, t.wrong);
	return t.roce > 0 && t.wrong == 0 ? 0 : 1;
}
