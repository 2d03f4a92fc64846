/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows and fast-registered regions: binding, rights, invalidation, references. */
#include "engine_fixture.h"

enum {
	REGION = 0x550500, /* 64 KiB at START, every right */
	OTHER = 0x550600,  /* the same of another client */
	WINDOW = 0x550700,
	WINDOW2 = 0x550800,
	FAST = 0x550900,
	START = 0x40000,
	BYTES = 0x10000,
	PAGE = 0x1000,
	QPN_1 = 0x101,
	QPN_2 = 0x102,
};
#define TAG(n) ((uint32_t)(n))
#define ALL    (ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC | ACCESS_FLUSH_GLOBAL)

static uint8_t bytes[BYTES];

static int write_entry(uint32_t key, uint32_t pd, uint32_t access, uint32_t flags)
{
	struct mpt_entry m = {.key = key, .pd = pd, .access = access, .flags = flags};

	if (!(flags & MPT_CHANGES)) {
		m.start = access & ACCESS_ZERO_BASED ? 0 : START;
		m.length = BYTES;
		m.phys = bytes;
	}
	return v2p_write_mpt(fx->e->v2p, &m);
}

static void make(void)
{
	assert_int_equal(write_entry(REGION, FX_PD, ACCESS_LOCAL_WRITE | ALL | ACCESS_MW_BIND, 0),
			 0);
	assert_int_equal(
		write_entry(OTHER, FX_PD + 1, ACCESS_LOCAL_WRITE | ALL | ACCESS_MW_BIND, 0), 0);
	assert_int_equal(write_entry(WINDOW, FX_PD, 0, MPT_WINDOW_1), 0);
	assert_int_equal(write_entry(WINDOW2, FX_PD, 0, MPT_WINDOW_2 | MPT_INVALIDATE_REMOTE), 0);
	assert_int_equal(write_entry(FAST, FX_PD, 0, MPT_FAST | MPT_INVALIDATE_REMOTE), 0);
}

/* One page at START + PAGE, through QPN_1. */
static struct v2p_bind bind_of(uint32_t key)
{
	return (struct v2p_bind){.key = key,
				 .parent = REGION,
				 .pd = FX_PD,
				 .qpn = QPN_1,
				 .access = ACCESS_REMOTE_READ,
				 .start = START + PAGE,
				 .length = PAGE};
}

#define BIND(k, ...)                                                                               \
	({                                                                                         \
		struct v2p_bind b_ = bind_of(k);                                                   \
		struct v2p_bind *b = &b_;                                                          \
		__VA_ARGS__;                                                                       \
		v2p_bind(fx->e->v2p, b);                                                           \
	})

/* An access of one byte; *at, if it is allowed: where it goes. */
static enum v2p_state reach(uint32_t qpn, uint32_t key, uint64_t va, uint32_t access, uint8_t **at)
{
	uint64_t run;

	return v2p_request(fx->e->v2p_port[STAGE_RESPONDER_EXEC], V2P_EE_DATA,
			   &(struct v2p_access){.pd = FX_PD,
						.qpn = qpn,
						.key = key,
						.va = va,
						.length = 1,
						.rights = access},
			   at, &run);
}

static void assert_reach(uint32_t key, uint64_t va, uint32_t access, uint64_t offset)
{
	uint8_t *at;

	assert_int_equal(reach(QPN_1, key, va, access, &at), V2P_SUCCESS);
	assert_ptr_equal(at, bytes + offset);
}

static void assert_no_reach(uint32_t qpn, uint32_t key, uint64_t va, uint32_t access,
			    enum v2p_state why)
{
	uint8_t *at;

	assert_int_equal(reach(qpn, key, va, access, &at), why);
	assert_null(at);
}

static uint32_t held(uint32_t key)
{
	return fx->e->v2p->bound[v2p_index(fx->e->v2p, key)];
}

