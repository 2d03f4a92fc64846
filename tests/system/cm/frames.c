/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: cm_frames FOLDER [opcodes]
 * Writes FOLDER/cm.pcap: each message of the connection manager as a RoCEv2 frame, over IPv4 and
 * IPv6, with the lowest, the highest and random values in all of its fields. Prints for each frame
 * what tshark must find in it, as a display filter a line. `opcodes`: FOLDER/opcodes.pcap, a packet of
 * each opcode that queue pairs send, and prints the opcodes.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "mad_fields.h"
#include "wire/crc.h"
#include "wire/encap.h"
#include "wire/opcode.h"
#include "xorshift.h"

enum { RANDOM_FRAMES = 2, FRAME_ROOM = 512 };

/* tshark's names of the fields. It knows neither MRA, LAP, APR nor service ID resolution; the
 * flow labels and rates of a REQ it reads from the wrong bits (4.0: see the capture of two kernels
 * in tests/golden), so they are not here. */
static const struct {
	uint16_t type;
	const char *field, *tshark;
} names[] = {
	{0, "status", "mad.status"},
	{0, "transaction", "mad.transactionid"},
	{CM_REQ, "local_id", "cm.req"},
	{CM_REQ, "req.guid", "cm.req.localcaguid"},
	{CM_REQ, "req.qkey", "cm.req.localqkey"},
	{CM_REQ, "req.qpn", "cm.req.localqpn"},
	{CM_REQ, "req.responder_resources", "cm.req.responderres"},
	{CM_REQ, "req.initiator_depth", "cm.req.initdepth"},
	{CM_REQ, "req.remote_timeout", "cm.req.remoteresptout"},
	{CM_REQ, "req.service_type", "cm.req.transpsvctype"},
	{CM_REQ, "req.flow_control", "cm.req.e2eflowctrl"},
	{CM_REQ, "req.psn", "cm.req.startpsn"},
	{CM_REQ, "req.local_timeout", "cm.req.localresptout"},
	{CM_REQ, "req.retry_count", "cm.req.retrcount"},
	{CM_REQ, "req.pkey", "cm.req.pkey"},
	{CM_REQ, "req.mtu", "cm.req.pppmtu"},
	{CM_REQ, "req.rdc_exists", "cm.req.rdcexist"},
	{CM_REQ, "req.rnr_retry_count", "cm.req.rnrretrcount"},
	{CM_REQ, "req.max_cm_retries", "cm.req.maxcmretr"},
	{CM_REQ, "req.srq", "cm.req.srq"},
	{CM_REQ, "req.extended_transport", "cm.req.ext_transport"},
	{CM_REQ, "req.path.local_lid", "cm.req.prim_locallid"},
	{CM_REQ, "req.path.remote_lid", "cm.req.prim_remotelid"},
	{CM_REQ, "req.path.traffic_class", "cm.req.prim_tfcclass"},
	{CM_REQ, "req.path.hop_limit", "cm.req.prim_hoplim"},
	{CM_REQ, "req.path.sl", "cm.req.prim_sl"},
	{CM_REQ, "req.path.subnet_local", "cm.req.prim_subnetlocal"},
	{CM_REQ, "req.path.ack_timeout", "cm.req.prim_localacktout"},
	{CM_REQ, "req.alternate.local_lid", "cm.req.alt_locallid"},
	{CM_REQ, "req.alternate.remote_lid", "cm.req.alt_remotelid"},
	{CM_REQ, "req.alternate.traffic_class", "cm.req.alt_tfcclass"},
	{CM_REQ, "req.alternate.hop_limit", "cm.req.alt_hoplim"},
	{CM_REQ, "req.alternate.sl", "cm.req.alt_sl"},
	{CM_REQ, "req.alternate.subnet_local", "cm.req.alt_subnetlocal"},
	{CM_REQ, "req.alternate.ack_timeout", "cm.req.alt_localacktout"},
	{CM_REJ, "local_id", "cm.rej.localcommid"},
	{CM_REJ, "remote_id", "cm.rej.remotecommid"},
	{CM_REJ, "rej.about", "cm.rej.msgrej"},
	{CM_REJ, "rej.info_bytes", "cm.rej.rejinfolen"},
	{CM_REJ, "rej.reason", "cm.rej.reason"},
	{CM_REP, "local_id", "cm.rep"},
	{CM_REP, "remote_id", "cm.rep.remotecommid"},
	{CM_REP, "rep.qkey", "cm.rep.localqkey"},
	{CM_REP, "rep.qpn", "cm.rep.localqpn"},
	{CM_REP, "rep.eecn", "cm.rep.localeecn"},
	{CM_REP, "rep.psn", "cm.rep.startpsn"},
	{CM_REP, "rep.responder_resources", "cm.rep.respres"},
	{CM_REP, "rep.initiator_depth", "cm.rep.initdepth"},
	{CM_REP, "rep.target_ack_delay", "cm.rep.tgtackdelay"},
	{CM_REP, "rep.failover_accepted", "cm.rep.failoveracc"},
	{CM_REP, "rep.flow_control", "cm.rep.e2eflowctrl"},
	{CM_REP, "rep.rnr_retry_count", "cm.rep.rnrretrcount"},
	{CM_REP, "rep.srq", "cm.rep.srq"},
	{CM_REP, "rep.guid", "cm.rep.localcaguid"},
	{CM_RTU, "local_id", "cm.rtu.localcommid"},
	{CM_RTU, "remote_id", "cm.rtu.remotecommid"},
	{CM_DREQ, "local_id", "cm.dreq.localcommid"},
	{CM_DREQ, "remote_id", "cm.dreq.remotecommid"},
	{CM_DREQ, "dreq.remote_qpn", "cm.req.remoteqpneecn"},
	{CM_DREP, "local_id", "cm.drsp.localcommid"},
	{CM_DREP, "remote_id", "cm.drsp.remotecommid"},
};

