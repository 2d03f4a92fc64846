/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two HCAs of one daemon that send trains (pipeline/train.h) to each other, while clients post, reset, destroy
 * and take memory away, modules stand, and frames get lost, late or come twice, undivided.
 *
 * Input: steps, each a byte that chooses a row of `steps`, then what the row reads; of an odd number of bytes:
 * to queue pairs that have agreed on selective repeat. Each queue pair has memory of its own at both ends, all of
 * whose bytes say whose they are: what reaches another one's shows.
 */
#include <rte_mbuf.h>
#include "context/early.h"
#include "fuzz.h"
#include "pipeline/stepping.h"
#include "sim.h"

enum {
	QPS = 3,
	STEPS = 16,
	POSTED_MAX = 400, /* receives of a queue pair */
	/* What the requests of an input may cost, in packets: they are what takes time. READs whose
	 * answers fill a poll take PLENTY. */
	FEW = 96,
	PLENTY = 800,
	MTU = 512, /* what p.mtu means */
	SOURCE_BYTES = 20480,
	SINK = SOURCE_BYTES, /* zeros, and what the peer's source has */
	WORDS = SINK + SOURCE_BYTES,
	WORDS_BYTES = 512, /* that the peer adds to */
	RESULTS = WORDS + WORDS_BYTES,
	END = RESULTS + WORDS_BYTES, /* of what is registered */
	REGION_BYTES = END + 1024,
	CLONES = 63,
	QPN_MAX = 0x800000
};

static struct sim *world;
static struct qp rest[2][QPS]; /* contexts as new */
static unsigned int left;      /* of what an input's requests may cost */

/* ---- memory ---- */

static uint8_t *region(unsigned int node, unsigned int qp)
{
	return world->node[node].memory + qp * REGION_BYTES;
}

static uint8_t tag(unsigned int node, unsigned int qp)
{
	return (uint8_t)(0x10 * (node + 1) + qp + 1);
}

static uint64_t word_of(unsigned int qp)
{
	return (uint64_t)(qp + 1) << 48;
}

static void fill(unsigned int node, unsigned int qp)
{
	uint8_t *at = region(node, qp);

	memset(at, tag(node, qp), SOURCE_BYTES);
	memset(at + SINK, 0, REGION_BYTES - SINK);
	for (unsigned int i = 0; i < WORDS_BYTES / 8; i++)
		((uint64_t *)(at + WORDS))[i] = word_of(qp);
}

/* Whether each of the bytes, which are aligned and a multiple of eight, has bits of `value` alone. */
FUZZ_PLAIN static bool within(const uint8_t *at, unsigned int bytes, uint8_t value)
{
	uint64_t wrong = 0, all = value * 0x0101010101010101ull;
	const uint64_t *words = (const uint64_t *)at;

	for (unsigned int i = 0; i < bytes / 8; i++)
		wrong |= words[i] & ~all;
	return !wrong;
}

/* Whether the bytes, of the same kind, are all `value`. */
FUZZ_PLAIN static bool all_are(const uint8_t *at, unsigned int bytes, uint8_t value)
{
	uint64_t wrong = 0, all = value * 0x0101010101010101ull;
	const uint64_t *words = (const uint64_t *)at;

	for (unsigned int i = 0; i < bytes / 8; i++)
		wrong |= words[i] ^ all;
	return !wrong;
}

static void judge(unsigned int node, unsigned int qp)
{
	const uint8_t *at = region(node, qp);
	const uint64_t *words = (const uint64_t *)(at + WORDS);

	REQUIRE(all_are(at, SOURCE_BYTES, tag(node, qp)));
	REQUIRE(within(at + SINK, SOURCE_BYTES, tag(!node, qp)));
	REQUIRE(within(at + END, REGION_BYTES - END, 0));
	for (unsigned int i = 0; i < WORDS_BYTES / 8; i++)
		REQUIRE(words[i] >> 48 == qp + 1);
	words += WORDS_BYTES / 8;
	for (unsigned int i = 0; i < WORDS_BYTES / 8; i++)
		REQUIRE(!words[i] || words[i] >> 48 == qp + 1);
}

