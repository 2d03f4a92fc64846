/* SPDX-License-Identifier: BSD-3-Clause */
/* The control protocol as it is meant: objects, what depends on what, numbers, limits, the end of a
 * client. */
#include <sys/ipc.h>
#include <sys/shm.h>
#include "../made_up_nodes.h"
#include "hca_test.h"
#include "raw_client.h"

CLIENT_TEST(objects__go_in_order_only)
{
	assert_int_equal(raw_number(r.fd, CONTROL_FREE_PD, r.pd), -EBUSY);
	assert_int_equal(raw_number(r.fd, CONTROL_FREE_PD, r.hello.queue_pd), -EBUSY);
	assert_int_equal(raw_number(r.fd, CONTROL_DROP_PIECE, r.piece), -EBUSY);
	assert_int_equal(raw_number(r.fd, CONTROL_DEREG_MR, r.lkey), -EBUSY);
	assert_int_equal(raw_number(r.fd, CONTROL_DESTROY_CQ, r.cqn), -EBUSY);
	assert_int_equal(raw_number(r.fd, CONTROL_DESTROY_QP, r.qpn), 0);
	assert_int_equal(raw_number(r.fd, CONTROL_DESTROY_QP, r.qpn), -ENOENT);
	assert_int_equal(raw_number(r.fd, CONTROL_DESTROY_CQ, r.cqn), 0);
	assert_int_equal(raw_number(r.fd, CONTROL_DEREG_MR, r.lkey), -EBUSY);
	assert_int_equal(raw_number(r.fd, CONTROL_FREE_PD, r.pd), -EBUSY);
	assert_int_equal(raw_number(r.fd, CONTROL_DESTROY_SRQ, r.srqn), 0);
	assert_int_equal(raw_number(r.fd, CONTROL_DEREG_MR, r.lkey), 0);
	assert_int_equal(raw_number(r.fd, CONTROL_DROP_PIECE, r.piece), 0);
	assert_int_equal(raw_number(r.fd, CONTROL_FREE_PD, r.pd), 0);
	assert_int_equal(raw_number(r.fd, CONTROL_FREE_PD, r.hello.queue_pd), -EBUSY);
	assert_int_equal(raw_number(r.fd, CONTROL_QUERY_GID, 2), -ENOENT);
}

static int list_device(int fd, uint32_t version, uint32_t index, struct control_device_reply *out)
{
	struct control_list_devices in = {.version = version, .index = index};

	return raw_ask(fd, CONTROL_LIST_DEVICES, &in, out);
}

TEST(devices__are_listed_before_and_after_hello)
{
	struct control_device_reply d = {0};
	int fd = raw_connect(f.path), page = raw_memfd(sizeof(struct client_page), RAW_SEALS);

	for (int round = 0; round < 2; round++) {
		assert_int_equal(list_device(fd, CONTROL_VERSION, 0, &d), 0);
		assert_string_equal(d.device, "hca0");
		assert_int_equal(d.guid, 0x1234);
		assert_int_equal(d.count, 1);
		assert_int_equal(d.port.state, 4);
		assert_int_equal(d.port.gid_count, 2);
		assert_int_equal(list_device(fd, CONTROL_VERSION, 1, &d), -ENODEV);
		assert_int_equal(list_device(fd, CONTROL_VERSION + 1, 0, &d), -EPROTO);
		if (!round)
			assert_int_equal(raw_hello_with(fd, page, NULL), 0);
	}
	close(page);
	close(fd);
	assert_true(fixture_wait_clients(&f, 0));
}

static int read_attribute(int fd, const char *device, const char *name,
			  struct control_attribute *out)
{
	struct control_read_attribute in = {0};

	memcpy(in.device, device, strnlen(device, sizeof(in.device)));
	memcpy(in.name, name, strnlen(name, sizeof(in.name)));
	return raw_ask(fd, CONTROL_READ_ATTRIBUTE, &in, out);
}

