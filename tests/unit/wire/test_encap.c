/* SPDX-License-Identifier: BSD-3-Clause */
/* Templates, stamping and the frame parser: all four encapsulations, and each way to be refused. */
#include "test.h"
#include "wire/crc.h"
#include "wire/encap.h"
#include "wire/run.h"

enum { ROOM = 64 }; /* bytes watched on both sides of a frame */

struct built {
	uint8_t memory[ROOM + 8192];
	uint8_t *frame;
	unsigned int bytes;
	unsigned int l3;
	unsigned int udp;
	unsigned int bth;
};

static void make_path(struct wire_path *path, bool ipv6, bool vlan)
{
	memset(path, 0, sizeof(*path));
	memcpy(path->dst_mac, "\x02\x00\x00\x00\x00\x02", 6);
	memcpy(path->src_mac, "\x02\x00\x00\x00\x00\x01", 6);
	path->is_ipv6 = ipv6;
	path->has_vlan = vlan;
	path->vlan_tci = 0xa123;
	path->sport = 0xc123;
	path->tos = 0x68;
	path->ttl = WIRE_TTL_DEFAULT;
	path->flow_label = 0x54321;
	wire_address16(path->src_ip,
		       (const uint8_t *)(ipv6 ? "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01"
					      : "\x0a\xff\xff\x01"),
		       ipv6);
	wire_address16(path->dst_ip,
		       (const uint8_t *)(ipv6 ? "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02"
					      : "\x0a\xff\xff\x02"),
		       ipv6);
}

/* A SEND Only with that many payload bytes. */
static void make_frame(struct built *b, bool ipv6, bool vlan, unsigned int payload_bytes)
{
	struct wire_headers h = {.opcode = WIRE_RC_SEND_ONLY,
				 .pkey = 0xffff,
				 .dest_qp = 0x11,
				 .psn = 0xffffff,
				 .pad = (uint8_t)(-payload_bytes & 3)};
	unsigned int padded = payload_bytes + h.pad;
	struct wire_template t;
	struct wire_path path;

	make_path(&path, ipv6, vlan);
	wire_template_build(&t, &path);
	memset(b->memory, 0x5a, sizeof(b->memory));
	b->frame = b->memory + ROOM;
	b->l3 = t.l3_offset;
	b->udp = t.encap_bytes - WIRE_UDP_BYTES;
	b->bth = t.encap_bytes;
	b->bytes = b->bth + WIRE_BTH_BYTES + padded + WIRE_ICRC_BYTES;
	/* payload first, headers last, as the engine does */
	memset(b->frame + b->bth + WIRE_BTH_BYTES, 0xee, padded);
	wire_write_transport(b->frame + b->bth, &h);
	wire_stamp(b->frame, &t, b->bytes - b->bth, 0xfffe);
	wire_icrc_store(b->frame + b->bytes - 4,
			wire_icrc(b->frame + b->l3, b->bytes - 4 - b->l3, ipv6));
}

static enum wire_error parse(const struct built *b, struct wire_frame *f)
{
	return wire_parse_frame(b->frame, b->bytes, f);
}

/* Writes the right header checksum again after a header was changed. */
static void repair_ipv4(struct built *b)
{
	uint8_t *l3 = b->frame + b->l3;
	uint32_t sum = 0;
	unsigned int i;

	l3[10] = l3[11] = 0;
	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)l3[i] << 8 | l3[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	wire_put_be16(l3 + 10, ~sum);
}

static void check_one(bool ipv6, bool vlan, unsigned int payload_bytes)
{
	struct wire_frame f;
	struct built b;

	make_frame(&b, ipv6, vlan, payload_bytes);
	assert_int_equal(parse(&b, &f), WIRE_OK);
	assert_int_equal(b.bth, WIRE_ENCAP_BYTES_MIN + (ipv6 ? 20 : 0) + (vlan ? 4 : 0));
	assert_int_equal(f.l3_offset, b.l3);
	assert_int_equal(f.transport_offset, b.bth);
	assert_int_equal(f.payload_offset, b.bth + WIRE_BTH_BYTES);
	assert_int_equal(f.payload_bytes, payload_bytes);
	assert_int_equal(f.transport_end, b.bytes - 4);
	assert_int_equal(f.has_vlan, vlan);
	assert_int_equal(f.vlan_tci, vlan ? 0xa123 : 0);
	assert_int_equal(f.is_ipv6, ipv6);
	assert_int_equal(f.tos, 0x68);
	assert_int_equal(f.ttl, 64);
	assert_int_equal(f.sport, 0xc123);
	assert_int_equal(f.src_ip[f.ip_bytes - 1], 1);
	assert_int_equal(f.dst_ip[f.ip_bytes - 1], 2);
	assert_int_equal(b.frame[-1], 0x5a);
	assert_int_equal(b.frame[b.bytes], 0x5a);
	assert_int_equal(b.frame[b.bth + WIRE_BTH_BYTES],
			 payload_bytes ? 0xee : b.frame[b.bytes - 4]);
}

