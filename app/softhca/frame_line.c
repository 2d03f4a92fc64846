/* SPDX-License-Identifier: BSD-3-Clause */
/* See frame_line.h. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <time.h>
#include "base/pcapng.h"
#include "frame_line.h"
#include "wire/encap.h"

enum { NS_IN_S = 1000000000, FRAME_LINE_BYTES_MAX = 16384 };

void print_time(FILE *out, uint64_t ns)
{
	const time_t seconds = (time_t)(ns / NS_IN_S);
	struct tm local;
	char text[16];

	localtime_r(&seconds, &local);
	strftime(text, sizeof(text), "%H:%M:%S", &local);
	fprintf(out, "%s.%09u", text, (unsigned)(ns % NS_IN_S));
}

/* Frames that are not RoCE, or were cut too short to tell. */
static void print_other(FILE *out, const struct pcapng_frame *frame)
{
	const uint8_t *f = frame->bytes;

	if (frame->captured >= WIRE_ETHERNET_BYTES)
		fprintf(out,
			" %02x:%02x:%02x:%02x:%02x:%02x > %02x:%02x:%02x:%02x:%02x:%02x, type "
			"%02x%02x",
			f[6], f[7], f[8], f[9], f[10], f[11], f[0], f[1], f[2], f[3], f[4], f[5],
			f[12], f[13]);
	fprintf(out, ", %u bytes\n", frame->original);
}

static void print_addresses(FILE *out, const struct wire_frame *f)
{
	const int family = f->is_ipv6 ? AF_INET6 : AF_INET;
	char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];

	inet_ntop(family, f->src_ip, from, sizeof(from));
	inet_ntop(family, f->dst_ip, to, sizeof(to));
	fprintf(out, " %s > %s", from, to);
}

static void print_extensions(FILE *out, const struct wire_headers *h, unsigned has)
{
	if (has & WIRE_HAS_DETH)
		fprintf(out, ", from qp 0x%06x, qkey 0x%08x", h->src_qp, h->qkey);
	if (has & (WIRE_HAS_RETH | WIRE_HAS_ATOMIC | WIRE_HAS_FLUSH))
		fprintf(out, ", va 0x%" PRIx64 ", rkey 0x%08x", h->va, h->rkey);
	if (has & WIRE_HAS_RETH)
		fprintf(out, ", dma %u", h->dma_len);
	if (has & WIRE_HAS_AETH)
		fprintf(out, ", syndrome 0x%02x, msn %u", h->syndrome, h->msn);
	if (has & WIRE_HAS_IMM)
		fprintf(out, ", imm 0x%08x", ntohl(h->imm));
	if (has & WIRE_HAS_IETH)
		fprintf(out, ", invalidates 0x%08x", h->invalidate_rkey);
}

/* wire_parse_frame() expects whole frames: zeros replace the missing end of one that was cut. */
static enum wire_error parse(const struct pcapng_frame *frame, uint8_t *whole, struct wire_frame *f)
{
	if (frame->captured == frame->original || frame->original > FRAME_LINE_BYTES_MAX)
		return wire_parse_frame(frame->bytes, frame->captured, f);
	memset(whole, 0, frame->original);
	memcpy(whole, frame->bytes, frame->captured);
	return wire_parse_frame(whole, frame->original, f);
}

void frame_line(FILE *out, const struct pcapng_frame *frame)
{
	uint8_t whole[FRAME_LINE_BYTES_MAX];
	struct wire_frame f;
	enum wire_error error = parse(frame, whole, &f);

	print_time(out, frame->time_ns);
	fputs(frame->direction == 1 ? " in " : " out", out);
	if (error != WIRE_OK || frame->captured < f.payload_offset) {
		print_other(out, frame);
		return;
	}
	print_addresses(out, &f);
	fprintf(out, ": %s, qp 0x%06x, psn %u, length %u", wire_opcode_name(f.h.opcode),
		f.h.dest_qp, f.h.psn, f.payload_bytes);
	print_extensions(out, &f.h, wire_opcodes[f.h.opcode].headers);
	fprintf(out, "%s%s\n", f.h.ackreq ? ", ackreq" : "", f.h.se ? ", solicited" : "");
}