TEST(window__is_for_peers_and_within_its_bounds)
{
	uint32_t key = WINDOW | TAG(1);

	make();
	assert_no_reach(QPN_1, WINDOW, START, ACCESS_REMOTE_READ, V2P_KEY_ERR);
	assert_int_equal(BIND(key), V2P_SUCCESS);
	assert_reach(key, START + PAGE, ACCESS_REMOTE_READ, PAGE);
	assert_reach(key, START + 2 * PAGE - 1, ACCESS_REMOTE_READ, 2 * PAGE - 1);
	assert_no_reach(QPN_1, key, START + PAGE - 1, ACCESS_REMOTE_READ, V2P_LENGTH_ERR);
	assert_no_reach(QPN_1, key, START + 2 * PAGE, ACCESS_REMOTE_READ, V2P_LENGTH_ERR);
	assert_reach(key, PAGE - 1, ACCESS_REMOTE_READ | V2P_RELATIVE, 2 * PAGE - 1);
	assert_no_reach(QPN_1, key, PAGE, ACCESS_REMOTE_READ | V2P_RELATIVE, V2P_LENGTH_ERR);
	assert_no_reach(QPN_1, key, 0, ACCESS_REMOTE_WRITE | V2P_RELATIVE, V2P_FLAGS_ERR);
	assert_no_reach(QPN_1, key, START + PAGE, ACCESS_REMOTE_WRITE, V2P_FLAGS_ERR);
	assert_no_reach(QPN_1, key, START + PAGE, V2P_LOCAL_READ, V2P_FLAGS_ERR);
	assert_no_reach(QPN_1, key, START + PAGE, ACCESS_LOCAL_WRITE, V2P_FLAGS_ERR);
	assert_no_reach(QPN_1, WINDOW, START + PAGE, ACCESS_REMOTE_READ, V2P_KEY_ERR);
}

TEST(window_1__moves_and_is_taken_away)
{
	make();
	assert_int_equal(BIND(WINDOW | TAG(1)), V2P_SUCCESS);
	assert_int_equal(held(REGION), 1);
	/* any queue pair of the PD */
	assert_int_equal(BIND(WINDOW | TAG(2), b->qpn = QPN_2, b->start = START, b->access = ALL),
			 V2P_SUCCESS);
	assert_int_equal(held(REGION), 1);
	assert_no_reach(QPN_1, WINDOW | TAG(1), START + PAGE, ACCESS_REMOTE_READ, V2P_KEY_ERR);
	assert_reach(WINDOW | TAG(2), START, ACCESS_REMOTE_ATOMIC, 0);
	assert_int_equal(v2p_invalidate(fx->e->v2p, FX_PD, QPN_1, WINDOW | TAG(2)), V2P_FLAGS_ERR);
	assert_int_equal(BIND(WINDOW | TAG(3), b->length = 0, b->parent = 0), V2P_SUCCESS);
	assert_int_equal(held(REGION), 0);
	assert_no_reach(QPN_1, WINDOW | TAG(2), START, ACCESS_REMOTE_READ, V2P_KEY_ERR);
	assert_no_reach(QPN_1, WINDOW | TAG(3), START, ACCESS_REMOTE_READ, V2P_KEY_ERR);
}

TEST(window_2__belongs_to_its_queue_pair)
{
	uint32_t key = WINDOW2 | TAG(9);
	struct v2p *v = fx->e->v2p;

	make();
	assert_int_equal(BIND(key), V2P_SUCCESS);
	assert_reach(key, START + PAGE, ACCESS_REMOTE_READ, PAGE);
	assert_no_reach(QPN_2, key, START + PAGE, ACCESS_REMOTE_READ, V2P_PD_ERR);
	assert_int_equal(BIND(WINDOW2 | TAG(10)), V2P_KEY_ERR); /* is bound */
	assert_int_equal(v2p_invalidate(v, FX_PD, QPN_2, key), V2P_PD_ERR);
	assert_int_equal(v2p_invalidate(v, FX_PD + 1, QPN_1, key), V2P_PD_ERR);
	assert_int_equal(v2p_invalidate(v, FX_PD, QPN_1, WINDOW2), V2P_KEY_ERR);
	assert_int_equal(v2p_invalidate(v, FX_PD, QPN_1, key), V2P_SUCCESS);
	assert_int_equal(held(REGION), 0);
	assert_no_reach(QPN_1, key, START + PAGE, ACCESS_REMOTE_READ, V2P_KEY_ERR);
	assert_int_equal(v2p_invalidate(v, FX_PD, QPN_1, key), V2P_KEY_ERR);
	assert_int_equal(BIND(WINDOW2 | TAG(10), b->qpn = QPN_2), V2P_SUCCESS);
	assert_no_reach(QPN_1, WINDOW2 | TAG(10), START + PAGE, ACCESS_REMOTE_READ, V2P_PD_ERR);
	assert_int_equal(v2p_invalidate(v, FX_PD, QPN_2, WINDOW2 | TAG(10)), V2P_SUCCESS);
}

