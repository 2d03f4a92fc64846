/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RAW_CLIENT_H
#define RAW_CLIENT_H
/* The control protocol spoken by hand: whatever a hostile program could send. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>

#include "send_descriptors.h"
#include "test.h"
#include "host-abi/control.h"
#include "host-abi/doorbell.h"

enum { RAW_GONE = 1 }; /* the daemon ended the connection */

static inline int raw_connect(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = 60};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

static inline void raw_send(int fd, const void *bytes, size_t n, const int *fds, unsigned int nfds)
{
	(void)!send_descriptors(fd, bytes, n, fds, nfds, 0);
}

/* RAW_GONE, or the status of the reply. A descriptor that comes with it is closed. */
static inline int raw_receive(int fd, void *body, size_t bytes)
{
	struct {
		struct control_header header;
		uint8_t body[CONTROL_BYTES_MAX];
	} m;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = &m, .iov_len = sizeof(m)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	if (c) {
		int got;

		memcpy(&got, CMSG_DATA(c), sizeof(got));
		close(got);
	}
	if (n < 0 && errno == EAGAIN)
		fail_msg("the daemon does not answer");
	if (n <= 0)
		return RAW_GONE;
	assert_true(n >= (ssize_t)sizeof(m.header) &&
		    (size_t)n == sizeof(m.header) + m.header.length);
	assert_true(m.header.status <= 0);
	if (m.header.status == 0 && body) {
		assert_int_equal(m.header.length, bytes);
		memcpy(body, m.body, bytes);
	}
	return m.header.status;
}

static inline int raw_call(int fd, uint32_t type, const void *body, uint32_t bytes, const int *fds,
			   unsigned int nfds, void *reply, size_t reply_bytes)
{
	struct {
		struct control_header header;
		uint8_t body[CONTROL_BYTES_MAX];
	} m = {.header = {.type = type, .length = bytes}};

	if (bytes)
		memcpy(m.body, body, bytes);
	raw_send(fd, &m, sizeof(m.header) + bytes, fds, nfds);
	return raw_receive(fd, reply, reply_bytes);
}

/* Without descriptors; the types of body and reply, pointers, say how many bytes they have. */
#define raw_tell(fd, type, body) raw_call(fd, type, body, sizeof(*(body)), NULL, 0, NULL, 0)
#define raw_ask(fd, type, body, reply)                                                             \
	raw_call(fd, type, body, sizeof(*(body)), NULL, 0, reply, sizeof(*(reply)))

static inline int raw_number(int fd, uint32_t type, uint32_t number)
{
	struct control_number in = {.number = number};

	return raw_tell(fd, type, &in);
}

