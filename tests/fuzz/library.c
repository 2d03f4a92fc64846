/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client library under a hostile daemon: what it answers to requests, and what it writes into
 * the memory that both share. The program uses its objects as it may.
 *
 * Input: steps, each a byte that chooses a row of `steps`, then what the row reads, and what the
 * daemon answers to the requests of that step. The functions of libc that reach the daemon are
 * replaced: it lives between two calls of the library.
 */
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#ifdef FUZZ_MEMORY
#include <sanitizer/msan_interface.h>
#endif

#include "events.h"
#include "fuzz.h"
#include "wrap.h"

enum { STEPS = 64, EACH = 3, MEMORY = 8192, WRS = 8 };

static struct fuzz_bytes *input;
static int connection = -1; /* the library's end; what it says there is intercepted */
static struct control_header asked;
static uint32_t last_number;

/* ---- the daemon's answers ---- */

static const uint16_t reply_bytes[CONTROL_TYPE_END] = {
#define REQUEST(NAME, name, body, reply, fds) [CONTROL_##NAME] = reply,
#include "host-abi/control_requests.def"
};

struct answer {
	struct control_header head;
	union {
		uint8_t bytes[CONTROL_BYTES_MAX];
		uint32_t words[CONTROL_BYTES_MAX / 4];
		struct control_hello_reply hello;
	};
};

static struct answer right_answer(void)
{
	struct answer a = {.head = {.type = asked.type, .length = reply_bytes[asked.type]}};

	if (asked.type == CONTROL_HELLO)
		a.hello = (struct control_hello_reply){.version = CONTROL_VERSION,
						       .max_qp = 64,
						       .max_qp_wr = 1024,
						       .max_cqe = 4096,
						       .max_srq_wr = 1024,
						       .max_sge = 8,
						       .max_inline_bytes = 512,
						       .max_mr_bytes = 1 << 20,
						       .device = "hca0"};
	else if (a.head.length)
		a.words[0] = ++last_number;
	return a;
}

/* Returns the length of the message. */
static size_t spoil(struct answer *a, uint8_t how)
{
	uint8_t at = fuzz_u8(input), n = fuzz_u8(input) % 16;

	if (how < 0xc0) { /* anything in the body */
		for (unsigned int i = 0; i < n && a->head.length; i++)
			a->bytes[(at + i) % a->head.length] ^= fuzz_u8(input);
	} else if (how < 0xe0) { /* an error, or what no error is */
		a->head.status = (int8_t)at;
		a->head.length = 0;
	} else if (how < 0xf0) { /* anything in the header */
		((uint8_t *)&a->head)[at % sizeof(a->head)] ^= fuzz_u8(input);
	} else { /* cut, or with something behind */
		return at * 2u;
	}
	return sizeof(a->head) + (a->head.length < CONTROL_BYTES_MAX ? a->head.length : 0);
}

/* Room for one descriptor is all that the library offers. */
static void pass_descriptor(struct msghdr *msg)
{
	struct cmsghdr *c = msg->msg_control;
	int pair[2];

	REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) == 0);
	close(pair[1]);
	*c = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(c), &pair[0], sizeof(int));
}

WRAP(ssize_t, sendmsg, int fd, const struct msghdr *msg, int flags)
{
	if (fd != connection)
		return __real_sendmsg(fd, msg, flags);
	memcpy(&asked, msg->msg_iov[0].iov_base, sizeof(asked));
	REQUIRE(asked.type > 0 && asked.type < CONTROL_TYPE_END && !asked.status);
	REQUIRE(msg->msg_iovlen == 2 && asked.length == msg->msg_iov[1].iov_len);
#ifdef FUZZ_MEMORY /* a request must not disclose what the program's memory held before */
	__msan_check_mem_is_initialized(msg->msg_iov[1].iov_base, asked.length);
#endif
	return (ssize_t)(sizeof(asked) + asked.length);
}

WRAP(ssize_t, recvmsg, int fd, struct msghdr *msg, int flags)
{
	struct answer a;
	size_t n, at = 0;
	uint8_t how;

	if (fd != connection)
		return __real_recvmsg(fd, msg, flags);
	/* GET_KICK follows HELLO, and is answered in the same way. */
	how = asked.type == CONTROL_GET_KICK ? 0 : fuzz_u8(input);
	if (how == 0xff) { /* it hangs up */
		errno = ECONNRESET;
		return -1;
	}
	a = right_answer();
	n = how < 0x80 ? sizeof(a.head) + a.head.length : spoil(&a, how);
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		size_t room = msg->msg_iov[i].iov_len;

		memcpy(msg->msg_iov[i].iov_base, (uint8_t *)&a + at, n - at < room ? n - at : room);
		at += n - at < room ? n - at : room;
	}
	n = at;
	if ((asked.type == CONTROL_HELLO || asked.type == CONTROL_GET_KICK) ^ (how % 16 == 15))
		pass_descriptor(msg);
	else
		msg->msg_controllen = 0;
	return (ssize_t)n;
}

