/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames from the network other than RoCE: ARP, neighbour discovery, echo, IGMP, MLD, into a port
 * with groups and with neighbours that are known, being resolved, and failed.
 *
 * Input: a byte that chooses a row of `kinds`, one for its length, then that many bytes, which lie
 * over the least such frame. Lengths and checksums are corrected unless the highest bit of
 * the first byte is set.
 */
#include <rte_eal.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "fuzz.h"
#include "port_internal.h"

enum { PRIV_BYTES = 192, ROOM = 2176, POOL_FRAMES = 1023, FRAMES = 16, TO_CONTROL = 192 };

static struct port *here, *there;
static struct rte_mempool *packets, *clones;

static const uint8_t mac[2][6] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}};
static const uint8_t v4[2][4] = {{10, 0, 0, 1}, {10, 0, 0, 2}};
static const uint8_t v6[2][16] = {{0xfd, [15] = 1}, {0xfd, [15] = 2}};

/* ---- two ports, joined ---- */

static struct port *open_port(const char *name, const char *peer, unsigned int i)
{
	struct port_config c = {
		.type = PORT_RING, .queues = 1, .socket = SOCKET_ID_ANY, .addresses.count = 2};
	struct port *port = NULL;

	snprintf(c.name, sizeof(c.name), "%s", name);
	snprintf(c.peer, sizeof(c.peer), "%s", peer);
	memcpy(c.mac, mac[i], 6);
	c.addresses.at[0] = (struct port_address){.prefix_len = 24};
	c.addresses.at[0].ip[10] = c.addresses.at[0].ip[11] = 0xff;
	memcpy(c.addresses.at[0].ip + 12, v4[i], 4);
	c.addresses.at[1] = (struct port_address){.v6 = true, .prefix_len = 64};
	memcpy(c.addresses.at[1].ip, v6[i], 16);
	REQUIRE(port_create(&c, packets, clones, &port) == 0 && port_start(port) == 0);
	return port;
}

static void stop(void)
{
	port_destroy(here);
	port_destroy(there);
	rte_mempool_free(packets);
	rte_mempool_free(clones);
}

static void start(void)
{
	static const uint8_t groups[][16] = {{[10] = 0xff, [11] = 0xff, 239, 1, 2, 3},
					     {0xff, 0x0e, [15] = 9}};
	char *args[] = {"fuzz",	       "--no-huge",	 "-m",		 "64", "--no-pci",
			"--no-shconf", "--no-telemetry", "--log-level=3"};

	if (here)
		return;
	REQUIRE(rte_eal_init(RTE_DIM(args), args) >= 0);
	packets =
		rte_pktmbuf_pool_create("packets", POOL_FRAMES, 0, PRIV_BYTES, ROOM, SOCKET_ID_ANY);
	clones = rte_pktmbuf_pool_create("clones", 63, 0, PRIV_BYTES, 0, SOCKET_ID_ANY);
	REQUIRE(packets && clones);
	here = open_port("here", "there", 0);
	there = open_port("there", "here", 1);
	for (unsigned int i = 0; i < RTE_DIM(groups); i++)
		REQUIRE(port_join(here, groups[i]) == 0);
	atexit(stop);
}

static void turn(struct port *port)
{
	struct rte_mbuf *got[32];
	uint16_t n = port_link(port)->rx_burst(port_link(port), 0, got, RTE_DIM(got));

	rte_pktmbuf_free_bulk(got, n); /* RoCE, by its looks */
	port_poll_control(port);
}

/* ---- frames ---- */

struct frame {
	uint8_t bytes[1600];
	unsigned int l4, end;
};

static void put(struct frame *f, const void *bytes, unsigned int n)
{
	memcpy(f->bytes + f->end, bytes, n);
	f->end += n;
}

static void put_ethernet(struct frame *f, const uint8_t to[6], uint16_t type)
{
	const uint8_t be[2] = {(uint8_t)(type >> 8), (uint8_t)type};

	put(f, to, 6);
	put(f, mac[1], 6);
	put(f, be, 2);
	f->l4 = f->end;
}

static void put_v4(struct frame *f, uint8_t protocol, const uint8_t to[4])
{
	struct rte_ipv4_hdr ip = {
		.version_ihl = 0x45, .time_to_live = 1, .next_proto_id = protocol};

	put_ethernet(f, to[0] >= 224 ? (const uint8_t[]){1, 0, 0x5e, 0, 0, 1} : mac[0], 0x0800);
	memcpy(&ip.src_addr, v4[1], 4);
	memcpy(&ip.dst_addr, to, 4);
	put(f, &ip, sizeof(ip));
	f->l4 = f->end;
}

static void put_v6(struct frame *f, uint8_t next, const uint8_t to[16])
{
	struct rte_ipv6_hdr ip = {.vtc_flow = 0x60, .proto = next, .hop_limits = 255};

	put_ethernet(f, to[0] == 0xff ? (const uint8_t[]){0x33, 0x33, 0, 0, 0, 1} : mac[0], 0x86dd);
	memcpy(&ip.src_addr, v6[1], 16);
	memcpy(&ip.dst_addr, to, 16);
	put(f, &ip, sizeof(ip));
	f->l4 = f->end;
}

static void raw(struct frame *f)
{
	put_ethernet(f, mac[0], 0x0800);
}

static void arp(struct frame *f)
{
	static const uint8_t begin[8] = {0, 1, 8, 0, 6, 4, 0, 1};

	put_ethernet(f, mac[0], 0x0806);
	put(f, begin, sizeof(begin));
	put(f, mac[1], 6);
	put(f, v4[1], 4);
	put(f, mac[0], 6);
	put(f, v4[0], 4);
	f->l4 = f->end - 22; /* the input lies over the operation and what follows */
}