/* The same for private data. */
static const char *const private_names[CM_APR + 1] = {
	[CM_REJ] = "cm.rej.private",   [CM_REP] = "cm.rep.private",   [CM_RTU] = "cm.rtu.private",
	[CM_DREQ] = "cm.dreq.private", [CM_DREP] = "cm.drsp.private",
};

static unsigned int frame_number;

/* The values of the message being filled: lowest, highest, or random. */
static enum { LOWEST, HIGHEST, RANDOM } variant;

static uint64_t random64(void)
{
	static uint64_t state = 6;

	return xorshift(&state);
}

static uint64_t value(const struct mad_field *f)
{
	if (variant == LOWEST)
		return f->from;
	return variant == HIGHEST ? mad_field_max(f) : mad_field_any(f, random64());
}

static void fill(uint8_t *p, unsigned int n)
{
	while (n)
		p[--n] = variant == LOWEST ? 0 : variant == HIGHEST ? 0xff : (uint8_t)random64();
}

static void fill_message(struct cm_message *m, uint16_t type)
{
	mad_fill(m, type, value, fill);
	m->private_bytes = (uint8_t)cm_private_bytes(type);
	fill(m->private_data, m->private_bytes);
}

/* IP addressing as librdmacm's port space TCP has it, on top of a random REQ. */
static void fill_ip(struct cm_message *m, uint8_t version)
{
	struct cm_ip_addressing a = {.version = version, .source_port = 0xbe39};
	const char *source = version == 4 ? "::ffff:10.222.0.1" : "fd77::1";
	const char *destination = version == 4 ? "::ffff:10.222.255.254" : "fd77::ffff:2";

	variant = RANDOM;
	fill_message(m, CM_REQ);
	inet_pton(AF_INET6, source, a.source);
	inet_pton(AF_INET6, destination, a.destination);
	memcpy(m->req.path.local_gid, a.source, 16);
	memcpy(m->req.path.remote_gid, a.destination, 16);
	m->req.service_id = 0x01060000 + 0xfffe;
	cm_ip_build(&a, m->private_data);
}

static void expect_bytes(const char *field, const uint8_t *p, unsigned int n)
{
	unsigned int i;

	if (!n)
		return;
	printf(" && infiniband.%s == ", field);
	for (i = 0; i < n; i++)
		printf("%s%02x", i ? ":" : "", p[i]);
}