/* Memory that is not touched need not be made: most of an execution's time went there. */
WRAP(void *, mmap64, void *at, size_t bytes, int rights, int flags, int fd, off_t from)
{
	return __real_mmap64(at, bytes, rights, flags & ~MAP_POPULATE, fd, from);
}

WRAP(int, madvise, void *at, size_t bytes, int advice)
{
	return advice == MADV_POPULATE_READ ? 0 : __real_madvise(at, bytes, advice);
}

/* A client that waits for the daemon to take its doorbells gives up after a time. */
WRAP(int, clock_gettime, clockid_t clock, struct timespec *now)
{
	static time_t seconds;

	if (connection < 0 || clock != CLOCK_MONOTONIC_COARSE)
		return __real_clock_gettime(clock, now);
	*now = (struct timespec){.tv_sec = ++seconds};
	return 0;
}

/* ---- the program ---- */

static struct softhca_context *ctx;
static struct softhca_pd *pd;
static struct softhca_cq *cqs[EACH];
static struct softhca_srq *srqs[EACH];
static struct softhca_qp *qps[EACH];
static struct softhca_mr *mrs[EACH];
static uint8_t memory[MEMORY];
static uint8_t *shared; /* of softhca_alloc() */
static uint64_t posted; /* requests, which are numbered from 1 on */

static unsigned int some(void)
{
	return fuzz_u8(input) % EACH;
}

/* 0, or -errno. */
static bool done(int rc)
{
	REQUIRE(rc <= 0 && rc > -4096);
	return rc == 0;
}

static void region(void)
{
	struct softhca_mr **mr = &mrs[some()];

	if (*mr && done(softhca_dereg_mr(*mr)))
		*mr = NULL;
	else if (!*mr && shared)
		*mr = softhca_reg_mr(pd, shared + fuzz_u8(input), fuzz_u8(input), 1);
}

static void completion_queue(void)
{
	struct softhca_cq **cq = &cqs[some()];
	uint8_t how = fuzz_u8(input);

	if (!*cq)
		*cq = softhca_create_cq(ctx, how < UINT8_MAX ? 1u + how : UINT32_MAX, NULL, NULL);
	else if (how < 0x80)
		done(softhca_resize_cq(*cq, 1 + how));
	else if (done(softhca_destroy_cq(*cq)))
		*cq = NULL;
}

static void receive_queue(void)
{
	struct softhca_srq **srq = &srqs[some()];
	struct softhca_srq_init_attr init = {.max_wr = 1 + fuzz_u8(input) % 32, .max_sge = 2};
	struct softhca_srq_attr attr;
	uint8_t how = fuzz_u8(input);

	if (!*srq)
		*srq = softhca_create_srq(pd, &init);
	else if (how < 0x40)
		done(softhca_query_srq(*srq, &attr));
	else if (how < 0x80)
		done(softhca_arm_srq(*srq, how & 15));
	else if (done(softhca_destroy_srq(*srq)))
		*srq = NULL;
}

static void queue_pair(void)
{
	struct softhca_qp **qp = &qps[some()];
	uint8_t how = fuzz_u8(input);
	struct softhca_qp_init_attr init = {.send_cq = cqs[how % EACH],
					    .recv_cq = cqs[how / 3 % EACH],
					    .srq = how & 0x80 ? srqs[how / 9 % EACH] : NULL,
					    .type = (enum softhca_qp_type)(how / 27 % 3),
					    .cap = {.max_send_wr = 1 + how % 33,
						    .max_recv_wr = how % 17,
						    .max_send_sge = 2,
						    .max_recv_sge = 2,
						    .max_inline_data = how}};

	if (!*qp)
		*qp = softhca_create_qp(pd, &init);
	else if (done(softhca_destroy_qp(*qp)))
		*qp = NULL;
}

static void change_state(void)
{
	struct softhca_qp *qp = qps[some()];
	uint8_t to = fuzz_u8(input);
	struct softhca_qp_attr attr = {.state = to % 7};

	if (qp && to < 0xe0)
		done(softhca_modify_qp(qp, &attr, SOFTHCA_QP_STATE));
	else if (qp)
		done(softhca_query_qp(qp, &attr));
}

static void post_sends(void)
{
	struct softhca_qp *qp = qps[some()];
	uint8_t how = fuzz_u8(input), n = 1 + fuzz_u8(input) % WRS;
	struct softhca_sge sge[2] = {{.addr = (uintptr_t)memory, .length = fuzz_u8(input)},
				     {.addr = (uintptr_t)memory + 256, .length = 3}};
	struct softhca_send_wr wr[WRS];

	for (unsigned int i = 0; i < n; i++)
		wr[i] = (struct softhca_send_wr){.wr_id = ++posted,
						 .next = i + 1u < n ? &wr[i + 1] : NULL,
						 .sg_list = sge,
						 .num_sge = how % 3,
						 .opcode = how / 3 % 16,
						 .send_flags = fuzz_u8(input) & 0xf};
	if (qp)
		done(softhca_post_send(qp, wr, NULL));
}

