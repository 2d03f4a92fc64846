/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows, keys for fast registration, re-registration by hand: what is refused, what
 * depends on what, the end of a client that has some. */
#include "hca_test.h"
#include "raw_client.h"
#include "host-abi/wqe.h"

static int alloc_mw(int fd, uint32_t pd, uint32_t type, uint32_t *key)
{
	struct control_mw in = {.pd = pd, .type = type};
	struct control_number out = {0};
	int rc = raw_ask(fd, CONTROL_ALLOC_MW, &in, &out);

	*key = out.number;
	return rc;
}

static int alloc_mr(int fd, uint32_t pd, uint32_t pages, uint32_t *key)
{
	struct control_alloc_mr in = {.pd = pd, .pages = pages};
	struct control_mr_reply out = {0};
	int rc = raw_ask(fd, CONTROL_ALLOC_MR, &in, &out);

	assert_int_equal(out.lkey, out.rkey);
	*key = out.lkey;
	return rc;
}

TEST(mw__made_and_taken_back)
{
	struct raw r = raw_client(f.path), stranger = raw_client(f.path);
	uint32_t key[2];

	assert_int_equal(r.hello.max_mw, f.hca->v2p.mpts);
	assert_int_equal(alloc_mw(r.fd, r.pd, 0, &key[0]), -EINVAL);
	assert_int_equal(alloc_mw(r.fd, r.pd, 3, &key[0]), -EINVAL);
	assert_int_equal(alloc_mw(r.fd, stranger.pd, 1, &key[0]), -ENOENT);
	assert_int_equal(alloc_mw(r.fd, r.pd, 1, &key[0]), 0);
	assert_int_equal(alloc_mw(r.fd, r.pd, 2, &key[1]), 0);
	assert_int_equal(raw_number(r.fd, CONTROL_FREE_PD, r.pd), -EBUSY);
	for (unsigned i = 0; i < 2; i++) {
		/* a window is no MR, its tag is not its name, and it is its client's */
		assert_int_equal(raw_number(r.fd, CONTROL_DEREG_MR, key[i]), -ENOENT);
		assert_int_equal(raw_number(r.fd, CONTROL_DEALLOC_MW, key[i] ^ 1), -ENOENT);
		assert_int_equal(raw_number(stranger.fd, CONTROL_DEALLOC_MW, key[i]), -ENOENT);
		assert_int_equal(raw_number(r.fd, CONTROL_DEALLOC_MW, key[i]), 0);
		assert_int_equal(raw_number(r.fd, CONTROL_DEALLOC_MW, key[i]), -ENOENT);
	}
	assert_int_equal(raw_number(r.fd, CONTROL_DEALLOC_MW, r.lkey), -ENOENT);
	close(r.fd);
	close(stranger.fd);
}

CLIENT_TEST(alloc_mr__made_and_taken_back)
{
	struct control_cq cq;
	uint32_t key;

	assert_int_equal(r.hello.max_fast_reg_pages, WQE_REGISTER_PAGES);
	assert_int_equal(alloc_mr(r.fd, r.pd ^ 0x80000000u, 1, &key), -ENOENT);
	assert_int_equal(alloc_mr(r.fd, r.pd, 0, &key), -EINVAL);
	assert_int_equal(alloc_mr(r.fd, r.pd, WQE_REGISTER_PAGES + 1, &key), -EINVAL);
	assert_int_equal(alloc_mr(r.fd, r.hello.queue_pd, WQE_REGISTER_PAGES, &key), 0);
	cq = raw_cq_in(key); /* no queue lies where there is no memory */
	assert_int_equal(raw_tell(r.fd, CONTROL_CREATE_CQ, &cq), -EINVAL);
	assert_int_equal(raw_number(r.fd, CONTROL_DEALLOC_MW, key), -ENOENT);
	assert_int_equal(raw_number(r.fd, CONTROL_DEREG_MR, key), 0);
	assert_int_equal(raw_number(r.fd, CONTROL_DEREG_MR, key), -ENOENT);
}

TEST(limit__is_shared_with_mrs)
{
	uint32_t key, n = 1; /* of the queues */
	struct raw r = raw_client(f.path);
	int rc;

	do {
		rc = n % 2 ? alloc_mw(r.fd, r.pd, 1 + n / 2 % 2, &key)
			   : alloc_mr(r.fd, r.pd, 1, &key);
		n += rc == 0;
	} while (rc == 0);
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(n, f.hca->v2p.mpts / 4 * 3);
	close(r.fd);
	assert_true(fixture_wait_clients(&f, 0));
	r = raw_client(f.path); /* all of it came back */
	assert_int_equal(alloc_mw(r.fd, r.pd, 2, &key), 0);
	close(r.fd);
}

