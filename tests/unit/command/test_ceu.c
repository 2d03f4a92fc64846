/* SPDX-License-Identifier: BSD-3-Clause */
/* The CEU's commands: their writes to the tables, their refusals, and the destruction of
 * objects. */
#include "command_fixture.h"

static struct command_fixture f;

static int setup(void **state)
{
	command_fixture_new(&f);
	command_fixture_make(&f);
	return 0;
}

static int teardown(void **state)
{
	command_fixture_free(&f);
	return 0;
}

static enum ceu_status move(uint8_t op, uint32_t mask)
{
	struct ceu_modify modify = command_attributes();

	modify.attr.mask = mask;
	return TELL(op, QPN, modify);
}

static void to_rts(void)
{
	assert_int_equal(move(CEU_RST2INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS),
			 CEU_OK);
	assert_int_equal(move(CEU_INIT2RTR, QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
						    QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC |
						    QP_ATTR_MIN_RNR_TIMER),
			 CEU_OK);
	assert_int_equal(move(CEU_RTR2RTS, QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT |
						   QP_ATTR_RNR_RETRY | QP_ATTR_MAX_RD_ATOMIC),
			 CEU_OK);
}

/* The context, and the compiler sees that it is there. */
static struct qp *found(void)
{
	struct qp *q = qp_find(&f.qps, QPN);

	if (!q)
		abort();
	return q;
}

#undef TEST
#define TEST(name) TEST_WITH(name, setup, teardown)

TEST(qp__context_after_rts)
{
	const struct ceu_modify want = command_attributes();
	struct qp *q;

	command_make_qp(&f, QPN, SERVICE_RC);
	q = found();
	assert_int_equal(q->client, 3);
	to_rts();
	assert_int_equal(q->pkey, 0xffff);
	assert_int_equal(q->mtu_bytes, 1024);
	assert_int_equal(q->dest_qpn, want.attr.dest_qpn);
	assert_int_equal(q->ee.expected_psn, want.attr.rq_psn);
	assert_int_equal(q->rtc.next_psn, want.attr.sq_psn);
	assert_int_equal(q->rrc.unacked_psn, want.attr.sq_psn);
	assert_int_equal(q->rrc.retry_left, 5);
	assert_int_equal(q->rrc.rnr_left, 6);
	assert_int_equal(q->rtc.ssn, 1);
	assert_memory_equal(qp_path(q)->peer_ip, want.attr.av.dgid, 16);
	assert_int_equal(qp_path(q)->template.encap_bytes, WIRE_ENCAP_BYTES_MIN);
	assert_memory_equal(qp_path(q)->template.bytes, want.path.dst_mac, 6);
	assert_memory_equal(qp_path(q)->template.bytes + 6, want.path.src_mac, 6);
	command_free_qp(&f, QPN);
}

TEST(qp__query_reports_what_was_set)
{
	const struct ceu_modify want = command_attributes();
	struct control_qp_attr got;

	command_make_qp(&f, QPN, SERVICE_RC);
	to_rts();
	qp_find(&f.qps, QPN)->rtc.next_psn = 0x42;
	assert_int_equal(ASK(CEU_QUERY_QP, QPN, got), CEU_OK);
	assert_int_equal(got.state, QP_RTS);
	assert_int_equal(got.sq_psn, 0x42);
	assert_int_equal(got.rq_psn, want.attr.rq_psn);
	assert_int_equal(got.av.traffic_class, want.attr.av.traffic_class);
	assert_int_equal(got.timeout, want.attr.timeout);
	assert_memory_equal(got.av.dgid, want.attr.av.dgid, 16);
	assert_int_equal(ASK(CEU_QUERY_QP, QPN ^ 0x10, got), CEU_BAD_PARAM);
	command_free_qp(&f, QPN);
}

TEST(qp__reset_clears_and_keeps_the_number)
{
	uint64_t epoch;
	struct qp *q;

	command_make_qp(&f, QPN, SERVICE_RC);
	to_rts();
	q = qp_find(&f.qps, QPN);
	epoch = q->epoch;
	q->ws.issued = 5;
	q->rwm.consumed = 7;
	assert_int_equal(move(CEU_2RST, 0), CEU_OK);
	assert_int_equal(q->qpn, QPN);
	assert_int_equal(q->state, QP_RST);
	assert_int_equal(q->ws.issued, 0);
	assert_int_equal(q->rwm.consumed, 0);
	assert_int_equal(q->pd, 0x77);
	assert_int_equal(q->epoch,
			 epoch + 1); /* what is still on its way to some module is stale */
	command_free_qp(&f, QPN);
	command_fixture_poll(&f);
	ceu_tidy(f.ceu);
	command_make_qp(&f, QPN, SERVICE_RC);
	assert_int_equal(q->epoch, epoch + 2);
}

