/* SPDX-License-Identifier: BSD-3-Clause */
/* VirtToPhys: every refusal in its order, bounds up to the end of the address space. */
#include "engine_fixture.h"
#include "virt-to-phys/payload_ref.h"

enum { KEY = 0x5505 };

static uint8_t bytes[64];

static enum v2p_state map(uint32_t pd, uint32_t key, uint64_t va, uint64_t length, uint32_t access)
{
	uint8_t *addr = bytes;
	uint64_t run = 1;
	enum v2p_state s = v2p_request(
		fx->e->v2p_port[STAGE_RESPONDER_EXEC], V2P_EE_DATA,
		&(struct v2p_access){
			.pd = pd, .key = key, .va = va, .length = length, .rights = access},
		&addr, &run);

	if (s != V2P_SUCCESS || length == 0)
		assert_null(addr);
	else
		assert_int_equal(run, length);
	return s;
}

static int write_mpt(uint64_t start, uint64_t length, uint32_t access)
{
	struct mpt_entry m = {.key = KEY,
			      .pd = FX_PD,
			      .access = access,
			      .start = start,
			      .length = length,
			      .phys = bytes};

	return v2p_write_mpt(fx->e->v2p, &m);
}

TEST(v2p_map__success)
{
	uint8_t *addr;
	uint64_t run;

	assert_int_equal(write_mpt(1000, 64, ACCESS_LOCAL_WRITE), 0);
	assert_int_equal(v2p_request(fx->e->v2p_port[STAGE_RESPONDER_EXEC], V2P_EE_DATA,
				     &(struct v2p_access){.pd = FX_PD,
							  .key = KEY,
							  .va = 1010,
							  .length = 54,
							  .rights = ACCESS_LOCAL_WRITE},
				     &addr, &run),
			 V2P_SUCCESS);
	assert_ptr_equal(addr, bytes + 10);
	assert_int_equal(run, 54);
}

TEST(v2p_map__bounds)
{
	assert_int_equal(write_mpt(1000, 64, 0), 0);
	assert_int_equal(map(FX_PD, KEY, 1000, 64, 0), V2P_SUCCESS);
	assert_int_equal(map(FX_PD, KEY, 1063, 1, 0), V2P_SUCCESS);
	assert_int_equal(map(FX_PD, KEY, 1000, 65, 0), V2P_LENGTH_ERR);
	assert_int_equal(map(FX_PD, KEY, 1001, 64, 0), V2P_LENGTH_ERR);
	assert_int_equal(map(FX_PD, KEY, 1064, 1, 0), V2P_LENGTH_ERR);
	assert_int_equal(map(FX_PD, KEY, 999, 1, 0), V2P_LENGTH_ERR);
	assert_int_equal(map(FX_PD, KEY, 0, 1, 0), V2P_LENGTH_ERR);
	assert_int_equal(map(FX_PD, KEY, UINT64_MAX, 1, 0), V2P_LENGTH_ERR);
}

TEST(v2p_map__bounds_at_the_wrap)
{
	assert_int_equal(write_mpt(UINT64_MAX - 99, 64, 0), 0);
	assert_int_equal(map(FX_PD, KEY, UINT64_MAX - 99, 64, 0), V2P_SUCCESS);
	/* whose end wraps to a small number */
	assert_int_equal(map(FX_PD, KEY, UINT64_MAX - 99, UINT64_MAX, 0), V2P_LENGTH_ERR);
	assert_int_equal(map(FX_PD, KEY, UINT64_MAX - 40, 64, 0), V2P_LENGTH_ERR);
	assert_int_equal(map(FX_PD, KEY, UINT64_MAX, 2, 0), V2P_LENGTH_ERR);
	assert_int_equal(map(FX_PD, KEY, UINT64_MAX - 80, UINT64_MAX - 10, 0), V2P_LENGTH_ERR);
	assert_int_equal(map(FX_PD, KEY, 5, UINT64_MAX - 10, 0), V2P_LENGTH_ERR);
}