static void for_each(void (*what)(unsigned int node, unsigned int qp))
{
	for (unsigned int i = 0; i < 2 * QPS; i++)
		what(i % 2, i / 2);
}

static uint32_t key_of(unsigned int node, unsigned int qp)
{
	return world->node[node].key + 0x100 * (qp + 2);
}

static void ceu(unsigned int node, enum ceu_op op, uint32_t number, const void *in, uint32_t bytes)
{
	REQUIRE(ceu_exec(world->node[node].ceu, op, number, in, bytes, NULL, 0) == CEU_OK);
}

static void enregister(unsigned int node, unsigned int qp)
{
	const struct sim_node *n = &world->node[node];
	struct mpt_entry e = {.key = key_of(node, qp),
			      .pd = sim_context(world, (int)node, qp)->pd,
			      .access = 0xf,
			      .start = n->va + qp * REGION_BYTES,
			      .length = END,
			      .phys = region(node, qp)};

	ceu(node, CEU_SW2HW_MPT, v2p_index(&n->hca->v2p, e.key), &e, sizeof(e));
}

/* ---- steps ---- */

static void take_results(void)
{
	struct cqe c;
	struct eqe e;

	for (int node = 0; node < 2; node++) {
		while (sim_poll_cq(world, node, &c))
			;
		while (sim_poll_event(world, node, &e))
			;
	}
}

static void go(unsigned int steps)
{
	while (steps--) {
		sim_step(world);
		take_results();
	}
}

/* Several alike, which may travel as one; or one of many packets. */
static void post(struct fuzz_bytes *b)
{
	static const uint8_t opcodes[] = {USER_RDMA_WRITE, USER_SEND,	     USER_RDMA_READ,
					  USER_ATOMIC_FA,  USER_ATOMIC_CS,   USER_RDMA_WRITE_IMM,
					  USER_SEND_IMM,   USER_ATOMIC_WRITE};
	uint8_t who = fuzz_u8(b), how = fuzz_u8(b), opcode = opcodes[how % 8];
	unsigned int node = who & 1, qp = (who >> 1) % QPS, count = 1 + (fuzz_u8(b) & 31);
	bool to = opcode != USER_RDMA_READ, word = sim_traits[opcode] & USER_EIGHT_BYTES;
	uint64_t base = qp * REGION_BYTES, mine = to ? 0 : SINK, theirs = to ? SINK : 0;
	uint32_t bytes = fuzz_u16(b) % SOURCE_BYTES, first, cost;
	struct sim_wr wr = {.opcode = opcode,
			    .rkey = key_of(!node, qp),
			    .fence = who >> 4 & 1,
			    .swap_add = opcode == USER_ATOMIC_CS ? word_of(qp) + 1 : 1,
			    .compare = word_of(qp)};

	bytes = word ? 8 : how & 8 ? bytes : bytes % 600;
	first = how & 16 ? bytes / 3 : 0;
	if (opcode == USER_ATOMIC_FA || opcode == USER_ATOMIC_CS)
		mine = RESULTS, theirs = WORDS;
	wr.remote = base + theirs + (word ? 8 * (how >> 4) : 0);
	wr.sge[0] = (struct sim_sge){base + mine, word ? 8 : bytes - first, key_of(node, qp)};
	wr.sge[1] = (struct sim_sge){base + mine + bytes - first, first, key_of(node, qp)};
	wr.sges = first && !word ? 2 : bytes ? 1 : 0;
	cost = 4 + bytes / MTU;
	while (count-- && cost <= left) {
		left -= cost;
		wr.unsignaled = count && how >> 5 & 1;
		if (wr.sges == 1 && !word && who >> 5 & 1) /* of unlike lengths */
			wr.sge[0].length = bytes - count % RTE_MIN(bytes, 3u);
		sim_post(world, (int)node, qp, &wr);
	}
}