TEST(attributes__are_read_before_hello)
{
	struct control_attribute a = {0};
	int fd = raw_connect(f.path);
	char long_name[200];

	memset(long_name, 'x', sizeof(long_name));
	long_name[199] = 0;
	assert_int_equal(read_attribute(fd, "hca0", "answer", &a), 0);
	assert_int_equal(a.bytes, 3);
	assert_memory_equal(a.text, "42\n", 3);
	assert_int_equal(read_attribute(fd, "hca0", "question", &a), -ENOENT);
	assert_int_equal(read_attribute(fd, "hca1", "answer", &a), -ENODEV);
	assert_int_equal(read_attribute(fd, "", "answer", &a), -ENODEV);
	assert_int_equal(read_attribute(fd, long_name, "answer", &a), -EINVAL);
	assert_int_equal(read_attribute(fd, "hca0", long_name, &a), -EINVAL);
	close(fd);
}

static int get_setting(int fd, uint32_t version, uint32_t index)
{
	struct control_get_setting in = {.version = version, .index = index};
	struct control_setting out;

	return raw_ask(fd, CONTROL_GET_SETTING, &in, &out);
}

/* By the daemon's own user; tests/system/reload.sh tries others. */
TEST(settings__are_read_and_changed_before_hello)
{
	struct control_set in = {.version = CONTROL_VERSION, .assignment = "hca0.answer=42"};
	struct control_change_reply out = {0};
	int fd = raw_connect(f.path);
	char text[64];

	assert_int_equal(get_setting(fd, CONTROL_VERSION, 0), 0);
	assert_int_equal(get_setting(fd, CONTROL_VERSION, 1), -ENOENT);
	assert_int_equal(get_setting(fd, CONTROL_VERSION + 1, 0), -EPROTO);
	assert_int_equal(raw_ask(fd, CONTROL_SET, &in, &out), 0);
	assert_int_equal(out.error, 0);
	snprintf(text, sizeof(text), "hca0.answer=42 by %d", (int)getpid());
	assert_string_equal(out.text, text);
	in.assignment[strlen("hca0.answer=")] = '5';
	assert_int_equal(raw_ask(fd, CONTROL_SET, &in, &out), 0);
	assert_int_equal(out.error, -EBUSY);
	memset(in.assignment, 'x', sizeof(in.assignment));
	assert_int_equal(raw_ask(fd, CONTROL_SET, &in, &out), -EINVAL);
	close(fd);
}

static int look(int fd, const char *name, const char *parameters, char text[8])
{
	struct control_view in = {.version = CONTROL_VERSION};

	memcpy(in.name, name, strnlen(name, sizeof(in.name)));
	memcpy(in.parameters, parameters, strnlen(parameters, sizeof(in.parameters)));
	return raw_call(fd, CONTROL_VIEW, &in, sizeof(in), NULL, 0, text, 8);
}

TEST(views__are_shown_at_any_time)
{
	struct control_view other = {.version = CONTROL_VERSION + 1, .name = "answer"};
	int fd = raw_connect(f.path), page = raw_memfd(sizeof(struct client_page), RAW_SEALS);
	char long_name[200], text[8];

	memset(long_name, 'x', sizeof(long_name));
	long_name[199] = 0;
	for (int round = 0; round < 2; round++) {
		memset(text, 0, sizeof(text));
		assert_int_equal(look(fd, "answer", "a", text), 0);
		assert_memory_equal(text, "{\"a\":42}", 8);
		assert_int_equal(look(fd, "question", "", text), -ENOENT);
		assert_int_equal(look(fd, long_name, "", text), -EINVAL);
		assert_int_equal(look(fd, "answer", long_name, text), -EINVAL);
		assert_int_equal(
			raw_call(fd, CONTROL_VIEW, &other, sizeof(other), NULL, 0, text, 8),
			-EPROTO);
		if (!round)
			assert_int_equal(raw_hello_with(fd, page, NULL), 0);
	}
	close(page);
	close(fd);
}

/* The user, and whether he may change the daemon. */
TEST(views__know_who_asks)
{
	char own[16], text[8];
	int fd = raw_connect(f.path);

	snprintf(own, sizeof(own), "%-7u+", (unsigned int)geteuid());
	assert_int_equal(look(fd, "who", "", text), 0);
	assert_memory_equal(text, own, sizeof(text));
	close(fd);
	raw_be(1000);
	fd = raw_connect(f.path);
	raw_be(0);
	assert_int_equal(look(fd, "who", "", text), 0);
	assert_memory_equal(text, "1000   -", sizeof(text));
	close(fd);
}