TEST(v2p_map__refusals_in_order)
{
	assert_int_equal(write_mpt(1000, 64, ACCESS_REMOTE_READ), 0);
	/* everything wrong: the key is said; and so on */
	assert_int_equal(map(99, KEY + 0x10000, 0, 100, ACCESS_LOCAL_WRITE), V2P_KEY_ERR);
	assert_int_equal(map(99, KEY + 1, 0, 100, ACCESS_LOCAL_WRITE), V2P_KEY_ERR);
	assert_int_equal(map(99, 0, 0, 100, ACCESS_LOCAL_WRITE), V2P_KEY_ERR);
	assert_int_equal(map(99, KEY, 0, 100, ACCESS_LOCAL_WRITE), V2P_PD_ERR);
	assert_int_equal(map(FX_PD, KEY, 0, 100, ACCESS_LOCAL_WRITE), V2P_FLAGS_ERR);
	assert_int_equal(map(FX_PD, KEY, 0, 100, ACCESS_REMOTE_READ), V2P_LENGTH_ERR);
}

/* What the look-up before has found is no answer to another question, nor when it has changed. */
TEST(v2p_map__right_after_a_success)
{
	static const struct {
		uint32_t pd, key;
		uint64_t va;
		uint32_t access;
		enum v2p_state answer;
	} rows[] = {
		{FX_PD, KEY, 1063, ACCESS_REMOTE_READ, V2P_SUCCESS},
		{FX_PD, KEY, 1064, ACCESS_REMOTE_READ, V2P_LENGTH_ERR},
		{FX_PD, KEY, 999, ACCESS_REMOTE_READ, V2P_LENGTH_ERR},
		{99, KEY, 1000, ACCESS_REMOTE_READ, V2P_PD_ERR},
		{FX_PD, KEY + 1, 1000, ACCESS_REMOTE_READ, V2P_KEY_ERR},
		{FX_PD, KEY, 1000, ACCESS_REMOTE_WRITE, V2P_FLAGS_ERR},
	};

	assert_int_equal(write_mpt(1000, 64, ACCESS_REMOTE_READ), 0);
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		assert_int_equal(map(FX_PD, KEY, 1000, 64, ACCESS_REMOTE_READ), V2P_SUCCESS);
		assert_int_equal(map(rows[i].pd, rows[i].key, rows[i].va, 1, rows[i].access),
				 rows[i].answer);
	}
	assert_int_equal(map(FX_PD, KEY, 1000, 64, ACCESS_REMOTE_READ), V2P_SUCCESS);
	assert_int_equal(v2p_invalidate_mpt(fx->e->v2p, KEY), 0);
	assert_int_equal(write_mpt(1000, 32, ACCESS_REMOTE_READ), 0);
	assert_int_equal(map(FX_PD, KEY, 1000, 64, ACCESS_REMOTE_READ), V2P_LENGTH_ERR);
}

TEST(v2p_map__each_right)
{
	for (uint32_t has = 0; has < 16; has++) {
		assert_int_equal(write_mpt(1000, 64, has), 0);
		for (uint32_t needs = 0; needs < 16; needs++)
			assert_int_equal(map(FX_PD, KEY, 1000, 1, needs),
					 (has & needs) == needs ? V2P_SUCCESS : V2P_FLAGS_ERR);
		assert_int_equal(v2p_invalidate_mpt(fx->e->v2p, KEY), 0);
	}
}

/* Not even to the entry with index 0 that is invalid, but has kept its rights. */
TEST(v2p_map__key_0_leads_nowhere)
{
	struct mpt_entry m = {.key = 5u << 28,
			      .pd = FX_PD,
			      .access = ACCESS_LOCAL_WRITE,
			      .flags = MPT_INVALIDATE_REMOTE,
			      .start = 1000,
			      .length = 64,
			      .phys = bytes};

	assert_int_equal(v2p_index(fx->e->v2p, m.key), 0);
	assert_int_equal(v2p_write_mpt(fx->e->v2p, &m), 0);
	assert_int_equal(map(FX_PD, m.key, 1000, 1, ACCESS_LOCAL_WRITE), V2P_SUCCESS);
	assert_int_equal(v2p_invalidate(fx->e->v2p, FX_PD, 0, m.key), V2P_SUCCESS);
	assert_int_equal(map(FX_PD, m.key, 1000, 1, ACCESS_LOCAL_WRITE), V2P_KEY_ERR);
	assert_int_equal(map(FX_PD, 0, 1000, 1, ACCESS_LOCAL_WRITE), V2P_KEY_ERR);
}

/* Nothing is accessed, so nothing is checked (C9-88). */
TEST(v2p_map__zero_length)
{
	assert_int_equal(map(99, 12345, 77, 0, 0xf), V2P_SUCCESS);
	assert_int_equal(map(0, 0, UINT64_MAX, 0, 0), V2P_SUCCESS);
}

