/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests made by calls, wr_start() to wr_complete(), and completions read field by field. */
#include <arpa/inet.h>
#include "pair.h"

enum { FAR = 0x10000 };

static void flags(struct pair *p, uint64_t wr_id, unsigned int wr_flags)
{
	p->ex->wr_id = wr_id;
	p->ex->wr_flags = wr_flags;
}

TEST_PAIR(rc__every_operation, IBV_QPT_RC)
{
	struct ibv_wc wc[4];
	uint32_t key;
	uint64_t *far = (uint64_t *)(p->memory + FAR);

	for (int i = 0; i < 8; i++)
		memset(p->memory + 8 * i, 'a' + i, 8);
	far[2] = 0x7070707070707070;
	far[3] = 5;
	far[4] = 6;
	receive(p, 0x20000, 0, 100);
	receive(p, 0x20000, 64, 101);
	receive(p, 0x20040, 64, 102);
	key = p->mr->lkey;
	ibv_wr_start(p->ex);
	flags(p, 1, 0);
	ibv_wr_rdma_write(p->ex, p->mr->rkey, (uintptr_t)&far[0]);
	ibv_wr_set_sge(p->ex, key, (uintptr_t)p->memory, 8);
	ibv_wr_rdma_write_imm(p->ex, p->mr->rkey, (uintptr_t)&far[1], htonl(0x11111));
	ibv_wr_set_sge(p->ex, key, (uintptr_t)p->memory + 8, 8);
	ibv_wr_rdma_read(p->ex, p->mr->rkey, (uintptr_t)&far[2]);
	ibv_wr_set_sge(p->ex, key, (uintptr_t)p->memory + 16, 8);
	ibv_wr_atomic_cmp_swp(p->ex, p->mr->rkey, (uintptr_t)&far[3], 5, 55);
	ibv_wr_set_sge(p->ex, key, (uintptr_t)p->memory + 24, 8);
	ibv_wr_atomic_fetch_add(p->ex, p->mr->rkey, (uintptr_t)&far[4], 60);
	ibv_wr_set_sge(p->ex, key, (uintptr_t)p->memory + 32, 8);
	ibv_wr_atomic_write(p->ex, p->mr->rkey, (uintptr_t)&far[5], "ATOMIC W");
	ibv_wr_flush(p->ex, p->mr->rkey, (uintptr_t)&far[0], 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	ibv_wr_rdma_write(p->ex, p->mr->rkey, (uintptr_t)&far[9]); /* of nothing */
	ibv_wr_send(p->ex);
	ibv_wr_set_sge(p->ex, key, (uintptr_t)p->memory + 40, 8);
	flags(p, 2, IBV_SEND_SIGNALED);
	ibv_wr_send_imm(p->ex, htonl(0x22222));
	assert_int_equal(ibv_wr_complete(p->ex), 0);
	wait_for(p, 4, wc);
	assert_memory_equal(&far[0], "aaaaaaaa", 8);
	assert_memory_equal(&far[1], "bbbbbbbb", 8);
	assert_memory_equal(p->memory + 16, "pppppppp", 8);
	assert_int_equal(far[3], 55);
	assert_int_equal(*(uint64_t *)(p->memory + 24), 5);
	assert_int_equal(far[4], 66);
	assert_memory_equal(&far[5], "ATOMIC W", 8);
	assert_int_equal(*(uint64_t *)(p->memory + 32), 6);
	assert_memory_equal(p->memory + 0x20000, "ffffffff", 8);
	for (int i = 0; i < 4; i++) {
		assert_true(wc[i].wr_id == 2 || wc[i].wr_id >= 100);
		if (wc[i].wr_id == 100)
			assert_int_equal(wc[i].imm_data, htonl(0x11111));
		if (wc[i].wr_id == 102)
			assert_int_equal(wc[i].imm_data, htonl(0x22222));
	}
}

static void write_once(struct pair *p)
{
	struct ibv_wc wc;

	ibv_wr_start(p->ex);
	flags(p, 1, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write(p->ex, p->mr->rkey, (uintptr_t)p->memory + FAR);
	ibv_wr_set_sge(p->ex, p->mr->lkey, (uintptr_t)p->memory, 8);
	assert_int_equal(ibv_wr_complete(p->ex), 0);
	wait_for(p, 1, &wc);
}

static struct ibv_qp_attr attributes_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	assert_int_equal(ibv_query_qp(qp, &a, IBV_QP_PATH_MIG_STATE, &init), 0);
	return a;
}

/* Both ends have another flow label to go to; the first goes there, the second follows. */
TEST_PAIR(rc__migrates, IBV_QPT_RC)
{
	struct ibv_qp_attr a = {.alt_ah_attr = {.is_global = 1,
						.port_num = 1,
						.grh = {.flow_label = 0x54321, .hop_limit = 9}},
				.alt_port_num = 1,
				.alt_timeout = 15,
				.path_mig_state = IBV_MIG_REARM};
	const int both = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
	struct ibv_async_event event;
	struct ibv_device_attr device;
	bool seen[2] = {false, false};

	assert_int_equal(ibv_query_device(p->ctx, &device), 0);
	assert_true(device.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG);
	a.alt_ah_attr.grh.dgid = attributes_of(p->qp[0]).ah_attr.grh.dgid;
	assert_int_equal(ibv_modify_qp(p->qp[0], &a, IBV_QP_PATH_MIG_STATE), EINVAL);
	a.alt_ah_attr.is_global = 0;
	assert_int_equal(ibv_modify_qp(p->qp[0], &a, both), EINVAL);
	a.alt_ah_attr.is_global = 1;
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_modify_qp(p->qp[i], &a, both), 0);
	write_once(p);
	for (int i = 0; i < 2; i++)
		assert_int_equal(attributes_of(p->qp[i]).path_mig_state, IBV_MIG_ARMED);
	assert_int_equal(attributes_of(p->qp[0]).ah_attr.grh.flow_label, 0);
	assert_int_equal(attributes_of(p->qp[0]).alt_ah_attr.grh.flow_label, 0x54321);
	a.path_mig_state = IBV_MIG_MIGRATED;
	assert_int_equal(ibv_modify_qp(p->qp[0], &a, IBV_QP_PATH_MIG_STATE), 0);
	write_once(p);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ibv_get_async_event(p->ctx, &event), 0);
		assert_int_equal(event.event_type, IBV_EVENT_PATH_MIG);
		seen[event.element.qp == p->qp[1]] = true;
		ibv_ack_async_event(&event);
		assert_int_equal(attributes_of(p->qp[i]).path_mig_state, IBV_MIG_MIGRATED);
		assert_int_equal(attributes_of(p->qp[i]).ah_attr.grh.flow_label, 0x54321);
		assert_int_equal(attributes_of(p->qp[i]).timeout, 15);
	}
	assert_true(seen[0] && seen[1]);
}

