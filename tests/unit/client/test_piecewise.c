/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests posted in pieces, which are to leave the same in the queue as whole ones; completions
 * polled in pieces. */
#include "rings.h"

/* ---- posts ---- */

enum form {
	FORM_NOTHING,
	FORM_ENTRY,
	FORM_ENTRIES, /* one of them empty */
	FORM_TOO_MANY,
	FORM_INLINE,
	FORM_INLINE_LIST,
	FORM_INLINE_EMPTY,
	FORM_INLINE_LONG,
	FORMS
};

static const uint8_t bytes[101] = {1, 2, 3, 4, 5, 6, 7, [99] = 99};
static struct softhca_ah ah = {.ud = {.hop_limit = 9, .dmac = {1, 2, 3, 4, 5, 6}}};

static bool has_operands(uint32_t opcode)
{
	return opcode == SOFTHCA_WR_ATOMIC_CMP_AND_SWP ||
	       opcode == SOFTHCA_WR_ATOMIC_FETCH_AND_ADD || opcode == SOFTHCA_WR_FLUSH;
}

static int whole(uint32_t opcode, uint32_t flags, enum form form)
{
	static const int counts[FORMS] = {0, 1, 4, 5, 1, 2, 1, 1};
	struct softhca_sge parts[] = {{(uintptr_t)bytes, 3, 0}, {(uintptr_t)bytes + 3, 97, 0}};
	struct softhca_send_wr wr = {.wr_id = 77,
				     .sg_list = form >= FORM_INLINE ? parts : sges,
				     .num_sge = counts[form],
				     .opcode = opcode,
				     .send_flags = flags |
						   (form >= FORM_INLINE ? SOFTHCA_SEND_INLINE : 0),
				     .imm_data = 0x55667788};

	if (form == FORM_INLINE_EMPTY || form == FORM_INLINE_LONG)
		parts[0].length = form == FORM_INLINE_EMPTY ? 0 : sizeof(bytes);
	wr.wr.rdma.remote_addr = 0x1122334455667788;
	wr.wr.rdma.rkey = 0xabcd;
	if (has_operands(opcode)) {
		wr.wr.atomic.compare_add = 0x20;
		wr.wr.atomic.swap = 0x30;
		wr.wr.atomic.rkey = 0xabcd;
	}
	if (qp->type == SOFTHCA_QP_UD) {
		wr.wr.ud.ah = &ah;
		wr.wr.ud.remote_qpn = 0x456;
		wr.wr.ud.remote_qkey = 0x80000001;
	}
	return softhca_post_add(qp, &wr);
}

static void put_data(enum form form)
{
	const struct softhca_buffer parts[] = {{bytes, 3}, {bytes + 3, 97}};

	if (form == FORM_ENTRY)
		softhca_post_sge(qp, sges[0].lkey, sges[0].addr, sges[0].length);
	else if (form == FORM_ENTRIES || form == FORM_TOO_MANY)
		softhca_post_sge_list(qp, form == FORM_ENTRIES ? 4 : 5, sges);
	else if (form == FORM_INLINE_LIST)
		softhca_post_inline_list(qp, 2, parts);
	else if (form >= FORM_INLINE)
		softhca_post_inline(qp, bytes,
				    form == FORM_INLINE		? 3
				    : form == FORM_INLINE_EMPTY ? 0
								: sizeof(bytes));
}

static int in_pieces(uint32_t opcode, uint32_t flags, enum form form)
{
	bool late = form & 1;

	softhca_post_begin(qp, opcode, 77, flags, 0x1122334455667788, 0xabcd);
	if (late)
		put_data(form);
	if (qp->type == SOFTHCA_QP_UD)
		softhca_post_address(qp, &ah, 0x456, 0x80000001);
	softhca_post_imm(qp, 0x55667788);
	if (has_operands(opcode))
		softhca_post_operands(qp, 0x20, 0x30);
	if (!late)
		put_data(form);
	return 0;
}

/* Between two others, so that it is seen how they are linked. Returns as softhca_post_end(). */
static int post_three(int (*post)(uint32_t, uint32_t, enum form), uint32_t opcode, uint32_t flags,
		      enum form form)
{
	memset(qp->sq.buffer, 0xee, ENTRIES * STRIDE);
	memset(qp->sq.wr_id, 0, ENTRIES * sizeof(qp->sq.wr_id[0]));
	qp->sq.head = qp->sq.tail = 0;
	softhca_post_start(qp);
	whole(SOFTHCA_WR_SEND, SOFTHCA_SEND_SIGNALED, FORM_INLINE_LIST);
	post(opcode, flags, form);
	post(SOFTHCA_WR_SEND, 0, FORM_ENTRY);
	return softhca_post_end(qp);
}