TEST(objects__are_the_clients_own)
{
	struct raw a = raw_client(f.path), b = raw_client(f.path);
	struct control_qp in;

	assert_int_equal(raw_number(b.fd, CONTROL_DESTROY_QP, a.qpn), -ENOENT);
	assert_int_equal(raw_number(b.fd, CONTROL_DESTROY_CQ, a.cqn), -ENOENT);
	assert_int_equal(raw_number(b.fd, CONTROL_DEREG_MR, a.lkey), -ENOENT);
	assert_int_equal(raw_number(b.fd, CONTROL_FREE_PD, a.pd), -ENOENT);
	assert_int_equal(raw_number(b.fd, CONTROL_DROP_PIECE, a.piece), -ENOENT);
	assert_int_equal(raw_number(b.fd, CONTROL_QUERY_QP, a.qpn), -ENOENT);
	in = raw_qp_in(b.pd, a.cqn, b.lkey);
	assert_int_equal(raw_create_qp(b.fd, &in, NULL), -ENOENT);
	in = raw_qp_in(a.pd, b.cqn, b.lkey);
	assert_int_equal(raw_create_qp(b.fd, &in, NULL), -ENOENT);
	in = raw_qp_in(b.pd, b.cqn, a.lkey);
	assert_int_equal(raw_create_qp(b.fd, &in, NULL), -ENOENT);
	close(a.fd);
	close(b.fd);
}

CLIENT_TEST(numbers__change_on_reuse)
{
	uint32_t mask = f.hca->qps.mask, seen[8], n = 0;

	/* more than a whole round of the table: places are reused, numbers are not */
	for (uint32_t i = 0; i < 3 * (mask + 1) && n < 8; i++) {
		struct control_qp in = raw_qp_in(r.pd, r.cqn, r.lkey);
		uint32_t qpn;

		assert_int_equal(raw_create_qp(r.fd, &in, &qpn), 0);
		assert_true(qpn > mask && qpn >> 24 == 0);
		assert_int_not_equal(qpn & mask, CONTROL_GSI_QPN); /* kept */
		if ((qpn & mask) == (r.qpn & mask) + 2)
			seen[n++] = qpn;
		assert_int_equal(raw_number(r.fd, CONTROL_DESTROY_QP, qpn), 0);
	}
	assert_true(n >= 2);
	for (uint32_t i = 1; i < n; i++)
		assert_int_not_equal(seen[i], seen[i - 1]);
}

TEST(limits__of_one_client)
{
	struct raw a, b;
	uint32_t n = 0;
	int rc;

	a = raw_client(f.path);
	do {
		struct control_qp in = raw_qp_in(a.pd, a.cqn, a.lkey);

		rc = raw_create_qp(a.fd, &in, NULL);
		n += rc == 0;
	} while (rc == 0);
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(n + 1, 768);
	/* and there is something left for others */
	b = raw_client(f.path);
	close(a.fd);
	assert_true(fixture_wait_clients(&f, 1));
	a = raw_client(f.path);
	close(a.fd);
	close(b.fd);
}