/* As the library's, all of it is there, unless it is large: the daemon brings in none of it. */
static inline int raw_memfd(size_t bytes, int seals)
{
	const size_t large = 1 << 20;
	int fd = memfd_create("raw", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	if (bytes && bytes <= large)
		assert_int_equal(posix_fallocate(fd, 0, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

#define RAW_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Skips the test where the kernel catches no access to a missing page. */
static inline void raw_need_userfaultfd(void)
{
	const int user_mode_only = 1;
	int fd = (int)syscall(SYS_userfaultfd, user_mode_only);

	if (fd < 0)
		skip();
	close(fd);
}

static inline int raw_hello_with(int fd, int page, struct control_hello_reply *reply)
{
	struct control_hello in = {.version = CONTROL_VERSION};

	return raw_call(fd, CONTROL_HELLO, &in, sizeof(in), &page, 1, reply, sizeof(*reply));
}

/* A connection that has said HELLO. */
static inline int raw_open(const char *path, struct control_hello_reply *reply)
{
	int fd = raw_connect(path), page = raw_memfd(sizeof(struct client_page), RAW_SEALS);

	assert_int_equal(raw_hello_with(fd, page, reply), 0);
	close(page);
	return fd;
}

static inline int raw_capture(int fd, int memory, const struct control_capture *in)
{
	struct control_capture_reply out;

	return raw_call(fd, CONTROL_CAPTURE, in, sizeof(*in), &memory, 1, &out, sizeof(out));
}

static inline int raw_add_piece(int fd, int file, const struct control_piece *in, uint32_t *piece)
{
	struct control_number out = {0};
	int rc = raw_call(fd, CONTROL_ADD_PIECE, in, sizeof(*in), &file, 1, &out, sizeof(out));

	if (piece)
		*piece = out.number;
	return rc;
}

static inline int raw_add_pieces(int fd, int file, const struct control_pieces *in,
				 struct control_pieces_reply *out)
{
	return raw_call(fd, CONTROL_ADD_PIECES, in, sizeof(*in), &file, 1, out, sizeof(*out));
}

/* One that is all of a new memfd. */
static inline uint32_t raw_piece(int fd, size_t bytes)
{
	const struct control_piece in = {.bytes = bytes};
	int memory = raw_memfd(bytes, RAW_SEALS);
	uint32_t piece;

	assert_int_equal(raw_add_piece(fd, memory, &in, &piece), 0);
	close(memory);
	return piece;
}

static inline int raw_reg_mr(int fd, const struct control_mr *in, uint32_t *lkey)
{
	struct control_mr_reply out = {0};
	int rc = raw_ask(fd, CONTROL_REG_MR, in, &out);

	*lkey = out.lkey;
	return rc;
}

/* The first bytes of a piece. */
static inline uint32_t raw_mr(int fd, uint32_t pd, uint32_t piece, uint64_t bytes, uint64_t iova)
{
	const struct control_mr in = {.pd = pd,
				      .iova = iova,
				      .access = ACCESS_LOCAL_WRITE,
				      .count = 1,
				      .run = {{.piece = piece, .bytes = bytes}}};
	uint32_t lkey;

	assert_int_equal(raw_reg_mr(fd, &in, &lkey), 0);
	assert_int_not_equal(lkey, 0);
	return lkey;
}

/* Where queues lie in a piece registered at RAW_IOVA. */
enum {
	RAW_IOVA = 0x100000,
	RAW_PIECE_BYTES = 1 << 16,
	RAW_CQ = 0x1000,
	RAW_SQ = 0x4000,
	RAW_RQ = 0x8000,
	RAW_SRQ = 0xa000,
	RAW_RECORD = 0xf000
};

static inline struct control_cq raw_cq_in(uint32_t lkey)
{
	return (struct control_cq){.log_entries = 4,
				   .lkey = lkey,
				   .buffer_va = RAW_IOVA + RAW_CQ,
				   .record_va = RAW_IOVA + RAW_RECORD};
}

static inline uint32_t raw_cq(int fd, uint32_t lkey)
{
	struct control_cq in = raw_cq_in(lkey);
	struct control_number out = {0};

	assert_int_equal(raw_ask(fd, CONTROL_CREATE_CQ, &in, &out), 0);
	return out.number;
}

static inline struct control_qp raw_qp_in(uint32_t pd, uint32_t cqn, uint32_t lkey)
{
	return (struct control_qp){.pd = pd,
				   .send_cqn = cqn,
				   .recv_cqn = cqn,
				   .lkey = lkey,
				   .sq_bytes = 4096,
				   .rq_log_entries = 4,
				   .rq_stride = 64,
				   .sq_va = RAW_IOVA + RAW_SQ,
				   .rq_va = RAW_IOVA + RAW_RQ,
				   .record_va = RAW_IOVA + RAW_RECORD + 64};
}

static inline int raw_create_qp(int fd, const struct control_qp *in, uint32_t *qpn)
{
	struct control_qp_reply out = {0};
	int rc = raw_ask(fd, CONTROL_CREATE_QP, in, &out);

	if (qpn)
		*qpn = out.qpn;
	return rc;
}

static inline struct control_srq raw_srq_in(uint32_t pd, uint32_t lkey)
{
	return (struct control_srq){.pd = pd,
				    .lkey = lkey,
				    .log_entries = 4,
				    .stride = 64,
				    .ring_va = RAW_IOVA + RAW_SRQ,
				    .record_va = RAW_IOVA + RAW_RECORD + 256};
}

static inline int raw_create_srq(int fd, const struct control_srq *in, uint32_t *srqn)
{
	struct control_number out = {0};
	int rc = raw_ask(fd, CONTROL_CREATE_SRQ, in, &out);

	if (srqn)
		*srqn = out.number;
	return rc;
}

/* The user that this thread connects as from now on; 0: itself. Skips the test where only root could. */
static inline void raw_be(uid_t uid)
{
	if (getuid() != 0)
		skip();
	assert_int_equal(syscall(SYS_setresuid, -1, 0, -1), 0);
	assert_int_equal(syscall(SYS_setresuid, -1, uid, -1), 0);
}

/* All of it: what a client has before it works. */
struct raw {
	int fd;
	struct control_hello_reply hello;
	uint32_t pd, piece, lkey, cqn, qpn, srqn;
};

/* What a queue pair needs, of a connection that has said HELLO. */
static inline struct control_qp raw_prepare(struct raw *r)
{
	struct control_number out = {0};

	assert_int_equal(raw_call(r->fd, CONTROL_ALLOC_PD, NULL, 0, NULL, 0, &out, sizeof(out)), 0);
	r->pd = out.number;
	r->piece = raw_piece(r->fd, RAW_PIECE_BYTES);
	r->lkey = raw_mr(r->fd, r->hello.queue_pd, r->piece, RAW_PIECE_BYTES, RAW_IOVA);
	r->cqn = raw_cq(r->fd, r->lkey);
	return raw_qp_in(r->pd, r->cqn, r->lkey);
}

/* Of a connection that has said HELLO. */
static inline void raw_furnish(struct raw *r)
{
	struct control_qp in = raw_prepare(r);
	struct control_srq srq;

	assert_int_equal(raw_create_qp(r->fd, &in, &r->qpn), 0);
	srq = raw_srq_in(r->pd, r->lkey);
	assert_int_equal(raw_create_srq(r->fd, &srq, &r->srqn), 0);
}

static inline struct raw raw_client(const char *path)
{
	struct raw r = {0};

	r.fd = raw_open(path, &r.hello);
	raw_furnish(&r);
	return r;
}

/* A case with a client of the daemon f, r, which leaves at the end. */
#define CLIENT_TEST(name)                                                                          \
	static void name##_with(struct raw r);                                                     \
	TEST(name)                                                                                 \
	{                                                                                          \
		struct raw r = raw_client(f.path);                                                 \
                                                                                                   \
		name##_with(r);                                                                    \
		close(r.fd);                                                                       \
	}                                                                                          \
	static void name##_with(struct raw r)

/* The same as that user. */
static inline struct raw raw_client_as(const char *path, uid_t uid)
{
	struct raw r;

	raw_be(uid);
	r = raw_client(path);
	raw_be(0);
	return r;
}

#endif