TEST(encap__four_encapsulations_all_lengths)
{
	unsigned int n;
	unsigned int i;

	for (i = 0; i < 4; i++)
		for (n = 0; n <= 4096; n++)
			check_one(i & 1, i & 2, n);
}

TEST(encap__another_traffic_class)
{
	for (unsigned int i = 0; i < 4; i++) {
		struct wire_template changed, built;
		struct wire_path path;

		make_path(&path, i & 1, i & 2);
		wire_template_build(&changed, &path);
		wire_template_set_tos(&changed, 0xc3);
		path.tos = 0xc3;
		wire_template_build(&built, &path);
		assert_memory_equal(&changed, &built, sizeof(built));
	}
}

TEST(encap__stamp_writes_exactly_the_header)
{
	uint8_t memory[256];
	struct wire_template t;
	struct wire_path path;
	unsigned int i;
	unsigned int k;

	for (i = 0; i < 4; i++) {
		make_path(&path, i & 1, i & 2);
		wire_template_build(&t, &path);
		memset(memory, 0x5a, sizeof(memory));
		wire_stamp(memory + 64, &t, 100, 1);
		for (k = 0; k < 64; k++)
			assert_int_equal(memory[k], 0x5a);
		for (k = 64 + t.encap_bytes; k < sizeof(memory); k++)
			assert_int_equal(memory[k], 0x5a);
	}
}

TEST(encap__ipv6_first_word)
{
	struct built b;

	make_frame(&b, true, false, 8);
	assert_memory_equal(b.frame + b.l3, "\x66\x85\x43\x21", 4);
}

TEST(encap__every_ip_id_has_a_right_checksum)
{
	struct wire_template t;
	struct wire_path path;
	struct wire_frame f;
	struct built b;
	unsigned int id;

	make_frame(&b, false, false, 16);
	make_path(&path, false, false);
	wire_template_build(&t, &path);
	for (id = 0; id < 65536; id++) {
		wire_stamp(b.frame, &t, b.bytes - b.bth, (uint16_t)id);
		assert_int_equal(parse(&b, &f), WIRE_OK);
		wire_renumber(b.frame + b.l3, (uint16_t)(id * 7));
		assert_int_equal(parse(&b, &f), WIRE_OK);
	}
}

/* One byte changed in a frame that is right otherwise. */
struct change {
	const char *what;
	int ipv6;
	enum { L2, L3, UDP, BTH } base;
	unsigned int offset;
	uint8_t value;
	enum wire_error want;
};

static const struct change changes[] = {
	{"ARP", 0, L2, 13, 0x06, WIRE_ERR_NOT_ROCE},
	{"IPv6 type over IPv4", 0, L2, 12, 0x86, WIRE_ERR_NOT_ROCE},
	{"IP version 5", 0, L3, 0, 0x55, WIRE_ERR_VERSION},
	{"IP options", 0, L3, 0, 0x46, WIRE_ERR_VERSION},
	{"header length 4 words", 0, L3, 0, 0x44, WIRE_ERR_VERSION},
	{"TCP", 0, L3, 9, 6, WIRE_ERR_NOT_ROCE},
	{"more fragments", 0, L3, 6, 0x20, WIRE_ERR_FRAGMENT},
	{"fragment offset", 0, L3, 7, 1, WIRE_ERR_FRAGMENT},
	{"total length shorter", 0, L3, 3, 27, WIRE_ERR_LENGTH},
	{"total length longer than frame", 0, L3, 2, 0x10, WIRE_ERR_TRUNCATED},
	{"total length and UDP length differ", 0, L3, 3, 48, WIRE_ERR_LENGTH},
	{"UDP port 4790", 0, UDP, 3, 0xb6, WIRE_ERR_NOT_ROCE},
	{"UDP length", 0, UDP, 5, 28, WIRE_ERR_LENGTH},
	{"wrong UDP checksum", 0, UDP, 7, 1, WIRE_ERR_CHECKSUM},
	{"reserved opcode", 0, BTH, 0, 0x1f, WIRE_ERR_OPCODE},
	{"transport version", 0, BTH, 1, 0x01, WIRE_ERR_TVER},
	{"opcode with longer headers", 0, BTH, 0, WIRE_RC_CMP_SWAP, WIRE_ERR_TRUNCATED},
	{"IPv6 version 4", 1, L3, 0, 0x40, WIRE_ERR_VERSION},
	{"IPv6 fragment header", 1, L3, 6, 44, WIRE_ERR_FRAGMENT},
	{"IPv6 TCP", 1, L3, 6, 6, WIRE_ERR_NOT_ROCE},
	{"IPv6 payload length 7", 1, L3, 5, 7, WIRE_ERR_LENGTH},
	{"IPv6 payload longer than frame", 1, L3, 4, 1, WIRE_ERR_TRUNCATED},
	{"IPv6 UDP length", 1, UDP, 5, 28, WIRE_ERR_LENGTH},
	{"IPv6 UDP port", 1, UDP, 2, 0, WIRE_ERR_NOT_ROCE},
	{"IPv6 wrong UDP checksum", 1, UDP, 7, 1, WIRE_ERR_CHECKSUM},
};