static void icmp(struct frame *f)
{
	static const uint8_t echo[8] = {8};

	put_v4(f, 1, v4[0]);
	put(f, echo, sizeof(echo));
}

static void igmp(struct frame *f)
{
	static const uint8_t query[12] = {0x11, 100};

	put_v4(f, 2, (const uint8_t[]){224, 0, 0, 1});
	put(f, query, sizeof(query));
}

static void icmpv6(struct frame *f)
{
	static const uint8_t echo[8] = {128};

	put_v6(f, 58, v6[0]);
	put(f, echo, sizeof(echo));
}

static void discover(struct frame *f, uint8_t type, uint8_t option)
{
	const uint8_t head[8] = {type};
	const uint8_t tail[2] = {option, 1};

	put_v6(f, 58, v6[0]);
	put(f, head, sizeof(head));
	put(f, type == 135 ? v6[0] : v6[1], 16);
	put(f, tail, sizeof(tail));
	put(f, mac[1], 6);
}

static void solicitation(struct frame *f)
{
	discover(f, 135, 1);
}

static void advertisement(struct frame *f)
{
	discover(f, 136, 2);
}

static void mld(struct frame *f)
{
	static const uint8_t hop_by_hop[8] = {58, 0, 5, 2, 0, 0, 1, 0};
	static const uint8_t query[28] = {130, [4] = 1};

	put_v6(f, 0, (const uint8_t[16]){0xff, 2, [15] = 1});
	put(f, hop_by_hop, sizeof(hop_by_hop));
	put(f, query, sizeof(query));
	f->l4 = f->end - sizeof(query);
}

static void (*const kinds[])(struct frame *f) = {raw,	 arp,	       icmp,	      igmp,
						 icmpv6, solicitation, advertisement, mld};

/* ---- lengths and checksums ---- */

static void mend_v4(struct frame *f)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(f->bytes + 14);
	unsigned int at = ip->next_proto_id == 1 || ip->next_proto_id == 2 ? f->l4 + 2 : 0;
	uint16_t sum;

	ip->total_length = rte_cpu_to_be_16(f->end - 14);
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	if (!at || at + 2 > f->end)
		return;
	memset(f->bytes + at, 0, 2);
	sum = (uint16_t)~rte_raw_cksum(f->bytes + f->l4, f->end - f->l4);
	memcpy(f->bytes + at, &sum, 2);
}

static void mend_v6(struct frame *f)
{
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(f->bytes + 14), pseudo = *ip;
	unsigned int at = f->l4 + 2;
	uint32_t sum;
	uint16_t half;

	ip->payload_len = rte_cpu_to_be_16(f->end - 54);
	if (at + 2 > f->end)
		return;
	pseudo.proto = 58;
	pseudo.payload_len = rte_cpu_to_be_16(f->end - f->l4);
	memset(f->bytes + at, 0, 2);
	sum = rte_ipv6_phdr_cksum(&pseudo, 0) +
	      (uint32_t)rte_raw_cksum(f->bytes + f->l4, f->end - f->l4);
	half = (uint16_t) ~((sum & 0xffff) + (sum >> 16));
	memcpy(f->bytes + at, &half, 2);
}

static void mend(struct frame *f)
{
	if (f->bytes[12] == 0x08 && f->bytes[13] == 0 && f->end >= 34)
		mend_v4(f);
	else if (f->bytes[12] == 0x86 && f->end >= 54)
		mend_v6(f);
}

static void lay_over(struct frame *f, const uint8_t *bytes, size_t n)
{
	memcpy(f->bytes + f->l4, bytes, n);
	if (f->end < f->l4 + n)
		f->end = f->l4 + (unsigned int)n;
}

static void send_frame(const struct frame *f)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(packets);

	REQUIRE(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)f->end), f->bytes, f->end);
	REQUIRE(port_link(there)->tx_burst(port_link(there), 0, &m, 1) == 1);
}

static void look_up(const uint8_t *bytes, size_t n)
{
	uint8_t ip[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2}, found[6];
	int rc;

	if (n)
		ip[15] = bytes[0];
	rc = port_resolve(here, ip, found);
	REQUIRE(rc == 0 || rc == -EAGAIN || rc == -EHOSTUNREACH || rc == -ENOSPC);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes b = {data, size};

	start();
	/* Its limits would keep out most of what comes. */
	memset(here->queue[0].sources.empty_at, 0, sizeof(here->queue[0].sources.empty_at));
	for (unsigned int i = 0; b.left && i < FRAMES; i++) {
		static struct frame f;
		uint8_t kind = fuzz_u8(&b);
		size_t n = fuzz_u8(&b);
		const uint8_t *over = fuzz_take(&b, &n);

		memset(&f, 0, sizeof(f));
		if ((kind & 0x7f) % (RTE_DIM(kinds) + 1) == RTE_DIM(kinds)) {
			look_up(over, n);
			continue;
		}
		kinds[(kind & 0x7f) % (RTE_DIM(kinds) + 1)](&f);
		lay_over(&f, over, n);
		if (kind < 0x80)
			mend(&f);
		send_frame(&f);
	}
	for (unsigned int i = 0; i < 2 || (i < 16 && rte_mempool_in_use_count(packets)); i++) {
		turn(here);
		turn(there);
	}
	REQUIRE(rte_mempool_in_use_count(packets) == 0);
	return 0;
}
