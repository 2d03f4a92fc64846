/* SPDX-License-Identifier: BSD-3-Clause */
/* MRs of memory that the program had before, of every kind: data moves through a whole daemon. */
#include <sys/mman.h>
#include <sys/resource.h>
#include "client_priv.h"
#include "pair.h"

enum { BYTES = 50000 };
static uint8_t data[BYTES] = {1};
static uint8_t bss[BYTES];
static const uint8_t constant[BYTES] = {[0] = 1, [4096] = 2, [BYTES - 1] = 3};

static void fill(uint8_t *at, size_t bytes, unsigned int seed)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(i * 3 + (i >> 8) + seed);
}

static void move(struct pair *p, enum softhca_wr_opcode opcode, uint64_t local, uint32_t lkey,
		 uint64_t remote, uint32_t rkey, uint32_t bytes)
{
	struct softhca_sge sge = {.addr = local, .length = bytes, .lkey = lkey};
	struct softhca_send_wr wr = {.wr_id = 7,
				     .sg_list = &sge,
				     .num_sge = 1,
				     .opcode = opcode,
				     .wr.rdma = {remote, rkey}};
	struct softhca_wc wc;

	put(p, &wr, &wc);
}

/* Out of it by WRITE, into it by READ. */
static void there_and_back(struct pair *p, uint8_t *at, size_t bytes)
{
	struct softhca_mr *mr = softhca_reg_mr(p->pd, at, bytes, 0xf);

	assert_non_null(mr);
	fill(at, bytes, 1);
	move(p, SOFTHCA_WR_RDMA_WRITE, (uintptr_t)at, mr->lkey, (uintptr_t)p->memory, p->mr->rkey,
	     (uint32_t)bytes);
	assert_memory_equal(p->memory, at, bytes);
	fill(p->memory, bytes, 2);
	move(p, SOFTHCA_WR_RDMA_READ, (uintptr_t)at, mr->lkey, (uintptr_t)p->memory, p->mr->rkey,
	     (uint32_t)bytes);
	assert_memory_equal(p->memory, at, bytes);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	assert_memory_equal(p->memory, at, bytes);
}

#undef TEST
#define TEST(name) TEST_STATE(name, start, stop, NULL)

TEST(each_kind__there_and_back)
{
	uint8_t stack[BYTES], *heap = malloc(BYTES);
	uint8_t *anonymous =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = memfd_create("theirs", MFD_CLOEXEC);
	uint8_t *shared = ftruncate(fd, 65536)
				  ? MAP_FAILED
				  : mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct pair p;

	pair_open(&p, SOFTHCA_QP_RC);
	for (int i = 0; i < 3; i++) {
		there_and_back(&p, heap + i, BYTES - 10);
		there_and_back(&p, stack + i, BYTES - 10);
		there_and_back(&p, data + i, BYTES - 10);
		there_and_back(&p, bss + i, BYTES - 10);
		there_and_back(&p, anonymous + i, BYTES - 10);
		there_and_back(&p, shared + i, BYTES - 10);
	}
	there_and_back(&p, p.memory + (1 << 19), BYTES);
	pair_close(&p);
	free(heap);
	munmap(anonymous, BYTES);
	munmap(shared, 65536);
	close(fd);
}

/* In kB, of all mappings of this process. */
static unsigned long long pmd_mapped(void)
{
	FILE *maps = fopen("/proc/self/smaps_rollup", "r");
	unsigned long long kb = 0;
	char line[128];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "ShmemPmdMapped: %llu", &kb) == 1)
			break;
	fclose(maps);
	return kb;
}

/* Are files in memory given pages of 2 MiB where a program advises it? */
static bool system_follows_advice(void)
{
	FILE *setting = fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "r");
	char line[128] = "";

	if (!setting)
		return false;
	if (!fgets(line, sizeof(line), setting))
		line[0] = 0;
	fclose(setting);
	return strstr(line, "[advise]") || strstr(line, "[always]");
}

TEST_PAIR(memory__in_pages_of_2_mib_where_the_system_has_them, SOFTHCA_QP_RC)
{
	unsigned long long before = pmd_mapped();
	uint8_t *memory = softhca_alloc(p->ctx, 64 << 20);

	assert_non_null(memory);
	if (system_follows_advice())
		assert_true(pmd_mapped() > before);
	assert_int_equal(softhca_free(p->ctx, memory), 0);
}