TEST(window_2__zero_based)
{
	uint32_t key = WINDOW2 | TAG(1);

	make();
	assert_int_equal(BIND(key, b->access = ACCESS_ZERO_BASED | ACCESS_REMOTE_WRITE),
			 V2P_SUCCESS);
	assert_reach(key, 0, ACCESS_REMOTE_WRITE, PAGE);
	assert_reach(key, PAGE - 1, ACCESS_REMOTE_WRITE, 2 * PAGE - 1);
	assert_no_reach(QPN_1, key, PAGE, ACCESS_REMOTE_WRITE, V2P_LENGTH_ERR);
	assert_no_reach(QPN_1, key, START + PAGE, ACCESS_REMOTE_WRITE, V2P_LENGTH_ERR);
}

TEST(bind__refusals)
{
	struct v2p *v = fx->e->v2p;
	uint32_t key = WINDOW2 | TAG(1);

	make();
	assert_int_equal(write_entry(0x550a00, FX_PD, ACCESS_MW_BIND, 0), 0);
	assert_int_equal(write_entry(0x550b00, FX_PD, ACCESS_LOCAL_WRITE, 0), 0);
	assert_int_equal(write_entry(0x550c00, FX_PD, ACCESS_MW_BIND | ACCESS_ZERO_BASED, 0), 0);
	assert_int_equal(BIND(0x7707), V2P_KEY_ERR);
	assert_int_equal(BIND(key ^ 0x10000), V2P_KEY_ERR); /* bits that are not the client's */
	assert_int_equal(BIND(REGION | TAG(1)), V2P_KEY_ERR);
	assert_int_equal(BIND(FAST | TAG(1)), V2P_KEY_ERR);
	assert_int_equal(BIND(key, b->pd = FX_PD + 1), V2P_PD_ERR);
	assert_int_equal(BIND(key, b->parent = OTHER), V2P_PD_ERR);
	assert_int_equal(BIND(key, b->parent = 0), V2P_KEY_ERR);
	assert_int_equal(BIND(key, b->parent = REGION | TAG(1)), V2P_KEY_ERR);
	assert_int_equal(BIND(key, b->parent = WINDOW), V2P_KEY_ERR);
	assert_int_equal(BIND(key, b->access |= ACCESS_LOCAL_WRITE), V2P_FLAGS_ERR);
	assert_int_equal(BIND(key, b->access |= ACCESS_MW_BIND), V2P_FLAGS_ERR);
	assert_int_equal(BIND(WINDOW, b->access |= ACCESS_ZERO_BASED), V2P_FLAGS_ERR);
	assert_int_equal(BIND(key, b->parent = 0x550b00), V2P_FLAGS_ERR);
	assert_int_equal(BIND(key, b->parent = 0x550c00, b->start = 0), V2P_FLAGS_ERR);
	assert_int_equal(BIND(key, b->parent = 0x550a00, b->access = ACCESS_REMOTE_WRITE),
			 V2P_FLAGS_ERR);
	assert_int_equal(BIND(key, b->parent = 0x550a00, b->access = ACCESS_REMOTE_ATOMIC),
			 V2P_FLAGS_ERR);
	assert_int_equal(BIND(key, b->length = 0), V2P_LENGTH_ERR);
	assert_int_equal(BIND(key, b->start = START - 1), V2P_LENGTH_ERR);
	assert_int_equal(BIND(key, b->length = BYTES - PAGE + 1), V2P_LENGTH_ERR);
	assert_int_equal(BIND(key, b->length = UINT64_MAX), V2P_LENGTH_ERR);
	assert_int_equal(held(REGION), 0);
	assert_int_equal(held(OTHER), 0);
	assert_int_equal(BIND(key, b->parent = 0x550a00), V2P_SUCCESS);
	assert_int_equal(v2p_invalidate_mpt(v, WINDOW2), 0);
	assert_int_equal(BIND(key), V2P_KEY_ERR); /* is not there any more */
}