static void receive(struct fuzz_bytes *b)
{
	uint8_t who = fuzz_u8(b), count = 1 + (fuzz_u8(b) & 31);
	unsigned int node = who & 1, qp = (who >> 1) % QPS;
	uint32_t bytes = fuzz_u16(b) % SOURCE_BYTES, key = key_of(node, qp);
	uint64_t at = qp * REGION_BYTES + SINK;
	const struct sim_sge sge[] = {{at, bytes / 2, key},
				      {at + bytes / 2, bytes - bytes / 2, key}};

	while (count-- && world->node[node].qp[qp].rq_posted < POSTED_MAX)
		sim_post_recv_list(world, (int)node, qp, sge, who & 0x80 ? 2 : 1);
}

static void run(struct fuzz_bytes *b)
{
	go(1 + fuzz_u8(b) % 8);
}

/* Until the next timer. */
static void wait_for_timer(struct fuzz_bytes *b)
{
	sim_steal_to_due(world, 1ull << 32);
	go(2);
}

static void set_icrc(enum icrc_mode mode)
{
	for (unsigned int node = 0; node < 2; node++)
		world->node[node].hca->engines->settings.icrc = mode;
}

static void trouble(struct fuzz_bytes *b)
{
	uint8_t what = fuzz_u8(b);

	world->params.whole_trains = what & 0x80;
	set_icrc(what & 0x40 ? ICRC_ALWAYS : ICRC_NEVER);
	world->faults = (struct sim_faults){.loss_ppm = (what & 3) * 100000,
					    .duplicate_ppm = (what >> 2 & 3) * 300000,
					    .reorder_ppm = (what >> 4 & 3) * 200000,
					    .delay_ns = 9000};
}

static void stand(struct fuzz_bytes *b)
{
	uint8_t which = fuzz_u8(b);
	struct engine *e = world->node[which & 1].hca->engines;

	stepping_set(e, 1u << (which >> 1) % MODULE_COUNT);
	go(1 + fuzz_u8(b) % 8);
	if (which < 0x80)
		stepping_set(e, 0);
}

static void connect_qp(int node, unsigned int qp)
{
	sim_modify(world, node, qp, QP_INIT, 0);
	sim_modify(world, node, qp, QP_RTR, 0);
	sim_modify(world, node, qp, QP_RTS, 0);
}

static void change_state(struct fuzz_bytes *b)
{
	uint8_t who = fuzz_u8(b);
	int node = who & 1;
	unsigned int qp = (who >> 1) % QPS;

	switch (who >> 6) {
	case 0:
		if (qp_state(sim_context(world, node, qp)) == QP_RTS)
			sim_modify(world, node, qp, QP_ERR, 0);
		return;
	case 1:
		sim_renew(world, node, qp);
		connect_qp(node, qp);
		return;
	case 2: /* both ends */
		sim_modify(world, !node, qp, QP_RST, 0);
		connect_qp(!node, qp);
		break;
	}
	sim_modify(world, node, qp, QP_RST, 0);
	connect_qp(node, qp);
}

/* The region goes, and is registered again. What waits before modules that stand goes on without
 * it. */
static void take_memory(struct fuzz_bytes *b)
{
	uint8_t who = fuzz_u8(b);
	unsigned int node = who & 1, qp = (who >> 1) % QPS;

	ceu(node, CEU_HW2SW_MPT, key_of(node, qp), NULL, 0);
	stepping_set(world->node[node].hca->engines, 0);
	go(who >> 5);
	enregister(node, qp);
}

enum { POST = 0, RECEIVE = 3 }; /* rows of steps */
static void (*const steps[])(struct fuzz_bytes *b) = {
	post, post, post, receive, run, wait_for_timer, trouble, stand, change_state, take_memory,
};

/* ---- the world ---- */

static void stop(void)
{
	if (world)
		sim_destroy(world);
	world = NULL;
}

static void start(void)
{
	static bool before;
	struct sim_params p = SIM_PARAMS_DEFAULT;

	if (world)
		return;
	p.payload_refs = p.whole_trains = p.no_credits = true;
	p.qps = QPS;
	p.mtu = 2; /* MTU */
	p.timeout = 5;
	p.retry_cnt = p.rnr_retry = 1;
	p.max_rd_atomic = READS_MAX;
	p.memory_bytes = RTE_ALIGN_CEIL(QPS * REGION_BYTES, 4096);
	p.packets = 383;
	p.clones = CLONES;
	world = sim_create(&p);
	for_each(enregister);
	for_each(fill);
	if (!before)
		atexit(stop);
	before = true;
}