TEST(parse__each_way_to_be_refused)
{
	struct wire_frame f;
	struct built b;
	unsigned int i;

	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		const struct change *c = &changes[i];
		enum wire_error got;

		make_frame(&b, c->ipv6, false, 8);
		b.frame[(const unsigned int[]){0, b.l3, b.udp, b.bth}[c->base] + c->offset] =
			c->value;
		if (!c->ipv6)
			repair_ipv4(&b);
		got = parse(&b, &f);
		if (got != c->want)
			fail_msg("%s: %s, not %s", c->what, wire_error_name(got),
				 wire_error_name(c->want));
	}
}

/* Whatever bit of the headers changes: what parse_next lets pass is what parse would say. */
static void check_next(bool ipv6, bool vlan, unsigned int bit)
{
	struct wire_frame want, next;
	struct built a, b;
	unsigned int at;
	bool differing;

	make_frame(&a, ipv6, vlan, 8);
	make_frame(&b, ipv6, vlan, 8);
	at = b.bth + WIRE_BTH_ALIKE_BYTES;
	memset(&next, 0, sizeof(next));
	memset(&want, 0, sizeof(want));
	assert_int_equal(parse(&a, &next), WIRE_OK);
	b.frame[bit / 8] ^= 1 << bit % 8;
	if (bit / 8 == b.l3 + 4u && !ipv6)
		repair_ipv4(&b);
	differing = bit / 8 >= at || (!ipv6 && bit / 8 == b.l3 + 4u);
	assert_int_equal(wire_parse_next(b.frame, a.frame, &next), differing);
	if (!differing)
		return;
	wire_read_differing(b.frame + b.bth, &next.h);
	assert_int_equal(parse(&b, &want), WIRE_OK);
	assert_memory_equal(&next, &want, sizeof(want));
}

TEST(parse__next_of_a_run)
{
	struct built b;

	for (unsigned int i = 0; i < 4; i++) {
		make_frame(&b, i & 1, i & 2, 8);
		for (unsigned int bit = 0; bit < 8 * (b.bth + WIRE_BTH_BYTES); bit++)
			check_next(i & 1, i & 2, bit);
	}
}

TEST(parse__ipv4_header_checksum)
{
	struct wire_frame f;
	struct built b;

	make_frame(&b, false, false, 8);
	b.frame[b.l3 + 11] ^= 1;
	assert_int_equal(parse(&b, &f), WIRE_ERR_CHECKSUM);
}

TEST(parse__right_udp_checksum)
{
	struct wire_frame f;
	struct built b;
	uint32_t sum = 17;
	unsigned int i;

	make_frame(&b, false, false, 8);
	for (i = b.l3 + 12; i < b.bytes; i += 2)
		sum += (uint32_t)b.frame[i] << 8 | b.frame[i + 1];
	sum += b.bytes - b.udp;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	wire_put_be16(b.frame + b.udp + 6, ~sum);
	assert_int_equal(parse(&b, &f), WIRE_OK);
	b.frame[b.bytes - 1] ^= 1;
	assert_int_equal(parse(&b, &f), WIRE_ERR_CHECKSUM);
}