TEST_WITH(pieces__leave_what_whole_requests_do, setup, teardown)
{
	static const uint32_t whole_only = 1 << SOFTHCA_WR_BIND_MW | 1 << SOFTHCA_WR_REG_MR;
	static uint8_t expected[ENTRIES * STRIDE];
	int posted = 0;

	qp->qkey = 0x1234;
	for (uint32_t i = 0; i < 3 * 40 * FORMS; i++) {
		uint32_t opcode = i / FORMS % 40, flags = i % 7 & ~SOFTHCA_SEND_INLINE;
		enum form form = (enum form)(i % FORMS);
		uint64_t doorbell = 0;
		int rc;

		if (opcode < 32 && whole_only >> opcode & 1)
			continue;
		if (opcode == SOFTHCA_WR_LOCAL_INV && form != FORM_NOTHING)
			continue; /* data are ignored, a mistake in pieces */
		qp->type = (uint8_t)(i / FORMS / 40);
		rc = post_three(whole, opcode, flags, form);
		memcpy(expected, qp->sq.buffer, sizeof(expected));
		if (!rc)
			doorbell = take_doorbell();
		assert_int_equal(post_three(in_pieces, opcode, flags, form), rc);
		if (rc)
			continue;
		assert_true(take_doorbell() == doorbell);
		assert_memory_equal(qp->sq.buffer, expected, sizeof(expected));
		assert_int_equal(qp->sq.wr_id[1], 77);
		posted++;
	}
	assert_false(doorbell_waits());
	assert_true(posted > 80);
}

/* The first of a batch: its size is in the doorbell. A batch of one, and one empty entry. */
TEST_WITH(pieces__of_the_only_request, setup, teardown)
{
	for (int i = 0; i < 3; i++) {
		softhca_post_start(qp);
		softhca_post_begin(qp, SOFTHCA_WR_RDMA_WRITE, 1, SOFTHCA_SEND_FENCE, 2, 3);
		if (i)
			softhca_post_sge(qp, 1, 0x1000, i == 1 ? 10 : 0);
		assert_int_equal(softhca_post_end(qp), 0);
		assert_int_equal(take_doorbell() >> 32, NUMBER << 8 | (i == 1 ? 3 : 2));
	}
}

static void good(void)
{
	softhca_post_begin(qp, SOFTHCA_WR_SEND, 0, 0, 0, 0);
	if (qp->type == SOFTHCA_QP_UD)
		softhca_post_address(qp, &ah, 1, 2);
}

static void mistake(int which)
{
	if (which > 2)
		good();
	switch (which) {
	case 0:
		softhca_post_imm(qp, 1);
		break;
	case 1:
		softhca_post_sge(qp, 1, 2, 3);
		break;
	case 2:
		softhca_post_inline(qp, bytes, 1);
		break;
	case 3:
		softhca_post_sge(qp, 1, 2, 3);
		softhca_post_sge(qp, 1, 2, 3);
		break;
	case 4:
		softhca_post_inline(qp, bytes, 0);
		softhca_post_inline_list(qp, 0, NULL);
		break;
	case 5:
		softhca_post_operands(qp, 1, 2);
		break;
	case 6:
		softhca_post_begin(qp, SOFTHCA_WR_BIND_MW, 0, 0, 0, 0);
		break;
	case 7: /* what a whole request was begins no pieces */
		whole(SOFTHCA_WR_SEND, 0, FORM_NOTHING);
		softhca_post_sge(qp, 1, 2, 3);
		break;
	case 8: /* of no entries */
		qp->sq.max_sge = 0;
		softhca_post_sge(qp, 1, 2, 3);
		qp->sq.max_sge = 4;
		break;
	case 9: /* whatever of it RC and UD have */
		softhca_post_begin(qp, SOFTHCA_WR_LOCAL_INV, 0, 0, 0, 0);
		softhca_post_sge(qp, 1, 2, 3);
		break;
	case 10: /* there is no room for both */
		softhca_post_begin(qp, SOFTHCA_WR_FLUSH, 0, 0, 0, 0);
		softhca_post_inline(qp, bytes, 1);
		break;
	default: /* the wrong kind of address */
		if (qp->type == SOFTHCA_QP_UD)
			softhca_post_address(qp, NULL, 1, 2);
		else
			softhca_post_address(qp, &ah, 1, 2);
	}
}

/* At the beginning of a batch and behind others; whatever comes behind, and whatever the batch before
 * ended with. */
