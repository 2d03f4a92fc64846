/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: shares SOCKET ATTACK|victim
 * Takes all that one can get of a row of shares.def (its column `attack`), says how much that is, and keeps it until it is killed.
 * A victim asks for a little of everything, and exits with 0 if it gets it. Speaks the protocol by hand: no library that stops early.
 */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include "../../unit/control/raw_client.h"
#include "host-abi/cm_channel.h"

enum { PAGE = 4096, CLIENTS = 8, FDS = 8192, UD = 2 };
#define TIB (1ull << 40)
#define GIB (1ull << 30)

static const char *path;

/* Holds: connected, and still so after a question. -1: refused. */
static int connect_once(void)
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
static int open_once(struct control_hello_reply *hello)
{
	int fd = connect_once(), page = raw_memfd(sizeof(struct client_page), RAW_SEALS);

	if (fd >= 0 && raw_hello_with(fd, page, hello)) {
		close(fd);
		fd = -1;
	}
	close(page);
	return fd;
}

static unsigned int attack_connect(void)
{
	unsigned int n = 0;

	while (n < FDS && connect_once() >= 0)
		n++;
	return n;
}

/* On and on, in a process of its own. */
static unsigned int attack_requests(void)
{
	const struct control_header query = {.type = CONTROL_QUERY_PORT};
	struct control_hello_reply hello;
	struct control_port_reply port;

	for (int i = 0; i < CLIENTS; i++) {
		int fd = open_once(&hello);

		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			for (int k = 0; k < 16; k++)
				raw_send(fd, &query, sizeof(query), NULL, 0);
			for (int k = 0; k < 16; k++)
				if (raw_receive(fd, &port, sizeof(port)))
					_exit(0);
		}
	}
	return CLIENTS;
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

/* Descriptors whose close takes long, until nothing is accepted any more. Each batch is sent by a process of its own, which waits
 * for them itself if the daemon is quicker. */
static unsigned int attack_linger(void)
{
	enum { BATCH = 60, BATCHES = 50 };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), little = 4096, fd[BATCH],
	    other, here;
	const struct control_header query = {.type = CONTROL_QUERY_PORT};
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	unsigned int n = 0;

	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little));
	if (bind(listener, (struct sockaddr *)&any, sizeof(any)) || listen(listener, 16))
		return 0;
	for (int batch = 0; batch < BATCHES && (here = connect_once()) >= 0; batch++) {
		for (int i = 0; i < BATCH; i++)
			fd[i] = lingering_pair(listener, &other);
		if (fork() == 0) {
			raw_send(here, &query, sizeof(query), fd, BATCH);
			_exit(0);
		}
		for (int i = 0; i < BATCH; i++)
			close(fd[i]);
		raw_receive(here, NULL, 0); /* it is over */
		close(here);
		n += BATCH;
	}
	return n;
}

static unsigned int attack_log(void)
{
	const struct control_piece in = {.bytes = PAGE};
	struct control_hello_reply hello;
	int fd = open_once(&hello), wrong[2], rc;

	rc = pipe(wrong);
	for (int i = 0; i < 100 && !rc; i++)
		raw_add_piece(fd, wrong[0], &in, NULL);
	return 100;
}

static unsigned int attack_map(void)
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

static unsigned int attack_register(void)
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
static unsigned int attack_scatter(void)
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
static unsigned int attack_objects(void)
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

static uint32_t datagram_qp(const struct raw *r)
{
	struct control_qp in = raw_qp_in(r->pd, r->cqn, r->lkey);
	uint32_t qpn = 0;

	in.service = UD;
	raw_create_qp(r->fd, &in, &qpn);
	return qpn;
}

static int attach(const struct raw *r, uint32_t qpn, uint32_t n)
{
	struct control_multicast in = {.qpn = qpn, .mgid = {[10] = 0xff, 0xff, 239}};

	n = htonl(n + 1);
	memcpy(in.mgid + 13, (uint8_t *)&n + 1, 3);
	return raw_call(r->fd, CONTROL_ATTACH_MCAST, &in, sizeof(in), NULL, 0, NULL, 0);
}

static unsigned int attack_attach(void)
{
	struct raw r;
	uint32_t qpn;
	unsigned int n = 0;

	raw_set_up(&r, path);
	qpn = datagram_qp(&r);
	while (attach(&r, qpn, n + ((uint32_t)getuid() << 14 & 0x3fffff)) == 0)
		n++;
	return n;
}