/* Every -EINVAL of queue memory. */
TEST(memory__of_queues_is_checked)
{
	struct raw r = raw_client(f.path);
	struct control_cq cq;
	struct control_qp qp;
	struct control_srq srq;
	uint32_t other;

	other = raw_mr(r.fd, r.pd, r.piece, RAW_PIECE_BYTES, RAW_IOVA);
#define CQ(field, value, rc)                                                                       \
	do {                                                                                       \
		cq = raw_cq_in(r.lkey);                                                            \
		cq.field = value;                                                                  \
		assert_int_equal(raw_tell(r.fd, CONTROL_CREATE_CQ, &cq), rc);                      \
	} while (0)
#define QP(field, value, rc)                                                                       \
	do {                                                                                       \
		qp = raw_qp_in(r.pd, r.cqn, r.lkey);                                               \
		qp.field = value;                                                                  \
		assert_int_equal(raw_create_qp(r.fd, &qp, NULL), rc);                              \
	} while (0)
	CQ(lkey, other, -EINVAL); /* not in the queue PD */
	CQ(lkey, 0, -ENOENT);
	CQ(log_entries, 12, -EINVAL); /* longer than the MR */
	CQ(log_entries, 31, -EINVAL);
	CQ(log_entries, 32, -EINVAL);
	CQ(log_entries, UINT32_MAX, -EINVAL);
	CQ(buffer_va, RAW_IOVA - 64, -EINVAL);
	CQ(buffer_va, RAW_IOVA + 32, -EINVAL); /* not aligned */
	CQ(buffer_va, RAW_IOVA + RAW_PIECE_BYTES - 64, -EINVAL);
	CQ(buffer_va, RAW_IOVA + RAW_PIECE_BYTES - 512, 0); /* just fits */
	CQ(buffer_va, UINT64_MAX - 63, -EINVAL);
	CQ(record_va, 0, -EINVAL);
	CQ(record_va, RAW_IOVA + RAW_PIECE_BYTES, -EINVAL);
	CQ(record_va, RAW_IOVA + RAW_PIECE_BYTES - 64, -EINVAL); /* two cache lines */
	CQ(record_va, RAW_IOVA + RAW_PIECE_BYTES - 128, 0);
	QP(lkey, other, -EINVAL);
	QP(service, CONTROL_SERVICE_GSI + 1, -EINVAL);
	QP(sq_bytes, 0, -EINVAL);
	QP(sq_bytes, 63, -EINVAL);
	QP(sq_bytes, UINT32_MAX & ~63u, -EINVAL);
	QP(sq_bytes, RAW_PIECE_BYTES - RAW_SQ, 0);
	QP(sq_bytes, RAW_PIECE_BYTES - RAW_SQ + 64, -EINVAL);
	QP(sq_va, RAW_IOVA + 16, -EINVAL);
	QP(sq_va, RAW_IOVA + RAW_PIECE_BYTES, -EINVAL);
	QP(rq_stride, 32, -EINVAL);
	QP(rq_stride, 48, 0);
	QP(rq_stride, 56, -EINVAL);
	QP(rq_stride, 528, -EINVAL);
	QP(rq_stride, 0, -EINVAL);
	QP(rq_log_entries, 9, 0);
	QP(rq_log_entries, 10, -EINVAL);
	QP(rq_log_entries, 254, -EINVAL);
	QP(rq_log_entries, 0xff, 0);
	QP(rq_va, RAW_IOVA - 16, -EINVAL);
	QP(record_va, RAW_IOVA + 8, -EINVAL);
	QP(sq_signal_all, 2, -EINVAL);
	QP(srqn, 1, -ENOENT);
	QP(srqn, r.srqn, -EINVAL); /* and its own receive queue */
#define SRQ(field, value, rc)                                                                      \
	do {                                                                                       \
		srq = raw_srq_in(r.pd, r.lkey);                                                    \
		srq.field = value;                                                                 \
		assert_int_equal(raw_create_srq(r.fd, &srq, NULL), rc);                            \
	} while (0)
	SRQ(pd, r.pd ^ 0x80000000u, -ENOENT);
	SRQ(lkey, 0, -ENOENT);
	SRQ(lkey, other, -EINVAL);
	SRQ(log_entries, 0, 0);
	SRQ(log_entries, 11, -EINVAL); /* longer than the MR */
	SRQ(log_entries, 16, -EINVAL);
	SRQ(log_entries, 31, -EINVAL);
	SRQ(log_entries, 32, -EINVAL);
	SRQ(log_entries, UINT32_MAX, -EINVAL);
	SRQ(stride, 0, -EINVAL);
	SRQ(stride, 32, -EINVAL);
	SRQ(stride, 48, 0);
	SRQ(stride, 56, -EINVAL);
	SRQ(stride, 512, 0);
	SRQ(stride, 528, -EINVAL);
	SRQ(ring_va, RAW_IOVA - 16, -EINVAL);
	SRQ(ring_va, RAW_IOVA + 8, -EINVAL);
	SRQ(ring_va, RAW_IOVA + RAW_PIECE_BYTES - 1024, 0);
	SRQ(ring_va, RAW_IOVA + RAW_PIECE_BYTES - 1008, -EINVAL);
	SRQ(ring_va, UINT64_MAX - 15, -EINVAL);
	SRQ(record_va, RAW_IOVA + 32, -EINVAL);
	SRQ(record_va, RAW_IOVA + RAW_PIECE_BYTES, -EINVAL);
	close(r.fd);
}

