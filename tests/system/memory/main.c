/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that registers whatever memory it has, between two HCAs of a daemon: heap, stack,
 * .data, constants, mmap(), shared memory. Data goes out of it and into it, before and after a
 * fork. Prints what registration costs. Exit code 0: all of it was right, and, if that is judged,
 * cost no more than it may.
 *
 * usage: memory SOCKET LEFT RIGHT [MEBIBYTES [judge]]     the largest registration, 1024
 */
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "softhca/softhca.h"
#include "../need.h"

enum { BYTES = 300000, ALL = 0xf, ROUNDS_MAX = 501 };

struct side {
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_cq *cq;
	struct softhca_qp *qp;
};

static char **arguments; /* of main() */
static uint8_t data[BYTES] = {1};
static const uint8_t constant[BYTES] = {[0] = 9, [BYTES - 1] = 8};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void open_side(struct side *s, const char *socket, const char *device)
{
	struct softhca_qp_init_attr init = {.type = SOFTHCA_QP_RC,
					    .cap = {.max_send_wr = 16,
						    .max_recv_wr = 16,
						    .max_send_sge = 1,
						    .max_recv_sge = 1}};

	NEED(s->ctx = softhca_open(socket, device));
	NEED(s->pd = softhca_alloc_pd(s->ctx));
	NEED(s->cq = softhca_create_cq(s->ctx, 64, NULL, NULL));
	init.send_cq = init.recv_cq = s->cq;
	NEED(s->qp = softhca_create_qp(s->pd, &init));
}

static void open_both(struct side side[2])
{
	struct softhca_endpoint end[2];

	for (int i = 0; i < 2; i++)
		open_side(&side[i], arguments[1], arguments[2 + i]);
	for (int i = 0; i < 2; i++)
		NEED(softhca_local_endpoint(side[i].qp, 0, &end[i]) == 0);
	for (int i = 0; i < 2; i++)
		NEED(softhca_connect_qp(side[i].qp, &end[i], &end[!i], NULL) == 0);
}

/* One request of the left side; waits for it. */
static void move(struct side *left, enum softhca_wr_opcode opcode, const struct softhca_mr *local,
		 const struct softhca_mr *remote)
{
	struct softhca_sge sge = {.addr = (uintptr_t)local->addr,
				  .length = (uint32_t)local->length,
				  .lkey = local->lkey};
	struct softhca_send_wr wr = {.sg_list = &sge,
				     .num_sge = 1,
				     .opcode = opcode,
				     .send_flags = SOFTHCA_SEND_SIGNALED,
				     .wr.rdma = {(uintptr_t)remote->addr, remote->rkey}};
	double end = now() + 30;
	struct softhca_wc wc;
	int n = 0;

	NEED(softhca_post_send(left->qp, &wr, NULL) == 0);
	while (n == 0 && now() < end)
		n = softhca_poll_cq(left->cq, 1, &wc);
	NEED(n == 1);
	if (wc.status)
		fprintf(stderr, "%s\n", softhca_wc_status_str(wc.status));
	NEED(wc.status == SOFTHCA_WC_SUCCESS);
}

static void fill(uint8_t *at, size_t bytes, unsigned int seed)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(i * 5 + (i >> 9) + seed);
}

/* The left side's memory out to the right side's heap, and back into it. */
static void try(struct side side[2], const char *name, uint8_t *at, bool writable)
{
	uint8_t *heap = malloc(BYTES);
	struct softhca_mr *there, *here;

	NEED(heap);
	memset(heap, 0, BYTES);
	NEED(there = softhca_reg_mr(side[1].pd, heap, BYTES, ALL));
	if (writable)
		fill(at, BYTES, 1);
	NEED(here = softhca_reg_mr(side[0].pd, at, BYTES, writable ? ALL : 0));
	move(&side[0], SOFTHCA_WR_RDMA_WRITE, here, there);
	NEED(memcmp(heap, at, BYTES) == 0);
	if (writable) {
		fill(heap, BYTES, 7);
		move(&side[0], SOFTHCA_WR_RDMA_READ, here, there);
		NEED(memcmp(heap, at, BYTES) == 0);
	}
	NEED(softhca_dereg_mr(here) == 0);
	NEED(softhca_dereg_mr(there) == 0);
	NEED(memcmp(heap, at, BYTES) == 0);
	free(heap);
	printf("%s: right\n", name);
}