/* Of neighbours who do not exist, each asked for by a connection that does not wait for the answer. */
static unsigned int attack_resolve(void)
{
	struct control_hello_reply hello;
	struct {
		struct control_header header;
		struct control_resolve body;
	} m = {{.type = CONTROL_RESOLVE, .length = sizeof(m.body)},
	       {.gid_index = 2, .dgid = {0xfd, 0x77}}};
	unsigned int n = 0;

	for (; n < 400; n++) {
		int fd = open_once(&hello);

		if (fd < 0)
			break;
		m.body.dgid[13] = (uint8_t)getuid();
		m.body.dgid[14] = (uint8_t)(n >> 8);
		m.body.dgid[15] = (uint8_t)n;
		raw_send(fd, &m, sizeof(m), NULL, 0);
	}
	return n;
}

/* ---- the connection manager ---- */

static int channel(void)
{
	const struct control_open_cm in = {.version = CONTROL_VERSION};
	int fd = connect_once();

	if (fd >= 0 && raw_call(fd, CONTROL_OPEN_CM, &in, sizeof(in), NULL, 0, NULL, 0)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Its status, or -EPIPE. */
static int command(int fd, uint32_t number, const void *body, size_t in, void *response, size_t out)
{
	struct {
		struct rdma_ucm_cmd_hdr head;
		uint8_t body[512];
	} m = {.head = {.cmd = number, .in = (uint16_t)in, .out = (uint16_t)out}};
	struct {
		struct cm_channel_reply head;
		uint8_t bytes[CM_CHANNEL_BYTES_MAX];
	} reply;
	int pair[2];
	ssize_t n;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -EPIPE;
	memcpy(m.body, body, in);
	raw_send(fd, &m, sizeof(m.head) + in, &pair[1], 1);
	close(pair[1]);
	n = recv(pair[0], &reply, sizeof(reply), 0);
	close(pair[0]);
	if (n < (ssize_t)sizeof(reply.head))
		return -EPIPE;
	if (response && !reply.head.status)
		memcpy(response, reply.bytes, out < reply.head.bytes ? out : reply.head.bytes);
	return reply.head.status;
}

static int create_id(int fd, uint32_t *id)
{
	const struct rdma_ucm_create_id in = {.uid = 1, .ps = RDMA_PS_TCP, .qp_type = 2};
	struct rdma_ucm_create_id_resp out = {0};
	int rc = command(fd, RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), &out, sizeof(out));

	*id = out.id;
	return rc;
}

static struct sockaddr_in6 address(const char *ip, uint16_t port)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 any = {0};

	inet_pton(AF_INET, ip, &v4.sin_addr);
	memcpy(&any, &v4, sizeof(v4));
	return any;
}

static int resolve(int fd, uint32_t id, uint16_t port)
{
	struct rdma_ucm_resolve_ip in = {.id = id, .timeout_ms = 2000};
	const struct rdma_ucm_resolve_route route = {.id = id, .timeout_ms = 2000};
	int rc;

	in.dst_addr = address("192.168.77.1", port);
	rc = command(fd, RDMA_USER_CM_CMD_RESOLVE_IP, &in, sizeof(in), NULL, 0);
	for (int i = 0; !rc && i < 1000; i++) {
		rc = command(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route), NULL, 0);
		if (rc != -EINVAL)
			return rc;
		rc = 0;
		usleep(1000);
	}
	return rc;
}

static unsigned int attack_cm_channels(void)
{
	unsigned int n = 0;
	uint32_t id;

	for (int fd; n < FDS && (fd = channel()) >= 0; n++)
		if (create_id(fd, &id))
			break;
	return n;
}

static unsigned int attack_cm_ids(void)
{
	unsigned int n = 0;
	uint32_t id;

	for (int i = 0; i < CLIENTS; i++)
		for (int fd = channel(); fd >= 0 && create_id(fd, &id) == 0; n++)
			;
	return n;
}

static unsigned int attack_cm_ports(void)
{
	struct rdma_ucm_bind_ip in = {.addr = address("192.168.77.1", 0)};
	int fd = channel();
	unsigned int n = 0;

	for (; create_id(fd, &in.id) == 0; n++)
		if (command(fd, RDMA_USER_CM_CMD_BIND_IP, &in, sizeof(in), NULL, 0))
			break;
	return n;
}

