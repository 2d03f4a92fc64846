/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket: every field of every request, descriptors of every kind, floods, connections
 * that are left half open.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "hostile.h"
#include "send_descriptors.h"

enum { WORDS_MAX = CONTROL_BYTES_MAX / 4 };

struct request {
	struct control_header header;
	uint32_t body[WORDS_MAX];
};

static const uint16_t body_bytes[CONTROL_TYPE_END] = {
#define REQUEST(NAME, name, body, reply, fds) [CONTROL_##NAME] = body,
#include "host-abi/control_requests.def"
};

/* Neither waits for room nor fails. */
static void try_send(int fd, const void *bytes, size_t n, const int *fds, unsigned count)
{
	(void)!send_descriptors(fd, bytes, n, fds, count, MSG_DONTWAIT);
}

/* False: the daemon has ended the connection. A daemon that does not answer is its end, too: the
 * script asks it afterwards. */
static bool take_answer(struct attacker *a, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct request answer;

	if (poll(&p, 1, 1000) != 1 || recv(fd, &answer, sizeof(answer), 0) <= 0)
		return false;
	if (answer.header.status == 0 && answer.header.length == sizeof(struct control_number))
		a->given = answer.body[0];
	return true;
}

/* ---- descriptors ---- */

static int some_memfd(struct attacker *a)
{
	static const int seals[] = {0,
				    F_SEAL_SHRINK,
				    F_SEAL_GROW,
				    F_SEAL_SHRINK | F_SEAL_GROW,
				    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
				    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | F_SEAL_WRITE};
	static const off_t sizes[] = {
		0, 1, 4095, 4096, 8192, sizeof(struct client_page), 1 << 20, 1ll << 41};
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (ftruncate(fd, sizes[below(a, 8)]))
		return fd;
	fcntl(fd, F_ADD_SEALS, seals[below(a, 6)]);
	return fd;
}

static int some_descriptor(struct attacker *a)
{
	int pair[2];

	switch (below(a, 8)) {
	case 0:
		if (pipe2(pair, O_CLOEXEC))
			break;
		close(pair[1]);
		return pair[0];
	case 1:
		return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	case 2:
		return open("/dev/zero", O_RDWR | O_CLOEXEC);
	case 3:
		return eventfd(0, EFD_CLOEXEC);
	case 4:
		return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	}
	return some_memfd(a);
}

static const uint8_t descriptors_of[CONTROL_TYPE_END] = {
#define REQUEST(NAME, name, body, reply, fds) [CONTROL_##NAME] = fds,
#include "host-abi/control_requests.def"
};