/* Memory shared with a child: data written through the child's registration appear in the parent,
 * also through its own registration. */
static void also_by_a_child(struct side side[2], const char *name, uint8_t *at)
{
	uint8_t *heap = malloc(BYTES);
	struct softhca_mr *here, *there;
	pid_t child;
	int status;

	NEED(heap);
	NEED(here = softhca_reg_mr(side[0].pd, at, BYTES, ALL));
	NEED(there = softhca_reg_mr(side[1].pd, heap, BYTES, ALL));
	fflush(stdout);
	child = fork();
	if (child == 0) {
		struct side own[2];

		open_both(own);
		try(own, name, at, true);
		fill(at, BYTES, 11);
		_exit(0);
	}
	NEED(waitpid(child, &status, 0) == child && status == 0);
	move(&side[0], SOFTHCA_WR_RDMA_WRITE, here, there);
	fill(at, BYTES, 11);
	NEED(memcmp(heap, at, BYTES) == 0);
	NEED(softhca_dereg_mr(here) == 0 && softhca_dereg_mr(there) == 0);
	free(heap);
	printf("%s, registered by parent and child: right\n", name);
}

static void each_kind(struct side side[2])
{
	const size_t bytes = (BYTES + 4095) & ~4095;
	uint8_t stack[BYTES], *heap = malloc(BYTES);
	uint8_t *map =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = memfd_create("shared", MFD_CLOEXEC);
	uint8_t *anonymous =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int id = shmget(IPC_PRIVATE, BYTES, 0600);
	uint8_t *segment = shmat(id, NULL, 0);
	uint8_t *shared;

	NEED(segment != (void *)-1 && shmctl(id, IPC_RMID, NULL) == 0);
	NEED(ftruncate(fd, BYTES) == 0); /* no whole number of pages */
	shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(heap && map != MAP_FAILED && shared != MAP_FAILED && anonymous != MAP_FAILED);
	try(side, "heap", heap, true);
	try(side, "stack", stack, true);
	try(side, ".data", data, true);
	try(side, "mmap", map, true);
	try(side, "shared memory", shared, true);
	try(side, "shared anonymous", anonymous, true);
	also_by_a_child(side, "shared anonymous", anonymous);
	try(side, "System V segment", segment, true);
	also_by_a_child(side, "System V segment", segment);
	try(side, "constants", (uint8_t *)(uintptr_t)constant, false);
	munmap(map, bytes);
	munmap(shared, bytes);
	munmap(anonymous, bytes);
	shmdt(segment);
	close(fd);
	free(heap);
}

/* The child has its own; the parent's MRs work on. */
static void over_a_fork(struct side side[2])
{
	uint8_t stack[4096], *heap = malloc(4096);
	struct softhca_mr *a, *b;
	pid_t child;
	int status;

	fill(stack, 4096, 1);
	memset(heap, 0, 4096);
	NEED(a = softhca_reg_mr(side[0].pd, stack, 4096, ALL));
	NEED(b = softhca_reg_mr(side[1].pd, heap, 4096, ALL));
	child = fork();
	if (child == 0) {
		memset(stack, 0xee, 4096);
		memset(heap, 0xee, 4096);
		_exit(0);
	}
	NEED(waitpid(child, &status, 0) == child && status == 0);
	move(&side[0], SOFTHCA_WR_RDMA_WRITE, a, b);
	NEED(memcmp(stack, heap, 4096) == 0);
	fill(heap, 4096, 2);
	move(&side[0], SOFTHCA_WR_RDMA_READ, a, b);
	NEED(memcmp(stack, heap, 4096) == 0);
	NEED(softhca_dereg_mr(a) == 0 && softhca_dereg_mr(b) == 0);
	free(heap);
	printf("over a fork: right\n");
}

static int by_size(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : 1;
}

static double median(double *of, int n)
{
	qsort(of, (size_t)n, sizeof(of[0]), by_size);
	return of[n / 2];
}

static void show(const char *what, double *of, int n)
{
	printf("%s%.0f us", what, median(of, n) * 1e6);
	printf(" (best %.0f)", of[0] * 1e6);
}

/* Answers until the other end is closed; sleeps in between, as the daemon does. */
static void answer(int fd)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	char message[512];

	while (poll(&readable, 1, -1) == 1 && recv(fd, message, sizeof(message), 0) > 0 &&
	       send(fd, message, 24, MSG_NOSIGNAL) > 0)
		;
	_exit(0);
}