/* All forms of data, on a connection, where they are written at once, and on UD, where they wait
 * for the address: before it and behind it. */
TEST(data__all_forms)
{
	for (int kind = 0; kind < 3; kind++) {
		bool ud = kind > 0, address_first = kind == 1;
		struct pair p;
		struct ibv_wc wc[8];
		char text[4][16] = {"one", "two", "three", "four"};

		pair_open(&p, ud ? IBV_QPT_UD : IBV_QPT_RC);
		strcpy((char *)p.memory, "registered");
		for (unsigned int i = 0; i < 4; i++)
			receive(&p, FAR + 128 * i, 128, 100 + i);
		ibv_wr_start(p.ex);
		for (uint64_t i = 0; i < 4; i++) {
			struct ibv_data_buf buf[3] = {{text[0], 3}, {text[1], 0}, {text[2], 6}};
			struct ibv_sge sge[2] = {sge_of(&p, 0, 5), sge_of(&p, 5, 6)};

			flags(&p, i, IBV_SEND_SIGNALED);
			ibv_wr_send(p.ex);
			if (address_first)
				ibv_wr_set_ud_addr(p.ex, p.ah, p.qp[1]->qp_num, PAIR_QKEY);
			if (i == 0)
				ibv_wr_set_sge(p.ex, p.mr->lkey, (uintptr_t)p.memory, 11);
			if (i == 1)
				ibv_wr_set_sge_list(p.ex, 2, sge);
			if (i == 2)
				ibv_wr_set_inline_data(p.ex, text[3], 5);
			if (i == 3)
				ibv_wr_set_inline_data_list(p.ex, 3, buf);
			memset(sge, 0xee, sizeof(sge)); /* were taken */
			if (i == 3)
				memset(text, 0, sizeof(text));
			if (i == 2)
				strcpy(text[3], "late");
			if (ud && !address_first)
				ibv_wr_set_ud_addr(p.ex, p.ah, p.qp[1]->qp_num, PAIR_QKEY);
		}
		assert_int_equal(ibv_wr_complete(p.ex), 0);
		wait_for(&p, 8, wc);
		uint8_t *got = p.memory + FAR + (ud ? 40 : 0);
		assert_string_equal((char *)got, "registered");
		assert_string_equal((char *)got + 128, "registered");
		assert_string_equal((char *)got + 256, "four");
		assert_string_equal((char *)got + 384, "onethree");
		pair_close(&p);
	}
}

