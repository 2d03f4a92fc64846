/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Converts messages of the connection manager to and from MADs. One table of rows per message maps
 * bits to members (IBTA volume 1, tables 106 to 120); the same rows read and write. Touches only
 * what it is handed, keeps no state, trusts no byte. CM thread, and tests.
 */
#include "cm/mad.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/param.h>

#include "base/assert.h"
#include "base/ip.h"

enum {
	HEADER_BYTES = 24, /* of the common MAD header; offsets in the rows count from its end */
	BASE_VERSION = 1,
	CLASS_CM = 7,
	CLASS_VERSION = 2,
	METHOD_SEND = 3,
	AT_METHOD = 3,
	AT_STATUS = 4,
	AT_TRANSACTION = 8,
	AT_ATTRIBUTE = 16,
	AT_MODIFIER = 20,
	INFO_BYTES = 72, /* additional information, in messages that have it */
	GID_BYTES = 16,
};

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "rows copy the low bytes of a word");

/* A member and its position: `bits` from bit `bit` (0 is the highest) of byte `byte` on. */
struct row {
	uint8_t byte, bit, bits;
	uint8_t size; /* of the member; GID_BYTES: a string of bytes, copied */
	uint16_t member;
};

#define AT(byte, bit, bits, m)                                                                     \
	{                                                                                          \
		byte, bit, bits, sizeof(((struct cm_message *)0)->m),                              \
			offsetof(struct cm_message, m)                                             \
	}

/* One of the two paths of a REQ. */
#define PATH(byte, m)                                                                              \
	AT(byte, 0, 16, m.local_lid), AT(byte + 2, 0, 16, m.remote_lid),                           \
		AT(byte + 4, 0, 128, m.local_gid), AT(byte + 20, 0, 128, m.remote_gid),            \
		AT(byte + 36, 0, 20, m.flow_label), AT(byte + 39, 2, 6, m.rate),                   \
		AT(byte + 40, 0, 8, m.traffic_class), AT(byte + 41, 0, 8, m.hop_limit),            \
		AT(byte + 42, 0, 4, m.sl), AT(byte + 42, 4, 1, m.subnet_local),                    \
		AT(byte + 43, 0, 5, m.ack_timeout)

/* Both EE context numbers belong to RD and stay 0. */
static const struct row req_rows[] = {
	AT(0, 0, 32, local_id),
	AT(5, 0, 24, req.vendor_id),
	AT(8, 0, 64, req.service_id),
	AT(16, 0, 64, req.guid),
	AT(28, 0, 32, req.qkey),
	AT(32, 0, 24, req.qpn),
	AT(35, 0, 8, req.responder_resources),
	AT(39, 0, 8, req.initiator_depth),
	AT(43, 0, 5, req.remote_timeout),
	AT(43, 5, 2, req.service_type),
	AT(43, 7, 1, req.flow_control),
	AT(44, 0, 24, req.psn),
	AT(47, 0, 5, req.local_timeout),
	AT(47, 5, 3, req.retry_count),
	AT(48, 0, 16, req.pkey),
	AT(50, 0, 4, req.mtu),
	AT(50, 4, 1, req.rdc_exists),
	AT(50, 5, 3, req.rnr_retry_count),
	AT(51, 0, 4, req.max_cm_retries),
	AT(51, 4, 1, req.srq),
	AT(51, 5, 3, req.extended_transport),
	PATH(52, req.path),
	PATH(96, req.alternate),
};

static const struct row mra_rows[] = {
	AT(0, 0, 32, local_id),
	AT(4, 0, 32, remote_id),
	AT(8, 0, 2, mra.about),
	AT(9, 0, 5, mra.service_timeout),
};

static const struct row rej_rows[] = {
	AT(0, 0, 32, local_id),	     AT(4, 0, 32, remote_id),	AT(8, 0, 2, rej.about),
	AT(9, 0, 7, rej.info_bytes), AT(10, 0, 16, rej.reason),
};

