/* SPDX-License-Identifier: BSD-3-Clause */
/* Attacks on what the control thread hands out: connections, its time, mappings, objects. */
#include <arpa/inet.h>
#include <signal.h>
#include <sys/prctl.h>
#include "shares.h"

enum { ASKING = 400 };
#define TIB   (1ull << 40)
#define LARGE (64u << 20)
#define GIB   (1ull << 30)

/* Holds: connected, and still so after a question. -1: refused. */
int connect_once(void)
{
	struct control_list_devices in = {.version = CONTROL_VERSION};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, path);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 &&
	    raw_call(fd, CONTROL_LIST_DEVICES, &in, sizeof(in), NULL, 0, NULL, 0) == 0)
		return fd;
	close(fd);
	return -1;
}

/* An open device; -1: refused. */
int open_once(struct control_hello_reply *hello)
{
	int fd = connect_once(), page = raw_memfd(sizeof(struct client_page), RAW_SEALS);

	if (fd >= 0 && raw_hello_with(fd, page, hello)) {
		close(fd);
		fd = -1;
	}
	close(page);
	return fd;
}

unsigned int attack_connect(void)
{
	unsigned int n = 0;

	while (n < FDS && connect_once() >= 0)
		n++;
	return n;
}

/* ---- what the control thread does ---- */

/* Asks for a neighbour that does not exist; does not wait for the answer. */
void ask_for(int fd, uint32_t number)
{
	struct {
		struct control_header header;
		struct control_resolve body;
	} m = {{.type = CONTROL_RESOLVE, .length = sizeof(m.body)},
	       {.gid_index = 2, .dgid = {0xfd, 0x77}}};

	number = htonl(number);
	memcpy(m.body.dgid + 12, &number, sizeof(number));
	raw_send(fd, &m, sizeof(m), NULL, 0);
}

static int busy[CLIENTS], memory;
static struct control_mr whole = {.access = ACCESS_LOCAL_WRITE, .count = 1};

/* With memory of which all pages exist. */
unsigned int attack_requests(void)
{
	struct control_hello_reply hello;
	void *all;

	for (int i = CLIENTS - 1; i >= 0; i--)
		busy[i] = open_once(&hello);
	whole.pd = hello.queue_pd;
	memory = raw_memfd(LARGE, RAW_SEALS);
	all = mmap(NULL, LARGE, PROT_WRITE, MAP_SHARED, memory, 0);
	if (all == MAP_FAILED)
		return 0;
	memset(all, 1, LARGE);
	return CLIENTS;
}

/* The longest that there are: maps much memory whose pages are then brought in, and next time drops it. */
static void long_requests(void)
{
	const int fd = busy[0];
	const struct control_piece in = {.bytes = LARGE};
	static uint32_t piece, lkey;
	static bool registered;

	if (registered)
		raw_number(fd, CONTROL_DEREG_MR, lkey);
	raw_number(fd, CONTROL_DROP_PIECE, piece);
	registered = false;
	if (raw_add_piece(fd, memory, &in, &piece))
		return;
	whole.run[0] = (struct control_run){piece, 0, 0, LARGE};
	registered = raw_reg_mr(fd, &whole, &lkey) == 0;
}

/* More than one wants in a turn, of each client. */
void again_requests(void)
{
	const struct control_header query = {.type = CONTROL_QUERY_PORT};
	struct control_port_reply port;

	for (int i = 1; i < CLIENTS; i++)
		for (int k = 0; k < 16; k++)
			raw_send(busy[i], &query, sizeof(query), NULL, 0);
	long_requests();
	for (int i = 1; i < CLIENTS; i++)
		for (int k = 0; k < 16; k++)
			raw_receive(busy[i], &port, sizeof(port));
}