/* Starts a process that answers. Returns the end of the socket to ask it at. */
static int open_answerer(void)
{
	int end[2];
	pid_t child;

	NEED(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, end) == 0);
	NEED((child = fork()) >= 0);
	if (child == 0) {
		close(end[0]);
		answer(end[1]);
	}
	close(end[1]);
	return end[0];
}

/* Half of the yardstick for registration: a message to another process, and the answer. */
static double exchange_cost(int answerer)
{
	char message[424] = {0};
	double begin = now();

	NEED(send(answerer, message, sizeof(message), MSG_NOSIGNAL) == sizeof(message));
	NEED(recv(answerer, message, sizeof(message), 0) > 0);
	return now() - begin;
}

/* The other half: faulting in as much shared memory, and copying into it. */
static double copy_cost(const uint8_t *from, size_t bytes)
{
	int fd = memfd_create("copy", MFD_CLOEXEC);
	double begin = now();
	uint8_t *to;

	NEED(ftruncate(fd, (off_t)bytes) == 0);
	to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(to != MAP_FAILED);
	memcpy(to, from, bytes);
	begin = now() - begin;
	munmap(to, bytes);
	close(fd);
	return begin;
}

static double register_cost(struct side *s, uint8_t *at, size_t bytes, double *back)
{
	double begin = now(), cost;
	struct softhca_mr *mr = softhca_reg_mr(s->pd, at, bytes, ALL);

	cost = now() - begin;
	NEED(mr);
	begin = now();
	NEED(softhca_dereg_mr(mr) == 0);
	*back = now() - begin;
	return cost;
}

/* What registration may cost on a machine that does nothing else: parts of the yardstick, and a time
 * in which 4 KiB are registered soon enough wherever that is. */
static const double FIRST_PARTS = 1.5, FIRST_4K_PARTS = 2.2, FIRST_4K_S = 40e-6, BACK_S = 50e-3;

/* Fresh memory each round. Is the median within what it may cost, or within the time that is soon
 * enough? */
static bool cost(struct side *s, int answerer, size_t bytes, int rounds)
{
	double yard[ROUNDS_MAX], first[ROUNDS_MAX], again[ROUNDS_MAX], back[ROUNDS_MAX], parts;
	bool small = bytes == 4096, within;

	for (int i = 0; i < rounds; i++) {
		uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, 0);

		NEED(at != MAP_FAILED);
		memset(at, 1, bytes);
		yard[i] = copy_cost(at, bytes) + exchange_cost(answerer);
		first[i] = register_cost(s, at, bytes, &back[i]);
		again[i] = register_cost(s, at, bytes, &back[i]);
		if (!small) /* else the next one would lie where the daemon knows it */
			munmap(at, bytes);
	}
	parts = median(first, rounds) / median(yard, rounds);
	printf("%zu KiB: registered in %.2f of the time that copying and asking take", bytes >> 10,
	       parts);
	show(", ", yard, rounds);
	show(": ", first, rounds);
	show("; again ", again, rounds);
	show("; given back ", back, rounds);
	printf("\n");
	within = small ? parts <= FIRST_4K_PARTS || median(first, rounds) <= FIRST_4K_S
		       : parts <= FIRST_PARTS;
	return within && median(back, rounds) <= BACK_S;
}

int main(int argc, char **argv)
{
	size_t largest = (argc > 4 ? strtoul(argv[4], NULL, 10) : 1024) << 20;
	bool judged = argc > 5 && strcmp(argv[5], "judge") == 0, within;
	struct side side[2];
	int answerer;

	if (argc < 4)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	arguments = argv;
	answerer = open_answerer(); /* while nothing is shared that a fork would copy */
	open_both(side);
	each_kind(side);
	over_a_fork(side);
	within = cost(&side[0], answerer, 4096, ROUNDS_MAX);
	within &= cost(&side[0], answerer, 1 << 20, 31);
	within &= cost(&side[0], answerer, largest, 3);
	close(answerer);
	for (int i = 0; i < 2; i++)
		softhca_close(side[i].ctx);
	if (!within)
		printf("more than registration may cost: %.1f of copying and asking, "
		       "for 4 KiB %.1f or %.0f us, %.0f ms to give back\n",
		       FIRST_PARTS, FIRST_4K_PARTS, FIRST_4K_S * 1e6, BACK_S * 1e3);
	return judged && !within;
}