TEST(v2p_write_mpt__refusals)
{
	struct mpt_entry none = {.key = 0, .length = 10}, tag = {.key = MPT_KEY_TAG, .length = 10};

	assert_int_equal(v2p_write_mpt(fx->e->v2p, &none), -EINVAL);
	assert_int_equal(v2p_write_mpt(fx->e->v2p, &tag), -EINVAL);
	assert_int_equal(write_mpt(UINT64_MAX - 10, 20, 0), -EINVAL);
	assert_int_equal(map(FX_PD, KEY, 5, 1, 0), V2P_KEY_ERR);
	assert_int_equal(write_mpt(1000, 64, 0), 0);
	assert_int_equal(write_mpt(1000, 64, 0), -EEXIST);
}

TEST(v2p_invalidate_mpt__revokes)
{
	assert_int_equal(v2p_invalidate_mpt(fx->e->v2p, KEY), -ENOENT);
	assert_int_equal(v2p_invalidate_mpt(fx->e->v2p, 0), -ENOENT);
	assert_int_equal(write_mpt(1000, 64, 0), 0);
	assert_int_equal(v2p_invalidate_mpt(fx->e->v2p, KEY + 0x10000), -ENOENT);
	assert_int_equal(v2p_invalidate_mpt(fx->e->v2p, KEY + 1), -ENOENT);
	assert_int_equal(map(FX_PD, KEY, 1000, 1, 0), V2P_SUCCESS);
	assert_int_equal(v2p_invalidate_mpt(fx->e->v2p, KEY), 0);
	assert_int_equal(map(FX_PD, KEY, 1000, 1, 0), V2P_KEY_ERR);
	assert_int_equal(v2p_invalidate_mpt(fx->e->v2p, KEY), -ENOENT);
}

static int write_flags(uint32_t key, uint32_t flags)
{
	struct mpt_entry m = {.key = key, .pd = FX_PD, .flags = flags, .length = 64, .phys = bytes};

	return v2p_write_mpt(fx->e->v2p, &m);
}

TEST(v2p_invalidate__takes_the_key_and_not_the_index)
{
	struct v2p *v = fx->e->v2p;

	assert_int_equal(write_flags(KEY, MPT_INVALIDATE_REMOTE), 0);
	assert_int_equal(map(FX_PD, KEY, 0, 1, 0), V2P_SUCCESS);
	assert_int_equal(v2p_invalidate(v, FX_PD, 0, KEY), V2P_SUCCESS);
	assert_int_equal(map(FX_PD, KEY, 0, 1, 0), V2P_KEY_ERR);
	assert_int_equal(v2p_invalidate(v, FX_PD, 0, KEY), V2P_KEY_ERR);
	assert_int_equal(write_flags(KEY, 0), -EEXIST);
	assert_int_equal(write_flags(KEY + 0x10000, 0), -EEXIST); /* the same index */
	assert_int_equal(v2p_invalidate_mpt(v, KEY + 0x10000), -ENOENT);
	assert_int_equal(v2p_invalidate_mpt(v, KEY), 0);
	assert_int_equal(v2p_invalidate_mpt(v, KEY), -ENOENT);
	assert_int_equal(write_flags(KEY + 0x10000, 0), 0);
	assert_int_equal(v2p_invalidate_mpt(v, KEY + 0x10000), 0);
}

TEST(v2p_invalidate__refusals)
{
	struct v2p *v = fx->e->v2p;

	assert_int_equal(v2p_invalidate(v, FX_PD, 0, 0), V2P_KEY_ERR);
	assert_int_equal(v2p_invalidate(v, FX_PD, 0, KEY), V2P_KEY_ERR);
	assert_int_equal(write_flags(KEY, 0), 0);
	assert_int_equal(v2p_invalidate(v, FX_PD, 0, KEY + 0x10000), V2P_KEY_ERR);
	assert_int_equal(v2p_invalidate(v, FX_PD + 1, 0, KEY), V2P_PD_ERR);
	assert_int_equal(v2p_invalidate(v, FX_PD, 0, KEY), V2P_FLAGS_ERR);
	assert_int_equal(map(FX_PD, KEY, 0, 1, 0), V2P_SUCCESS);
	assert_int_equal(v2p_invalidate_mpt(v, KEY), 0);
	assert_int_equal(write_flags(KEY, MPT_FLAGS + 1), -EINVAL);
}

