/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every RoCE frame of every golden capture: it parses, its ICRC is right, built again from what was
 * parsed it is the same, and cut anywhere it is refused without a byte read behind the cut.
 */
#include "golden_group.h"
#include "guard.h"
#include "wire/crc.h"
#include "wire/encap.h"

typedef void (*frame_test)(const struct golden_frame *g, const struct wire_frame *f);

/* Calls test for each RoCE frame, naming capture and frame when it fails to parse. */
static size_t each_roce_frame(frame_test test)
{
	struct wire_frame f;
	enum wire_error error;
	size_t roce = 0;
	size_t c;
	size_t i;

	for (c = 0; c < golden.count; c++) {
		for (i = 0; i < golden.captures[c].count; i++) {
			const struct golden_frame *g = &golden.captures[c].frames[i];

			error = wire_parse_frame(g->bytes, g->length, &f);
			if (error == WIRE_ERR_NOT_ROCE)
				continue;
			if (error != WIRE_OK)
				fail_msg("%s frame %zu: %s", golden.captures[c].name, i + 1,
					 wire_error_name(error));
			roce++;
			test(g, &f);
		}
	}
	return roce;
}

static void check_icrc(const struct golden_frame *g, const struct wire_frame *f)
{
	uint32_t icrc =
		wire_icrc(g->bytes + f->l3_offset, f->transport_end - f->l3_offset, f->is_ipv6);

	assert_int_equal(icrc, wire_icrc_load(g->bytes + f->transport_end));
}

static void check_icrc_in_parts(const struct golden_frame *g, const struct wire_frame *f)
{
	unsigned int header_bytes = f->payload_offset - f->l3_offset;
	unsigned int rest = f->transport_end - f->payload_offset;
	uint32_t headers = wire_icrc_headers(g->bytes + f->l3_offset, header_bytes, f->is_ipv6);
	uint32_t payload = wire_crc(0, g->bytes + f->payload_offset, rest);

	assert_int_equal(~wire_crc_combine(headers, payload, rest),
			 wire_icrc_load(g->bytes + f->transport_end));
}

TEST(golden__every_frame_parses)
{
	assert_true(golden.count >= 40);
	/* as many as tshark finds: udp.dstport == 4791 */
	assert_int_equal(each_roce_frame(check_icrc), 1439);
}

TEST(golden__icrc_in_every_form)
{
	const char *chosen = wire_crc_name();
	unsigned int i;

	for (i = 0; wire_crc_form(i); i++) {
		if (wire_crc_select(wire_crc_form(i)))
			continue;
		each_roce_frame(check_icrc);
		each_roce_frame(check_icrc_in_parts);
	}
	assert_int_equal(wire_crc_select(chosen), 0);
}

static void path_of_frame(struct wire_path *path, const struct golden_frame *g,
			  const struct wire_frame *f)
{
	memset(path, 0, sizeof(*path));
	memcpy(path->dst_mac, g->bytes, 6);
	memcpy(path->src_mac, g->bytes + 6, 6);
	path->has_vlan = f->has_vlan;
	path->vlan_tci = f->vlan_tci;
	path->is_ipv6 = f->is_ipv6;
	path->sport = f->sport;
	path->tos = f->tos;
	path->ttl = f->ttl;
	wire_address16(path->src_ip, f->src_ip, f->is_ipv6);
	wire_address16(path->dst_ip, f->dst_ip, f->is_ipv6);
}

static void check_rebuilt(const struct golden_frame *g, const struct wire_frame *f)
{
	unsigned int end = f->transport_end + WIRE_ICRC_BYTES;
	uint16_t ip_id = (uint16_t)(g->bytes[18] << 8 | g->bytes[19]); /* no VLAN in the captures */
	struct wire_template template;
	struct wire_path path;
	uint8_t built[8192];
	unsigned int at;

	memset(built, 0xa5, sizeof(built));
	path_of_frame(&path, g, f);
	wire_template_build(&template, &path);
	at = template.encap_bytes;
	wire_stamp(built, &template, end - at, ip_id);
	at += wire_write_transport(built + at, &f->h);
	assert_int_equal(at, f->payload_offset);
	memcpy(built + at, g->bytes + at, f->payload_bytes);
	memset(built + at + f->payload_bytes, 0, f->h.pad);
	at += f->payload_bytes + f->h.pad;
	wire_icrc_store(built + at,
			wire_icrc(built + template.l3_offset, at - template.l3_offset, f->is_ipv6));
	assert_memory_equal(built, g->bytes, end);
	assert_int_equal(built[end], 0xa5);
}