TEST_WITH(pieces__a_mistake_fails_the_batch, setup, teardown)
{
	for (int i = 0; i < 4 * 12; i++) {
		qp->type = i & 1 ? SOFTHCA_QP_UD : SOFTHCA_QP_RC;
		softhca_post_start(qp);
		good();
		softhca_post_abort(qp);
		softhca_post_start(qp);
		if (i & 2 && i / 4 > 2)
			good();
		mistake(i / 4);
		good();
		put_data(FORM_ENTRY);
		assert_int_equal(softhca_post_end(qp), -EINVAL);
	}
	/* without address: the last one, one before others, one behind which is a whole one */
	for (int i = 0; i < 3; i++) {
		softhca_post_start(qp);
		softhca_post_begin(qp, SOFTHCA_WR_SEND, 0, 0, 0, 0);
		softhca_post_sge(qp, 1, 2, 3);
		if (i == 1)
			good();
		if (i == 2)
			assert_int_equal(whole(SOFTHCA_WR_SEND, 0, FORM_NOTHING), -EINVAL);
		assert_int_equal(softhca_post_end(qp), -EINVAL);
	}
	softhca_post_start(qp);
	for (int i = 0; i <= ENTRIES; i++)
		good();
	mistake(5);
	assert_int_equal(softhca_post_end(qp), -ENOMEM);
	qp->state = SOFTHCA_QPS_RTR;
	softhca_post_start(qp);
	good();
	assert_int_equal(softhca_post_end(qp), -EINVAL);
	assert_int_equal(qp->sq.head, 0);
	assert_false(doorbell_waits());
}

/* ---- polls ---- */

static uint64_t wr_id;
static uint32_t status;

static void complete_sends(uint32_t from, uint32_t n)
{
	for (uint32_t i = from; i < from + n; i++) {
		qp->sq.wr_id[i % ENTRIES] = i;
		complete(USER_SEND, true, i % ENTRIES);
	}
}

static void finds(int (*poll)(struct softhca_cq *, uint64_t *, uint32_t *), uint64_t id)
{
	assert_int_equal(poll(cq, &wr_id, &status), 0);
	assert_int_equal(wr_id, id);
	assert_int_equal(status, SOFTHCA_WC_SUCCESS);
}

/* More than a poll takes at a time, around the ring; between, an empty CQ. */
TEST_WITH(poll__in_pieces, setup, teardown)
{
	struct softhca_wc wc;
	uint32_t id = 0;

	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 3; i++)
			assert_int_equal(softhca_start_poll(cq, &wr_id, &status), -ENOENT);
		complete_sends(id, ENTRIES);
		finds(softhca_start_poll, id++);
		while (id % ENTRIES)
			finds(softhca_next_poll, id++);
		for (int i = 0; i < 3; i++)
			assert_int_equal(softhca_next_poll(cq, &wr_id, &status), -ENOENT);
		softhca_polled_wc(cq, &wc); /* still the last */
		assert_int_equal(wc.wr_id, id - 1);
		complete_sends(id, ENTRIES);
		for (int i = 0; i < ENTRIES; i++)
			finds(softhca_next_poll, id++);
		softhca_polled_wc(cq, &wc);
		assert_int_equal(wc.wr_id, id - 1);
		assert_int_equal(wc.qp_num, NUMBER);
		assert_int_equal(wc.opcode, SOFTHCA_WC_SEND);
		softhca_end_poll(cq);
		assert_int_equal(cq->record->consumer_index, id);
	}
}

/* What a poll has taken and left comes first. */
TEST_WITH(poll__in_pieces_leaves_some, setup, teardown)
{
	struct softhca_wc wc[4];

	complete_sends(0, 6);
	finds(softhca_start_poll, 0);
	finds(softhca_next_poll, 1);
	assert_int_equal(softhca_poll_cq(cq, 4, wc), 0);
	softhca_end_poll(cq);
	assert_int_equal(softhca_poll_cq(cq, 2, wc), 2);
	assert_int_equal(wc[0].wr_id, 2);
	assert_int_equal(wc[1].wr_id, 3);
	complete_sends(6, 2);
	finds(softhca_start_poll, 4);
	softhca_end_poll(cq);
	assert_int_equal(softhca_poll_cq(cq, 4, wc), 1);
	assert_int_equal(wc[0].wr_id, 5);
	assert_int_equal(wc[0].qp_num, NUMBER);
	assert_int_equal(softhca_poll_cq(cq, 4, wc), 2);
	assert_int_equal(wc[1].wr_id, 7);
	assert_int_equal(softhca_poll_cq(cq, 4, wc), 0);
	/* with none left, both kinds see what comes */
	complete_sends(8, 1);
	finds(softhca_start_poll, 8);
	complete_sends(9, 1);
	assert_int_equal(softhca_poll_cq(cq, 4, wc), 1);
	assert_int_equal(wc[0].wr_id, 9);
	assert_int_equal(softhca_next_poll(cq, &wr_id, &status), -ENOENT);
	softhca_end_poll(cq);
}