/* The new buffer is checked as the first one was; the MR of the former one is free. */
TEST(resize__checks_and_memory)
{
	struct raw r = raw_client(f.path);
	struct control_resize_cq in;
	struct control_number number;
	uint32_t other, second;

	other = raw_mr(r.fd, r.pd, r.piece, RAW_PIECE_BYTES, RAW_IOVA);
	second = raw_mr(r.fd, r.hello.queue_pd, r.piece, RAW_PIECE_BYTES, RAW_IOVA);
#define RESIZE(field, value, rc)                                                                   \
	do {                                                                                       \
		in = (struct control_resize_cq){                                                   \
			.cqn = r.cqn, .log_entries = 5, .lkey = second, .buffer_va = RAW_IOVA};    \
		in.field = value;                                                                  \
		assert_int_equal(raw_tell(r.fd, CONTROL_RESIZE_CQ, &in), rc);                      \
	} while (0)
	RESIZE(cqn, r.cqn ^ 0x800000, -ENOENT);
	RESIZE(lkey, 0, -ENOENT);
	RESIZE(lkey, other, -EINVAL);
	RESIZE(log_entries, 12, -EINVAL);
	RESIZE(log_entries, 32, -EINVAL);
	RESIZE(log_entries, UINT32_MAX, -EINVAL);
	RESIZE(buffer_va, RAW_IOVA + 32, -EINVAL);
	RESIZE(buffer_va, RAW_IOVA + RAW_PIECE_BYTES - 512, -EINVAL);
	RESIZE(reserved, 1, -EINVAL);
	number = (struct control_number){.number = second};
	assert_int_equal(raw_tell(r.fd, CONTROL_DEREG_MR, &number), 0);
	second = raw_mr(r.fd, r.hello.queue_pd, r.piece, RAW_PIECE_BYTES, RAW_IOVA);
	RESIZE(log_entries, 4, 0);
	number.number = second;
	assert_int_equal(raw_tell(r.fd, CONTROL_DEREG_MR, &number), -EBUSY);
	RESIZE(lkey, r.lkey, 0);
	assert_int_equal(raw_tell(r.fd, CONTROL_DEREG_MR, &number), 0);
	close(r.fd);
}

/* Permissions to use, change and destroy an SRQ. */
TEST(srq__belongs_to_its_client_and_outlives_its_users)
{
	struct raw r = raw_client(f.path), stranger = raw_client(f.path);
	struct control_qp qp;
	struct control_srq_limit limit;
	struct control_srq_attr attr;
	struct control_number in;
	uint32_t qpn;

	assert_int_equal(r.hello.max_srq, f.hca->srqs.count);
	qp = raw_qp_in(r.pd, r.cqn, r.lkey);
	qp.rq_log_entries = 0xff;
	qp.srqn = stranger.srqn;
	assert_int_equal(raw_create_qp(r.fd, &qp, NULL), -ENOENT);
	qp.srqn = r.srqn;
	assert_int_equal(raw_create_qp(r.fd, &qp, &qpn), 0);
	in = (struct control_number){.number = r.srqn};
	limit = (struct control_srq_limit){.srqn = r.srqn, .limit = 16};
#define AS(who, type, body, reply)                                                                 \
	raw_call((who).fd, type, &(body), sizeof(body), NULL, 0, reply, sizeof(attr))
	assert_int_equal(AS(stranger, CONTROL_MODIFY_SRQ, limit, NULL), -ENOENT);
	assert_int_equal(AS(stranger, CONTROL_QUERY_SRQ, in, NULL), -ENOENT);
	assert_int_equal(AS(stranger, CONTROL_DESTROY_SRQ, in, NULL), -ENOENT);
	limit.limit = 17;
	assert_int_equal(AS(r, CONTROL_MODIFY_SRQ, limit, NULL), -EINVAL);
	limit.limit = 0;
	assert_int_equal(AS(r, CONTROL_MODIFY_SRQ, limit, NULL), 0);
	assert_int_equal(AS(r, CONTROL_QUERY_SRQ, in, &attr), 0);
	assert_int_equal(attr.entries, 16);
	assert_int_equal(attr.limit + attr.available + attr.error, 0);
	assert_int_equal(AS(r, CONTROL_DESTROY_SRQ, in, NULL), -EBUSY);
	assert_int_equal(raw_number(r.fd, CONTROL_DEREG_MR, r.lkey), -EBUSY);
	assert_int_equal(raw_number(r.fd, CONTROL_DESTROY_QP, qpn), 0);
	assert_int_equal(AS(r, CONTROL_DESTROY_SRQ, in, NULL), 0);
	assert_int_equal(AS(r, CONTROL_DESTROY_SRQ, in, NULL), -ENOENT);
	close(r.fd);
	close(stranger.fd);
}