static void settle(void)
{
	for (unsigned int i = 0; !sim_settle(world, 1000000000ull); i++) {
		REQUIRE(i < 100);
		take_results();
	}
	take_results();
}

/* Nothing has happened to it since renew(). */
static bool at_rest(unsigned int node, unsigned int qp)
{
	const struct sim_qp *q = &world->node[node].qp[qp];

	return !q->posted && !q->rq_posted &&
	       !memcmp(sim_context(world, (int)node, qp), &rest[node][qp], sizeof(struct qp));
}

/* Queue pairs as new: those at whose ends something has happened. */
static void renew(void)
{
	world->now_ns = RTE_ALIGN_CEIL(world->now_ns + 1, 1ull << 30); /* timers: same places */
	world->rng = world->params.seed;
	for (unsigned int qp = 0; qp < QPS; qp++) {
		if (at_rest(0, qp) && at_rest(1, qp))
			continue;
		for (int node = 0; node < 2; node++)
			sim_modify(world, node, qp, QP_RST, 0);
		for (int node = 0; node < 2; node++)
			connect_qp(node, qp);
		for (unsigned int node = 0; node < 2; node++)
			rest[node][qp] = *sim_context(world, (int)node, qp);
	}
	take_results();
}

/* All are at rest. Writes what RESET and connecting again would. */
static void agree(bool equal)
{
	world->params.equal = equal;
	for (unsigned int i = 0; i < 2 * QPS; i++) {
		struct qp *q = sim_context(world, (int)i % 2, i / 2);

		q->agreed = equal ? AGREED_ASKED | AGREED_REPEAT : 0;
		q->rrc.peer_keeps = equal ? PEER_TRUST : 0;
		rest[i % 2][i / 2] = *q;
	}
}

static void restore(void)
{
	bool spent = false;

	world->faults = (struct sim_faults){0};
	for (unsigned int node = 0; node < 2; node++)
		stepping_set(world->node[node].hca->engines, 0);
	settle();
	if (rte_mempool_in_use_count(world->clones)) { /* early packets, for so long */
		sim_steal(world, 2 * EARLY_NS);
		settle();
	}
	for_each(judge);
	REQUIRE(sim_quiet(world));
	REQUIRE(!rte_mempool_in_use_count(world->clones));
	world->params.whole_trains = true;
	set_icrc(ICRC_NEVER);
	renew();
	for_each(fill);
	for (unsigned int i = 0; i < 2 * QPS; i++)
		spent |= world->node[i % 2].qp[i / 2].qpn > QPN_MAX;
	if (spent) /* numbers are never used twice */
		stop();
}

/* One input in sixteen, by its hash. If its length said so, most of what libFuzzer keeps would soon
 * be such inputs. */
static bool has_plenty(struct fuzz_bytes b)
{
	unsigned int hash = 0;

	while (b.left)
		hash = 31 * hash + fuzz_u8(&b);
	return hash % 16 == 6;
}

static void execute(struct fuzz_bytes b)
{
	left = has_plenty(b) ? PLENTY : FEW;
	for (unsigned int i = 0; b.left && i < STEPS; i++) {
		steps[fuzz_u8(&b) % RTE_DIM(steps)](&b);
		go(1);
	}
	restore();
}

/* A message of each kind, one by one: what begins with them shows. */
static void learn_background(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	for (uint8_t kind = 0; kind < 8; kind++) {
		const uint8_t input[] = {RECEIVE, 1, 0, 100, 0, POST, 0, kind, 0, 64, 0};

		execute((struct fuzz_bytes){input, sizeof(input)});
	}
	fuzz_background();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	start();
	learn_background();
	agree(size & 1);
	execute((struct fuzz_bytes){data, size});
	fuzz_hide_background();
	return 0;
}