static const struct row rep_rows[] = {
	AT(0, 0, 32, local_id),
	AT(4, 0, 32, remote_id),
	AT(8, 0, 32, rep.qkey),
	AT(12, 0, 24, rep.qpn),
	AT(15, 0, 8, rep.vendor_id[0]),
	AT(16, 0, 24, rep.eecn),
	AT(19, 0, 8, rep.vendor_id[1]),
	AT(20, 0, 24, rep.psn),
	AT(23, 0, 8, rep.vendor_id[2]),
	AT(24, 0, 8, rep.responder_resources),
	AT(25, 0, 8, rep.initiator_depth),
	AT(26, 0, 5, rep.target_ack_delay),
	AT(26, 5, 2, rep.failover_accepted),
	AT(26, 7, 1, rep.flow_control),
	AT(27, 0, 3, rep.rnr_retry_count),
	AT(27, 3, 1, rep.srq),
	AT(28, 0, 64, rep.guid),
};

/* RTU, DREP, and the part of a LAP that we use. */
static const struct row id_rows[] = {
	AT(0, 0, 32, local_id),
	AT(4, 0, 32, remote_id),
};

static const struct row dreq_rows[] = {
	AT(0, 0, 32, local_id),
	AT(4, 0, 32, remote_id),
	AT(8, 0, 24, dreq.remote_qpn),
};

static const struct row sidr_req_rows[] = {
	AT(0, 0, 32, sidr_req.request_id),
	AT(4, 0, 16, sidr_req.pkey),
	AT(8, 0, 64, sidr_req.service_id),
};

static const struct row sidr_rep_rows[] = {
	AT(0, 0, 32, sidr_rep.request_id),  AT(4, 0, 8, sidr_rep.status),
	AT(5, 0, 8, sidr_rep.info_bytes),   AT(8, 0, 24, sidr_rep.qpn),
	AT(12, 0, 64, sidr_rep.service_id), AT(20, 0, 32, sidr_rep.qkey),
};

static const struct row apr_rows[] = {
	AT(0, 0, 32, local_id),
	AT(4, 0, 32, remote_id),
	AT(8, 0, 8, apr.info_bytes),
	AT(9, 0, 8, apr.status),
};

/* A message: its rows, the offset of its additional information (0: none) and of its private data,
 * which extends to the end of the MAD. */
struct format {
	const char *name;
	const struct row *rows;
	uint8_t row_count;
	uint8_t private_at;
	uint8_t info_at;
	uint16_t info_length, info; /* members */
};

