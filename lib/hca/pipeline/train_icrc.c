/* SPDX-License-Identifier: BSD-3-Clause */
/* The ICRCs of trains (pipeline/train.h). Any lcore. */
#include "pipeline/train.h"
#include "wire/encap.h"

/* From the IP header to the payload. */
static uint32_t header_bytes(const uint8_t *l3, bool ipv6)
{
	return wire_bth_at(ipv6) + wire_opcodes[l3[wire_bth_at(ipv6)]].header_bytes;
}

void train_icrc_headers(const struct rte_mbuf *m, uint32_t l3_offset, bool ipv6, uint32_t index,
			uint32_t n, uint32_t *states)
{
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(m, const uint8_t *, l3_offset);

	wire_icrc_headers_run(l3, header_bytes(l3, ipv6), ipv6, index, n,
			      index + n == frame_packets(m), states);
}

/* ---- parts ---- */

/* The packets of a train in parts, each from its IP header to its ICRC. */
struct parts {
	uint8_t *first;	 /* of the frame */
	uint8_t *second; /* of packet 1; that of packet i is i - 1 strides behind */
	uint32_t stride;
	uint32_t own;	  /* bytes of IP, UDP and BTH, which parts have only with ICRCs */
	uint32_t headers; /* bytes to the payload */
	uint32_t bytes;	  /* to the ICRC */
	uint32_t pad;
	uint32_t packets;
	uint32_t l3_offset;
	bool ipv6;
};

static struct parts parts_of(const struct rte_mbuf *m, uint32_t l3_offset, bool ipv6,
			     uint32_t payload_bytes)
{
	uint8_t *l3 = rte_pktmbuf_mtod_offset(m, uint8_t *, l3_offset);
	uint32_t own = wire_bth_at(ipv6) + WIRE_BTH_BYTES, headers = header_bytes(l3, ipv6);
	struct train_parts t = train_parts(l3[wire_bth_at(ipv6)], payload_bytes, true);

	return (struct parts){
		.first = l3,
		.second = l3 + headers + t.first - own,
		.stride = t.stride,
		.own = own,
		.headers = headers,
		.bytes = headers + RTE_ALIGN_CEIL(payload_bytes, 4u),
		.pad = -payload_bytes & 3,
		.packets = frame_packets(m),
		.l3_offset = l3_offset,
		.ipv6 = ipv6,
	};
}

/* Of packet 0, whose AckReq is not the frame's. */
static uint32_t first_icrc(const struct rte_mbuf *m, const struct parts *t)
{
	uint32_t state;

	train_icrc_headers(m, t->l3_offset, t->ipv6, 0, 1, &state);
	return ~wire_crc(state, t->first + t->headers, t->bytes - t->headers);
}

static void put_parts(const struct rte_mbuf *m, const struct parts *t)
{
	uint8_t *p = t->second;

	for (uint32_t i = 1; i < t->packets; i++, p += t->stride) {
		memcpy(p, t->first, t->own);
		wire_take_place(p, t->ipv6, i, i + 1 == t->packets);
		memset(p + t->bytes - t->pad, 0, t->pad);
	}
	/* A loop of its own: right behind the stores the wide loads would wait for them. */
	p = t->second;
	for (uint32_t i = 1; i < t->packets; i++, p += t->stride)
		wire_icrc_store(p + t->bytes, wire_icrc(p, t->bytes, t->ipv6));
	wire_icrc_store(t->first + t->bytes, first_icrc(m, t));
}

bool train_parts_intact(const struct rte_mbuf *m, const struct wire_frame *f)
{
	const struct parts t = parts_of(m, f->l3_offset, f->is_ipv6, f->payload_bytes);
	const uint8_t *p = t.second, *last = p + (t.packets - 2) * t.stride;

	if (last + t.bytes + WIRE_ICRC_BYTES > (uint8_t *)m->buf_addr + m->buf_len ||
	    first_icrc(m, &t) != wire_icrc_load(t.first + t.bytes))
		return false;
	for (; p <= last; p += t.stride)
		if (wire_icrc(p, t.bytes, t.ipv6) != wire_icrc_load(p + t.bytes))
			return false;
	return true;
}

