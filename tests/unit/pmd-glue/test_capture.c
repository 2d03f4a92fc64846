/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures: what a reader finds in its ring and in the file of the setting, and what it can do to the
 * daemon. */
#include <fcntl.h>
#include <sys/stat.h>
#include "fixture.h"
#include "host-abi/capture_ring.h"
#include "pipeline/icrc.h"
#include "wire/run.h"

/* A captured frame of roce_v4() or its like, wherever its ICRC was omitted. */
static bool icrc_is_right(const uint8_t *frame)
{
	const uint8_t *end = frame + ROCE_FRAME_BYTES - 4, *l3 = frame + RTE_ETHER_HDR_LEN;

	return wire_icrc(l3, end - l3, false) == wire_icrc_load(end);
}

TEST(capture__is_private)
{
	static const char path[] = "pmd_glue_capture_test.pcapng",
			  other[] = "pmd_glue_capture_other";
	struct port_config a = ring_config("a", "b", 1), b = ring_config("b", "a", 2);
	struct port *port;
	struct stat st;
	struct pair p;
	int fd;

	strcpy(a.capture_path, path);
	fd = open(other, O_CREAT | O_WRONLY, 0644);
	assert_int_equal(write(fd, "letter", 6), 6);
	close(fd);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(port_create(&a, packets, clones, &port), -ELOOP);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(link(other, path), 0);
	assert_int_equal(port_create(&a, packets, clones, &port), -EPERM);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(stat(other, &st), 0);
	assert_int_equal(st.st_size, 6);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(port_create(&a, packets, clones, &port), -ENXIO); /* at once */
	assert_int_equal(unlink(path), 0);

	close(open(path, O_CREAT | O_WRONLY, 0644)); /* one's own, open to others */
	p = open_pair(&a, &b);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	close_pair(&p);
	remove(path);
}

TEST(capture__has_both_directions)
{
	static const char path[] = "pmd_glue_capture_test.pcapng";
	struct port_config a = ring_config("a", "b", 1), b = ring_config("b", "a", 2);
	struct rte_mbuf *got[1];
	struct pair p;
	uint32_t block[64], total;
	unsigned int packets_seen = 0;
	struct rte_mbuf *sent[2] = {roce_v4(2, 1, 1), roce_v4(1, 2, 2)};
	FILE *f;

	strcpy(a.capture_path, path);
	p = open_pair(&a, &b);
	sent[0]->ol_flags |= ICRC_OMITTED;
	sent[1]->ol_flags |= ICRC_OMITTED;
	send_one(p.a, sent[0]);
	send_one(p.b, sent[1]);
	assert_int_equal(receive(p.a, got, 1), 1);
	rte_pktmbuf_free(got[0]);
	assert_int_equal(port_capture_flush(p.a), 0);
	assert_int_equal(port_counter(p.a, PORT_COUNTER_captured), 2);
	close_pair(&p);
	f = fopen(path, "rb");
	assert_non_null(f);
	while (fread(block, 4, 2, f) == 2) {
		total = block[1];
		assert_in_range(total, 12, sizeof(block));
		assert_int_equal(fread(&block[2], total - 8, 1, f), 1);
		assert_int_equal(block[total / 4 - 1], total);
		if (block[0] != 6)
			continue;
		packets_seen++;
		assert_true(icrc_is_right((const uint8_t *)&block[7]));
	}
	fclose(f);
	remove(path);
	assert_int_equal(packets_seen, 2);
}

/* ---- a program's ring ---- */

enum { RING_BYTES = CAPTURE_HEAD_BYTES + CAPTURE_QUEUE_BYTES_MIN, GUARD_BYTES = 4096 };

static struct capture_head *make_memory(void)
{
	struct capture_head *h = aligned_alloc(4096, RING_BYTES + GUARD_BYTES);

	memset(h, 0xee, RING_BYTES + GUARD_BYTES);
	return h;
}

static void expect_guard(const struct capture_head *h)
{
	for (unsigned i = 0; i < GUARD_BYTES; i++)
		assert_int_equal(((const uint8_t *)h)[RING_BYTES + i], 0xee);
}