TEST_PAIR(constants__are_read_only, SOFTHCA_QP_RC)
{
	struct softhca_mr *mr;

	assert_fails(softhca_reg_mr(p->pd, (void *)(uintptr_t)constant, BYTES, 1), EFAULT);
	mr = softhca_reg_mr(p->pd, (void *)(uintptr_t)constant, BYTES, SOFTHCA_ACCESS_REMOTE_READ);
	assert_non_null(mr);
	assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 1),
			 -EFAULT);
	move(p, SOFTHCA_WR_RDMA_READ, (uintptr_t)p->memory, p->mr->lkey, (uintptr_t)constant,
	     mr->rkey, BYTES);
	assert_memory_equal(p->memory, constant, BYTES);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	assert_fails(softhca_reg_mr(p->pd, NULL, 4096, 1), EFAULT);
}

TEST(iova__names_the_first_byte)
{
	uint8_t *heap = malloc(BYTES);
	struct softhca_mr *mr, *zero;
	struct pair p;

	pair_open(&p, SOFTHCA_QP_RC);
	fill(heap, BYTES, 5);
	mr = softhca_reg_mr_iova(p.pd, heap + 5, 4096, 0xabcdef0123, 0xf);
	assert_non_null(mr);
	zero = softhca_reg_mr(p.pd, heap + 5, 4096, 0x2f);
	assert_non_null(zero);
	move(&p, SOFTHCA_WR_RDMA_WRITE, 0xabcdef0123 + 96, mr->lkey, (uintptr_t)p.memory,
	     p.mr->rkey, 4000);
	assert_memory_equal(p.memory, heap + 101, 4000);
	move(&p, SOFTHCA_WR_RDMA_READ, (uintptr_t)p.memory, p.mr->lkey, 96, zero->rkey, 4000);
	assert_memory_equal(p.memory, heap + 101, 4000);
	/* New rights leave it, a new place moves it. */
	assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0x5),
			 0);
	move(&p, SOFTHCA_WR_RDMA_READ, (uintptr_t)p.memory, p.mr->lkey, 0xabcdef0123, mr->rkey,
	     4096);
	assert_memory_equal(p.memory, heap + 5, 4096);
	assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL,
					  heap + 20000, 9000, 0),
			 0);
	move(&p, SOFTHCA_WR_RDMA_READ, (uintptr_t)p.memory, p.mr->lkey, (uintptr_t)heap + 20000,
	     mr->rkey, 9000);
	assert_memory_equal(p.memory, heap + 20000, 9000);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	assert_int_equal(softhca_dereg_mr(zero), 0);
	assert_fails(softhca_reg_mr_iova(p.pd, heap, BYTES, UINT64_MAX - 100, 0xf), EINVAL);
	pair_close(&p);
	free(heap);
}

/* Small ones in the same pages, by two contexts, given back in any order and by closing. */
TEST(contexts__share_pages)
{
	enum { N = 64 };
	struct softhca_mr *mr[2][N];
	uint8_t *at[N];
	struct pair p[2];

	for (int c = 0; c < 2; c++)
		pair_open(&p[c], SOFTHCA_QP_RC);
	for (int i = 0; i < N; i++) {
		at[i] = malloc(200);
		fill(at[i], 200, (unsigned int)i);
		for (int c = 0; c < 2; c++) {
			mr[c][i] = softhca_reg_mr(p[c].pd, at[i], 200, 0xf);
			assert_non_null(mr[c][i]);
		}
	}
	for (int i = 0; i < N; i += 2)
		assert_int_equal(softhca_dereg_mr(mr[0][i]), 0);
	for (int i = 0; i < N; i++) {
		move(&p[1], SOFTHCA_WR_RDMA_WRITE, (uintptr_t)at[i], mr[1][i]->lkey,
		     (uintptr_t)at[(i + 1) % N], mr[1][(i + 1) % N]->rkey, 200);
		assert_memory_equal(at[i], at[(i + 1) % N], 200);
	}
	for (int i = 1; i < N; i += 2)
		assert_int_equal(softhca_dereg_mr(mr[0][i]), 0);
	pair_close(&p[0]);
	softhca_close(p[1].ctx); /* with all that is registered */
	for (int i = 1; i < N; i++) {
		assert_memory_equal(at[i], at[0], 200);
		free(at[i]);
	}
	free(at[0]);
}