TEST(region__stays_while_something_lies_over_it)
{
	struct v2p *v = fx->e->v2p;

	make();
	assert_int_equal(BIND(WINDOW | TAG(1)), V2P_SUCCESS);
	assert_int_equal(BIND(WINDOW2 | TAG(1)), V2P_SUCCESS);
	assert_int_equal(v2p_invalidate_mpt(v, REGION), -EBUSY);
	assert_reach(WINDOW | TAG(1), START + PAGE, ACCESS_REMOTE_READ, PAGE);
	assert_reach(REGION, START, ACCESS_LOCAL_WRITE, 0);
	assert_int_equal(v2p_invalidate_mpt(v, WINDOW), 0); /* bound or not */
	assert_int_equal(v2p_invalidate_mpt(v, REGION), -EBUSY);
	assert_int_equal(v2p_invalidate(v, FX_PD, QPN_1, WINDOW2 | TAG(1)), V2P_SUCCESS);
	assert_int_equal(v2p_invalidate_mpt(v, REGION), 0);
	assert_int_equal(BIND(WINDOW2 | TAG(2)), V2P_KEY_ERR);
	/* the index in use again: nothing is left of the old life */
	assert_int_equal(write_entry(REGION ^ 0x10000, FX_PD, ACCESS_MW_BIND, 0), 0);
	assert_int_equal(BIND(WINDOW2 | TAG(2)), V2P_KEY_ERR);
	assert_int_equal(BIND(WINDOW2 | TAG(2), b->parent = REGION ^ 0x10000), V2P_SUCCESS);
}

static const uint64_t pages[] = {START + PAGE, START + 2 * PAGE};

static struct v2p_registration registration(void)
{
	return (struct v2p_registration){.key = FAST | TAG(7),
					 .parent = REGION,
					 .pd = FX_PD,
					 .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ,
					 .iova = 0x70000100,
					 .length = PAGE,
					 .page = pages,
					 .pages = 2,
					 .log_page = 12};
}

#define REGISTER(...)                                                                              \
	({                                                                                         \
		struct v2p_registration r_ = registration();                                       \
		struct v2p_registration *r = &r_;                                                  \
		__VA_ARGS__;                                                                       \
		v2p_fast_register(fx->e->v2p_port[STAGE_SEGMENTATION], r);                         \
	})

TEST(fast__is_a_region_until_it_is_invalidated)
{
	struct v2p *v = fx->e->v2p;
	uint32_t key = FAST | TAG(7);

	make();
	assert_int_equal(v2p_may_become(v, key), V2P_SUCCESS);
	assert_int_equal(v2p_may_become(v, REGION), V2P_KEY_ERR);
	assert_int_equal(v2p_may_become(v, WINDOW2), V2P_KEY_ERR);
	assert_int_equal(REGISTER(), V2P_SUCCESS);
	assert_reach(key, 0x70000100, ACCESS_REMOTE_READ, PAGE + 0x100);
	assert_reach(key, 0x700010ff, V2P_LOCAL_READ, 2 * PAGE + 0xff);
	assert_reach(key, 0x700010ff, ACCESS_LOCAL_WRITE, 2 * PAGE + 0xff);
	assert_no_reach(QPN_1, key, 0x70001100, V2P_LOCAL_READ, V2P_LENGTH_ERR);
	assert_no_reach(QPN_1, key, 0x70000100, ACCESS_REMOTE_WRITE, V2P_FLAGS_ERR);
	assert_int_equal(REGISTER(r->key = FAST), V2P_KEY_ERR); /* is valid */
	assert_int_equal(held(REGION), 1);
	assert_int_equal(v2p_invalidate_mpt(v, REGION), -EBUSY);
	assert_int_equal(v2p_invalidate(v, FX_PD, QPN_2, key), V2P_SUCCESS);
	assert_no_reach(QPN_1, key, 0x70000100, ACCESS_REMOTE_READ, V2P_KEY_ERR);
	assert_int_equal(held(REGION), 0);
	assert_int_equal(REGISTER(r->key = FAST, r->access = 0, r->pages = 1, r->length = 1),
			 V2P_SUCCESS);
	assert_reach(FAST, 0x70000100, V2P_LOCAL_READ, PAGE + 0x100);
	assert_int_equal(v2p_invalidate_mpt(v, FAST), 0);
	assert_int_equal(held(REGION), 0);
}