/* What a program begins on port a; ends with end_capture(). */
static struct capture_head *begin_capture(struct pair *p, uint32_t snap, port_payload *payload)
{
	struct capture_head *h = make_memory();

	*p = open_default();
	assert_int_equal(port_capture_begin(p->a, h, RING_BYTES, snap, payload), 0);
	return h;
}

static void end_capture(struct pair *p, struct capture_head *h)
{
	port_capture_end(p->a, h);
	expect_guard(h);
	free(h);
	close_pair(p);
}

static void pass(struct pair *p, struct rte_mbuf *m)
{
	struct rte_mbuf *got[1];

	assert_int_equal(send_one(p->a, m), 1);
	assert_int_equal(receive(p->b, got, 1), 1);
	rte_pktmbuf_free(got[0]);
}

TEST(capture__counts_what_finds_no_room)
{
	struct pair p;
	struct capture_head *h = begin_capture(&p, 0, NULL);
	const struct capture_record *r;
	unsigned fits = CAPTURE_QUEUE_BYTES_MIN / capture_record_bytes(ROCE_FRAME_BYTES);

	for (unsigned round = 0; round < 3; round++) {
		unsigned seen = 0;

		for (unsigned i = 0; i < fits + 7; i++)
			pass(&p, roce_v4(2, 1, i));
		while ((r = capture_next(h, 0)) != NULL) {
			assert_int_equal(r->captured, ROCE_FRAME_BYTES);
			assert_int_equal(r->original, ROCE_FRAME_BYTES);
			assert_int_equal(r->direction, CAPTURE_OUT);
			/* The wrap may cost the room of one more. */
			assert_in_range(r->dropped, 0, seen || !round ? 0 : 8);
			seen++;
			capture_pass(h, 0, r);
		}
		assert_in_range(seen, fits - 1, fits);
	}
	assert_in_range(capture_dropped(h), 21, 24);
	assert_int_equal(port_counter(p.a, PORT_COUNTER_capture_missed), capture_dropped(h));
	end_capture(&p, h);
}

/* Whatever the reader writes, nothing is written outside of its memory. */
TEST(capture__does_not_rely_on_its_reader)
{
	static const uint64_t tails[] = {1, 8, 1 << 14, 1ull << 40, UINT64_MAX, UINT64_MAX - 7};
	struct pair p;
	struct capture_head *h = begin_capture(&p, 0, NULL);

	for (unsigned i = 0; i < 6 * 300; i++) {
		h->queue[0].tail = tails[i % 6];
		h->queue[0].head = tails[(i + 1) % 6];
		h->queue_bytes = tails[(i + 2) % 6];
		h->queues = i;
		pass(&p, roce_v4(2, 1, i));
	}
	end_capture(&p, h);
}

static bool payload_is_there;

static bool some_payload(const uint8_t *place, uint32_t skip, uint8_t *to, uint32_t bytes)
{
	memset(to, 0x5a + (int)(skip / bytes), bytes);
	return payload_is_there;
}

/* The payload of a frame is cut off where nobody has it any more. */
TEST(capture__makes_frames_whole)
{
	enum { PAYLOAD_AT = ROCE_FRAME_BYTES - 16 - WIRE_ICRC_BYTES };
	struct pair p;
	struct capture_head *h = begin_capture(&p, 0, some_payload);

	for (unsigned i = 0; i < 2; i++) {
		struct rte_mbuf *m = roce_v4(2, 1, i);
		const struct capture_record *r;
		struct rte_ipv4_hdr *ip;
		const uint8_t *frame;

		payload_is_there = i == 0;
		ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, RTE_ETHER_HDR_LEN);
		ip->hdr_checksum = rte_ipv4_cksum(ip);
		m->ol_flags |= FRAME_MARKS;
		pass(&p, m);
		r = capture_next(h, 0);
		assert_non_null(r);
		frame = (const uint8_t *)(r + 1);
		assert_int_equal(r->original, ROCE_FRAME_BYTES);
		assert_int_equal(r->captured, payload_is_there ? ROCE_FRAME_BYTES : PAYLOAD_AT);
		if (payload_is_there) {
			assert_int_equal(frame[PAYLOAD_AT], 0x5a);
			assert_true(icrc_is_right(frame));
		}
		capture_pass(h, 0, r);
	}
	end_capture(&p, h);
}