static void expect_ip(const char *field, const uint8_t ip[16], bool v4)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? ip + 12 : ip, text, sizeof(text));
	printf(" && infiniband.%s == %s", field, text);
}

/* Over IPv4 tshark takes the GIDs' last bytes for IPv4 addresses, whatever the others are. */
static void expect_addresses(const struct cm_message *m, bool addressed, bool v4)
{
	struct cm_ip_addressing a;

	expect_ip(v4 ? "cm.req.prim_localgid_ipv4" : "cm.req.prim_localgid", m->req.path.local_gid,
		  v4);
	expect_ip(v4 ? "cm.req.prim_remotegid_ipv4" : "cm.req.prim_remotegid",
		  m->req.path.remote_gid, v4);
	expect_bytes("cm.req.alt_localgid", m->req.alternate.local_gid, 16);
	expect_bytes("cm.req.alt_remotegid", m->req.alternate.remote_gid, 16);
	if (!addressed) {
		expect_bytes("cm.req.private", m->private_data, m->private_bytes);
		return;
	}
	if (cm_ip_parse(m->private_data, &a))
		abort();
	printf(" && infiniband.cm.req.serviceid.dport == 0x%" PRIx64, m->req.service_id & 0xffff);
	printf(" && infiniband.cm.req.serviceid.protocol == 6");
	printf(" && infiniband.cm.req.ip_cm.ipv == %u", a.version);
	printf(" && infiniband.cm.req.ip_cm.sport == %u", a.source_port);
	v4 = a.version == 4;
	expect_ip(v4 ? "cm.req.ip_cm.sip4" : "cm.req.ip_cm.sip6", a.source, v4);
	expect_ip(v4 ? "cm.req.ip_cm.dip4" : "cm.req.ip_cm.dip6", a.destination, v4);
	expect_bytes("cm.req.ip_cm.private", m->private_data + CM_IP_BYTES,
		     m->private_bytes - CM_IP_BYTES);
}

/* Prints the display filter that holds for the next frame, if m is in it. */
static void expect(const struct cm_message *m, bool addressed, bool is_ipv6)
{
	unsigned int i, k;

	printf("frame.number == %u && infiniband.mad.mgmtclass == 7", ++frame_number);
	printf(" && infiniband.mad.classversion == 2 && infiniband.mad.method == 3");
	printf(" && infiniband.mad.attributeid == 0x%x", m->type);
	printf(" && infiniband.bth.destqp == 1 && infiniband.deth.srcqp == 1");
	printf(" && infiniband.deth.q_key == 0x%x", CM_QKEY);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (k = 0; k < MAD_FIELDS; k++) {
			const struct mad_field *f = &mad_fields[k];

			if (names[i].type == f->type && (!f->type || f->type == m->type) &&
			    !strcmp(names[i].field, f->name))
				printf(" && infiniband.%s == 0x%" PRIx64, names[i].tshark,
				       mad_field_get(m, f));
		}
	}
	if (m->type == CM_REQ)
		expect_addresses(m, addressed, !is_ipv6);
	else if (private_names[m->type])
		expect_bytes(private_names[m->type], m->private_data, m->private_bytes);
	if (m->type == CM_REJ && m->rej.info_bytes == sizeof(m->rej.info))
		expect_bytes("cm.rej.ari", m->rej.info, m->rej.info_bytes);
	putchar('\n');
}

static void write_record(FILE *out, const uint8_t *frame, unsigned int n)
{
	const uint32_t record[4] = {frame_number, 0, n, n};

	fwrite(record, sizeof(record), 1, out);
	fwrite(frame, n, 1, out);
}

