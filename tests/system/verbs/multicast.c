/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A verbs program that sends datagrams to a multicast group, or receives them. Linked with whatever
 * libibverbs the machine has, run by `softhca run`.
 *
 * usage: multicast DEVICE GROUP receive|send QPS COUNT
 *   receive   attaches that many queue pairs, says "ready", and expects COUNT datagrams in each
 *   send      sends COUNT; with QPS 1 its queue pair is attached, too, and must get each of its own
 * GROUP is an IPv4 or IPv6 address. Exits 0 if all was as it must be, and says what was not.
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <time.h>
#include "device.h"

enum { QPS_MAX = 8, COUNT_MAX = 256, BYTES = 1000, GRH = 40, PLACE = 1088, QKEY = 0x1234 };
enum { PATIENCE_S = 20, GROUP_QPN = 0xffffff };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp[QPS_MAX];
static union ibv_gid group;
static uint8_t *memory; /* a place to send from, then COUNT_MAX for each queue pair */
static unsigned int qps, count;

static void parse_group(const char *text)
{
	memset(&group, 0, sizeof(group));
	if (inet_pton(AF_INET6, text, group.raw) == 1)
		return;
	must(inet_pton(AF_INET, text, group.raw + 12) == 1, "group");
	group.raw[10] = group.raw[11] = 0xff;
}

static bool is_v4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

static void make_qp(unsigned int i)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_UD,
					.send_cq = cq,
					.recv_cq = cq,
					.cap = {.max_send_wr = 4,
						.max_recv_wr = COUNT_MAX,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

	qp[i] = ibv_create_qp(pd, &init);
	must(qp[i] != NULL, "ibv_create_qp");
	errno = ibv_modify_qp(qp[i], &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	must(errno == 0, "INIT");
	attr.qp_state = IBV_QPS_RTR;
	must(ibv_modify_qp(qp[i], &attr, IBV_QP_STATE) == 0, "RTR");
	attr.qp_state = IBV_QPS_RTS;
	must(ibv_modify_qp(qp[i], &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "RTS");
}

static void make(void)
{
	size_t bytes = PLACE * (1 + (size_t)QPS_MAX * COUNT_MAX);

	memory = calloc(1, bytes);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, QPS_MAX * COUNT_MAX + 4, NULL, NULL, 0);
	must(memory && pd && cq, "ibv_create_cq");
	mr = ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	must(mr != NULL, "ibv_reg_mr");
	for (unsigned int i = 0; i < (qps ? qps : 1); i++)
		make_qp(i);
}

static uint8_t *place(unsigned int i, unsigned int n)
{
	return memory + PLACE * (1 + (size_t)i * COUNT_MAX + n);
}

/* The receive's number says which queue pair and which place. */
static void post_receives(unsigned int i)
{
	for (unsigned int n = 0; n < count; n++) {
		struct ibv_sge sge = {(uintptr_t)place(i, n), PLACE, mr->lkey};
		struct ibv_recv_wr *bad,
			wr = {.wr_id = i * COUNT_MAX + n, .sg_list = &sge, .num_sge = 1};

		must(ibv_post_recv(qp[i], &wr, &bad) == 0, "ibv_post_recv");
	}
}

static void attach_all(void)
{
	for (unsigned int i = 0; i < qps; i++) {
		post_receives(i);
		errno = ibv_attach_mcast(qp[i], &group, 0);
		must(errno == 0, "ibv_attach_mcast");
	}
}

static void fill(uint8_t *bytes, uint32_t number)
{
	for (unsigned int i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)(number * 7 + i);
}

/* What came: from the group, and what the number in it says. */
static void check(const struct ibv_wc *wc)
{
	const uint8_t *got = place(wc->wr_id / COUNT_MAX, wc->wr_id % COUNT_MAX);
	uint8_t expected[BYTES];

	must(wc->status == IBV_WC_SUCCESS, ibv_wc_status_str(wc->status));
	errno = EBADMSG;
	must(wc->byte_len == BYTES + GRH && wc->wc_flags & IBV_WC_GRH, "length");
	must(wc->wc_flags & IBV_WC_WITH_IMM, "immediate data");
	if (is_v4(&group))
		must(memcmp(got + GRH - 4, group.raw + 12, 4) == 0, "IPv4 destination");
	else
		must(memcmp(got + GRH - 16, group.raw, 16) == 0, "IPv6 destination");
	fill(expected, ntohl(wc->imm_data));
	must(memcmp(got + GRH, expected, BYTES) == 0, "data");
}

/* Waits for that many receives, and sends. */
static void await(unsigned int receives, unsigned int sends)
{
	time_t end = time(NULL) + PATIENCE_S;
	struct ibv_wc wc;

	while (receives || sends) {
		int n = ibv_poll_cq(cq, 1, &wc);

		must(n >= 0, "ibv_poll_cq");
		errno = ETIMEDOUT;
		if (n == 0 && time(NULL) > end)
			fprintf(stderr, "%u receives and %u sends missing\n", receives, sends);
		must(n > 0 || time(NULL) <= end, "completions");
		if (n == 0)
			continue;
		must(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
		if (wc.opcode == IBV_WC_SEND) {
			sends--;
			continue;
		}
		check(&wc);
		must(receives-- > 0, "as many as were sent");
	}
}

static struct ibv_ah *address(void)
{
	struct ibv_ah_attr to = {
		.is_global = 1, .port_num = 1, .grh = {.dgid = group, .hop_limit = 1}};
	union ibv_gid gid;
	struct ibv_ah *ah;
	int i = 1; /* 0 is the link-local one */

	while (ibv_query_gid(context, 1, i, &gid) == 0 && is_v4(&gid) != is_v4(&group))
		i++;
	to.grh.sgid_index = (uint8_t)i;
	ah = ibv_create_ah(pd, &to);
	must(ah != NULL, "ibv_create_ah");
	return ah;
}

static void send_all(void)
{
	struct ibv_sge sge = {(uintptr_t)memory, BYTES, mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND_WITH_IMM,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.ud = {address(), GROUP_QPN, QKEY}};

	for (uint32_t n = 0; n < count; n++) {
		const struct timespec pause = {.tv_nsec = 1000000};

		fill(memory, n);
		wr.imm_data = htonl(n);
		must(ibv_post_send(qp[0], &wr, &bad) == 0, "ibv_post_send");
		await(qps, 1);
		nanosleep(&pause, NULL);
	}
	must(ibv_destroy_ah(wr.wr.ud.ah) == 0, "ibv_destroy_ah");
}

static void end(void)
{
	for (unsigned int i = 0; i < qps; i++)
		must(ibv_detach_mcast(qp[i], &group, 0) == 0, "ibv_detach_mcast");
	for (unsigned int i = 0; i < (qps ? qps : 1); i++)
		must(ibv_destroy_qp(qp[i]) == 0, "ibv_destroy_qp");
	must(ibv_dereg_mr(mr) == 0 && ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0 &&
		     ibv_close_device(context) == 0,
	     "the rest");
}

int main(int argc, char **argv)
{
	if (argc != 6)
		return 2;
	qps = (unsigned int)atoi(argv[4]);
	count = (unsigned int)atoi(argv[5]);
	if (qps > QPS_MAX || count > COUNT_MAX)
		return 2;
	parse_group(argv[2]);
	context = open_named(argv[1]);
	make();
	attach_all();
	puts("ready");
	fflush(stdout);
	if (strcmp(argv[3], "send") == 0)
		send_all();
	else
		await(qps * count, 0);
	end();
	return 0;
}
