/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MAD_FIELDS_H
#define MAD_FIELDS_H
/*
 * Every field of every message that lib/daemon/cm reads and writes, as the standard's tables have them,
 * written down a second time: what lib/daemon/cm/mad.c is tested against. Private data and additional
 * information are not among them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cm/mad.h"

struct mad_field {
	const char *name;
	uint16_t type;	/* 0: of all messages, in the common header */
	uint16_t first; /* bit of the MAD, the highest of byte 0 is 0 */
	uint8_t bits, size;
	uint16_t member;
	uint8_t from, to; /* the only values allowed; both 0: all */
};

#define FIELD(type, m, byte, bit, bits, from, to)                                                  \
	{                                                                                          \
#m, type, 8 * (byte) + (bit), bits, sizeof(((struct cm_message *)0)->m),           \
			offsetof(struct cm_message, m), from, to                                   \
	}
#define DATA(t, m, byte, bit, bits) FIELD(CM_##t, m, 24 + (byte), bit, bits, 0, 0)
#define GID(t, m, byte)                                                                            \
	FIELD(CM_##t, m[0], 24 + (byte), 0, 8, 0, 0),                                              \
		FIELD(CM_##t, m[7], 31 + (byte), 0, 8, 0, 0),                                      \
		FIELD(CM_##t, m[8], 32 + (byte), 0, 8, 0, 0),                                      \
		FIELD(CM_##t, m[15], 39 + (byte), 0, 8, 0, 0)
#define IDS(t) DATA(t, local_id, 0, 0, 32), DATA(t, remote_id, 4, 0, 32)

static const struct mad_field mad_fields[] = {
	FIELD(0, status, 4, 0, 16, 0, 0),
	FIELD(0, transaction, 8, 0, 64, 0, 0),
	FIELD(0, modifier, 20, 0, 32, 0, 0),

	DATA(REQ, local_id, 0, 0, 32),
	DATA(REQ, req.vendor_id, 5, 0, 24),
	DATA(REQ, req.service_id, 8, 0, 64),
	DATA(REQ, req.guid, 16, 0, 64),
	DATA(REQ, req.qkey, 28, 0, 32),
	DATA(REQ, req.qpn, 32, 0, 24),
	DATA(REQ, req.responder_resources, 35, 0, 8),
	DATA(REQ, req.initiator_depth, 39, 0, 8),
	DATA(REQ, req.remote_timeout, 43, 0, 5),
	DATA(REQ, req.service_type, 43, 5, 2),
	DATA(REQ, req.flow_control, 43, 7, 1),
	DATA(REQ, req.psn, 44, 0, 24),
	DATA(REQ, req.local_timeout, 47, 0, 5),
	DATA(REQ, req.retry_count, 47, 5, 3),
	DATA(REQ, req.pkey, 48, 0, 16),
	FIELD(CM_REQ, req.mtu, 24 + 50, 0, 4, 1, 5),
	DATA(REQ, req.rdc_exists, 50, 4, 1),
	DATA(REQ, req.rnr_retry_count, 50, 5, 3),
	DATA(REQ, req.max_cm_retries, 51, 0, 4),
	DATA(REQ, req.srq, 51, 4, 1),
	DATA(REQ, req.extended_transport, 51, 5, 3),
	DATA(REQ, req.path.local_lid, 52, 0, 16),
	DATA(REQ, req.path.remote_lid, 54, 0, 16),
	GID(REQ, req.path.local_gid, 56),
	GID(REQ, req.path.remote_gid, 72),
	DATA(REQ, req.path.flow_label, 88, 0, 20),
	DATA(REQ, req.path.rate, 91, 2, 6),
	DATA(REQ, req.path.traffic_class, 92, 0, 8),
	DATA(REQ, req.path.hop_limit, 93, 0, 8),
	DATA(REQ, req.path.sl, 94, 0, 4),
	DATA(REQ, req.path.subnet_local, 94, 4, 1),
	DATA(REQ, req.path.ack_timeout, 95, 0, 5),
	DATA(REQ, req.alternate.local_lid, 96, 0, 16),
	DATA(REQ, req.alternate.remote_lid, 98, 0, 16),
	GID(REQ, req.alternate.local_gid, 100),
	GID(REQ, req.alternate.remote_gid, 116),
	DATA(REQ, req.alternate.flow_label, 132, 0, 20),
	DATA(REQ, req.alternate.rate, 135, 2, 6),
	DATA(REQ, req.alternate.traffic_class, 136, 0, 8),
	DATA(REQ, req.alternate.hop_limit, 137, 0, 8),
	DATA(REQ, req.alternate.sl, 138, 0, 4),
	DATA(REQ, req.alternate.subnet_local, 138, 4, 1),
	DATA(REQ, req.alternate.ack_timeout, 139, 0, 5),

	IDS(MRA),
	FIELD(CM_MRA, mra.about, 24 + 8, 0, 2, 0, 2),
	DATA(MRA, mra.service_timeout, 9, 0, 5),

	IDS(REJ),
	FIELD(CM_REJ, rej.about, 24 + 8, 0, 2, 0, 2),
	FIELD(CM_REJ, rej.info_bytes, 24 + 9, 0, 7, 0, 72),
	DATA(REJ, rej.reason, 10, 0, 16),

	IDS(REP),
	DATA(REP, rep.qkey, 8, 0, 32),
	DATA(REP, rep.qpn, 12, 0, 24),
	DATA(REP, rep.vendor_id[0], 15, 0, 8),
	DATA(REP, rep.eecn, 16, 0, 24),
	DATA(REP, rep.vendor_id[1], 19, 0, 8),
	DATA(REP, rep.psn, 20, 0, 24),
	DATA(REP, rep.vendor_id[2], 23, 0, 8),
	DATA(REP, rep.responder_resources, 24, 0, 8),
	DATA(REP, rep.initiator_depth, 25, 0, 8),
	DATA(REP, rep.target_ack_delay, 26, 0, 5),
	DATA(REP, rep.failover_accepted, 26, 5, 2),
	DATA(REP, rep.flow_control, 26, 7, 1),
	DATA(REP, rep.rnr_retry_count, 27, 0, 3),
	DATA(REP, rep.srq, 27, 3, 1),
	DATA(REP, rep.guid, 28, 0, 64),

	IDS(RTU),

	IDS(DREQ),
	DATA(DREQ, dreq.remote_qpn, 8, 0, 24),

	IDS(DREP),

	DATA(SIDR_REQ, sidr_req.request_id, 0, 0, 32),
	DATA(SIDR_REQ, sidr_req.pkey, 4, 0, 16),
	DATA(SIDR_REQ, sidr_req.service_id, 8, 0, 64),

	DATA(SIDR_REP, sidr_rep.request_id, 0, 0, 32),
	DATA(SIDR_REP, sidr_rep.status, 4, 0, 8),
	FIELD(CM_SIDR_REP, sidr_rep.info_bytes, 24 + 5, 0, 8, 0, 72),
	DATA(SIDR_REP, sidr_rep.qpn, 8, 0, 24),
	DATA(SIDR_REP, sidr_rep.service_id, 12, 0, 64),
	DATA(SIDR_REP, sidr_rep.qkey, 20, 0, 32),

	IDS(LAP),

	IDS(APR),
	FIELD(CM_APR, apr.info_bytes, 24 + 8, 0, 8, 0, 72),
	DATA(APR, apr.status, 9, 0, 8),
};

enum { MAD_FIELDS = sizeof(mad_fields) / sizeof(mad_fields[0]) };

/* Where additional information and private data begin in the MAD; info 0: there is none. */
struct mad_layout {
	uint8_t private_at, info_at;
	uint16_t info, info_length; /* members */
};

#define INFO(at, m) at, offsetof(struct cm_message, m), offsetof(struct cm_message, m##_bytes)

static inline struct mad_layout mad_layout(uint16_t type)
{
	static const struct mad_layout layouts[] = {
		[CM_REQ] = {24 + 140, 0, 0, 0},
		[CM_MRA] = {24 + 10, 0, 0, 0},
		[CM_REJ] = {24 + 84, INFO(24 + 12, rej.info)},
		[CM_REP] = {24 + 36, 0, 0, 0},
		[CM_RTU] = {24 + 8, 0, 0, 0},
		[CM_DREQ] = {24 + 12, 0, 0, 0},
		[CM_DREP] = {24 + 8, 0, 0, 0},
		[CM_SIDR_REQ] = {24 + 16, 0, 0, 0},
		[CM_SIDR_REP] = {24 + 96, INFO(24 + 24, sidr_rep.info)},
		[CM_LAP] = {24 + 64, 0, 0, 0},
		[CM_APR] = {24 + 84, INFO(24 + 12, apr.info)},
	};

	return layouts[type];
}

static inline uint8_t mad_info_bytes(const struct cm_message *m)
{
	struct mad_layout layout = mad_layout(m->type);

	return layout.info_at ? ((const uint8_t *)m)[layout.info_length] : 0;
}

/* The highest value that is allowed. */
static inline uint64_t mad_field_max(const struct mad_field *f)
{
	return f->to ? f->to : ~0ull >> (64 - f->bits);
}

static inline void mad_field_set(struct cm_message *m, const struct mad_field *f, uint64_t v)
{
	/* this machine is little-endian, as all that the engine runs on */
	memcpy((uint8_t *)m + f->member, &v, f->size);
}

static inline uint64_t mad_field_get(const struct cm_message *m, const struct mad_field *f)
{
	uint64_t v = 0;

	memcpy(&v, (const uint8_t *)m + f->member, f->size);
	return v;
}

/* A message of a type with nothing in it that is not allowed. */
static inline void mad_blank(struct cm_message *m, uint16_t type)
{
	memset(m, 0, sizeof(*m));
	m->type = type;
	if (type == CM_REQ)
		m->req.mtu = 1;
}

/* A value that is allowed, out of 64 random bits. */
static inline uint64_t mad_field_any(const struct mad_field *f, uint64_t random)
{
	uint64_t v = random >> (64 - f->bits);

	return f->to ? f->from + v % (f->to - f->from + 1u) : v;
}

/* A message of a type with these values in its fields, these bytes in its GIDs and its additional
 * information. */
static inline void mad_fill(struct cm_message *m, uint16_t type,
			    uint64_t (*value)(const struct mad_field *f),
			    void (*fill)(uint8_t *p, unsigned int n))
{
	unsigned int i;

	mad_blank(m, type);
	for (i = 0; i < MAD_FIELDS; i++)
		if (!mad_fields[i].type || mad_fields[i].type == type)
			mad_field_set(m, &mad_fields[i], value(&mad_fields[i]));
	if (type == CM_REQ) {
		fill(m->req.path.local_gid, 16);
		fill(m->req.path.remote_gid, 16);
		fill(m->req.alternate.local_gid, 16);
		fill(m->req.alternate.remote_gid, 16);
	}
	fill((uint8_t *)m + mad_layout(type).info, mad_info_bytes(m));
}

#endif