/* Ethernet, with `priority` a tag, IP, UDP, the headers, `bytes` of a payload, ICRC. */
static void write_packet(FILE *out, const struct wire_headers *h, bool is_ipv6, bool priority,
			 const uint8_t *payload, unsigned int bytes)
{
	struct wire_path path = {.dst_mac = {2, 0, 0, 0, 0, 2},
				 .src_mac = {2, 0, 0, 0, 0, 1},
				 .is_ipv6 = is_ipv6,
				 .has_vlan = priority,
				 .vlan_tci = 5 << WIRE_PCP_SHIFT,
				 .sport = wire_udp_source_port_ud(1),
				 .ttl = 64};
	struct wire_template template;
	uint8_t frame[FRAME_ROOM];
	unsigned int l3, at;

	inet_pton(AF_INET6, is_ipv6 ? "fd77::1" : "::ffff:10.222.0.1", path.src_ip);
	inet_pton(AF_INET6, is_ipv6 ? "fd77::2" : "::ffff:10.222.0.2", path.dst_ip);
	wire_template_build(&template, &path);
	l3 = template.l3_offset;
	at = template.encap_bytes;
	at += wire_write_transport(frame + at, h);
	memcpy(frame + at, payload, bytes);
	at += bytes;
	wire_stamp(frame, &template, at + 4 - template.encap_bytes, (uint16_t)frame_number);
	wire_icrc_store(frame + at, wire_icrc(frame + l3, at - l3, is_ipv6));
	write_record(out, frame, at + 4);
}

/* As QP 1 sends it. */
static void write_frame(FILE *out, const struct cm_message *m, bool is_ipv6)
{
	const struct wire_headers h = {.opcode = WIRE_UD_SEND_ONLY,
				       .pkey = 0xffff,
				       .dest_qp = 1,
				       .src_qp = 1,
				       .qkey = CM_QKEY,
				       .psn = frame_number};
	uint8_t mad[CM_MAD_BYTES];

	cm_mad_build(m, mad);
	write_packet(out, &h, is_ipv6, false, mad, sizeof(mad));
}

/* A packet of each opcode that we send: of a connection that may migrate, in a tag of VLAN 0. Prints its bytes. */
static void write_opcodes(FILE *out)
{
	unsigned int opcode, bytes;

	for (opcode = 0; opcode < 256; opcode++) {
		const struct wire_opcode *o = &wire_opcodes[opcode];
		struct wire_headers h = {.opcode = (uint8_t)opcode,
					 .pkey = 0xffff,
					 .dest_qp = 0x123456,
					 .migreq = 1,
					 .becn = o->kind == WIRE_KIND_CNP};
		uint8_t payload[32] = {0};

		if (!o->header_bytes)
			continue;
		bytes = o->headers & WIRE_HAS_PAYLOAD ? sizeof(payload) : 0;
		if (opcode == WIRE_RC_ATOMIC_WRITE)
			bytes = 8;
		h.dma_len = bytes;
		frame_number++;
		write_packet(out, &h, opcode & 1, true, payload, bytes);
		printf("%u\n", opcode);
	}
}

static FILE *create(const char *folder, const char *name)
{
	static const uint32_t header[6] = {0xa1b2c3d4, 2 | 4 << 16, 0, 0, 65535, 1};
	char path[4096];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s.pcap", folder, name);
	out = fopen(path, "wb");
	if (out)
		fwrite(header, sizeof(header), 1, out);
	return out;
}

static void both_families(FILE *out, const struct cm_message *m, bool addressed)
{
	expect(m, addressed, false);
	write_frame(out, m, false);
	expect(m, addressed, true);
	write_frame(out, m, true);
}

int main(int argc, char **argv)
{
	bool opcodes = argc == 3 && !strcmp(argv[2], "opcodes");
	struct cm_message m;
	unsigned int i;
	uint16_t type;
	FILE *out = argc < 2 ? NULL : create(argv[1], opcodes ? "opcodes" : "cm");

	if (!out) {
		fprintf(stderr, "usage: %s FOLDER [opcodes]\n", argv[0]);
		return 2;
	}
	if (opcodes) {
		write_opcodes(out);
		return fclose(out) ? 1 : 0;
	}
	for (type = CM_REQ; type <= CM_APR; type++) {
		for (i = 0; i < RANDOM + RANDOM_FRAMES; i++) {
			variant = i < RANDOM ? i : RANDOM;
			fill_message(&m, type);
			both_families(out, &m, false);
		}
	}
	fill_ip(&m, 4);
	both_families(out, &m, true);
	fill_ip(&m, 6);
	both_families(out, &m, true);
	return fclose(out) ? 1 : 0;
}