/* The packets of a train follow one another in PSN, IPv4 identification and payload; AckReq is the last one's. */
TEST(capture__shows_each_packet_of_a_train)
{
	enum { PAYLOAD_AT = ROCE_FRAME_BYTES - 16 - WIRE_ICRC_BYTES, PACKETS = 3 };
	struct pair p;
	struct capture_head *h = begin_capture(&p, 0, some_payload);
	struct rte_mbuf *m = roce_v4(2, 1, 0xfffffe);
	struct rte_ipv4_hdr *ip =
		rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, RTE_ETHER_HDR_LEN);
	struct wire_frame first, f;

	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	assert_int_equal(wire_parse_frame(rte_pktmbuf_mtod(m, uint8_t *), m->data_len, &first),
			 WIRE_OK);
	rte_pktmbuf_mtod(m, uint8_t *)[first.transport_offset + WIRE_BTH_ALIKE_BYTES] |=
		WIRE_BTH_ACKREQ;
	m->ol_flags |= FRAME_MARKS;
	m->pkt_len = PACKETS * m->data_len;
	payload_is_there = true;
	pass(&p, m);
	for (unsigned i = 0; i < PACKETS; i++) {
		const struct capture_record *r = capture_next(h, 0);
		const uint8_t *frame = (const uint8_t *)(r + 1);

		assert_int_equal(r->captured, ROCE_FRAME_BYTES);
		assert_int_equal(wire_parse_frame(frame, r->captured, &f), WIRE_OK);
		assert_int_equal(f.h.psn, (first.h.psn + i) & 0xffffff);
		assert_int_equal(f.h.ackreq, i == PACKETS - 1);
		assert_int_equal(frame[PAYLOAD_AT], 0x5a + i);
		assert_true(icrc_is_right(frame));
		capture_pass(h, 0, r);
	}
	assert_null(capture_next(h, 0));
	assert_int_equal(port_counter(p.a, PORT_COUNTER_captured), PACKETS);
	assert_int_equal(port_counter(p.a, PORT_COUNTER_tx_frames), PACKETS);
	assert_int_equal(port_counter(p.b, PORT_COUNTER_rx_roce), PACKETS);
	end_capture(&p, h);
}

TEST(capture__is_limited)
{
	struct pair p;
	struct capture_head *h = begin_capture(&p, 20, NULL), *more[PORT_CAPTURES_MAX];
	const struct capture_record *r;

	for (unsigned i = 1; i < PORT_CAPTURES_MAX; i++) {
		more[i] = make_memory();
		assert_int_equal(port_capture_begin(p.a, more[i], RING_BYTES - 1, 0, NULL),
				 -EINVAL);
		assert_int_equal(port_capture_begin(p.a, more[i], RING_BYTES, 0, NULL), 0);
	}
	more[0] = make_memory();
	assert_int_equal(port_capture_begin(p.a, more[0], RING_BYTES, 0, NULL), -EBUSY);
	port_capture_end(p.a, more[1]);
	assert_int_equal(port_capture_begin(p.a, more[0], RING_BYTES, 0, NULL), 0);
	pass(&p, roce_v4(2, 1, 0));
	assert_null(capture_next(more[1], 0));
	for (unsigned i = 0; i < PORT_CAPTURES_MAX; i++) {
		if (i != 1)
			assert_non_null(capture_next(more[i], 0));
		port_capture_end(p.a, more[i]);
		free(more[i]);
	}
	r = capture_next(h, 0);
	assert_int_equal(r->captured, 20);
	assert_int_equal(r->original, ROCE_FRAME_BYTES);
	end_capture(&p, h);
}