/* A memfd as it should be, all of it there, until it is cut: sealed too late, or not at all. */
static int right_memfd(uint64_t bytes)
{
	int fd = memfd_create("right", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (posix_fallocate(fd, 0, (off_t)bytes) == 0)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	return fd;
}

/* ---- fields ---- */

static uint32_t some_number(struct attacker *a)
{
	struct side *s = &a->side[0];
	const uint32_t numbers[] = {s->pd->number,
				    s->cq->number,
				    s->srq->number,
				    s->mr->lkey,
				    s->ctx->hello.queue_pd,
				    s->qp[below(a, WHICH_COUNT)]->number,
				    s->ctx->regions->own.number,
				    s->ctx->chunks->lkey,
				    a->side[1].qp[RC]->number,
				    a->given,
				    victim_count ? victims[below(a, victim_count)] : 0};

	return numbers[below(a, sizeof(numbers) / sizeof(numbers[0]))];
}

#define PUT(type, ...)                                                                             \
	do {                                                                                       \
		struct type in = {__VA_ARGS__};                                                    \
		memcpy(r->body, &in, sizeof(in));                                                  \
	} while (0)

/* A request that would be granted, or nearly. */
static void fill(struct attacker *a, struct request *r)
{
	struct side *s = &a->side[0];
	const struct chunk *chunk = s->ctx->chunks;
	uint64_t queue = (uintptr_t)chunk->region->addr;

	/* Requests that are valid only before HELLO would end the attack. */
	do
		*r = (struct request){.header = {.type = 2 + below(a, CONTROL_TYPE_END - 2)}};
	while (!(control_when(r->header.type) & CONTROL_AFTER_HELLO));
	r->header.length = body_bytes[r->header.type];
	switch (r->header.type) {
	case CONTROL_ADD_PIECE:
		PUT(control_piece, .offset = below(a, 2) * 4096, .bytes = 8192 << below(a, 3),
		    .flags = below(a, 2));
		break;
	case CONTROL_ADD_PIECES:
		PUT(control_pieces, .first = {below(a, 2) * 4096, 8192, below(a, 2), 0},
		    .stride = below(a, 3) * 4096, .count = below(a, 4));
		break;
	case CONTROL_ADD_SEGMENT:
		/* None that is there: it would be another program's. */
		PUT(control_segment, .id = INT32_MAX - below(a, 4), .flags = below(a, 2));
		break;
	case CONTROL_ADD_RUNS:
		PUT(control_runs, .count = 1 + below(a, CONTROL_RUNS_MAX),
		    .run = {{some_number(a), 0, draw(a) & 0xffff, below(a, 8192)},
			    {some_number(a), 0, below(a, 2) * 4096, 4096}});
		break;
	case CONTROL_REG_MR:
		PUT(control_mr, .pd = s->pd->number, .iova = 0x10000, .access = 7,
		    .count = 1 + below(a, 2),
		    .run = {{s->ctx->regions->own.number, 0, 4096, 4096},
			    {some_number(a), 0, below(a, 2) * 4096, 4096}});
		break;
	case CONTROL_ALLOC_MR:
		PUT(control_alloc_mr, .pd = s->pd->number, .pages = 1 + below(a, 64));
		break;
	case CONTROL_REREG_MR:
		PUT(control_rereg_mr, .lkey = some_number(a), .mask = below(a, 8),
		    .mr = {.pd = s->pd->number,
			   .iova = 0x20000,
			   .access = below(a, 64),
			   .count = 1,
			   .run = {{s->ctx->regions->own.number, 0, 0, 4096}}});
		break;
	case CONTROL_ALLOC_MW:
		PUT(control_mw, .pd = s->pd->number, .type = 1 + below(a, 2));
		break;
	case CONTROL_RESIZE_CQ:
		PUT(control_resize_cq, .cqn = s->cq->number, .log_entries = 3 + below(a, 4),
		    .lkey = chunk->lkey, .buffer_va = queue);
		break;
	case CONTROL_CREATE_CQ:
		PUT(control_cq, .log_entries = 4, .lkey = chunk->lkey, .buffer_va = queue,
		    .record_va = queue + 4096);
		break;
	case CONTROL_CREATE_QP:
		PUT(control_qp, .service = below(a, 3), .pd = s->pd->number,
		    .send_cqn = s->cq->number, .recv_cqn = s->cq->number, .lkey = chunk->lkey,
		    .sq_bytes = 4096, .rq_log_entries = 4, .rq_stride = 64, .sq_va = queue,
		    .rq_va = queue + 4096, .record_va = queue + 8192);
		break;
	case CONTROL_MODIFY_QP:
		PUT(control_qp_attr, .qpn = s->qp[below(a, WHICH_COUNT)]->number,
		    .mask = (uint32_t)draw(a) & 0x1fffff, .state = below(a, 8), .port = 1,
		    .path_mtu = 3, .av.dgid = {[10] = 0xff, [11] = 0xff, [12] = 192, 168, 77, 2});
		break;
	case CONTROL_CREATE_SRQ:
		PUT(control_srq, .pd = s->pd->number, .lkey = chunk->lkey, .log_entries = 4,
		    .stride = 64, .ring_va = queue, .record_va = queue + 8192);
		break;
	case CONTROL_MODIFY_SRQ:
		PUT(control_srq_limit, .srqn = s->srq->number, .limit = 3);
		break;
	case CONTROL_RESOLVE:
		PUT(control_resolve, .dgid = {[10] = 0xff, [11] = 0xff, [12] = 192, 168, 77, 2});
		break;
	default:
		PUT(control_number, .number = some_number(a));
	}
}

static void spoil(struct attacker *a, struct request *r)
{
	uint32_t words = r->header.length / 4;

	if (words && below(a, 8))
		r->body[below(a, words)] = below(a, 3) ? (uint32_t)nasty(a) : some_number(a);
	if (words > 1 && below(a, 4) == 0) {
		uint64_t wide = nasty(a);

		memcpy(&r->body[below(a, words - 1)], &wide, sizeof(wide));
	}
}

/* Its own objects may have been destroyed by now, by its own requests. */
void attack_fields(struct attacker *a)
{
	int fd = a->side[0].ctx->fd;

	for (;;) {
		struct request r;
		int passed = -1;

		fill(a, &r);
		spoil(a, &r);
		if (below(a, 200) == 0)
			((uint32_t *)&r.header)[below(a, 4)] = (uint32_t)nasty(a);
		if (r.header.type < CONTROL_TYPE_END && descriptors_of[r.header.type])
			passed = below(a, 2) ? right_memfd(8192) : some_descriptor(a);
		else if (below(a, 500) == 0)
			passed = some_descriptor(a);
		try_send(fd, &r, sizeof(r.header) + body_bytes[r.header.type % CONTROL_TYPE_END],
			 &passed, passed >= 0);
		if (passed >= 0 && below(a, 2))
			(void)!ftruncate(passed, 1);
		if (passed >= 0)
			close(passed);
		if (!take_answer(a, fd))
			return;
	}
}

/* ---- sockets ---- */

static int connect_raw(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strncpy(addr.sun_path, getenv("SOFTHCA_SOCKET"), sizeof(addr.sun_path) - 1);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
		return fd;
	close(fd);
	return -1;
}

static void hello(struct attacker *a, int fd)
{
	struct request r = {
		.header = {.type = CONTROL_HELLO, .length = sizeof(struct control_hello)}};
	int fds[8], count = below(a, 3) ? 1 : (int)below(a, 8);

	r.body[0] = below(a, 4) ? CONTROL_VERSION : (uint32_t)nasty(a);
	if (below(a, 4) == 0)
		r.body[2 + below(a, 8)] = (uint32_t)nasty(a);
	for (int i = 0; i < count; i++)
		fds[i] = below(a, 2) ? right_memfd(sizeof(struct client_page)) : some_descriptor(a);
	try_send(fd, &r, sizeof(r.header) + r.header.length, fds, (unsigned)count);
	for (int i = 0; i < count; i++) {
		(void)!fallocate(fds[i], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 8192);
		(void)!ftruncate(fds[i], 0);
		close(fds[i]);
	}
}

static void one_connection(struct attacker *a)
{
	struct request r;
	int fd = connect_raw();

	if (fd < 0)
		return;
	if (below(a, 4))
		hello(a, fd);
	if (below(a, 3) == 0)
		take_answer(a, fd);
	/* Asks, and takes no answers. */
	for (unsigned i = below(a, 2000); i; i--) {
		fill(a, &r);
		try_send(fd, &r, sizeof(r.header) + r.header.length, NULL, 0);
	}
	if (below(a, 3) == 0)
		shutdown(fd, below(a, 2) ? SHUT_WR : SHUT_RD);
	if (below(a, 3) == 0)
		try_send(fd, &r, below(a, sizeof(r)), NULL, 0);
	if (below(a, 2))
		close(fd); /* else it stays until this process ends */
}

void attack_sockets(struct attacker *a)
{
	for (unsigned i = 0; i < 60; i++)
		one_connection(a);
}
