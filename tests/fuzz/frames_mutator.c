/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mutates lists of frames: takes one away, adds one that some queue pair may expect, or that follows the one
 * before, names another queue pair, PSN, key or address, or lets libFuzzer change the bytes; then corrects
 * lengths, checksum and ICRC of most, so that the code behind those checks is reached.
 */
#include "wire/crc.h"
#include "wire/encap.h"
#include "world.h"

/* Short inputs: several times as many, which reach more in the same time. Long ones are for `sequences`. */
enum { LIST_MAX = 6, ROOM = WORLD_FRAME_BYTES, INPUT_BYTES = 320 };

struct list {
	unsigned int count;
	struct {
		uint16_t bytes;
		uint16_t burst; /* WORLD_BURST or 0 */
		uint8_t frame[ROOM];
	} at[LIST_MAX];
};

static uint32_t state;

static uint32_t below(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return n ? state % n : 0;
}

static void read_list(struct list *l, const uint8_t *data, size_t size)
{
	struct fuzz_bytes b = {data, size};

	for (l->count = 0; b.left > 2 && l->count < LIST_MAX; l->count++) {
		uint16_t length = fuzz_u16(&b);
		size_t n = length & ~WORLD_BURST;
		const uint8_t *from = fuzz_take(&b, &n);

		if (n > ROOM)
			n = ROOM;
		memcpy(l->at[l->count].frame, from, n);
		l->at[l->count].bytes = (uint16_t)n;
		l->at[l->count].burst = length & WORLD_BURST;
	}
}

static size_t write_list(const struct list *l, uint8_t *data, size_t max)
{
	size_t at = 0;

	for (unsigned int i = 0; i < l->count; i++) {
		uint16_t n = l->at[i].bytes, length = n | l->at[i].burst;

		if (at + 2 + n > max)
			break;
		memcpy(data + at, &length, 2);
		memcpy(data + at + 2, l->at[i].frame, n);
		at += 2 + (size_t)n;
	}
	return at;
}

/* ---- frames as a peer may send them ---- */

static uint8_t some_opcode(void)
{
	uint8_t opcode;

	do
		opcode = (uint8_t)below(256);
	while (!wire_opcodes[opcode].defined);
	return opcode;
}

static uint32_t some_key(void)
{
	static const uint32_t keys[] = {WORLD_KEY, WORLD_KEY, WORLD_KEY_READ_ONLY,
					WORLD_KEY_FOREIGN};

	return keys[below(4)];
}

static uint64_t some_va(void)
{
	static const uint64_t bases[] = {WORLD_VA, WORLD_VAULT_VA, WORLD_VA + WORLD_BYTES - 128,
					 UINT64_MAX - 64};

	return bases[below(4)] + below(300);
}

static struct wire_headers some_headers(void)
{
	uint32_t qp = below(WORLD_QPS);

	return (struct wire_headers){
		.opcode = some_opcode(),
		.ackreq = (uint8_t)below(2),
		.se = (uint8_t)below(2),
		.psn = (WORLD_PSN + below(10) - 2) & 0xffffff,
		.dest_qp = WORLD_QPN + 1 + qp + SIM_QPS,
		.pkey = 0xffff,
		.syndrome = (uint8_t)(below(4) << 5 | below(32)),
		.msn = below(6),
		.va = some_va(),
		.rkey = some_key(),
		.dma_len = below(5) ? below(700) : below(0x80000002u),
		.imm = below(1000),
		.invalidate_rkey = some_key(),
		.qkey = below(4) ? WORLD_QKEY : 7,
		.src_qp = WORLD_PEER_QPN + 1 + qp,
		.swap_add = below(9),
		.compare = below(2),
		.orig = below(9),
	};
}

static uint16_t some_frame(uint8_t *frame)
{
	static const uint32_t lengths[] = {0, 1, 8, 88, 188, 255, 256, 257};
	struct wire_headers h = some_headers();
	uint32_t n = lengths[below(RTE_DIM(lengths))];

	return (uint16_t)world_frame(frame, h,
				     wire_opcodes[h.opcode].headers & WIRE_HAS_PAYLOAD ? n : 0);
}

/* ---- lengths, checksum, ICRC ---- */