TEST(srq__limit_of_one_client)
{
	struct control_srq in;
	struct raw r = raw_client(f.path);
	uint32_t n = 1;
	int rc;

	in = raw_srq_in(r.pd, r.lkey);
	while ((rc = raw_create_srq(r.fd, &in, NULL)) == 0)
		n++;
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(n, f.hca->srqs.count / 4 * 3);
	close(r.fd);
	assert_true(fixture_wait_clients(&f, 0));
	for (uint32_t i = 0; i < f.hca->srqs.count; i++)
		assert_int_equal(f.hca->srqs.srqs[i].srqn, 0);
}

TEST(mr__bounds_and_rights)
{
	struct raw r = raw_client(f.path);
	struct control_mr in;

#define MR(field, value, rc)                                                                       \
	do {                                                                                       \
		in = (struct control_mr){.pd = r.pd,                                               \
					 .iova = 1,                                                \
					 .access = 1,                                              \
					 .count = 1,                                               \
					 .run = {{.piece = r.piece, .bytes = 4096}}};              \
		in.field = value;                                                                  \
		assert_int_equal(raw_tell(r.fd, CONTROL_REG_MR, &in), rc);                         \
	} while (0)
	MR(pd, r.pd + 1, -ENOENT);
	MR(run[0].piece, r.piece ^ 0x80000000u, -ENOENT);
	MR(run[0].bytes, 0, -EINVAL);
	MR(run[0].bytes, RAW_PIECE_BYTES, 0);
	MR(run[0].bytes, RAW_PIECE_BYTES + 1, -EINVAL);
	MR(run[0].bytes, UINT64_MAX, -EINVAL);
	MR(run[0].offset, RAW_PIECE_BYTES - 4096, 0);
	MR(run[0].offset, RAW_PIECE_BYTES - 4095, -EINVAL);
	MR(run[0].offset, UINT64_MAX, -EINVAL);
	MR(iova, UINT64_MAX - 4095, -EINVAL);
	MR(iova, UINT64_MAX - 4096, 0);
	MR(access, ACCESS_REMOTE_WRITE, -EINVAL);
	MR(access, ACCESS_REMOTE_ATOMIC, -EINVAL);
	MR(access, ACCESS_REMOTE_READ, 0);
	MR(access, ACCESS_MW_BIND, 0);
	MR(access, ACCESS_ZERO_BASED, -EINVAL); /* and not at 0 */
	MR(access, 64, -EINVAL);
	MR(reserved, 1, -EINVAL);
	MR(run[0].reserved, 1, -EINVAL);
	MR(count, 0, 0);
	MR(count, CONTROL_RUNS_MAX + 1, -EINVAL);
	close(r.fd);
}

enum { SEGMENT_BYTES = 20480 };

/* The doorbell page and what is registered go to the node of the engine that serves the client. */
TEST(memory__lies_near_the_engine)
{
	bool page = false, piece = false, segment = false;
	struct control_segment in = {0};
	struct control_number out;
	struct raw r;

	fixture_stop(&f);
	made_up_nodes(true);
	fixture_node = 2;
	fixture_start(&f, NULL, true);
	made_up.binds = 0; /* the tables' */
	r = raw_client(f.path);
	in.id = (uint32_t)shmget(IPC_PRIVATE, SEGMENT_BYTES, 0600);
	assert_int_equal(raw_ask(r.fd, CONTROL_ADD_SEGMENT, &in, &out), 0);
	assert_int_equal(shmctl((int)in.id, IPC_RMID, NULL), 0);
	for (unsigned int i = 0; i < made_up.binds; i++) {
		assert_int_equal(made_up.bind[i].node, 2);
		page = page || made_up.bind[i].bytes == sizeof(struct client_page);
		piece = piece || made_up.bind[i].bytes == RAW_PIECE_BYTES;
		segment = segment || made_up.bind[i].bytes == SEGMENT_BYTES;
	}
	assert_true(page && piece && segment);
	close(r.fd);
	fixture_node = NODE_ANY;
	made_up_nodes(false);
}