TEST(fast__refusals)
{
	static const uint64_t gap[] = {START, START + 2 * PAGE};
	static const uint64_t odd[] = {START + 1, START + 1 + PAGE};
	static const uint64_t out[] = {START + BYTES - PAGE, START + BYTES};

	make();
	assert_int_equal(write_entry(0x550a00, FX_PD, ACCESS_MW_BIND, 0), 0);
	assert_int_equal(REGISTER(r->key = WINDOW2), V2P_KEY_ERR);
	assert_int_equal(REGISTER(r->key = REGION), V2P_KEY_ERR);
	assert_int_equal(REGISTER(r->key ^= 0x10000), V2P_KEY_ERR);
	assert_int_equal(REGISTER(r->pd++), V2P_PD_ERR);
	assert_int_equal(REGISTER(r->parent = OTHER), V2P_PD_ERR);
	assert_int_equal(REGISTER(r->parent = FAST), V2P_KEY_ERR);
	assert_int_equal(REGISTER(r->access = ACCESS_REMOTE_WRITE), V2P_FLAGS_ERR);
	assert_int_equal(REGISTER(r->access |= ACCESS_MW_BIND), V2P_FLAGS_ERR);
	assert_int_equal(REGISTER(r->access |= ACCESS_ZERO_BASED), V2P_FLAGS_ERR);
	assert_int_equal(REGISTER(r->parent = 0x550a00), V2P_FLAGS_ERR);
	assert_int_equal(REGISTER(r->length = 0), V2P_LENGTH_ERR);
	assert_int_equal(REGISTER(r->length = UINT64_MAX - PAGE), V2P_LENGTH_ERR);
	assert_int_equal(REGISTER(r->iova = UINT64_MAX - 1), V2P_LENGTH_ERR);
	assert_int_equal(REGISTER(r->pages = 1), V2P_LENGTH_ERR);
	assert_int_equal(REGISTER(r->pages = 0), V2P_LENGTH_ERR);
	assert_int_equal(REGISTER(r->log_page = 11), V2P_LENGTH_ERR);
	assert_int_equal(REGISTER(r->log_page = 200), V2P_LENGTH_ERR);
	assert_int_equal(REGISTER(r->page = gap), V2P_LENGTH_ERR);
	assert_int_equal(REGISTER(r->page = odd), V2P_LENGTH_ERR);
	assert_int_equal(REGISTER(r->page = out), V2P_LENGTH_ERR);
	assert_int_equal(held(REGION), 0);
}

TEST(entry__replaced_only_if_nobody_changed_it)
{
	struct v2p *v = fx->e->v2p;
	struct mpt_entry old, now;

	make();
	assert_false(v2p_entry_get(v, WINDOW ^ 0x10000, &old));
	assert_true(v2p_entry_get(v, WINDOW, &old));
	assert_int_equal(BIND(WINDOW | TAG(1)), V2P_SUCCESS);
	assert_int_equal(BIND(WINDOW, b->length = 0), V2P_SUCCESS);
	now = old;
	now.key = WINDOW | TAG(5);
	assert_int_equal(v2p_entry_replace(v, 0, &now),
			 V2P_KEY_ERR); /* as it was, but not the same any more */
	assert_true(v2p_entry_get(v, WINDOW, &now));
	assert_int_equal(now.key, 0);
	assert_int_equal(now.owned, WINDOW);
	now.key = WINDOW | TAG(5);
	assert_int_equal(v2p_entry_replace(v, WINDOW, &now), V2P_KEY_ERR);
	assert_int_equal(v2p_entry_replace(v, 0, &now), V2P_SUCCESS);
	assert_int_equal(v2p_entry_replace(v, WINDOW | TAG(5), &now), V2P_KEY_ERR);
	assert_int_equal(v2p_invalidate_mpt(v, WINDOW), 0);
	assert_false(v2p_entry_get(v, WINDOW, &old));
	assert_int_equal(write_entry(WINDOW, FX_PD, 0, MPT_WINDOW_1), 0);
	assert_int_equal(v2p_entry_replace(v, 0, &now), V2P_KEY_ERR);
}