static void post_receives(void)
{
	struct softhca_qp *qp = qps[some()];
	struct softhca_srq *srq = srqs[some()];
	uint8_t n = 1 + fuzz_u8(input) % WRS;
	struct softhca_sge sge = {.addr = (uintptr_t)memory, .length = 64};
	struct softhca_recv_wr wr[WRS];

	for (unsigned int i = 0; i < n; i++)
		wr[i] = (struct softhca_recv_wr){.wr_id = ++posted,
						 .next = i + 1u < n ? &wr[i + 1] : NULL,
						 .sg_list = &sge,
						 .num_sge = n & 1};
	if (qp && (n & 2))
		done(softhca_post_recv(qp, wr, NULL));
	else if (srq)
		done(softhca_post_srq_recv(srq, wr, NULL));
}

static void poll_cq(void)
{
	struct softhca_cq *cq = cqs[some()];
	struct softhca_wc wc[4];
	int n = cq ? softhca_poll_cq(cq, 4, wc) : 0;

	REQUIRE(n <= 4);
	for (int i = 0; i < n; i++) {
		REQUIRE(wc[i].wr_id <= posted); /* 0: of an entry never used */
		REQUIRE(wc[i].status <= SOFTHCA_WC_GENERAL_ERR);
		REQUIRE(softhca_wc_status_str(wc[i].status));
	}
}

static void query(void)
{
	struct softhca_port_attr port;
	struct softhca_device_attr device;
	struct softhca_ah_attr to = {.gid_index = 0};
	struct softhca_ah *ah;
	struct softhca_mw *mw;
	uint8_t gid[16];

	if (done(softhca_query_port(ctx, &port)))
		REQUIRE(port.gid_count <= 1 + UINT8_MAX);
	done(softhca_query_gid(ctx, 0, gid));
	done(softhca_query_device(ctx, &device));
	REQUIRE(memchr(device.name, 0, sizeof(device.name)));
	ah = softhca_create_ah(pd, &to);
	if (ah)
		softhca_destroy_ah(ah);
	mw = softhca_alloc_mw(pd, SOFTHCA_MW_TYPE_2);
	if (mw)
		done(softhca_dealloc_mw(mw)); /* else it stays until the end */
}

/* ---- what the daemon writes ---- */

static void write_anything(uint8_t *at, size_t room)
{
	size_t from = fuzz_u16(input) % room;

	for (unsigned int n = fuzz_u8(input) % 32; n && from < room && input->left; n--)
		at[from++] ^= fuzz_u8(input);
}

static void write_page(void)
{
	write_anything((uint8_t *)ctx->page, sizeof(*ctx->page));
}

static void write_queues(void)
{
	if (ctx->chunks)
		write_anything(ctx->chunks->region->addr, 16 * PAGE_BYTES);
}

static uint32_t some_number(void)
{
	uint8_t which = fuzz_u8(input);

	if (which < 0x80 && qps[which % EACH])
		return qps[which % EACH]->number;
	return which % (last_number + 2);
}

static void write_event(void)
{
	struct eqe *e = &ctx->page->eq[ctx->eq_taken % EQ_ENTRIES];

	e->number = some_number();
	e->type = fuzz_u8(input) % 32;
	e->owner = (ctx->eq_taken / EQ_ENTRIES & 1) ^ 1;
	pthread_mutex_lock(&ctx->lock);
	events_drain(ctx);
	pthread_mutex_unlock(&ctx->lock);
}

static void write_completion(void)
{
	struct softhca_cq *cq = cqs[some()];

	if (cq)
		cq->buffer[cq->consumed & cq->mask] =
			(struct cqe){.my_qpn = some_number(),
				     .imm_or_error = fuzz_u8(input),
				     .wqe_offset = fuzz_u16(input) << 4,
				     .opcode = fuzz_u8(input),
				     .is_send = fuzz_u8(input) & 1,
				     .owner = fuzz_u8(input) & 0x7f};
}

static void (*const steps[])(void) = {
	region,	       completion_queue, receive_queue, queue_pair,	  change_state, post_sends,
	post_receives, poll_cq,		 query,		write_page,	  write_queues, write_event,
	poll_cq,       write_completion, queue_pair,	write_completion,
};

/* All numbers of files are free again. */
static int first_free(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void run(void)
{
	pd = softhca_alloc_pd(ctx);
	shared = pd ? softhca_alloc(ctx, MEMORY) : NULL;
	for (unsigned int i = 0; pd && i < STEPS && input->left; i++)
		steps[fuzz_u8(input) % (sizeof(steps) / sizeof(steps[0]))]();
	REQUIRE(softhca_close(ctx) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes b = {data, size};
	int pair[2], before = first_free();

	input = &b;
	last_number = 0;
	posted = 0;
	memset(cqs, 0, sizeof(cqs));
	memset(srqs, 0, sizeof(srqs));
	memset(qps, 0, sizeof(qps));
	memset(mrs, 0, sizeof(mrs));
	REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	connection = pair[0];
	ctx = softhca_open_socket(connection, NULL);
	REQUIRE(ctx || size); /* nothing is wrong with the answers to an input of no bytes */
	if (ctx)
		run();
	connection = -1;
	close(pair[1]);
	REQUIRE(first_free() == before);
	return 0;
}