static void mend(uint8_t *frame, uint16_t bytes)
{
	unsigned int l3 = bytes > 18 && frame[12] == 0x81 ? 18 : 14;
	bool v6 = bytes > l3 && frame[l3] >> 4 == 6;
	unsigned int l4 = l3 + (v6 ? WIRE_IPV6_BYTES : WIRE_IPV4_BYTES);
	uint32_t sum = 0;

	if (bytes < l4 + WIRE_UDP_BYTES + WIRE_BTH_BYTES + WIRE_ICRC_BYTES)
		return;
	wire_put_be16(frame + l4 + 4, bytes - l4);
	if (v6) {
		wire_put_be16(frame + l3 + 4, bytes - l4);
	} else {
		wire_put_be16(frame + l3 + 2, bytes - l3);
		wire_put_be16(frame + l3 + 10, 0);
		for (unsigned int i = 0; i < WIRE_IPV4_BYTES; i += 2)
			sum += (uint32_t)frame[l3 + i] << 8 | frame[l3 + i + 1];
		sum = (sum & 0xffff) + (sum >> 16);
		wire_put_be16(frame + l3 + 10, ~(sum + (sum >> 16)));
	}
	wire_icrc_store(frame + bytes - WIRE_ICRC_BYTES,
			wire_icrc(frame + l3, bytes - l3 - WIRE_ICRC_BYTES, v6));
}

/* ---- mutations ---- */

static uint8_t *bth_of(uint8_t *frame)
{
	return frame + (frame[12] == 0x86 ? 62 : 42);
}

/* The frame before again; or what follows it, in the same burst. */
static void repeat(struct list *l, unsigned int i)
{
	uint8_t *frame = l->at[i].frame;

	l->at[i] = l->at[i - 1];
	if (below(2) || bth_of(frame) + WIRE_BTH_BYTES + WIRE_ICRC_BYTES > frame + l->at[i].bytes)
		return;
	l->at[i - 1].burst = WORLD_BURST;
	bth_of(frame)[11]++;
	mend(frame, l->at[i].bytes);
}

static void add(struct list *l)
{
	unsigned int i = below(l->count + 1);

	if (l->count == LIST_MAX)
		return;
	memmove(&l->at[i + 1], &l->at[i], (l->count++ - i) * sizeof(l->at[0]));
	if (i && below(4) == 0) {
		repeat(l, i);
		return;
	}
	l->at[i].bytes = some_frame(l->at[i].frame);
	l->at[i].burst = 0;
}

static void take_away(struct list *l)
{
	unsigned int i = below(l->count);

	memmove(&l->at[i], &l->at[i + 1], (--l->count - i) * sizeof(l->at[0]));
}

static void change_psn(uint8_t *bth)
{
	uint32_t psn = below(3) ? WORLD_PSN + below(12) - 2 : bth[11] + below(5) - 2;

	bth[9] = (uint8_t)(psn >> 16);
	bth[10] = (uint8_t)(psn >> 8);
	bth[11] = (uint8_t)psn;
}

/* One field of the headers: frames without VLAN tag. */
static void change_field(uint8_t *frame, uint16_t bytes)
{
	uint8_t *bth = bth_of(frame);

	if (bth + 40 > frame + bytes)
		return;
	switch (below(5)) {
	case 0:
		bth[0] = some_opcode();
		return;
	case 1:
		bth[7] = (uint8_t)(1 + below(WORLD_QPS) + SIM_QPS);
		return;
	case 2:
		change_psn(bth);
		return;
	case 3:
		bth[8] ^= 0x80; /* AckReq */
		return;
	case 4:
		bth[12] = (uint8_t)(below(4) << 5 | below(32)); /* a syndrome */
		return;
	}
}

static void change(struct list *l)
{
	unsigned int i = below(l->count);
	uint8_t *frame = l->at[i].frame;

	if (below(8) == 0)
		l->at[i].burst ^= WORLD_BURST;
	else if (below(2) && l->at[i].bytes > 100)
		change_field(frame, l->at[i].bytes);
	else
		l->at[i].bytes = (uint16_t)LLVMFuzzerMutate(frame, l->at[i].bytes, ROOM);
	if (below(8))
		mend(frame, l->at[i].bytes);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	static struct list l;

	world_start();
	state = seed | 1;
	read_list(&l, data, size);
	for (unsigned int n = 1 + below(3); n; n--) {
		if (!l.count || below(3) == 0)
			add(&l);
		else if (below(5) == 0)
			take_away(&l);
		else
			change(&l);
	}
	for (unsigned int i = 0; i < l.count; i++)
		if (below(8) == 0)
			mend(l.at[i].frame, l.at[i].bytes);
	return write_list(&l, data, max < INPUT_BYTES ? max : INPUT_BYTES);
}