/* A client that dies leaves nothing behind, and another works on through it. */
TEST(end__gives_everything_back)
{
	struct raw stays, goes;
	unsigned int descriptors;
	int looks;

	stays = raw_client(f.path);
	descriptors = fixture_descriptors();
	for (int i = 0; i < 30; i++) {
		struct control_qp_attr attr;
		struct control_number in = {.number = stays.qpn};

		goes = raw_client(f.path);
		close(goes.fd);
		assert_int_equal(raw_ask(stays.fd, CONTROL_QUERY_QP, &in, &attr), 0);
		assert_true(fixture_wait_clients(&f, 1));
	}
	looks = raw_connect(f.path); /* who has opened no device is not counted */
	assert_true(fixture_wait_clients(&f, 2));
	close(looks);
	assert_true(fixture_wait_clients(&f, 1));
	assert_int_equal(fixture_descriptors(), descriptors);
	assert_int_equal(fixture_counter(&f, COUNTER_clients_gone), 30);
	/* one QP, one CQ, one SRQ, one MR are left in the tables */
	for (uint32_t i = 0, n = 0; i < f.hca->qps.count; i++) {
		n += f.hca->qps.qps[i].qpn != 0;
		assert_true(n <= 1);
	}
	for (uint32_t i = 0, n = 0; i < f.hca->srqs.count; i++) {
		n += f.hca->srqs.srqs[i].srqn != 0;
		assert_true(n <= 1);
	}
	assert_true(f.hca->v2p.live[0] <= 1); /* one chunk holds them all */
	close(stays.fd);
}

TEST(modify__others_are_served_while_one_waits)
{
	struct raw waits, other;
	struct {
		struct control_header header;
		struct control_resolve body;
	} m = {.header = {.type = CONTROL_RESOLVE, .length = sizeof(struct control_resolve)}};
	struct control_resolve_reply reply;

	waits = raw_client(f.path);
	__atomic_store_n(&f.resolve_again, 1 << 30, __ATOMIC_RELAXED);
	raw_send(waits.fd, &m, sizeof(m), NULL, 0);
	other = raw_client(f.path);
	assert_int_equal(recv(waits.fd, &m, sizeof(m), MSG_DONTWAIT), -1);
	__atomic_store_n(&f.resolve_again, 0, __ATOMIC_RELAXED);
	assert_int_equal(raw_receive(waits.fd, &reply, sizeof(reply)), 0);
	/* one that goes away while it waits */
	__atomic_store_n(&f.resolve_again, 1 << 30, __ATOMIC_RELAXED);
	m.header = (struct control_header){.type = CONTROL_RESOLVE,
					   .length = sizeof(struct control_resolve)};
	raw_send(waits.fd, &m, sizeof(m), NULL, 0);
	close(waits.fd);
	assert_true(fixture_wait_clients(&f, 1));
	__atomic_store_n(&f.resolve_again, 0, __ATOMIC_RELAXED);
	close(other.fd);
}

/* One who asks for neighbours without end waits for the next second; those who need not ask do not. */
CLIENT_TEST(resolve__a_share_of_the_questions)
{
	const struct control_resolve in = {.gid_index = 0};
	struct control_resolve_reply reply;
	struct share_info info;

	__atomic_store_n(&f.would_ask, true, __ATOMIC_RELAXED);
	do {
		assert_int_equal(raw_ask(r.fd, CONTROL_RESOLVE, &in, &reply), 0);
		shares_info(f.shares, SHARE_neighbours, 0, &info);
		assert_true(info.used <= info.total - info.reserve + info.assured);
	} while (!info.refused);
	__atomic_store_n(&f.would_ask, false, __ATOMIC_RELAXED);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(raw_ask(r.fd, CONTROL_RESOLVE, &in, &reply), 0);
}

TEST(create__second_daemon_on_the_same_path)
{
	struct control_device device = {
		.name = "x",
		.hca = f.hca,
		.ceu = f.ceu,
		.ops = {.port = (void *)1, .gid = (void *)1, .resolve = (void *)1}};
	struct control_config config = {
		.socket_path = f.path, .device_count = 1, .devices = &device};
	struct control *c;

	assert_int_equal(control_create(&config, &c), -EADDRINUSE);
	config.device_count = 0;
	assert_int_equal(control_create(&config, &c), -EINVAL);
}