static void *start_beside(void *arg)
{
	uint64_t id = 0;
	uint32_t of = 0;

	assert_int_equal(softhca_start_poll(cq, &id, &of), 0);
	__atomic_store_n((uint64_t *)arg, id, __ATOMIC_RELEASE);
	softhca_end_poll(cq);
	return NULL;
}

TEST_WITH(poll__in_pieces_waits_for_another, setup, teardown)
{
	uint64_t found = 0;
	pthread_t thread;

	complete_sends(0, 3);
	finds(softhca_start_poll, 0);
	assert_int_equal(pthread_create(&thread, NULL, start_beside, &found), 0);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	assert_int_equal(__atomic_load_n(&found, __ATOMIC_ACQUIRE), 0);
	finds(softhca_next_poll, 1);
	softhca_end_poll(cq);
	pthread_join(thread, NULL);
	assert_int_equal(found, 2);
}

TEST_WITH(poll__in_pieces_of_a_destroyed_qp, setup, teardown)
{
	struct softhca_wc wc;

	complete(USER_SEND, true, 0)->my_qpn = NUMBER ^ 0x100;
	complete_sends(0, 3);
	finds(softhca_start_poll, 0);
	complete_sends(3, 1);
	cq_forget(cq, qp);
	softhca_polled_wc(cq, &wc); /* it had been found before */
	assert_int_equal(wc.qp_num, NUMBER);
	assert_int_equal(softhca_next_poll(cq, &wr_id, &status), -ENOENT);
	complete_sends(4, 2);
	finds(softhca_next_poll, 4);
	softhca_end_poll(cq);
	cq_forget(cq, qp);
	assert_int_equal(softhca_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(softhca_start_poll(cq, &wr_id, &status), -ENOENT);
	assert_int_equal(cq->record->consumer_index, 7);
}

/* The QP fails when the program gets to the error, not when its entry is there. */
TEST_WITH(poll__in_pieces_of_an_error, setup, teardown)
{
	struct softhca_wc wc;

	complete_sends(0, 1);
	complete(USER_INVALID, true, 1)->imm_or_error = SYNDROME_REMOTE_ACCESS | 0x77 << 8;
	complete(USER_INVALID, false, 0)->imm_or_error = SYNDROME_WR_FLUSH;
	finds(softhca_start_poll, 0);
	assert_int_equal(softhca_qp_current_state(qp), SOFTHCA_QPS_RTS);
	assert_int_equal(softhca_next_poll(cq, &wr_id, &status), 0);
	assert_int_equal(status, SOFTHCA_WC_REM_ACCESS_ERR);
	assert_int_equal(softhca_qp_current_state(qp), SOFTHCA_QPS_ERR);
	softhca_polled_wc(cq, &wc);
	assert_int_equal(wc.vendor_err, 0x77);
	assert_int_equal(wc.opcode, SOFTHCA_WC_SEND);
	assert_int_equal(softhca_next_poll(cq, &wr_id, &status), 0);
	assert_int_equal(status, SOFTHCA_WC_WR_FLUSH_ERR);
	softhca_polled_wc(cq, &wc);
	assert_int_equal(wc.opcode, SOFTHCA_WC_RECV);
	softhca_end_poll(cq);
}

TEST_WITH(poll__in_pieces_of_a_dead_daemon, setup, teardown)
{
	struct softhca_recv_wr recv = {.wr_id = 100};
	struct softhca_wc wc;

	ctx->nodes[NODE_QP] = &qp->node;
	for (uint64_t i = 0; i < 3; i++) {
		struct softhca_send_wr send = {.wr_id = i};

		assert_int_equal(softhca_post_send(qp, &send, NULL), 0);
	}
	assert_int_equal(softhca_post_recv(qp, &recv, NULL), 0);
	assert_int_equal(softhca_poll_cq(cq, 1, &wc), 0);
	close(far_end);
	far_end = -1;
	ctx->dead = 1;
	for (uint64_t i = 0; i < 4; i++) {
		assert_int_equal(
			(i & 1 ? softhca_next_poll : softhca_start_poll)(cq, &wr_id, &status), 0);
		assert_int_equal(wr_id, i < 3 ? i : 100);
		assert_int_equal(status, SOFTHCA_WC_WR_FLUSH_ERR);
		softhca_polled_wc(cq, &wc);
		assert_int_equal(wc.opcode, i < 3 ? SOFTHCA_WC_SEND : SOFTHCA_WC_RECV);
		assert_int_equal(wc.qp_num, NUMBER);
		if (i & 1)
			softhca_end_poll(cq);
	}
	for (int i = 0; i < 2; i++) /* nor does the next wait for an end of this one */
		assert_int_equal(softhca_start_poll(cq, &wr_id, &status), -EIO);
	ctx->nodes[NODE_QP] = NULL;
}
