/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests with descriptors on the control socket of a daemon in this process: its HCA is polled
 * between them, by the same thread.
 *
 * Input: messages, each a row of `control_requests.def`, a descriptor, and bytes that lie over a
 * body that would be right (XOR), with the numbers that the daemon gave last. The first byte says
 * whether the client begins with a queue pair and what it needs.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rte_eal.h>
#include <rte_mbuf.h>

#include "command/ceu.h"
#include "control/control.h"
#include "fuzz.h"
#include "hca/hca.h"
#include "host-abi/descriptor.h"
#include "host-abi/doorbell.h"
#include "link/link_port.h"
#include "pipeline/message.h"

enum {
	MESSAGES = 24,
	PATIENCE = 100000,
	MEMORY_BYTES = 1 << 16,
	IOVA = 0x100000,
	/* where a client's queues lie in its memory */
	CQ = 0x1000,
	SQ = 0x4000,
	RQ = 0x8000,
	SRQ = 0xa000,
	RECORD = 0xf000,
};

static struct hca *hca;
static struct ceu *ceu;
static struct control *control;
static struct rte_mempool *packets, *descriptors;
static uint64_t now_ns = 1000;

/* ---- the daemon ---- */

static uint16_t no_frames(struct link_port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	return 0;
}

static uint16_t into_nowhere(struct link_port *port, uint16_t queue, struct rte_mbuf **m,
			     uint16_t n)
{
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

static void port_facts(void *ctx, struct control_port_reply *out)
{
	*out = (struct control_port_reply){
		.state = 4, .max_mtu = 5, .active_mtu = 5, .speed_mbps = 10000, .pkey_count = 1};
}

static int port_gid(void *ctx, uint32_t index, uint8_t gid[16])
{
	memset(gid, 0xfd, 16);
	return index ? -ENOENT : 0;
}

static int port_next_hop(void *ctx, const uint8_t dgid[16], uint8_t mac[6])
{
	memset(mac, 2, 6);
	return dgid[0] == 0xfe ? -EHOSTUNREACH : dgid[1] == 1 ? -EAGAIN : 0;
}

static int join(void *ctx, const uint8_t mgid[16])
{
	return mgid[15] == 0xee ? -ENOMEM : 0;
}

static void leave(void *ctx, const uint8_t mgid[16])
{
}

static int attribute(void *ctx, const char *name, char *text, unsigned int bytes)
{
	return strlen(name) < 3 ? -ENOENT : snprintf(text, bytes, "42\n");
}

static void poll_once(void *ctx)
{
	hca_poll(hca, now_ns += 1000);
}

static void *captured;

static int capture(void *ctx, void *memory, uint64_t bytes, uint32_t snap)
{
	if (captured)
		return -EBUSY;
	memset(memory, 1, bytes);
	captured = memory;
	return 0;
}

static void capture_end(void *ctx, const void *memory)
{
	REQUIRE(captured == memory);
	memset(captured, 2, 1);
	captured = NULL;
}

static bool may_stop(void *ctx)
{
	return true;
}

static struct link_port link_port = {.rx_burst = no_frames, .tx_burst = into_nowhere};

static void make_hca(void)
{
	struct hca_config c;
	struct ceu_config units = {.engine_count = 1, .hooks = {.quiesce = poll_once}};

	hca_config_defaults(&c);
	c.qps = c.cqs = c.mpts = 256;
	c.srqs = 64;
	c.mtts = 1 << 12;
	c.packets = packets;
	c.descriptors = descriptors;
	c.link = &link_port;
	c.gid_count = 1;
	REQUIRE(hca_create(&c, &hca) == 0);
	units.qps = &hca->qps;
	units.srqs = &hca->srqs;
	units.multicast = &hca->multicast;
	units.v2p = &hca->v2p;
	units.completion = &hca->completion;
	units.engines = hca->engines;
	units.counters = &hca->counters;
	REQUIRE(ceu_create(&units, &ceu) == 0 && ceu_start(ceu) == CEU_OK);
}

static void stop(void)
{
	control_destroy(control);
	ceu_destroy(ceu);
	hca_destroy(hca);
}

static void start(void)
{
	char *args[] = {"fuzz",
			"--no-huge",
			"-m",
			"128",
			"--no-pci",
			"--no-shconf",
			"--no-telemetry",
			"--log-level=softhca:1",
			"--log-level=lib.eal:3"};
	struct control_device device = {.name = "hca0",
					.kicks = -1,
					.kick_eventfd = -1,
					.ops = {.port = port_facts,
						.gid = port_gid,
						.resolve = port_next_hop,
						.join = join,
						.leave = leave,
						.capture = capture,
						.capture_end = capture_end,
						.may_stop = may_stop,
						.attribute = attribute}};
	struct control_config config = {.device_count = 1, .devices = &device};

	if (control)
		return;
	REQUIRE(rte_eal_init(RTE_DIM(args), args) >= 0);
	packets = rte_pktmbuf_pool_create("packets", 2047, 0, MESSAGE_PRIV_BYTES, PACKET_ROOM_BYTES,
					  SOCKET_ID_ANY);
	descriptors = rte_pktmbuf_pool_create("descriptors", 2047, 0, MESSAGE_PRIV_BYTES,
					      DESCRIPTOR_ROOM_BYTES, SOCKET_ID_ANY);
	REQUIRE(packets && descriptors);
	make_hca();
	device.hca = hca;
	device.ceu = ceu;
	REQUIRE(control_create(&config, &control) == 0);
	atexit(stop);
}

static void let_it_work(void)
{
	control_poll(control);
	poll_once(NULL);
}

/* ---- a client ---- */

enum kept { PD, PIECE, MR, CQN, QPN, SRQN, QUEUE_PD, KEPT };

static int connection;
static uint32_t kept[KEPT]; /* the last number of each kind */

/* What is not sealed has no pages. */
static int memory_file(size_t bytes, unsigned int seals)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	REQUIRE(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
	if (seals && bytes)
		REQUIRE(posix_fallocate(fd, 0, (off_t)bytes) == 0);
	REQUIRE(fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

static int some_descriptor(uint8_t which)
{
	enum { SEALED = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };
	int pair[2];

	switch (which % 8) {
	case 0:
		return memory_file(sizeof(struct client_page), SEALED);
	case 1:
		return memory_file(MEMORY_BYTES, SEALED);
	case 2:
		return memory_file(MEMORY_BYTES, 0);
	case 3:
		return memory_file(4096 * (size_t)(which >> 3), SEALED | F_SEAL_WRITE);
	case 4:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 5:
		return open("/", O_PATH | O_CLOEXEC);
	case 6:
		REQUIRE(pipe2(pair, O_CLOEXEC) == 0);
		break;
	case 7:
		REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
		break;
	}
	close(pair[1]);
	return pair[0];
}

union body {
	struct control_hello hello;
	struct control_number number;
	struct control_pause pause;
	struct control_trace trace;
	struct control_read_trace read_trace;
	struct control_piece piece;
	struct control_pieces pieces;
	struct control_mr mr;
	struct control_rereg_mr rereg;
	struct control_alloc_mr alloc_mr;
	struct control_mw mw;
	struct control_cq cq;
	struct control_resize_cq resize_cq;
	struct control_qp qp;
	struct control_qp_attr attr;
	struct control_srq srq;
	struct control_srq_limit srq_limit;
	struct control_multicast multicast;
	struct control_list_devices list;
	struct control_read_attribute read;
	struct control_runs runs;
	struct control_capture_channel capture;
	uint8_t bytes[CONTROL_BYTES_MAX];
	uint32_t words[CONTROL_BYTES_MAX / 4];
};

static struct control_mr whole_memory(uint32_t pd)
{
	return (struct control_mr){.pd = pd,
				   .iova = IOVA,
				   .access = ACCESS_LOCAL_WRITE,
				   .count = 1,
				   .run = {{.piece = kept[PIECE], .bytes = MEMORY_BYTES}}};
}

/* Which kind of number a request names alone. */
static enum kept names(uint32_t type)
{
	switch (type) {
	case CONTROL_FREE_PD:
	case CONTROL_ALLOC_NULL_MR:
		return PD;
	case CONTROL_DROP_PIECE:
		return PIECE;
	case CONTROL_DEREG_MR:
	case CONTROL_DEALLOC_MW:
		return MR;
	case CONTROL_DESTROY_CQ:
		return CQN;
	case CONTROL_QUERY_QP:
	case CONTROL_DESTROY_QP:
		return QPN;
	case CONTROL_QUERY_SRQ:
	case CONTROL_DESTROY_SRQ:
		return SRQN;
	default:
		return KEPT;
	}
}

static void right_queue_body(uint32_t type, union body *b)
{
	if (type == CONTROL_CREATE_CQ)
		b->cq = (struct control_cq){4, kept[MR], IOVA + CQ, IOVA + RECORD};
	if (type == CONTROL_RESIZE_CQ)
		b->resize_cq = (struct control_resize_cq){kept[CQN], 5, kept[MR], 0, IOVA + CQ};
	if (type == CONTROL_CREATE_QP)
		b->qp = (struct control_qp){.pd = kept[PD],
					    .send_cqn = kept[CQN],
					    .recv_cqn = kept[CQN],
					    .lkey = kept[MR],
					    .sq_bytes = 4096,
					    .rq_log_entries = 4,
					    .rq_stride = 64,
					    .sq_va = IOVA + SQ,
					    .rq_va = IOVA + RQ,
					    .record_va = IOVA + RECORD + 128};
	if (type == CONTROL_CREATE_SRQ)
		b->srq = (struct control_srq){kept[PD], kept[MR],   4,
					      64,	IOVA + SRQ, IOVA + RECORD + 256};
	if (type == CONTROL_MODIFY_QP)
		b->attr = (struct control_qp_attr){.qpn = kept[QPN],
						   .mask = QP_ATTR_STATE | QP_ATTR_PKEY_INDEX |
							   QP_ATTR_PORT | QP_ATTR_ACCESS,
						   .state = 1,
						   .port = 1};
}

/* A body that the daemon would take, if there is one. */
static void right_body(uint32_t type, union body *b)
{
	memset(b, 0, sizeof(*b));
	if (names(type) != KEPT)
		b->number.number = kept[names(type)];
	right_queue_body(type, b);
	if (type == CONTROL_HELLO || type == CONTROL_LIST_DEVICES || type == CONTROL_OPEN_CM)
		b->hello.version = CONTROL_VERSION;
	if (type == CONTROL_CAPTURE || type == CONTROL_CAPTURE_CHANNEL)
		b->capture.capture =
			(struct control_capture){.version = CONTROL_VERSION, .bytes = MEMORY_BYTES};
	if (type == CONTROL_CAPTURE_CHANNEL)
		strcpy(b->capture.channel, "hp_ee");
	if (type == CONTROL_PAUSE || type == CONTROL_STEP || type == CONTROL_RESUME)
		b->pause = (struct control_pause){.version = CONTROL_VERSION, .steps = 1};
	if (type == CONTROL_TRACE)
		b->trace = (struct control_trace){.version = CONTROL_VERSION, .qpn = kept[QPN]};
	if (type == CONTROL_READ_TRACE)
		b->read_trace = (struct control_read_trace){.version = CONTROL_VERSION};
	if (type == CONTROL_ADD_PIECE)
		b->piece = (struct control_piece){.bytes = MEMORY_BYTES};
	if (type == CONTROL_ADD_PIECES)
		b->pieces = (struct control_pieces){
			.first = {.bytes = MEMORY_BYTES}, .stride = 4096, .count = 2};
	if (type == CONTROL_REG_MR)
		b->mr = whole_memory(kept[QUEUE_PD]);
	if (type == CONTROL_REREG_MR)
		b->rereg = (struct control_rereg_mr){kept[MR], REREG_TRANSLATION,
						     whole_memory(kept[QUEUE_PD])};
	if (type == CONTROL_ALLOC_MR)
		b->alloc_mr = (struct control_alloc_mr){kept[PD], 4};
	if (type == CONTROL_ALLOC_MW)
		b->mw = (struct control_mw){kept[PD], 1};
	if (type == CONTROL_MODIFY_SRQ)
		b->srq_limit = (struct control_srq_limit){kept[SRQN], 1};
	if (type == CONTROL_ATTACH_MCAST || type == CONTROL_DETACH_MCAST)
		b->multicast = (struct control_multicast){kept[QPN], 0, {0xff, 0x0e}};
	if (type == CONTROL_READ_ATTRIBUTE)
		b->read = (struct control_read_attribute){"hca0", "answer"};
}

/* The number to keep from a reply. */
static void keep(uint32_t type, const union body *b)
{
	static const uint8_t kind[CONTROL_TYPE_END] = {
		[CONTROL_ALLOC_PD] = PD + 1,	  [CONTROL_ADD_PIECE] = PIECE + 1,
		[CONTROL_REG_MR] = MR + 1,	  [CONTROL_ALLOC_MR] = MR + 1,
		[CONTROL_ALLOC_MW] = MR + 1,	  [CONTROL_CREATE_CQ] = CQN + 1,
		[CONTROL_CREATE_QP] = QPN + 1,	  [CONTROL_CREATE_SRQ] = SRQN + 1,
		[CONTROL_ALLOC_NULL_MR] = MR + 1,
	};

	if (type == CONTROL_HELLO)
		kept[QUEUE_PD] = ((const struct control_hello_reply *)b->bytes)->queue_pd;
	else if (type < CONTROL_TYPE_END && kind[type])
		kept[kind[type] - 1] = b->words[0];
}

static void take_reply(void)
{
	struct {
		struct control_header head;
		union body body;
	} m;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} room;
	struct iovec iov = {&m, sizeof(m)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &room,
			     .msg_controllen = sizeof(room)};
	ssize_t n = recvmsg(connection, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int bell;

	if (n <= 0)
		return;
	REQUIRE((size_t)n == sizeof(m.head) + m.head.length && m.head.status <= 0);
	if (CMSG_FIRSTHDR(&msg)) {
		memcpy(&bell, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(bell));
		close(bell);
	}
	if (m.head.status == 0)
		keep(m.head.type, &m.body);
}

/* What takes long is done in pieces: so many turns. */
static void wait_for_reply(unsigned int turns)
{
	struct pollfd p = {.fd = connection, .events = POLLIN};

	do
		let_it_work();
	while (--turns && poll(&p, 1, 0) == 0);
	take_reply();
}

static void send_message(const void *bytes, size_t n, int fd, unsigned int turns)
{
	struct iovec iov = {(void *)(uintptr_t)bytes, n};

	(void)!descriptor_send(connection, &iov, 1, fd, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (fd >= 0)
		close(fd);
	wait_for_reply(turns);
}

static const struct {
	uint16_t bytes;
	uint8_t fds;
} rows[CONTROL_TYPE_END] = {
#define REQUEST(NAME, name, body, reply, fds) [CONTROL_##NAME] = {body, fds},
#include "host-abi/control_requests.def"
};

struct message {
	struct control_header head;
	union body body;
};

/* The request as it should be. */
static void ask(uint32_t type, int fd)
{
	struct message m = {.head = {.type = type, .length = rows[type].bytes}};

	right_body(type, &m.body);
	send_message(&m, sizeof(m.head) + m.head.length, fd, PATIENCE);
}

static void fuzzed_message(struct fuzz_bytes *b)
{
	struct message m = {.head.type = fuzz_u8(b) % (CONTROL_TYPE_END + 1)};
	uint8_t which = fuzz_u8(b), at = fuzz_u8(b), bytes = fuzz_u8(b), over;
	bool has = m.head.type < CONTROL_TYPE_END;

	m.head.length = has ? rows[m.head.type].bytes : 0;
	if (has)
		right_body(m.head.type, &m.body);
	for (unsigned int i = at; i < at + bytes % 64u && b->left; i++) {
		over = fuzz_u8(b);
		((uint8_t *)&m)[sizeof(m.head) + i % CONTROL_BYTES_MAX] ^= over;
	}
	if (which == 0xff)
		m.head.length = at; /* a length that is wrong, most likely */
	send_message(&m, sizeof(m.head) + (has ? rows[m.head.type].bytes : 0),
		     (has && rows[m.head.type].fds) ^ (which >= 0xf0) ? some_descriptor(which) : -1,
		     8);
}

static void connect_client(bool ready)
{
	static const uint32_t first[] = {CONTROL_ALLOC_PD, CONTROL_ADD_PIECE, CONTROL_REG_MR,
					 CONTROL_CREATE_CQ, CONTROL_CREATE_QP};
	int pair[2];

	REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	REQUIRE(control_adopt(control, pair[1]) == 0);
	connection = pair[0];
	memset(kept, 0, sizeof(kept));
	if (!ready)
		return;
	ask(CONTROL_HELLO, some_descriptor(0));
	for (unsigned int i = 0; i < RTE_DIM(first); i++)
		ask(first[i], first[i] == CONTROL_ADD_PIECE ? some_descriptor(1) : -1);
	REQUIRE(kept[QPN]);
}

static void end_client(void)
{
	close(connection);
	/* Where this process did not get its CPU, its time is charged to the client: many turns. */
	for (unsigned int i = 0; i < 400000 && control_clients(control, NULL, 0); i++)
		let_it_work();
	REQUIRE(control_clients(control, NULL, 0) == 0 && !captured);
}

/* A client that has what it needs, and ends, is no news. */
static void learn_background(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	connect_client(true);
	end_client();
	fuzz_background();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes b = {data, size};

	start();
	learn_background();
	connect_client(fuzz_u8(&b) & 1);
	for (unsigned int i = 0; b.left && i < MESSAGES; i++)
		fuzzed_message(&b);
	end_client();
	fuzz_hide_background();
	return 0;
}
