/* SPDX-License-Identifier: BSD-3-Clause */
/* Forged and altered MADs: see cm_world.h. */
#include <string.h>

#include "cm_world_priv.h"

enum { ROOM = 2 * CM_MAD_BYTES };

/* Communication ID of a random connection; 0 if none is found. */
static uint32_t any_id(void)
{
	const struct owner *o = &world.owners[below(world.owner_count)];
	struct cm_connection_info info;

	if (!o->live)
		return below(2) ? 0 : (uint32_t)world_random();
	cm_connection_info(o->c, &info);
	return below(2) ? info.local_id : info.remote_id;
}

/* Another message about the same connection, or one that mixes up two. */
static void retell(uint8_t *mad)
{
	struct cm_message m;

	if (cm_mad_parse(mad, CM_MAD_BYTES, &m) != CM_WELL_FORMED)
		return;
	if (below(2)) {
		uint32_t id = m.local_id;

		m.local_id = m.remote_id;
		m.remote_id = id;
	}
	if (below(3) == 0)
		m.local_id = any_id();
	if (below(3) == 0)
		m.remote_id = any_id();
	if (below(2)) {
		m.type = (uint16_t)(CM_REQ + below(CM_APR - CM_REQ + 1));
		m.private_bytes = 0;
		memset(&m.req, 0, sizeof(m.req));
		if (m.type == CM_REQ) {
			m.req.mtu = 3;
		} else if (m.type == CM_REJ) {
			m.rej.about = (uint8_t)below(3);
			m.rej.reason = (uint16_t)below(36);
			m.rej.info_bytes = (uint8_t)below(73);
		} else if (m.type == CM_MRA) {
			m.mra.about = (uint8_t)below(3);
			m.mra.service_timeout = (uint8_t)below(32);
		} else if (m.type == CM_DREQ) {
			m.dreq.remote_qpn = below(2000);
		} else if (m.type == CM_SIDR_REP) {
			m.sidr_rep.request_id = any_id();
		}
	}
	cm_mad_build(&m, mad);
}

static void change_bytes(uint8_t *mad)
{
	unsigned int n = 1 + below(4);

	while (n--) {
		unsigned int at = below(8) ? 24 + below(80) : below(CM_MAD_BYTES);

		mad[at] = below(2) ? (uint8_t)world_random() : (uint8_t)(mad[at] ^ 1u << below(8));
	}
}

static void random_bytes(uint8_t *mad, bool with_header)
{
	static const uint8_t header[4] = {1, 7, 2, 3};
	unsigned int i;

	for (i = 0; i < ROOM; i++)
		mad[i] = (uint8_t)world_random();
	if (!with_header)
		return;
	memcpy(mad, header, sizeof(header));
	mad[16] = 0;
	mad[17] = (uint8_t)(CM_REQ + below(CM_APR - CM_REQ + 1));
	mad[24 + 50] = (uint8_t)(0x30 | (mad[24 + 50] & 15));
}

/* Who it claims to come from: mostly the right one. */
static struct cm_path any_path(unsigned int to)
{
	struct cm_path p = world_path(to);

	if (below(10) == 0)
		p.dgid[15] = (uint8_t)world_random();
	if (below(20) == 0)
		p.device = (uint16_t)below(3);
	p.mtu = p.ack_timeout = p.rate = 0;
	return p;
}

void forge(void)
{
	const struct packet *seen = &world.seen[below(SEEN)];
	unsigned int to = below(5) ? seen->to : below(SIDES);
	struct cm_path path = any_path(to);
	uint64_t malformed = cm_counters(world.cm[to])->mad_malformed;
	unsigned int sent = world.sent;
	uint8_t mad[ROOM];
	size_t n = below(20) ? CM_MAD_BYTES : below(ROOM);
	struct cm_message m;
	bool good;

	world.result->forged++;
	memset(mad, 0, sizeof(mad));
	memcpy(mad, seen->mad, CM_MAD_BYTES);
	switch (below(5)) {
	case 0: /* a late repetition */
		break;
	case 1:
		change_bytes(mad);
		break;
	case 2:
	case 3:
		retell(mad);
		break;
	case 4:
		random_bytes(mad, below(8));
		break;
	}
	good = cm_mad_parse(mad, n, &m) == CM_WELL_FORMED;
	cm_receive(world.cm[to], world.now, &path, mad, n);
	if (!good &&
	    (cm_counters(world.cm[to])->mad_malformed != malformed + 1 || world.sent != sent))
		world_fail("a malformed message was not just counted");
}