TEST_PAIR(batch__abort_posts_nothing, IBV_QPT_RC)
{
	struct ibv_wc wc;

	p->memory[0] = 0x55;
	for (int i = 0; i < 100; i++) {
		ibv_wr_start(p->ex);
		flags(p, 1, IBV_SEND_SIGNALED);
		ibv_wr_rdma_write(p->ex, p->mr->rkey, (uintptr_t)p->memory + FAR);
		ibv_wr_set_sge(p->ex, p->mr->lkey, (uintptr_t)p->memory, 1);
		ibv_wr_rdma_write(p->ex, p->mr->rkey, (uintptr_t)p->memory + FAR);
		ibv_wr_abort(p->ex);
	}
	ibv_wr_start(p->ex);
	flags(p, 2, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write(p->ex, p->mr->rkey, (uintptr_t)p->memory + FAR + 8);
	assert_int_equal(ibv_wr_complete(p->ex), 0);
	wait_for(p, 1, &wc);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(p->memory[FAR], 0);
	nothing_more(p);
}

/* Each kind of mistake, with a good request before and behind it. */
TEST_PAIR(batch__a_mistake_spoils_all, IBV_QPT_RC)
{
	struct ibv_sge sge[64];
	struct ibv_data_buf buf[2];

	p->memory[0] = 0x55;
	for (int i = 0; i < 64; i++)
		sge[i] = sge_of(p, 0, 1);
	buf[0].addr = buf[1].addr = p->memory;
	buf[0].length = buf[1].length = p->cap.max_inline_data / 2 + 1;
	for (int mistake = 0; mistake < 4; mistake++) {
		ibv_wr_start(p->ex);
		for (int i = 0; i < 3; i++) {
			flags(p, 1, IBV_SEND_SIGNALED);
			ibv_wr_rdma_write(p->ex, p->mr->rkey, (uintptr_t)p->memory + FAR);
			if (i != 1)
				ibv_wr_set_sge(p->ex, p->mr->lkey, (uintptr_t)p->memory, 1);
			else if (mistake == 0)
				ibv_wr_set_sge_list(p->ex, p->cap.max_send_sge + 1, sge);
			else if (mistake == 1)
				ibv_wr_set_inline_data(p->ex, p->memory,
						       p->cap.max_inline_data + 1);
			else if (mistake == 2)
				ibv_wr_set_inline_data_list(p->ex, 2, buf);
			else
				ibv_wr_set_inline_data(p->ex, p->memory, SIZE_MAX);
		}
		assert_int_equal(ibv_wr_complete(p->ex), EINVAL);
	}
	ibv_wr_start(p->ex);
	for (uint32_t i = 0; i <= p->cap.max_send_wr; i++)
		ibv_wr_rdma_write(p->ex, p->mr->rkey, (uintptr_t)p->memory + FAR);
	assert_int_equal(ibv_wr_complete(p->ex), ENOMEM);
	nothing_more(p);
	assert_int_equal(p->memory[FAR], 0);
}

TEST_PAIR(ud__needs_an_address, IBV_QPT_UD)
{
	ibv_wr_start(p->ex);
	ibv_wr_send(p->ex);
	ibv_wr_set_ud_addr(p->ex, p->ah, p->qp[1]->qp_num, PAIR_QKEY);
	ibv_wr_send(p->ex); /* not the one before's */
	assert_int_equal(ibv_wr_complete(p->ex), EINVAL);
}

TEST_PAIR(rc__windows, IBV_QPT_RC)
{
	struct ibv_wc wc[2];
	struct ibv_mw_bind_info info;
	struct ibv_mw *mw = ibv_alloc_mw(p->pd, IBV_MW_TYPE_2);

	assert_non_null(mw);
	info = (struct ibv_mw_bind_info){.mr = p->mr,
					 .addr = (uintptr_t)p->memory + FAR,
					 .length = 64,
					 .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	ibv_wr_start(p->ex);
	flags(p, 1, IBV_SEND_SIGNALED);
	ibv_wr_bind_mw(p->ex, mw, ibv_inc_rkey(mw->rkey) & 0xff, &info);
	memset(&info, 0xee, sizeof(info));
	flags(p, 2, IBV_SEND_SIGNALED);
	ibv_wr_local_inv(p->ex, ibv_inc_rkey(mw->rkey));
	assert_int_equal(ibv_wr_complete(p->ex), 0);
	wait_for(p, 2, wc);
	assert_int_equal(wc[0].opcode, IBV_WC_BIND_MW);
	assert_int_equal(wc[1].opcode, IBV_WC_LOCAL_INV);
	receive(p, 0x20000, 64, 100);
	ibv_wr_start(p->ex);
	flags(p, 3, IBV_SEND_SIGNALED);
	ibv_wr_bind_mw(
		p->ex, mw, mw->rkey,
		&(struct ibv_mw_bind_info){.mr = p->mr, .addr = (uintptr_t)p->memory, .length = 8});
	assert_int_equal(ibv_wr_complete(p->ex), 0);
	wait_for(p, 1, wc);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

/* ---- completions ---- */

static int start_poll(struct pair *p)
{
	double end = seconds() + 10;
	int rc;

	do {
		rc = ibv_start_poll(p->cq, NULL);
	} while (rc == ENOENT && seconds() < end);
	return rc;
}

TEST_PAIR(completions__field_by_field, IBV_QPT_UD)
{
	int receives = 0, sends = 0;

	for (unsigned int i = 0; i < 5; i++)
		receive(p, FAR + 128 * i, 128, 100 + i);
	ibv_wr_start(p->ex);
	for (uint32_t i = 0; i < 5; i++) {
		flags(p, i, IBV_SEND_SIGNALED);
		ibv_wr_send_imm(p->ex, htonl(0x1000 + i));
		ibv_wr_set_ud_addr(p->ex, p->ah, p->qp[1]->qp_num, PAIR_QKEY);
		ibv_wr_set_sge(p->ex, p->mr->lkey, (uintptr_t)p->memory, 10 + i);
	}
	assert_int_equal(ibv_wr_complete(p->ex), 0);
	while (sends + receives < 10) {
		assert_int_equal(start_poll(p), 0);
		do {
			assert_int_equal(p->cq->status, IBV_WC_SUCCESS);
			if (ibv_wc_read_opcode(p->cq) == IBV_WC_SEND) {
				assert_int_equal(p->cq->wr_id, sends++);
				assert_int_equal(ibv_wc_read_qp_num(p->cq), p->qp[0]->qp_num);
				continue;
			}
			assert_int_equal(ibv_wc_read_opcode(p->cq), IBV_WC_RECV);
			assert_int_equal(p->cq->wr_id, 100 + receives);
			assert_int_equal(ibv_wc_read_byte_len(p->cq), 50 + receives);
			assert_int_equal(ibv_wc_read_imm_data(p->cq), htonl(0x1000u + receives));
			assert_int_equal(ibv_wc_read_qp_num(p->cq), p->qp[1]->qp_num);
			assert_int_equal(ibv_wc_read_src_qp(p->cq), p->qp[0]->qp_num);
			assert_int_equal(ibv_wc_read_wc_flags(p->cq), IBV_WC_GRH | IBV_WC_WITH_IMM);
			assert_int_equal(ibv_wc_read_vendor_err(p->cq), 0);
			assert_int_equal(ibv_wc_read_slid(p->cq), 0);
			assert_int_equal(ibv_wc_read_sl(p->cq),
					 10); /* IPv4, as RoCE hardware says it */
			assert_int_equal(ibv_wc_read_dlid_path_bits(p->cq), 0);
			receives++;
		} while (ibv_next_poll(p->cq) == 0);
		ibv_end_poll(p->cq);
	}
	assert_int_equal(sends, 5);
	assert_int_equal(ibv_start_poll(p->cq, NULL), ENOENT);
}

/* Between start_poll() and end_poll() a program may do anything else with the queue. */
TEST_PAIR(completions__and_other_calls_meanwhile, IBV_QPT_RC)
{
	struct ibv_cq *cq = ibv_cq_ex_to_cq(p->cq);
	struct ibv_qp_init_attr other = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};

	for (uint64_t round = 0; round < 3; round++) {
		ibv_wr_start(p->ex);
		for (uint64_t i = 0; i < 40; i++) {
			flags(p, i, IBV_SEND_SIGNALED);
			ibv_wr_rdma_write(p->ex, p->mr->rkey, (uintptr_t)p->memory + FAR);
		}
		assert_int_equal(ibv_wr_complete(p->ex), 0);
		assert_int_equal(start_poll(p), 0);
		for (uint64_t i = 0; i < 40; i++) {
			assert_int_equal(p->cq->wr_id, i);
			if (i % 10 == 5)
				assert_int_equal(ibv_destroy_qp(ibv_create_qp(p->pd, &other)), 0);
			if (i % 10 == 7)
				assert_int_equal(ibv_resize_cq(cq, i & 16 ? 100 : 300), 0);
			assert_int_equal(ibv_wc_read_opcode(p->cq), IBV_WC_RDMA_WRITE);
			assert_int_equal(ibv_wc_read_qp_num(p->cq), p->qp[0]->qp_num);
			while (i < 39 && ibv_next_poll(p->cq))
				sched_yield();
		}
		assert_int_equal(ibv_next_poll(p->cq), ENOENT);
		ibv_end_poll(p->cq);
	}
}

static void *poll_after(void *pair)
{
	struct pair *p = pair;
	enum ibv_wc_opcode opcode = start_poll(p) ? IBV_WC_BIND_MW : ibv_wc_read_opcode(p->cq);

	ibv_end_poll(p->cq);
	return (void *)(uintptr_t)opcode;
}

/* Each thread reads the fields of what it has found itself. */
TEST_PAIR(completions__of_two_threads, IBV_QPT_RC)
{
	pthread_t thread;
	void *opcode;

	ibv_wr_start(p->ex);
	flags(p, 1, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write(p->ex, p->mr->rkey, (uintptr_t)p->memory + FAR);
	ibv_wr_rdma_read(p->ex, p->mr->rkey, (uintptr_t)p->memory + FAR);
	assert_int_equal(ibv_wr_complete(p->ex), 0);
	assert_int_equal(start_poll(p), 0);
	assert_int_equal(pthread_create(&thread, NULL, poll_after, p), 0);
	usleep(20000); /* it waits for us */
	assert_int_equal(ibv_wc_read_opcode(p->cq), IBV_WC_RDMA_WRITE);
	ibv_end_poll(p->cq);
	pthread_join(thread, &opcode);
	assert_int_equal((uintptr_t)opcode, IBV_WC_RDMA_READ);
}

TEST_PAIR(completions__errors, IBV_QPT_RC)
{
	ibv_wr_start(p->ex);
	flags(p, 7, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write(p->ex, p->mr->rkey ^ 0x100, (uintptr_t)p->memory);
	ibv_wr_set_sge(p->ex, p->mr->lkey, (uintptr_t)p->memory, 8);
	flags(p, 8, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write(p->ex, p->mr->rkey, (uintptr_t)p->memory);
	assert_int_equal(ibv_wr_complete(p->ex), 0);
	for (uint64_t id = 7; id < 9; id++) {
		assert_int_equal(start_poll(p), 0);
		assert_int_equal(p->cq->wr_id, id);
		assert_int_equal(p->cq->status,
				 id == 7 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(ibv_wc_read_qp_num(p->cq), p->qp[0]->qp_num);
		ibv_end_poll(p->cq);
	}
}

/* Of what libibverbs 45 has. */
TEST_PAIR(rc__flush, IBV_QPT_RC)
{
	static const struct {
		size_t bytes;
		uint8_t type, level;
		int refused, status;
	} rows[] = {
		{64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, 0, IBV_WC_SUCCESS},
		{1234567890, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR, 0, IBV_WC_SUCCESS},
		{1ull << 32, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, EINVAL, 0},
		{64, 16, IBV_FLUSH_RANGE, EINVAL, 0},
		{64, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE, 0, IBV_WC_REM_ACCESS_ERR},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ibv_wr_start(p->ex);
		flags(p, i, IBV_SEND_SIGNALED);
		ibv_wr_flush(p->ex, p->mr->rkey, (uintptr_t)p->memory, rows[i].bytes, rows[i].type,
			     rows[i].level);
		assert_int_equal(ibv_wr_complete(p->ex), rows[i].refused);
		if (rows[i].refused)
			continue;
		assert_int_equal(start_poll(p), 0);
		assert_int_equal(p->cq->wr_id, i);
		assert_int_equal(p->cq->status, rows[i].status);
		if (p->cq->status == IBV_WC_SUCCESS)
			assert_int_equal(ibv_wc_read_opcode(p->cq), IBV_WC_FLUSH);
		ibv_end_poll(p->cq);
	}
}