TEST(v2p_map__null_reads_zeroes_and_writes_nowhere)
{
	struct mpt_entry m = {.key = KEY,
			      .pd = FX_PD,
			      .access = ACCESS_LOCAL_WRITE,
			      .flags = MPT_NULL,
			      .length = UINT64_MAX};
	struct v2p_port *port = fx->e->v2p_port[STAGE_SEGMENTATION];
	uint8_t *read, *written;
	uint64_t run;

	assert_int_equal(v2p_write_mpt(fx->e->v2p, &m), 0);
	assert_int_equal(v2p_request(port, V2P_WP_DATA,
				     &(struct v2p_access){.pd = FX_PD,
							  .key = KEY,
							  .va = 1ull << 63,
							  .length = 1 << 20,
							  .rights = V2P_LOCAL_READ},
				     &read, &run),
			 V2P_SUCCESS);
	assert_int_equal(run, V2P_NULL_BYTES);
	assert_int_equal(v2p_request(port, V2P_RRC_DATA,
				     &(struct v2p_access){.pd = FX_PD,
							  .key = KEY,
							  .length = 5,
							  .rights = ACCESS_LOCAL_WRITE},
				     &written, &run),
			 V2P_SUCCESS);
	assert_int_equal(run, 5);
	memset(written, 0xff, V2P_NULL_BYTES);
	for (int i = 0; i < V2P_NULL_BYTES; i++)
		assert_int_equal(read[i], 0);
	assert_int_equal(map(FX_PD, KEY, 0, 8, ACCESS_REMOTE_READ), V2P_FLAGS_ERR);
	assert_int_equal(map(99, KEY, 0, 8, 0), V2P_PD_ERR);
	assert_int_equal(v2p_invalidate_mpt(fx->e->v2p, KEY), 0);
	m.access |= ACCESS_REMOTE_READ;
	assert_int_equal(v2p_write_mpt(fx->e->v2p, &m), -EINVAL);
}

/* The tables change between the registration and the reference, and between that and the look. */
TEST(payload_ref__however_much_has_changed)
{
	static const struct {
		uint64_t before, after;
		bool revoked;
		enum v2p_state found;
	} rows[] = {
		{0, 0, false, V2P_SUCCESS},	     {3ull << 30, 1, false, V2P_SUCCESS},
		{0, 1, false, V2P_SUCCESS},	     {0, 1ull << 31, false, V2P_SUCCESS},
		{0, 1ull << 32, false, V2P_SUCCESS}, {1ull << 31, 1, false, V2P_SUCCESS},
		{0, 1, true, V2P_KEY_ERR},	     {0, 1ull << 31, true, V2P_KEY_ERR},
		{0, 1ull << 32, true, V2P_KEY_ERR},  {1ull << 31, 1, true, V2P_KEY_ERR},
	};
	struct v2p *v = fx->e->v2p;

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		uint8_t place[PAYLOAD_REF_BYTES_MIN] = {0};
		const uint8_t *at = NULL;
		uint64_t made;

		assert_int_equal(write_mpt(1000, 64, 0), 0);
		v->generation += rows[i].before;
		made = v->generation;
		assert_true(payload_ref_make(fx->e->v2p_port[STAGE_SEGMENTATION], V2P_WP_DATA,
					     &(struct v2p_access){.pd = FX_PD,
								  .key = KEY,
								  .va = 1010,
								  .length = 54,
								  .rights = V2P_LOCAL_READ},
					     NULL, place));
		if (rows[i].revoked)
			assert_int_equal(v2p_invalidate_mpt(v, KEY), 0);
		v->generation = made + rows[i].after;
		if (payload_ref_follow(place, &at) != rows[i].found)
			fail_msg("row %u", i);
		if (rows[i].revoked)
			continue;
		assert_ptr_equal(at, bytes + 10);
		assert_int_equal(v2p_invalidate_mpt(v, KEY), 0);
	}
}

TEST(v2p_count_error__by_name)
{
	struct counters *c = stage_counters(fx->e, STAGE_SEGMENTATION);

	v2p_count_error(c, V2P_SUCCESS);
	v2p_count_error(c, V2P_KEY_ERR);
	for (unsigned i = 0; i < 2; i++)
		v2p_count_error(c, V2P_PD_ERR);
	for (unsigned i = 0; i < 3; i++)
		v2p_count_error(c, V2P_FLAGS_ERR);
	for (unsigned i = 0; i < 4; i++)
		v2p_count_error(c, V2P_LENGTH_ERR);
	fx_assert_counter(v2p_key_error, 1);
	fx_assert_counter(v2p_pd_error, 2);
	fx_assert_counter(v2p_flags_error, 3);
	fx_assert_counter(v2p_length_error, 4);
}