/* Mappings of two files and of the heap behind one another, no two of them in order: one MR. */
TEST(scattered__is_one_region)
{
	enum { PAGE = 4096, PAGES = 40 };
	int fd[2];
	uint8_t *at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	struct pair p;

	for (int i = 0; i < 2; i++) {
		fd[i] = memfd_create("theirs", MFD_CLOEXEC);
		assert_int_equal(ftruncate(fd[i], PAGES * PAGE), 0);
	}
	for (int i = 0; i < PAGES; i++)
		if (i % 3)
			assert_ptr_equal(mmap(at + i * PAGE, PAGE, PROT_READ | PROT_WRITE,
					      MAP_SHARED | MAP_FIXED, fd[i % 3 - 1],
					      i * 7 % PAGES * PAGE),
					 at + i * PAGE);
	pair_open(&p, SOFTHCA_QP_RC);
	for (int i = 0; i < 3; i++)
		there_and_back(&p, at + 100 * i, PAGES * PAGE - 333);
	pair_close(&p);
	munmap(at, PAGES * PAGE);
	close(fd[0]);
	close(fd[1]);
}

/* Each of them lies elsewhere in the pool: the daemon is asked for pieces before they are needed, and
 * one that is too short for what comes makes room for a longer one. */
TEST(pieces__come_several_at_once)
{
	enum { N = 20, PAGE = 4096 };
	const size_t large = 65 << 20;
	uint8_t *at = mmap(NULL, 2 * N * PAGE + large, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct softhca_mr *mr;
	unsigned int asked = 0;
	uint32_t count;
	struct pair p;

	pair_open(&p, SOFTHCA_QP_RC);
	for (int i = 0; i < N; i++) {
		const uint32_t before = p.ctx->piece_count;

		mr = softhca_reg_mr(p.pd, at + 2 * i * PAGE, PAGE, 0xf);
		assert_non_null(mr);
		asked += p.ctx->piece_count != before;
	}
	/* For 1, 2, 4, 8 and 8; more often where the next one, wherever it came to lie, is in the way. */
	assert_in_range(asked, 5, N - 1);
	count = p.ctx->piece_count;
	assert_in_range(count, N, 2 * N);
	there_and_back(&p, at + 2 * (N - 1) * PAGE, PAGE);
	mr = softhca_reg_mr(p.pd, at + 2 * N * PAGE, large, 0xf);
	assert_non_null(mr);
	assert_int_equal(((struct mr_object *)mr)->region->count, 1);
	assert_in_range(p.ctx->piece_count, 1, count + 1);
	softhca_close(p.ctx); /* with all that is registered */
	munmap(at, 2 * N * PAGE + large);
}

static long faults(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_minflt;
}

/* A byte of each page, without AddressSanitizer's own page faults. */
static __attribute__((no_sanitize("address"), noinline)) void store(uint8_t *at, int pages,
								    int page)
{
	for (int i = 0; i < pages; i++)
		at[i * page] = 1;
}

/* The program's stores into what it has registered cause no page faults; registering takes one for
 * several pages. */
TEST(pages__are_there_once_registered)
{
	enum { PAGES = 256, PAGE = 4096 };
	int fd = memfd_create("theirs", MFD_CLOEXEC);
	uint8_t *at;
	long before, between;
	struct pair p;

	for (int i = 0; i < PAGES; i++)
		assert_int_equal(pwrite(fd, data, PAGE, i * PAGE), PAGE);
	at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	pair_open(&p, SOFTHCA_QP_RC);
	before = faults();
	assert_non_null(softhca_reg_mr(p.pd, at, PAGES * PAGE, 0xf));
	between = faults();
	store(at, PAGES, PAGE);
	assert_int_equal(faults(), between);
	assert_true(between - before < PAGES / 2);
	softhca_close(p.ctx);
	munmap(at, PAGES * PAGE);
	close(fd);
}