#define FORMAT(type, r, private_at, ...)                                                           \
	[CM_##type] = {#type, r, sizeof(r) / sizeof((r)[0]), private_at, __VA_ARGS__}
#define NO_INFO	    0, 0, 0
#define INFO(at, m) at, offsetof(struct cm_message, m##_bytes), offsetof(struct cm_message, m)

static const struct format formats[] = {
	FORMAT(REQ, req_rows, 140, NO_INFO),
	FORMAT(MRA, mra_rows, 10, NO_INFO),
	FORMAT(REJ, rej_rows, 84, INFO(12, rej.info)),
	FORMAT(REP, rep_rows, 36, NO_INFO),
	FORMAT(RTU, id_rows, 8, NO_INFO),
	FORMAT(DREQ, dreq_rows, 12, NO_INFO),
	FORMAT(DREP, id_rows, 8, NO_INFO),
	FORMAT(SIDR_REQ, sidr_req_rows, 16, NO_INFO),
	FORMAT(SIDR_REP, sidr_rep_rows, 96, INFO(24, sidr_rep.info)),
	FORMAT(LAP, id_rows, 64, NO_INFO),
	FORMAT(APR, apr_rows, 84, INFO(12, apr.info)),
};

static const struct format *format_of(uint16_t type)
{
	return type >= CM_REQ && type <= CM_APR ? &formats[type] : NULL;
}

static unsigned int private_room(const struct format *f)
{
	return CM_MAD_BYTES - HEADER_BYTES - f->private_at;
}

unsigned int cm_private_bytes(uint16_t type)
{
	const struct format *f = format_of(type);

	return f ? private_room(f) : 0;
}

const char *cm_type_name(uint16_t type)
{
	const struct format *f = format_of(type);

	return f ? f->name : "?";
}

/* The `bits` bits (1..64) from bit `bit` of p on; they touch eight bytes at most. */
static uint64_t get_bits(const uint8_t *p, unsigned int bit, unsigned int bits)
{
	unsigned int bytes = (bit + bits + 7) / 8;
	uint64_t v = 0;
	unsigned int i;

	for (i = 0; i < bytes; i++)
		v = v << 8 | p[i];
	v >>= 8 * bytes - bit - bits;
	return v & UINT64_MAX >> (64 - bits);
}

/* As get_bits(). The bits must be 0 before. */
static void put_bits(uint8_t *p, unsigned int bit, unsigned int bits, uint64_t v)
{
	unsigned int bytes = (bit + bits + 7) / 8;

	ASSERT(v <= UINT64_MAX >> (64 - bits));
	v &= UINT64_MAX >> (64 - bits); /* protects the neighbours in release builds */
	v <<= 8 * bytes - bit - bits;
	for (; bytes; v >>= 8)
		p[--bytes] |= (uint8_t)v;
}

static void read_row(const struct row *r, const uint8_t *data, struct cm_message *m)
{
	uint8_t *member = (uint8_t *)m + r->member;
	uint64_t v;

	if (r->size == GID_BYTES) {
		memcpy(member, data + r->byte, GID_BYTES);
		return;
	}
	v = get_bits(data + r->byte, r->bit, r->bits);
	memcpy(member, &v, r->size); /* the low bytes come first; a bool's row has one bit */
}

static void write_row(const struct row *r, uint8_t *data, const struct cm_message *m)
{
	const uint8_t *member = (const uint8_t *)m + r->member;
	uint64_t v = 0;

	if (r->size == GID_BYTES) {
		memcpy(data + r->byte, member, GID_BYTES);
		return;
	}
	memcpy(&v, member, r->size);
	put_bits(data + r->byte, r->bit, r->bits, v);
}

/* Checks for reserved values, which the rows cannot express. */
static bool values_allowed(const struct cm_message *m)
{
	switch (m->type) {
	case CM_REQ:
		return m->req.mtu >= 1 && m->req.mtu <= 5;
	case CM_MRA:
		return m->mra.about <= CM_ABOUT_OTHER;
	case CM_REJ:
		return m->rej.about <= CM_ABOUT_OTHER;
	default:
		return true;
	}
}

static enum cm_malformed read_header(const uint8_t *mad, struct cm_message *m)
{
	if (mad[0] != BASE_VERSION || mad[1] != CLASS_CM || mad[2] != CLASS_VERSION)
		return CM_NO_CM_MAD;
	if (mad[AT_METHOD] != METHOD_SEND)
		return CM_NOT_SEND;
	m->status = (uint16_t)get_bits(mad + AT_STATUS, 0, 16);
	m->transaction = get_bits(mad + AT_TRANSACTION, 0, 64);
	m->type = (uint16_t)get_bits(mad + AT_ATTRIBUTE, 0, 16);
	m->modifier = (uint32_t)get_bits(mad + AT_MODIFIER, 0, 32);
	return format_of(m->type) ? CM_WELL_FORMED : CM_UNKNOWN;
}

enum cm_malformed cm_mad_parse(const uint8_t *bytes, size_t n, struct cm_message *out)
{
	const uint8_t *data = bytes + HEADER_BYTES;
	const struct format *f;
	enum cm_malformed result;
	unsigned int i;

	if (n < CM_MAD_BYTES)
		return CM_TOO_SHORT;
	memset(out, 0, sizeof(*out));
	result = read_header(bytes, out);
	if (result != CM_WELL_FORMED)
		return result;
	f = format_of(out->type);
	for (i = 0; i < f->row_count; i++)
		read_row(&f->rows[i], data, out);
	if (!values_allowed(out))
		return CM_BAD_FIELD;
	if (f->info_at) {
		uint8_t length = ((const uint8_t *)out)[f->info_length];

		if (length > INFO_BYTES)
			return CM_BAD_FIELD;
		memcpy((uint8_t *)out + f->info, data + f->info_at, length);
	}
	out->private_bytes = (uint8_t)private_room(f);
	memcpy(out->private_data, data + f->private_at, out->private_bytes);
	return CM_WELL_FORMED;
}

void cm_mad_build(const struct cm_message *m, uint8_t mad[CM_MAD_BYTES])
{
	const struct format *f = format_of(m->type);
	uint8_t *data = mad + HEADER_BYTES;
	unsigned int i;

	ASSERT(f && values_allowed(m) && m->private_bytes <= private_room(f));
	memset(mad, 0, CM_MAD_BYTES);
	mad[0] = BASE_VERSION;
	mad[1] = CLASS_CM;
	mad[2] = CLASS_VERSION;
	mad[AT_METHOD] = METHOD_SEND;
	put_bits(mad + AT_STATUS, 0, 16, m->status);
	put_bits(mad + AT_TRANSACTION, 0, 64, m->transaction);
	put_bits(mad + AT_ATTRIBUTE, 0, 16, m->type);
	put_bits(mad + AT_MODIFIER, 0, 32, m->modifier);
	for (i = 0; i < f->row_count; i++)
		write_row(&f->rows[i], data, m);
	if (f->info_at) {
		uint8_t length = ((const uint8_t *)m)[f->info_length];

		ASSERT(length <= INFO_BYTES);
		memcpy(data + f->info_at, (const uint8_t *)m + f->info, MIN(length, INFO_BYTES));
	}
	memcpy(data + f->private_at, m->private_data, MIN(m->private_bytes, private_room(f)));
}

/* IP addressing: version 0.0 | IP version, 0 | source port | source | destination. */
enum { AT_IP_VERSION = 1, AT_PORT = 2, AT_SOURCE = 4, AT_DESTINATION = 20 };

int cm_ip_parse(const uint8_t bytes[CM_IP_BYTES], struct cm_ip_addressing *out)
{
	uint8_t version = bytes[AT_IP_VERSION] >> 4;

	if (bytes[0] >> 4 != 0 || (version != 4 && version != 6))
		return -EPROTO;
	out->version = version;
	out->source_port = (uint16_t)get_bits(bytes + AT_PORT, 0, 16);
	if (version == 4) { /* in the last four bytes; the others are reserved */
		ip_map_v4(bytes + AT_SOURCE + IP_V4_AT, out->source);
		ip_map_v4(bytes + AT_DESTINATION + IP_V4_AT, out->destination);
	} else {
		memcpy(out->source, bytes + AT_SOURCE, GID_BYTES);
		memcpy(out->destination, bytes + AT_DESTINATION, GID_BYTES);
	}
	return 0;
}

void cm_ip_build(const struct cm_ip_addressing *a, uint8_t bytes[CM_IP_BYTES])
{
	unsigned int skip = a->version == 4 ? IP_V4_AT : 0;

	ASSERT(a->version == 4 || a->version == 6);
	memset(bytes, 0, CM_IP_BYTES);
	bytes[AT_IP_VERSION] = (uint8_t)(a->version << 4);
	put_bits(bytes + AT_PORT, 0, 16, a->source_port);
	memcpy(bytes + AT_SOURCE + skip, a->source + skip, GID_BYTES - skip);
	memcpy(bytes + AT_DESTINATION + skip, a->destination + skip, GID_BYTES - skip);
}