TEST(golden__built_again_is_the_same)
{
	each_roce_frame(check_rebuilt);
}

/* Each cut both on the heap, where ASan looks, and in front of an unreadable page. */
static void check_cuts(const struct golden_frame *g, const struct wire_frame *f)
{
	static uint8_t *guard;
	struct wire_frame cut;
	unsigned int n;
	uint8_t *heap;

	if (!guard)
		guard = guard_new();
	for (n = 0; n < f->transport_end + (unsigned int)WIRE_ICRC_BYTES; n++) {
		heap = malloc(n ? n : 1);
		assert_non_null(heap);
		memcpy(heap, g->bytes, n);
		assert_int_equal(wire_parse_frame(heap, n, &cut), WIRE_ERR_TRUNCATED);
		free(heap);
		assert_int_equal(wire_parse_frame(guard_copy(guard, g->bytes, n), n, &cut),
				 WIRE_ERR_TRUNCATED);
	}
	assert_int_equal(wire_parse_frame(guard_copy(guard, g->bytes, n), n, &cut), WIRE_OK);
	assert_int_equal(cut.payload_bytes, f->payload_bytes);
}

TEST(golden__cut_anywhere_is_truncated)
{
	each_roce_frame(check_cuts);
}

static void check_ethernet_padding(const struct golden_frame *g, const struct wire_frame *f)
{
	struct wire_frame padded;
	uint8_t frame[8192] = {0};

	memcpy(frame, g->bytes, g->length);
	assert_int_equal(wire_parse_frame(frame, g->length + 37, &padded), WIRE_OK);
	assert_int_equal(padded.transport_end, f->transport_end);
	assert_int_equal(padded.payload_bytes, f->payload_bytes);
}

TEST(golden__ethernet_padding_is_ignored)
{
	each_roce_frame(check_ethernet_padding);
}

static void check_ud_source_port(const struct golden_frame *g, const struct wire_frame *f)
{
	if (wire_opcodes[f->h.opcode].service == SERVICE_UD)
		assert_int_equal(f->sport, wire_udp_source_port_ud(f->h.src_qp));
}

TEST(golden__source_port_of_ud)
{
	each_roce_frame(check_ud_source_port);
}

/*
 * The two QPNs of a capture with one RC or UC QP on each side, from the two directions. Returns
 * false for any other capture.
 */
static bool find_qpns(const struct golden_capture *capture, uint32_t qpn[2])
{
	struct wire_frame f;
	uint8_t first[16];
	bool any = false;
	size_t i;
	int side;

	qpn[0] = qpn[1] = 0;
	for (i = 0; i < capture->count; i++) {
		if (wire_parse_frame(capture->frames[i].bytes, capture->frames[i].length, &f))
			continue;
		if (!any)
			memcpy(first, f.src_ip, f.ip_bytes);
		any = true;
		side = !memcmp(first, f.src_ip, f.ip_bytes);
		if (wire_opcodes[f.h.opcode].service == SERVICE_UD ||
		    (qpn[side] && qpn[side] != f.h.dest_qp))
			return false;
		qpn[side] = f.h.dest_qp;
	}
	return qpn[0] && qpn[1];
}

TEST(golden__source_port_of_connections)
{
	unsigned int checked = 0;
	struct wire_frame f;
	uint32_t qpn[2];
	size_t c;
	size_t i;

	for (c = 0; c < golden.count; c++) {
		const struct golden_capture *capture = &golden.captures[c];

		if (!find_qpns(capture, qpn))
			continue;
		checked++;
		for (i = 0; i < capture->count; i++)
			if (!wire_parse_frame(capture->frames[i].bytes, capture->frames[i].length,
					      &f))
				assert_int_equal(f.sport, wire_udp_source_port(qpn[0], qpn[1]));
	}
	assert_true(checked >= 20);
}

static void check_payload_allowed(const struct golden_frame *g, const struct wire_frame *f)
{
	if (!(wire_opcodes[f->h.opcode].headers & WIRE_HAS_PAYLOAD))
		assert_int_equal(f->payload_bytes + f->h.pad, 0);
}

TEST(golden__only_payload_opcodes_carry_payload)
{
	each_roce_frame(check_payload_allowed);
}