/* Keys for fast registrations until there are no MTT entries for one more. */
static unsigned alloc_all(struct raw *r, uint32_t *key)
{
	unsigned n = 0;
	int rc;

	while ((rc = alloc_mr(r->fd, r->pd, 65 + n % 56, key)) == 0) /* 128 MTT entries */
		n++;
	assert_int_equal(rc, -ENOSPC);
	return n;
}

TEST(alloc_mr__pages_are_shared_out)
{
	uint32_t key, one;
	struct raw r = raw_client_as(f.path, 1000), other = raw_client_as(f.path, 1001);

	assert_int_equal(alloc_mr(other.fd, other.pd, 1, &one), 0);
	assert_int_equal(alloc_all(&r, &key), 256); /* half */
	/* Half, less the reserve, of which both have their parts: 2 times 4. `one` has broken into
	 * one. */
	assert_int_equal(alloc_all(&other, &key), 256 - 128 + 8 - 1);
	assert_int_equal(raw_number(other.fd, CONTROL_DEREG_MR, one), 0);
	assert_int_equal(alloc_all(&other, &key), 1);
	close(r.fd);
	assert_true(fixture_wait_clients(&f, 1));
	assert_int_equal(alloc_all(&other, &key), 128 - 8); /* the first one's entries were freed */
	close(other.fd);
}

static int rereg(int fd, const struct control_rereg_mr *in, uint32_t *key)
{
	struct control_mr_reply out = {0};
	int rc = raw_ask(fd, CONTROL_REREG_MR, in, &out);

	*key = out.lkey;
	return rc;
}

TEST(rereg__each_part_and_what_is_refused)
{
	struct control_rereg_mr in;
	struct raw r = raw_client(f.path);
	uint32_t lkey, piece, pd, key;
	struct control_number out = {0};

	piece = raw_piece(r.fd, RAW_PIECE_BYTES);
	lkey = raw_mr(r.fd, r.pd, r.piece, 4096, RAW_IOVA);
	assert_int_equal(raw_call(r.fd, CONTROL_ALLOC_PD, NULL, 0, NULL, 0, &out, sizeof(out)), 0);
	pd = out.number;
#define REREG(rc, ...)                                                                             \
	do {                                                                                       \
		in = (struct control_rereg_mr){.lkey = lkey,                                       \
					       .mask = 7,                                          \
					       .mr = {.pd = pd,                                    \
						      .iova = 0x5000,                              \
						      .access = ACCESS_REMOTE_READ,                \
						      .count = 1,                                  \
						      .run = {{piece, 0, 4096, 8192}}}};           \
		__VA_ARGS__;                                                                       \
		assert_int_equal(rereg(r.fd, &in, &key), rc);                                      \
	} while (0)
	REREG(-ENOENT, in.lkey ^= 0x80000000u);
	REREG(-EINVAL, in.mask = 0);
	REREG(-EINVAL, in.mask = 15);
	REREG(-ENOENT, in.mr.pd ^= 0x80000000u);
	REREG(-ENOENT, in.mr.run[0].piece ^= 0x80000000u);
	REREG(-EINVAL, in.mr.count = CONTROL_RUNS_MAX + 1);
	REREG(-EINVAL, in.mr.run[0].offset = RAW_PIECE_BYTES - 4096);
	REREG(-EINVAL, in.mr.iova = UINT64_MAX);
	REREG(-EINVAL, in.mr.access = ACCESS_REMOTE_WRITE);
	REREG(-EINVAL, in.mr.access = ACCESS_ZERO_BASED);
	REREG(-EBUSY, in.lkey = r.lkey); /* queues lie in it */
	assert_int_equal(alloc_mr(r.fd, r.pd, 1, &key), 0);
	REREG(-EINVAL, in.lkey = key);
	/* Nothing has changed: what it depends on is what it was. */
	assert_int_equal(raw_number(r.fd, CONTROL_FREE_PD, pd), 0);
	assert_int_equal(raw_call(r.fd, CONTROL_ALLOC_PD, NULL, 0, NULL, 0, &out, sizeof(out)), 0);
	pd = out.number;
	REREG(0, in.mask = 4; in.mr.pd = in.mr.count = 0);
	assert_int_equal(key, lkey);
	REREG(0, in.mask = 2; in.mr.count = 0);
	assert_int_equal(raw_number(r.fd, CONTROL_FREE_PD, pd), -EBUSY);
	assert_int_equal(raw_number(r.fd, CONTROL_DROP_PIECE, piece), 0);
	piece = raw_piece(r.fd, RAW_PIECE_BYTES);
	REREG(0, in.mask = 1; in.mr.pd = 0);
	assert_int_equal(raw_number(r.fd, CONTROL_DROP_PIECE, piece), -EBUSY);
	assert_int_equal(raw_number(r.fd, CONTROL_DEREG_MR, lkey), 0);
	assert_int_equal(raw_number(r.fd, CONTROL_DROP_PIECE, piece), 0);
	assert_int_equal(raw_number(r.fd, CONTROL_FREE_PD, pd), 0);
	close(r.fd);
}