TEST(qp__sqd_turns)
{
	struct qp *q;

	command_make_qp(&f, QPN, SERVICE_RC);
	to_rts();
	q = found();
	for (unsigned int i = 1; i < 600; i++) { /* never 0, which means "not drained" */
		assert_int_equal(move(CEU_RTS2SQD, i % 2 ? QP_ATTR_EN_SQD_ASYNC_NOTIFY : 0),
				 CEU_OK);
		assert_int_equal(q->sqd_notify, i % 2);
		assert_int_equal(q->sqd_turn, (i - 1) % 255 + 1);
		assert_int_equal(move(CEU_SQD2RTS, 0), CEU_OK);
	}
	command_free_qp(&f, QPN);
}

/* Path and timers may change only when nothing is outstanding; the rest at once. */
TEST(qp__sqd2sqd_only_when_drained)
{
	static const uint32_t bits[] = {QP_ATTR_AV, QP_ATTR_TIMEOUT, QP_ATTR_RETRY_CNT,
					QP_ATTR_RNR_RETRY};
	struct qp *q;

	command_make_qp(&f, QPN, SERVICE_RC);
	to_rts();
	q = found();
	assert_int_equal(move(CEU_RTS2SQD, 0), CEU_OK);
	assert_int_equal(move(CEU_SQD2SQD, QP_ATTR_ACCESS), CEU_OK);
	q->timeout = 1;
	for (unsigned int i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		assert_int_equal(move(CEU_SQD2SQD, bits[i]), CEU_BAD_SYS_STATE);
	assert_int_equal(q->timeout, 1);
	q->rtc.drained = q->sqd_turn;
	for (unsigned int i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		assert_int_equal(move(CEU_SQD2SQD, bits[i]), CEU_OK);
	assert_int_not_equal(q->timeout, 1);
	assert_int_equal(move(CEU_SQD2RTS, 0), CEU_OK);
	assert_int_equal(move(CEU_RTS2SQD, 0), CEU_OK); /* drained once is not drained now */
	assert_int_equal(move(CEU_SQD2SQD, QP_ATTR_AV), CEU_BAD_SYS_STATE);
	command_free_qp(&f, QPN);
}

/* By address or traffic class; connections that there are, too. */
TEST(qp__congestion_control_by_rules)
{
	const struct ceu_modify connect = command_attributes();
	struct cc_rules rules = {
		.rule = {{.by_class = true, .cc = CC_DELAY}, {.bits = 128, .cc = CC_AUTO}}};
	const struct qp *q;

	rules.rule[0].tclass = connect.attr.av.traffic_class ^ 4;
	memcpy(rules.rule[1].ip, connect.attr.av.dgid, 16);
	command_make_qp(&f, QPN, SERVICE_RC);
	to_rts();
	q = found();
	assert_int_equal(q->cc, CC_NONE);
	rules.count = 2;
	ceu_set_cc_rules(f.ceu, &rules);
	assert_int_equal(q->cc, CC_AUTO);
	rules.rule[0].tclass = connect.attr.av.traffic_class ^ WIRE_ECN_BITS;
	ceu_set_cc_rules(f.ceu, &rules);
	assert_int_equal(q->cc, CC_DELAY);
	rules.count = 0;
	ceu_set_cc_rules(f.ceu, &rules);
	assert_int_equal(q->cc, CC_NONE);
	command_free_qp(&f, QPN);
}

/* Whoever looks at the path while it changes sees the old one, untouched, or the new one; nobody
 * looks at the old one any more when the command returns. */
TEST(qp__path_flips)
{
	struct ceu_modify modify = command_attributes();
	const struct qp_path *old;
	struct qp_path before;
	struct qp *q;

	command_make_qp(&f, QPN, SERVICE_RC);
	to_rts();
	q = found();
	old = qp_path(q);
	before = *old;
	assert_int_equal(move(CEU_RTS2SQD, 0), CEU_OK);
	q->rtc.drained = q->sqd_turn;
	modify.attr.mask = QP_ATTR_AV;
	modify.attr.av.dgid[15] ^= 0xff;
	f.quiesced = 0;
	assert_int_equal(TELL(CEU_SQD2SQD, QPN, modify), CEU_OK);
	assert_int_equal(f.quiesced, 1);
	assert_ptr_not_equal(qp_path(q), old);
	assert_memory_equal(old, &before, sizeof(before));
	assert_memory_equal(qp_path(q)->peer_ip, modify.attr.av.dgid, 16);
	command_free_qp(&f, QPN);
}

TEST(qp__error_wakes_every_module_once)
{
	struct qp *q;

	command_make_qp(&f, QPN, SERVICE_RC);
	to_rts();
	command_fixture_poll(&f);
	q = qp_find(&f.qps, QPN);
	assert_int_equal(DO(CEU_2ERR, QPN), CEU_OK);
	assert_int_equal(q->state, QP_ERR);
	for (unsigned int t = 0; t < WAKE_COUNT; t++)
		assert_int_equal(f.engine->wake[t].head, q->index);
	assert_int_equal(DO(CEU_2ERR, QPN), CEU_OK);
	command_free_qp(&f, QPN);
}

TEST(qp__number_is_reused_only_when_released)
{
	struct ceu_qp make = command_qp(&f, SERVICE_RC);
	const uint32_t next = QPN ^ 0x100; /* the same place */

	f.releases = false;
	command_make_qp(&f, QPN, SERVICE_RC);
	command_free_qp(&f, QPN);
	assert_null(qp_find(&f.qps, QPN));
	assert_int_equal(ceu_tidy(f.ceu), 1);
	assert_int_equal(TELL(CEU_SW2HW_QP, next, make), CEU_BAD_SYS_STATE);
	f.qps.qps[QPN & (TABLE - 1)].closed = QP_CLOSED_ALL;
	assert_int_equal(ceu_tidy(f.ceu), 0);
	command_make_qp(&f, next, SERVICE_RC);
	assert_null(qp_find(&f.qps, QPN));
	f.releases = true;
	command_free_qp(&f, next);
}

/* Some module holds it for ever: the command fails, but the QP can be destroyed, at once or when it
 * has left. */
TEST(qp__stuck_in_its_reset_is_freed)
{
	struct ceu_qp make = command_qp(&f, SERVICE_RC);
	struct control_qp_attr out;

	for (int late = 0; late < 2; late++) {
		command_make_qp(&f, QPN, SERVICE_RC);
		to_rts();
		f.releases = false;
		assert_int_equal(move(CEU_2RST, 0), CEU_BAD_SYS_STATE);
		assert_int_equal(move(CEU_2RST, 0), CEU_BAD_PARAM);
		assert_int_equal(ASK(CEU_QUERY_QP, QPN, out), CEU_BAD_PARAM);
		assert_int_equal(DO(CEU_HW2SW_QP, QPN ^ 0x100), CEU_BAD_PARAM);
		if (late) {
			f.qps.qps[QPN & (TABLE - 1)].closed = QP_CLOSED_ALL;
			assert_int_equal(ceu_tidy(f.ceu), 0);
		}
		command_free_qp(&f, QPN);
		assert_int_equal(DO(CEU_HW2SW_QP, QPN), CEU_BAD_PARAM);
		assert_int_equal(ceu_tidy(f.ceu), !late);
		assert_int_equal(TELL(CEU_SW2HW_QP, QPN ^ 0x100, make),
				 late ? CEU_OK : CEU_BAD_SYS_STATE);
		f.qps.qps[QPN & (TABLE - 1)].closed = QP_CLOSED_ALL;
		assert_int_equal(ceu_tidy(f.ceu), 0);
		f.releases = true;
	}
	command_free_qp(&f, QPN ^ 0x100);
}

TEST(qp__refused_parameters)
{
#define REFUSED(field, value)                                                                      \
	do {                                                                                       \
		struct ceu_qp make = command_qp(&f, SERVICE_RC);                                   \
		make.field = value;                                                                \
		assert_int_equal(TELL(CEU_SW2HW_QP, QPN, make), CEU_BAD_PARAM);                    \
	} while (0)
	REFUSED(service, 3);
	REFUSED(engine, 1);
	REFUSED(client, CLIENTS_MAX);
	REFUSED(sq, NULL);
	REFUSED(sq_bytes, 0);
	REFUSED(sq_bytes, 65);
	REFUSED(record, NULL);
	REFUSED(rq_entries, 3);
	REFUSED(rq_entries, 0);
	REFUSED(rq_stride, 32);
	REFUSED(rq_stride, 40 + 16);
	REFUSED(rq_stride, 528);
	REFUSED(rq, NULL);
#undef REFUSED
	assert_null(qp_find(&f.qps, QPN));
}

TEST(mpt__rights_and_place)
{
	enum { KEY = 0xab0355 }; /* of index 3 */
	uint8_t memory[64], *addr;
	struct mpt_entry e = {
		.key = KEY, .pd = 9, .access = 0xf, .start = 0x1000, .length = 64, .phys = memory};
	struct v2p_port port = {.v2p = &f.v2p, .counters = &f.counters};
	uint64_t run;

	assert_int_equal(TELL(CEU_SW2HW_MPT, 4, e), CEU_BAD_PARAM);
	e.access = ACCESS_REMOTE_WRITE;
	assert_int_equal(TELL(CEU_SW2HW_MPT, 3, e), CEU_BAD_PARAM);
	e.access = 0x40;
	assert_int_equal(TELL(CEU_SW2HW_MPT, 3, e), CEU_BAD_PARAM);
	e.access = ACCESS_FLUSH_PERSISTENT;
	assert_int_equal(TELL(CEU_SW2HW_MPT, 3, e), CEU_BAD_PARAM);
	e.access = 0xf;
	e.length = UINT64_MAX;
	assert_int_equal(TELL(CEU_SW2HW_MPT, 3, e), CEU_BAD_PARAM);
	e.length = 64;
	assert_int_equal(TELL(CEU_SW2HW_MPT, 3, e), CEU_OK);
	assert_int_equal(TELL(CEU_SW2HW_MPT, 3, e), CEU_BAD_SYS_STATE);
	assert_int_equal(v2p_request(&port, V2P_EE_DATA,
				     &(struct v2p_access){.pd = 9,
							  .key = KEY,
							  .va = 0x1010,
							  .length = 16,
							  .rights = ACCESS_LOCAL_WRITE},
				     &addr, &run),
			 V2P_SUCCESS);
	assert_ptr_equal(addr, memory + 16);
	assert_int_equal(DO(CEU_HW2SW_MPT, KEY + 1), CEU_BAD_PARAM);
	f.quiesced = 0;
	assert_int_equal(DO(CEU_HW2SW_MPT, KEY), CEU_OK);
	assert_int_equal(f.quiesced, 1);
	assert_int_equal(
		v2p_request(&port, V2P_EE_DATA,
			    &(struct v2p_access){
				    .pd = 9, .key = KEY, .va = 0x1010, .length = 16, .rights = 0},
			    &addr, &run),
		V2P_KEY_ERR);
}

static uint64_t turn_seen;

/* The end of a visit that began when the QP was in RTS: it may still send. */
static void end_visit(void *ctx)
{
	if (!f.quiesced)
		turn_seen = qp_at(&f.qps, QPN & f.qps.mask)->payload_turn;
	command_fixture_poll(ctx);
}

TEST(payload_turn__ends_what_the_last_visit_sends)
{
	static const uint16_t ops[] = {CEU_2RST, CEU_HW2SW_QP};

	command_fixture_free(&f);
	f.hooks.quiesce = end_visit;
	command_fixture_make(&f);
	for (unsigned int i = 0; i < 2; i++) {
		if (i == 0)
			command_make_qp(&f, QPN, SERVICE_RC);
		to_rts();
		f.quiesced = 0;
		assert_int_equal(DO(ops[i], QPN), CEU_OK);
		assert_true(qp_at(&f.qps, QPN & f.qps.mask)->payload_turn != turn_seen);
	}
	f.hooks.quiesce = command_fixture_poll;
}

TEST(batch__waits_once)
{
	for (uint32_t i = 0; i < TABLE; i++)
		command_make_qp(&f, 0x1000 + i, SERVICE_UC);
	f.quiesced = 0;
	ceu_batch_begin(f.ceu);
	for (uint32_t i = 0; i < TABLE; i++)
		command_free_qp(&f, 0x1000 + i);
	assert_int_equal(f.quiesced, 0);
	ceu_batch_end(f.ceu);
	assert_int_equal(f.quiesced, 1);
	command_fixture_poll(&f);
	assert_int_equal(ceu_tidy(f.ceu), 0);
	ceu_batch_begin(f.ceu);
	f.quiesced = 0;
	ceu_batch_end(f.ceu);
	assert_int_equal(f.quiesced, 0);
}

TEST(exec__counts_what_it_refuses)
{
	assert_int_equal(DO(0x23, 0), CEU_BAD_OP);
	assert_int_equal(DO(0x24, 0), CEU_BAD_OP);
	assert_int_equal(DO(CEU_NOP, 0), CEU_OK);
	assert_int_equal(counter_read(&f.counters, COUNTER_commands), 1);
	assert_int_equal(counter_read(&f.counters, COUNTER_commands_refused), 2);
}

static enum ceu_status cq_exec(uint16_t op, uint32_t cqn, const void *in, uint32_t bytes)
{
	return ceu_exec(f.ceu, op, cqn, in, bytes, NULL, 0);
}

TEST(cq__made_and_removed)
{
	struct cqe buffer[16];
	struct cq_record record;
	const struct ceu_cq good = {
		.client = 1, .log_entries = 4, .buffer = buffer, .record = &record};
	struct ceu_cq cq = good;

	assert_int_equal(cq_exec(CEU_SW2HW_CQ, 0x105, &cq, sizeof(cq)), CEU_OK);
	assert_int_equal(cq_exec(CEU_SW2HW_CQ, 0x205, &cq, sizeof(cq)), CEU_BAD_SYS_STATE);
	assert_int_equal(cq_exec(CEU_HW2SW_CQ, 0x205, NULL, 0), CEU_BAD_PARAM);
	f.quiesced = 0;
	assert_int_equal(cq_exec(CEU_HW2SW_CQ, 0x105, NULL, 0), CEU_OK);
	assert_int_equal(f.quiesced, 1);
#define REFUSED(field, value)                                                                      \
	do {                                                                                       \
		cq = good;                                                                         \
		cq.field = value;                                                                  \
		assert_int_equal(cq_exec(CEU_SW2HW_CQ, 0x105, &cq, sizeof(cq)), CEU_BAD_PARAM);    \
	} while (0)
	REFUSED(log_entries, 25);
	REFUSED(client, CLIENTS_MAX);
	REFUSED(buffer, NULL);
	REFUSED(record, NULL);
#undef REFUSED
	assert_int_equal(cq_exec(CEU_SW2HW_CQ, 0, &good, sizeof(good)), CEU_BAD_PARAM);
	assert_int_equal(cq_exec(CEU_SW2HW_CQ, 1u << 24, &good, sizeof(good)), CEU_BAD_PARAM);
}

/* While it waits for the data path, a stage completes. */
static void complete_meanwhile(void *ctx)
{
	struct cqe entry = {.my_qpn = 77, .opcode = 1};

	f.quiesced++;
	assert_true(cq_post(&f.completion, &f.counters, 0x105, &entry, false));
}

TEST(cq__resized)
{
	static struct cqe buffer[16], larger[64];
	static struct cq_record record;
	const struct ceu_cq cq = {
		.client = 1, .log_entries = 4, .buffer = buffer, .record = &record};
	struct ceu_resize_cq in = {.log_entries = 6, .buffer = larger};
	struct cqe entry = {.my_qpn = 76, .opcode = 1};

	command_fixture_free(&f);
	f.hooks.quiesce = complete_meanwhile;
	command_fixture_make(&f);
	memset(&record, 0, sizeof(record));
	memset(larger, 0xff, sizeof(larger));
	assert_int_equal(cq_exec(CEU_RESIZE_CQ, 0x105, &in, sizeof(in)), CEU_BAD_PARAM);
	assert_int_equal(cq_exec(CEU_SW2HW_CQ, 0x105, &cq, sizeof(cq)), CEU_OK);
	for (unsigned int i = 0; i < 3; i++)
		assert_true(cq_post(&f.completion, &f.counters, 0x105, &entry, false));
	f.quiesced = 0;
	in.log_entries = 25;
	assert_int_equal(cq_exec(CEU_RESIZE_CQ, 0x105, &in, sizeof(in)), CEU_BAD_PARAM);
	in.log_entries = 6;
	in.reserved = 1;
	assert_int_equal(cq_exec(CEU_RESIZE_CQ, 0x105, &in, sizeof(in)), CEU_BAD_PARAM);
	in.reserved = 0;
	in.buffer = NULL;
	assert_int_equal(cq_exec(CEU_RESIZE_CQ, 0x105, &in, sizeof(in)), CEU_BAD_PARAM);
	in.buffer = larger;
	assert_int_equal(cq_exec(CEU_RESIZE_CQ, 0x205, &in, sizeof(in)), CEU_BAD_PARAM);
	assert_int_equal(cq_exec(CEU_RESIZE_CQ, 0, &in, sizeof(in)), CEU_BAD_PARAM);
	assert_int_equal(f.quiesced, 0);
	in.log_entries = 1; /* three are there: it stays, and takes those that arrived since */
	assert_int_equal(cq_exec(CEU_RESIZE_CQ, 0x105, &in, sizeof(in)), CEU_BAD_SYS_STATE);
	assert_int_equal(buffer[3].my_qpn, 77);
	in.log_entries = 6;
	assert_int_equal(cq_exec(CEU_RESIZE_CQ, 0x105, &in, sizeof(in)), CEU_OK);
	assert_int_equal(f.quiesced, 2);
	assert_int_equal(larger[4].my_qpn, 77);
	assert_int_equal(larger[3].my_qpn, UINT32_MAX); /* the client's to bring over */
	assert_int_equal(counter_read(&f.counters, COUNTER_cq_overruns), 0);
	f.hooks.quiesce = command_fixture_poll;
}

TEST(eq__made_mapped_and_removed)
{
	struct client_page *page = zeroed(sizeof(*page));
	struct ceu_eq eq = {.page = page, .eventfd = -1};
	struct ceu_event_mask mask = {.types = CEU_EVENTS_ALL};
	const uint32_t unmap = 1u << 31;

	assert_int_equal(cq_exec(CEU_MAP_EQ, 1, &mask, sizeof(mask)), CEU_BAD_PARAM);
	assert_int_equal(cq_exec(CEU_HW2SW_EQ, 1, NULL, 0), CEU_BAD_PARAM);
	assert_int_equal(cq_exec(CEU_SW2HW_EQ, CLIENTS_MAX, &eq, sizeof(eq)), CEU_BAD_PARAM);
	eq.page = NULL;
	assert_int_equal(cq_exec(CEU_SW2HW_EQ, 1, &eq, sizeof(eq)), CEU_BAD_PARAM);
	eq.page = page;
	assert_int_equal(cq_exec(CEU_SW2HW_EQ, 1, &eq, sizeof(eq)), CEU_OK);
	assert_int_equal(cq_exec(CEU_SW2HW_EQ, 1, &eq, sizeof(eq)), CEU_BAD_SYS_STATE);
	assert_int_equal(cq_exec(CEU_CLOSE_HCA, 0, NULL, 0), CEU_BAD_SYS_STATE);
	assert_false(eq_post(&f.completion, &f.counters, 1, EQE_COMM_EST, 5));
	assert_int_equal(cq_exec(CEU_MAP_EQ, 1, &mask, sizeof(mask)), CEU_OK);
	assert_true(eq_post(&f.completion, &f.counters, 1, EQE_COMM_EST, 5));
	mask.types = 1u << EQE_COMM_EST;
	assert_int_equal(cq_exec(CEU_MAP_EQ, 1 | unmap, &mask, sizeof(mask)), CEU_OK);
	assert_false(eq_post(&f.completion, &f.counters, 1, EQE_COMM_EST, 5));
	assert_true(eq_post(&f.completion, &f.counters, 1, EQE_LAST_WQE, 5));
	for (unsigned int type = 0; type < 64; type++) {
		bool known = type < 32 && CEU_EVENTS_ALL >> type & 1;

		mask.types = 1ull << type;
		assert_int_equal(cq_exec(CEU_MAP_EQ, 1, &mask, sizeof(mask)),
				 known ? CEU_OK : CEU_BAD_PARAM);
	}
	assert_int_equal(cq_exec(CEU_MAP_EQ, 2, &mask, sizeof(mask)), CEU_BAD_PARAM);
	assert_int_equal(cq_exec(CEU_MAP_EQ, CLIENTS_MAX, &mask, sizeof(mask)), CEU_BAD_PARAM);
	f.quiesced = 0;
	assert_int_equal(cq_exec(CEU_HW2SW_EQ, 1, NULL, 0), CEU_OK);
	assert_int_equal(f.quiesced, 1);
	assert_int_equal(cq_exec(CEU_HW2SW_EQ, 1, NULL, 0), CEU_BAD_PARAM);
	assert_int_equal(cq_exec(CEU_HW2SW_EQ, CLIENTS_MAX, NULL, 0), CEU_BAD_PARAM);
	free(page);
}