/* ---- references ---- */

void train_put_crcs(uint8_t *payload, const uint8_t *from, uint32_t packet_bytes, uint32_t packets)
{
	for (uint32_t i = 0; i < packets; i++, from += packet_bytes)
		wire_icrc_store(train_crc(payload, i), wire_crc(0, from, packet_bytes));
}

/* Of the packet with these headers, as its sender read the payload: one path MTU, without pad. */
static uint32_t referred_icrc(uint32_t headers, const uint8_t *payload, uint32_t index,
			      uint32_t packet_bytes)
{
	return ~wire_crc_combine(headers, wire_icrc_load(train_crc(payload, index)), packet_bytes);
}

static void put_referred(struct rte_mbuf *m, const struct packet *p)
{
	uint32_t states[TRAIN_PACKETS_MAX];
	uint8_t *payload = payload_of(m);

	train_icrc_headers(m, p->l3_offset, p->is_ipv6, 0, p->packets, states);
	for (uint32_t i = 0; i < p->packets; i++)
		wire_icrc_store(train_icrc(payload, i),
				referred_icrc(states[i], payload, i, p->payload_bytes));
}

bool train_headers_intact(const struct rte_mbuf *m, uint32_t index)
{
	const struct arrival *a = arrival_of((struct rte_mbuf *)m);
	uint32_t state;

	train_icrc_headers(m, a->l3_offset, a->is_ipv6, index, 1, &state);
	return referred_icrc(state, a->payload, index, a->payload_bytes) ==
	       wire_icrc_load(train_icrc(a->payload, index));
}

bool train_referred_intact(const struct rte_mbuf *m, const uint8_t *payload)
{
	static const uint8_t zeros[3];
	const struct arrival *a = arrival_of((struct rte_mbuf *)m);
	const uint8_t *end =
		rte_pktmbuf_mtod_offset(m, const uint8_t *, a->l3_offset + a->icrc_bytes);
	uint32_t state, index = train_index(a);

	train_icrc_headers(m, a->l3_offset, a->is_ipv6, index, 1, &state);
	state = wire_crc(state, payload, a->payload_bytes);
	state = wire_crc(state, zeros, end - a->payload - a->payload_bytes);
	return ~state == wire_icrc_load(frame_packets(m) > 1 ? train_icrc(a->payload, index) : end);
}

static inline uint32_t copy_crc(uint32_t state, uint8_t *to, const uint8_t *from, uint32_t bytes,
				bool nt)
{
	return unlikely(nt) ? wire_crc_copy_nt(state, to, from, bytes)
			    : wire_crc_copy(state, to, from, bytes);
}

uint32_t train_copy_checked(const struct rte_mbuf *m, uint8_t *to, const uint8_t *from, bool nt,
			    uint32_t *changed)
{
	const struct arrival *a = arrival_of((struct rte_mbuf *)m);
	uint32_t bytes = a->payload_bytes, index = train_index(a), states[TRAIN_PACKETS_MAX], i;

	train_icrc_headers(m, a->l3_offset, a->is_ipv6, index, a->packets, states);
	for (i = 0; i < a->packets; i++, index++, to += bytes, from += bytes) {
		uint32_t icrc = wire_icrc_load(train_icrc(a->payload, index));

		if (likely(~copy_crc(states[i], to, from, bytes, nt) == icrc))
			continue;
		if (!changed || referred_icrc(states[i], a->payload, index, bytes) != icrc)
			break;
		++*changed;
	}
	if (unlikely(nt))
		wire_crc_nt_fence();
	return i;
}

void train_put_icrcs(struct rte_mbuf *m, const struct packet *p)
{
	struct parts t;

	if (m->ol_flags & PAYLOAD_REF) {
		put_referred(m, p);
	} else {
		t = parts_of(m, p->l3_offset, p->is_ipv6, p->payload_bytes);
		put_parts(m, &t);
	}
}