/* A TCP connection, with little room, whose last close waits for the other end, which takes nothing. *other: that end. */
static int lingering_pair(int listener, int *other)
{
	static const char data[1 << 16];
	const struct linger linger = {.l_onoff = 1, .l_linger = 60};
	struct sockaddr_in at;
	socklen_t bytes = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), little = 4096;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little));
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	if (getsockname(listener, (struct sockaddr *)&at, &bytes) ||
	    connect(fd, (struct sockaddr *)&at, bytes))
		return -1;
	*other = accept(listener, NULL, NULL);
	while (send(fd, data, sizeof(data), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	return fd;
}

/* From a process of its own, as soon as nobody holds `ready` open for writing: then its descriptors are the last but the daemon's.
 * If the daemon is quicker, this process waits for their close as it ends. */
static void send_when_ready(int here, const int *fd, unsigned int n, const int *ready)
{
	const struct control_header query = {.type = CONTROL_QUERY_PORT};
	char none;

	if (fork())
		return;
	close(ready[1]);
	if (read(ready[0], &none, 1) == 0)
		raw_send(here, &query, sizeof(query), fd, n);
	_exit(0);
}

/* Descriptors whose close takes long, until nothing is accepted any more. */
unsigned int attack_linger(void)
{
	enum { BATCH = 60, BATCHES = 50 };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), little = 4096, fd[BATCH],
	    ready[2], other, here;
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	unsigned int n = 0;

	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little));
	if (bind(listener, (struct sockaddr *)&any, sizeof(any)) || listen(listener, 16))
		return 0;
	for (int batch = 0; batch < BATCHES && (here = connect_once()) >= 0 && pipe(ready) == 0;
	     batch++) {
		for (int i = 0; i < BATCH; i++)
			fd[i] = lingering_pair(listener, &other);
		send_when_ready(here, fd, BATCH, ready);
		for (int i = 0; i < BATCH; i++)
			close(fd[i]);
		close(ready[0]);
		close(ready[1]);
		raw_receive(here, NULL, 0); /* it is over */
		close(here);
		n += BATCH;
	}
	return n;
}

/* ---- a file's locks ---- */

enum { MAPPINGS = 400 };
static int locked;

/* Punches holes into a file that it has mapped many times: while they are unmapped, nobody else maps the file. */
static void punch(int file)
{
	static void *at[MAPPINGS];

	for (int i = 0; i < MAPPINGS; i++)
		at[i] = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	for (;;) {
		for (int i = 0; i < MAPPINGS; i++)
			madvise(at[i], LARGE, MADV_POPULATE_WRITE);
		fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, LARGE);
	}
}

unsigned int attack_locks(void)
{
	struct control_hello_reply hello;

	busy[0] = open_once(&hello);
	locked = raw_memfd(LARGE, RAW_SEALS);
	if (fork() == 0)
		punch(locked);
	return MAPPINGS;
}

/* Has it mapped and unmapped. */
void again_locks(void)
{
	const struct control_piece in = {.bytes = LARGE};
	uint32_t piece;

	if (raw_add_piece(busy[0], locked, &in, &piece) == 0)
		raw_number(busy[0], CONTROL_DROP_PIECE, piece);
}

static int refused = -1, wrong[2];

unsigned int attack_log(void)
{
	struct control_hello_reply hello;

	refused = open_once(&hello);
	if (pipe(wrong))
		return 0;
	again_log();
	return 100;
}

/* Refusals, each of them worth a line. */
void again_log(void)
{
	const struct control_piece in = {.bytes = PAGE};

	for (int i = 0; i < 100; i++)
		raw_add_piece(refused, wrong[0], &in, NULL);
}

unsigned int attack_map(void)
{
	const struct control_piece small = {.bytes = PAGE}, large = {.bytes = TIB};
	int file = raw_memfd(TIB, RAW_SEALS);
	struct control_hello_reply hello;
	unsigned int n = 0;

	for (int i = 0; i < CLIENTS; i++) {
		int fd = open_once(&hello);

		while (fd >= 0 && raw_add_piece(fd, file, &large, NULL) == 0)
			n++;
		while (fd >= 0 && raw_add_piece(fd, file, &small, NULL) == 0)
			n++;
	}
	return n;
}

unsigned int attack_register(void)
{
	const struct control_piece in = {.bytes = TIB};
	struct control_mr mr = {.access = ACCESS_LOCAL_WRITE, .count = 1};
	struct control_hello_reply hello;
	int fd = open_once(&hello), file = raw_memfd(TIB, RAW_SEALS);
	uint32_t piece, lkey;
	unsigned int n = 0;

	mr.pd = hello.queue_pd;
	for (uint64_t bytes = GIB; bytes >= PAGE; bytes /= 2) {
		do {
			if (raw_add_piece(fd, file, &in, &piece))
				return n;
			mr.run[0] = (struct control_run){piece, 0, 0, bytes};
			n++;
		} while (raw_reg_mr(fd, &mr, &lkey) == 0);
		raw_number(fd, CONTROL_DROP_PIECE, piece);
	}
	return n;
}

