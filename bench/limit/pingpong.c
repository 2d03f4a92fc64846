/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Latency without RDMA: 8 bytes to and fro over the kernel's loopback, UDP or TCP, with blocking
 * sockets or polled ones. Two threads, each bound to a CPU; of DPDK only its clock.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rte_cycles.h>
#include "limit_measure.h"

enum {
	WARM_UP_DIVISOR = 10, /* warm-up: the round trips divided by this, not counted */
	ROUND_TRIPS_MAX = 1000000,
};

struct pingpong {
	int fds[2]; /* connected to each other; [0] is the measuring end's */
	int echo_cpu;
	int flags; /* of recv and send: MSG_DONTWAIT when busy */
	bool stop; /* set by the measuring end */
};

/*
 * One message of 8 bytes. Returns 0, or -1 when none came within the second after which a blocking
 * socket gives up (a busy one never gives up except for *stop or the deadline, in TSC cycles).
 */
static int receive(const struct pingpong *p, int fd, uint64_t *number, uint64_t deadline)
{
	ssize_t got;

	do {
		got = recv(fd, number, sizeof(*number), p->flags | MSG_WAITALL);
		if (got == (ssize_t)sizeof(*number))
			return 0;
		if (got >= 0 || (errno != EAGAIN && errno != EINTR))
			return -1;
	} while (!__atomic_load_n(&p->stop, __ATOMIC_RELAXED) && rte_rdtsc() < deadline);
	return -1;
}

static int transmit(int fd, uint64_t number)
{
	return send(fd, &number, sizeof(number), MSG_NOSIGNAL) == (ssize_t)sizeof(number) ? 0 : -1;
}

static void *echo(void *arg)
{
	struct pingpong *p = arg;
	uint64_t number;

	if (limit_bind(p->echo_cpu))
		return NULL;
	while (receive(p, p->fds[1], &number, UINT64_MAX) == 0 && transmit(p->fds[1], number) == 0)
		;
	return NULL;
}

static void close_both(struct pingpong *p)
{
	if (p->fds[0] >= 0)
		close(p->fds[0]);
	if (p->fds[1] >= 0)
		close(p->fds[1]);
}

/* A socket bound to a free port of 127.0.0.1, its address in *address. -1 if there is none. */
static int bound_socket(int type, struct sockaddr_in *address)
{
	socklen_t length = sizeof(*address);
	int fd = socket(AF_INET, type, 0);

	*address = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)address, length) ||
	    getsockname(fd, (struct sockaddr *)address, &length)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int connect_to(int fd, const struct sockaddr_in *address)
{
	return fd < 0 ? -1 : connect(fd, (const struct sockaddr *)address, sizeof(*address));
}

static int open_udp(struct pingpong *p)
{
	struct sockaddr_in a, b;

	p->fds[0] = bound_socket(SOCK_DGRAM, &a);
	p->fds[1] = bound_socket(SOCK_DGRAM, &b);
	return connect_to(p->fds[0], &b) || connect_to(p->fds[1], &a) ? -1 : 0;
}

static int open_tcp(struct pingpong *p)
{
	struct sockaddr_in address;
	int listener = bound_socket(SOCK_STREAM, &address), on = 1;

	if (listener < 0)
		return -1;
	p->fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (listen(listener, 1) == 0 && connect_to(p->fds[0], &address) == 0)
		p->fds[1] = accept(listener, NULL, NULL);
	close(listener);
	if (p->fds[1] < 0)
		return -1;
	return setsockopt(p->fds[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ||
			       setsockopt(p->fds[1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on))
		       ? -1
		       : 0;
}

static int open_both(struct pingpong *p, enum pingpong_transport transport)
{
	struct timeval second = {.tv_sec = 1};
	int bad = transport == PINGPONG_UDP ? open_udp(p) : open_tcp(p);

	for (unsigned int i = 0; i < 2 && !bad; i++)
		bad = setsockopt(p->fds[i], SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
	return bad ? -1 : 0;
}

/* Round trip in ns of message `number`, or -1. */
static double round_trip(const struct pingpong *p, uint64_t number)
{
	uint64_t start = rte_rdtsc(), answer;

	do {
		if (transmit(p->fds[0], number) ||
		    receive(p, p->fds[0], &answer, start + rte_get_tsc_hz()))
			return -1;
	} while (answer != number);
	return (double)(rte_rdtsc() - start) * 1e9 / (double)rte_get_tsc_hz();
}

/* Median one-way time in ns, 0 when an answer did not come. */
static double measure(const struct pingpong *p, double *trips, unsigned int n)
{
	unsigned int warm_up = n / WARM_UP_DIVISOR;

	for (unsigned int i = 0; i < warm_up + n; i++) {
		double ns = round_trip(p, i);

		if (ns < 0)
			return 0;
		if (i >= warm_up)
			trips[i - warm_up] = ns;
	}
	return limit_median(trips, n) / 2;
}

static double with_echo(struct pingpong *p, unsigned int round_trips)
{
	double *trips = malloc(round_trips * sizeof(*trips));
	double result = 0;
	pthread_t thread;

	if (trips && pthread_create(&thread, NULL, echo, p) == 0) {
		result = measure(p, trips, round_trips);
		__atomic_store_n(&p->stop, true, __ATOMIC_RELAXED);
		shutdown(p->fds[1], SHUT_RDWR);
		pthread_join(thread, NULL);
	}
	free(trips);
	return result;
}

double udp_tcp_pingpong(enum pingpong_transport transport, bool busy, unsigned int round_trips,
			int cpu_a, int cpu_b)
{
	struct pingpong p = {
		.fds = {-1, -1},
		.echo_cpu = cpu_b,
		.flags = busy ? MSG_DONTWAIT : 0,
	};
	double result = 0;
	cpu_set_t before;

	if (round_trips < 1 || round_trips > ROUND_TRIPS_MAX)
		return 0;
	pthread_getaffinity_np(pthread_self(), sizeof(before), &before);
	if (limit_bind(cpu_a) == 0 && open_both(&p, transport) == 0)
		result = with_echo(&p, round_trips);
	close_both(&p);
	pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
	return result;
}
