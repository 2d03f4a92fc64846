/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP between the two processes; lines of hexadecimal text, as perftest does it. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include "exchange.h"

enum { CONNECT_TRIES = 100, CONNECT_PAUSE_US = 100000, ENDPOINT_TEXT = 76, NUMBER_TEXT = 17 };

static int fail(const char *what)
{
	fprintf(stderr, "softhca-perf: %s: %s\n", what,
		errno ? strerror(errno) : "peer closed the connection");
	return -1;
}

static int connect_once(const struct addrinfo *list)
{
	for (const struct addrinfo *a = list; a; a = a->ai_next) {
		int s = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);

		if (s < 0)
			continue;
		if (!connect(s, a->ai_addr, a->ai_addrlen))
			return s;
		close(s);
	}
	return -1;
}

static int open_client(const struct addrinfo *list)
{
	for (int i = 0; i < CONNECT_TRIES; i++) {
		int s = connect_once(list);

		if (s >= 0)
			return s;
		usleep(CONNECT_PAUSE_US);
	}
	return fail("connect");
}

static int open_server(uint16_t port)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	int one = 1, zero = 0, client, s = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (s < 0)
		return fail("socket");
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	if (bind(s, (struct sockaddr *)&any, sizeof(any)) || listen(s, 1)) {
		close(s);
		return fail("listen");
	}
	client = accept4(s, NULL, NULL, SOCK_CLOEXEC);
	close(s);
	return client < 0 ? fail("accept") : client;
}

int exchange_open(const char *host, uint16_t port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
	char service[8];
	int one = 1, s, error;

	if (host) {
		snprintf(service, sizeof(service), "%u", port);
		error = getaddrinfo(host, service, &hints, &list);
		if (error) {
			fprintf(stderr, "softhca-perf: %s: %s\n", host, gai_strerror(error));
			return -1;
		}
		s = open_client(list);
		freeaddrinfo(list);
	} else {
		s = open_server(port);
	}
	if (s >= 0)
		setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return s;
}

static int send_all(int socket, const char *text, size_t n)
{
	errno = 0;
	while (n > 0) {
		ssize_t done = send(socket, text, n, MSG_NOSIGNAL);

		if (done <= 0)
			return fail("exchange");
		text += done;
		n -= (size_t)done;
	}
	return 0;
}

static int receive_all(int socket, char *text, size_t n)
{
	errno = 0;
	if (recv(socket, text, n, MSG_WAITALL) != (ssize_t)n)
		return fail("exchange");
	text[n] = 0;
	return 0;
}

static void print_endpoint(char text[ENDPOINT_TEXT + 1], const struct endpoint *e)
{
	int n = snprintf(text, ENDPOINT_TEXT + 1, "%06x:%06x:%08x:%016llx:", e->qp.qpn, e->qp.psn,
			 e->rkey, (unsigned long long)e->addr);

	for (int i = 0; i < 16; i++)
		n += snprintf(text + n, (size_t)(ENDPOINT_TEXT + 1 - n), "%02x", e->qp.gid[i]);
	text[ENDPOINT_TEXT - 1] = '\n';
}

static int scan_endpoint(const char *text, struct endpoint *e)
{
	unsigned long long addr;
	unsigned byte;
	int at;

	if (sscanf(text, "%6x:%6x:%8x:%16llx:%n", &e->qp.qpn, &e->qp.psn, &e->rkey, &addr, &at) !=
	    4)
		return -1;
	e->addr = addr;
	for (int i = 0; i < 16; i++) {
		if (sscanf(text + at + 2 * i, "%2x", &byte) != 1)
			return -1;
		e->qp.gid[i] = (uint8_t)byte;
	}
	return 0;
}

int exchange_endpoints(int socket, const struct endpoint *mine, struct endpoint *theirs, unsigned n)
{
	char text[ENDPOINT_TEXT + 1];

	if (socket < 0)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		print_endpoint(text, &mine[i]);
		if (send_all(socket, text, ENDPOINT_TEXT) ||
		    receive_all(socket, text, ENDPOINT_TEXT))
			return -1;
		if (scan_endpoint(text, &theirs[i])) {
			fprintf(stderr, "softhca-perf: peer has a different version\n");
			return -1;
		}
	}
	return 0;
}

int exchange_put(int socket, uint64_t value)
{
	char text[NUMBER_TEXT + 1];

	if (socket < 0)
		return 0;
	snprintf(text, sizeof(text), "%016llx\n", (unsigned long long)value);
	return send_all(socket, text, NUMBER_TEXT);
}

int exchange_get(int socket, uint64_t *value)
{
	char text[NUMBER_TEXT + 1];

	*value = 0;
	if (socket < 0)
		return 0;
	if (receive_all(socket, text, NUMBER_TEXT))
		return -1;
	*value = strtoull(text, NULL, 16);
	return 0;
}

bool exchange_waits(int socket)
{
	struct pollfd p = {.fd = socket, .events = POLLIN};

	return socket >= 0 && poll(&p, 1, 0) > 0;
}

int exchange_sync(int socket, uint64_t mine, uint64_t *theirs)
{
	uint64_t ignored;

	if (exchange_put(socket, mine))
		return -1;
	return exchange_get(socket, theirs ? theirs : &ignored);
}