/* One for each group that an identifier joins, and nobody reads them. */
static unsigned int attack_cm_events(void)
{
	const struct rdma_ucm_create_id udp = {.uid = 1, .ps = RDMA_PS_UDP, .qp_type = 4};
	struct rdma_ucm_bind_ip bind = {.addr = address("192.168.77.1", 0)};
	struct rdma_ucm_join_ip_mcast join = {.addr = address("239.1.2.3", 0)};
	struct rdma_ucm_create_id_resp out;
	int fd = channel();
	unsigned int n = 0;

	if (command(fd, RDMA_USER_CM_CMD_CREATE_ID, &udp, sizeof(udp), &out, sizeof(out)))
		return 0;
	bind.id = join.id = out.id;
	command(fd, RDMA_USER_CM_CMD_BIND_IP, &bind, sizeof(bind), NULL, 0);
	while (command(fd, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &join, sizeof(join), &out,
		       sizeof(out)) == 0)
		n++;
	return n;
}

/* Connections to listeners of one's own that never answer. */
static unsigned int attack_cm_requests(void)
{
	enum { BACKLOG = 1024, LISTENERS = 5 };
	uint16_t first = (uint16_t)(20000 + getuid() % 100 * 10);
	struct rdma_ucm_connect in = {.conn_param = {.retry_count = 7, .valid = 1}};
	int there = channel(), here = channel();
	unsigned int n = 0;
	uint32_t id;

	for (uint16_t i = 0; i < LISTENERS; i++) {
		struct rdma_ucm_bind_ip bind = {
			.addr = address("192.168.77.1", (uint16_t)(first + i))};
		struct rdma_ucm_listen listen = {.backlog = BACKLOG};

		if (create_id(there, &id))
			return 0;
		bind.id = listen.id = id;
		command(there, RDMA_USER_CM_CMD_BIND_IP, &bind, sizeof(bind), NULL, 0);
		command(there, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), NULL, 0);
	}
	for (; n < BACKLOG * LISTENERS; n++) {
		if (create_id(here, &id) || resolve(here, id, (uint16_t)(first + n / BACKLOG)))
			break;
		in.id = id;
		in.conn_param.qp_num = 5 + n;
		if (command(here, RDMA_USER_CM_CMD_CONNECT, &in, sizeof(in), NULL, 0))
			break;
	}
	return n;
}

/* ---- the victim ---- */

static int expect(const char *what, int rc)
{
	if (rc)
		printf("%s: %s\n", what, strerror(rc == RAW_GONE ? ECONNRESET : -rc));
	return rc != 0;
}

/* A little of everything; twice, as two programs would. */
static int victim(void)
{
	struct rdma_ucm_listen listen = {.backlog = 4};
	int failed = 0;

	for (int i = 0; i < 2; i++) {
		int fd = connect_once(), cm;
		struct raw r;
		uint32_t id = 0;

		failed += expect("connection", fd < 0 ? -EUSERS : 0);
		if (fd < 0)
			continue;
		raw_set_up(&r, path); /* fails by itself */
		raw_piece(r.fd, 1 << 20);
		failed += expect("attachment", attach(&r, datagram_qp(&r), (uint32_t)i));
		cm = channel();
		failed += expect("channel", cm < 0 ? -EUSERS : 0);
		for (int k = 0; cm >= 0 && k < 4; k++)
			failed += expect("identifier", create_id(cm, &id));
		failed += expect("event", resolve(cm, id, 7174));
		failed += expect("identifier", create_id(cm, &id));
		listen.id = id;
		failed += expect("listener", command(cm, RDMA_USER_CM_CMD_LISTEN, &listen,
						     sizeof(listen), NULL, 0));
	}
	return failed ? 1 : 0;
}

static const struct {
	const char *name;
	unsigned int (*run)(void);
} attacks[] = {
	{"connect", attack_connect},

	{"requests", attack_requests},	 {"log", attack_log},
	{"linger", attack_linger},	 {"map", attack_map},
	{"register", attack_register},	 {"scatter", attack_scatter},
	{"objects", attack_objects},	 {"attach", attack_attach},
	{"resolve", attack_resolve},	 {"cm_channels", attack_cm_channels},
	{"cm_ids", attack_cm_ids},	 {"cm_ports", attack_cm_ports},
	{"cm_events", attack_cm_events}, {"cm_requests", attack_cm_requests},
};

int main(int argc, char **argv)
{
	struct rlimit files;

	if (argc != 3)
		return 2;
	path = argv[1];
	setvbuf(stdout, NULL, _IOLBF, 0);
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (strcmp(argv[2], "victim") == 0)
		return victim();
	for (unsigned int i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		if (strcmp(argv[2], attacks[i].name) != 0)
			continue;
		printf("took %u\n", attacks[i].run());
		puts("holding");
		pause();
	}
	return 2;
}