/* Regions of pages that do not follow one another, then runs that never become regions. */
unsigned int attack_scatter(void)
{
	const struct control_piece in = {.bytes = 64 << 20};
	int file = raw_memfd(in.bytes, RAW_SEALS);
	struct control_hello_reply hello;
	struct control_runs more = {.count = CONTROL_RUNS_MAX};
	unsigned int n = 0;

	for (int i = 0; i < CLIENTS; i++) {
		struct control_mr mr = {.access = ACCESS_LOCAL_WRITE, .count = 2};
		int fd = open_once(&hello);
		uint32_t piece, lkey;

		if (fd < 0 || raw_add_piece(fd, file, &in, &piece))
			break;
		mr.pd = hello.queue_pd;
		mr.run[0] = (struct control_run){piece, 0, in.bytes / 2, in.bytes / 2 - PAGE};
		mr.run[1] = (struct control_run){piece, 0, 0, in.bytes / 2};
		while (raw_reg_mr(fd, &mr, &lkey) == 0)
			n++;
		for (int k = 0; k < CONTROL_RUNS_MAX; k++)
			more.run[k] = (struct control_run){piece, 0, 0, PAGE};
		while (raw_call(fd, CONTROL_ADD_RUNS, &more, sizeof(more), NULL, 0, NULL, 0) == 0)
			n++;
	}
	return n;
}

/* All objects of each kind. False: not even one client. */
static bool take_objects(unsigned int *n)
{
	struct control_number number;
	struct control_hello_reply hello;
	int fd = open_once(&hello);
	uint32_t pd, piece, lkey, cqn;
	struct control_srq srq;
	struct control_qp qp;
	struct control_cq cq;

	if (fd < 0)
		return false;
	piece = raw_piece(fd, RAW_PIECE_BYTES);
	lkey = raw_mr(fd, hello.queue_pd, piece, RAW_PIECE_BYTES, RAW_IOVA);
	if (raw_call(fd, CONTROL_ALLOC_PD, NULL, 0, NULL, 0, &number, sizeof(number)))
		return false;
	pd = number.number;
	cqn = raw_cq(fd, lkey);
	qp = raw_qp_in(pd, cqn, lkey);
	srq = raw_srq_in(pd, lkey);
	cq = raw_cq_in(lkey);
	while (raw_create_qp(fd, &qp, NULL) == 0)
		++*n;
	while (raw_create_srq(fd, &srq, NULL) == 0)
		++*n;
	while (raw_call(fd, CONTROL_CREATE_CQ, &cq, sizeof(cq), NULL, 0, NULL, 0) == 0)
		++*n;
	while (raw_call(fd, CONTROL_ALLOC_PD, NULL, 0, NULL, 0, NULL, 0) == 0)
		++*n;
	for (;;) {
		const struct control_alloc_mr mr = {.pd = pd, .pages = 1};

		if (raw_call(fd, CONTROL_ALLOC_MR, &mr, sizeof(mr), NULL, 0, NULL, 0))
			return true;
		++*n;
	}
}

/* By several clients, each in a process: one that is refused what it begins with, ends. */
unsigned int attack_objects(void)
{
	unsigned int n = 0, all = 0;
	int result[2];

	if (pipe(result))
		return 0;
	for (int i = 0; i < 3; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		take_objects(&n);
		if (write(result[1], &n, sizeof(n)) < 0)
			_exit(1);
		close(result[1]);
		pause();
	}
	close(result[1]);
	while (read(result[0], &n, sizeof(n)) == sizeof(n))
		all += n;
	return all;
}

uint32_t datagram_qp(const struct raw *r)
{
	struct control_qp in = raw_qp_in(r->pd, r->cqn, r->lkey);
	uint32_t qpn = 0;

	in.service = UD;
	raw_create_qp(r->fd, &in, &qpn);
	return qpn;
}

int attach(const struct raw *r, uint32_t qpn, uint32_t n)
{
	struct control_multicast in = {.qpn = qpn, .mgid = {[10] = 0xff, 0xff, 239}};

	n = htonl(n + 1);
	memcpy(in.mgid + 13, (uint8_t *)&n + 1, 3);
	return raw_call(r->fd, CONTROL_ATTACH_MCAST, &in, sizeof(in), NULL, 0, NULL, 0);
}

unsigned int attack_attach(void)
{
	struct raw r;
	uint32_t qpn;
	unsigned int n = 0;

	r = raw_client(path);
	qpn = datagram_qp(&r);
	while (attach(&r, qpn, n + ((uint32_t)getuid() << 14 & 0x3fffff)) == 0)
		n++;
	return n;
}

static int asking[ASKING];
static unsigned int n_asking;

/* For neighbours that do not exist, each time other ones, all at once. */
static void ask_all(void)
{
	static uint32_t number;

	for (unsigned int i = 0; i < n_asking; i++)
		ask_for(asking[i], ((uint32_t)getuid() << 20) + number++);
}

/* Does not wait for the answers: those beyond its share take long, on a busy machine very long. */
unsigned int attack_resolve(void)
{
	struct control_hello_reply hello;

	while (n_asking < ASKING && (asking[n_asking] = open_once(&hello)) >= 0)
		n_asking++;
	ask_all();
	return n_asking;
}

void again_resolve(void)
{
	for (unsigned int i = 0; i < n_asking; i++)
		raw_receive(asking[i], NULL, 0);
	ask_all();
}
