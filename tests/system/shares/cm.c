/* SPDX-License-Identifier: BSD-3-Clause */
/* Attacks on the connection manager. */
#include <arpa/inet.h>
#include "shares.h"

int channel(void)
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
int command(int fd, uint32_t number, const void *body, size_t in, void *response, size_t out)
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

int create_id(int fd, uint32_t *id)
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

int resolve(int fd, uint32_t id, uint16_t port)
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

static int talking[CLIENTS], answers[CLIENTS][2];

unsigned int attack_cm_commands(void)
{
	for (int i = 0; i < CLIENTS; i++) {
		talking[i] = channel();
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, answers[i]))
			return 0;
	}
	return CLIENTS;
}

/* More than one wants in a turn, of each channel. */
void again_cm_commands(void)
{
	enum { AT_ONCE = 8 };
	struct {
		struct rdma_ucm_cmd_hdr head;
		struct rdma_ucm_destroy_id body;
	} m = {{.cmd = RDMA_USER_CM_CMD_DESTROY_ID,
		.in = sizeof(m.body),
		.out = sizeof(struct rdma_ucm_destroy_id_resp)},
	       {.id = UINT32_MAX}};
	uint8_t reply[CM_CHANNEL_BYTES_MAX];

	for (int i = 0; i < CLIENTS; i++)
		for (int k = 0; k < AT_ONCE; k++)
			raw_send(talking[i], &m, sizeof(m), &answers[i][1], 1);
	for (int i = 0; i < CLIENTS; i++)
		for (int k = 0; k < AT_ONCE; k++)
			if (recv(answers[i][0], reply, sizeof(reply), 0) < 0)
				return;
}

unsigned int attack_cm_channels(void)
{
	unsigned int n = 0;
	uint32_t id;

	for (int fd; n < FDS && (fd = channel()) >= 0; n++)
		if (create_id(fd, &id))
			break;
	return n;
}

unsigned int attack_cm_ids(void)
{
	unsigned int n = 0;
	uint32_t id;

	for (int i = 0; i < CLIENTS; i++)
		for (int fd = channel(); fd >= 0 && create_id(fd, &id) == 0; n++)
			;
	return n;
}

unsigned int attack_cm_ports(void)
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
unsigned int attack_cm_events(void)
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
unsigned int attack_cm_requests(void)
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