TEST(parse__pad_beyond_payload)
{
	struct wire_frame f;
	struct built b;

	make_frame(&b, false, false, 0);
	b.frame[b.bth + 1] = 0x10;
	assert_int_equal(parse(&b, &f), WIRE_ERR_LENGTH);
}

TEST(parse__not_a_whole_number_of_words)
{
	struct wire_frame f;
	struct built b;

	make_frame(&b, false, false, 8);
	wire_put_be16(b.frame + b.l3 + 2, b.bytes - b.l3 - 1);
	wire_put_be16(b.frame + b.udp + 4, b.bytes - b.udp - 1);
	repair_ipv4(&b);
	assert_int_equal(parse(&b, &f), WIRE_ERR_LENGTH);
}

TEST(parse__longer_than_any_packet)
{
	struct wire_frame f;
	struct built b;

	make_frame(&b, true, false, 4096 + 256);
	assert_int_equal(parse(&b, &f), WIRE_ERR_LENGTH);
}

TEST(parse__reserved_opcode_keeps_bth_and_offsets)
{
	struct wire_frame f;
	struct built b;

	make_frame(&b, false, true, 8);
	b.frame[b.bth] = 0x15;
	assert_int_equal(parse(&b, &f), WIRE_ERR_OPCODE);
	assert_int_equal(f.h.opcode, 0x15);
	assert_int_equal(f.h.dest_qp, 0x11);
	assert_int_equal(f.h.psn, 0xffffff);
	assert_int_equal(f.transport_end, b.bytes - 4);
	assert_int_equal(f.payload_offset, b.bth + 12);
	assert_int_equal(f.src_ip[3], 1);
}

static void set_class(struct built *b, bool ipv6, uint8_t tos)
{
	uint8_t *l3 = b->frame + b->l3;
	uint32_t sum;

	if (ipv6) {
		l3[0] = (uint8_t)((l3[0] & 0xf0) | tos >> 4);
		l3[1] = (uint8_t)((l3[1] & 0x0f) | tos << 4);
		return;
	}
	sum = (l3[10] << 8 | l3[11]) + l3[1];
	l3[1] = tos;
	sum = sum + 0xffff - tos;
	sum = (sum & 0xffff) + (sum >> 16);
	wire_put_be16(l3 + 10, (sum & 0xffff) + (sum >> 16));
}

/* What allows it (ECT) is marked, and nothing else of it changes; it is as right as before. */
TEST(mark__frames_that_allow_it)
{
	for (unsigned int i = 0; i < 16; i++) {
		bool ipv6 = i & 1, may = (i >> 2) == 1 || (i >> 2) == 2;
		struct built b;
		struct wire_frame f;

		make_frame(&b, ipv6, i & 2, 64);
		set_class(&b, ipv6, (uint8_t)(0xfc | i >> 2));
		assert_int_equal(wire_parse_frame(b.frame, b.bytes, &f), WIRE_OK);
		assert_int_equal(wire_mark_congested(b.frame, b.bytes), may);
		assert_int_equal(wire_parse_frame(b.frame, b.bytes, &f), WIRE_OK);
		assert_int_equal(f.tos, 0xfc | (may ? WIRE_ECN_CE : i >> 2));
		assert_int_equal(wire_icrc(b.frame + b.l3, f.transport_end - b.l3, ipv6),
				 wire_icrc_load(b.frame + f.transport_end));
		for (unsigned int bytes = 0; bytes < b.l3 + (ipv6 ? 40u : 20u); bytes++)
			assert_false(wire_mark_congested(b.frame, bytes));
	}
}

TEST(parse__congestion_notification)
{
	struct wire_frame f;
	struct built b;

	make_frame(&b, false, false, WIRE_CNP_RESERVED_BYTES);
	b.frame[b.bth] = WIRE_CNP;
	assert_int_equal(parse(&b, &f), WIRE_OK);
	assert_int_equal(f.payload_bytes, WIRE_CNP_RESERVED_BYTES);
}

TEST(source_port__in_range)
{
	uint32_t i;

	for (i = 0; i < 1 << 20; i += 7) {
		assert_true(wire_udp_source_port(i, 0xffffff - i) >= 0xc000);
		assert_true(wire_udp_source_port_ud(i) >= 0xc000);
		assert_true(wire_udp_source_port_of_flow(i) >= 0xc000);
	}
	assert_int_equal(wire_udp_source_port_of_flow(0xfffff), 0xc000 | (0x3fff ^ 0x3f));
	assert_int_equal(wire_udp_source_port(0x111, 0x222), wire_udp_source_port(0x222, 0x111));
}
