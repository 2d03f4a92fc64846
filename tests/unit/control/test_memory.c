/* SPDX-License-Identifier: BSD-3-Clause */
/* Client memory that fails when it is touched: the handler puts zeroes there, anything else still
 * kills. */
#include <dlfcn.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "client_memory.h"
#include "pieces.h"
#include "raw_client.h"

enum { PAGES = 32, BYTES = PAGES * 4096 };

/* A mapping whose pages have disappeared: another memfd in its place, truncated. */
static void map_and_cut(struct mapping *m)
{
	int sealed = raw_memfd(BYTES, RAW_SEALS), cut = memfd_create("cut", MFD_CLOEXEC);
	const char *why;

	assert_int_equal(memory_map(sealed, BYTES, MEMORY_SEAL_SEALED, m, &why), 0);
	assert_int_equal(ftruncate(cut, BYTES), 0);
	assert_ptr_equal(
		mmap(m->base, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, cut, 0),
		m->base);
	assert_int_equal(ftruncate(cut, 0), 0);
	close(cut);
	close(sealed);
}

TEST(sigbus__pages_become_zero)
{
	struct mapping m;
	uint64_t total = memory_faults_total();

	assert_int_equal(memory_guard(), 0); /* cmocka has put its own there */
	map_and_cut(&m);
	((volatile uint8_t *)m.base)[0] = 5;
	assert_int_equal(((volatile uint8_t *)m.base)[4096 + 17], 0);
	assert_int_equal(m.base[0], 5);
	assert_int_equal(memory_faults(&m), 2);
	assert_int_equal(memory_faults_total() - total, 2);
	/* after a few the rest goes in one piece: nobody can use up the daemon's mappings */
	for (int i = 2; i < PAGES; i++)
		assert_int_equal(((volatile uint8_t *)m.base)[i * 4096], 0);
	assert_int_equal(memory_faults(&m), 9);
	memory_unmap(&m);
	assert_null(m.base);
}

/* Accessing a page that the file does not have brings none in, neither there nor, in numbers, here. */
TEST(missing__pages_stay_so)
{
	raw_need_userfaultfd();
	assert_int_equal(memory_guard(), 0);
	for (int read_only = 0; read_only < 2; read_only++) {
		int fd = memfd_create("sparse", MFD_CLOEXEC);
		unsigned char there[PAGES];
		unsigned int present = 0;
		struct mapping m;
		struct stat st;
		const char *why;

		assert_int_equal(ftruncate(fd, BYTES), 0);
		assert_int_equal(pwrite(fd, "there", 5, 4096), 5);
		assert_int_equal(memory_map_piece(fd, 0, BYTES, read_only, &m, &why), 0);
		assert_memory_equal(m.base + 4096, "there", 5);
		assert_int_equal(memory_faults(&m), 0);
		for (int i = 2; i < PAGES; i++)
			if (read_only)
				assert_int_equal(((volatile uint8_t *)m.base)[i * 4096], 0);
			else
				((volatile uint8_t *)m.base)[i * 4096] = 1;
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_blocks, 8);
		assert_int_equal(memory_faults(&m), 9);
		assert_int_equal(mincore(m.base, BYTES, there), 0);
		for (int i = 0; i < PAGES; i++)
			present += there[i] & 1;
		assert_in_range(present, 1, 8);
		memory_unmap(&m);
		close(fd);
	}
}

/* A file's pages may be said to be larger than where it is mapped allows (tmpfs with huge pages):
 * what lies around the mapping is left alone. */
TEST(sigbus__within_the_mapping)
{
	enum { PAGE = 4096 };
	uint8_t *at =
		mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int cut = memfd_create("cut", MFD_CLOEXEC);
	struct mapping m;
	const char *why;

	assert_int_equal(memory_guard(), 0);
	memset(at, 7, 3 * PAGE);
	assert_int_equal(ftruncate(cut, PAGE), 0);
	assert_ptr_equal(
		mmap(at + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, cut, 0),
		at + PAGE);
	assert_int_equal(ftruncate(cut, 0), 0);
	assert_int_equal(memory_adopt(at + PAGE, PAGE, 4 * PAGE, PROT_READ | PROT_WRITE, &m, &why),
			 0);
	assert_int_equal(((volatile uint8_t *)at)[PAGE], 0);
	assert_int_equal(at[0], 7);
	assert_int_equal(at[2 * PAGE], 7);
	memory_unmap(&m);
	munmap(at, PAGE);
	munmap(at + 2 * PAGE, PAGE);
	close(cut);
}

/* Nor is more replaced than the page that failed, though the mapping begins within it. */
TEST(sigbus__within_the_page)
{
	enum { PAGE = 4096 };
	uint8_t *room =
		mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *at = (uint8_t *)(((uintptr_t)room | (4 * PAGE - 1)) + 1 - PAGE);
	int cut = memfd_create("cut", MFD_CLOEXEC);
	struct mapping m;
	const char *why;

	assert_int_equal(memory_guard(), 0);
	memset(room, 7, 8 * PAGE);
	assert_ptr_equal(mmap(at, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, cut, 0), at);
	assert_int_equal(memory_adopt(at, 2 * PAGE, 4 * PAGE, PROT_READ, &m, &why), 0);
	assert_int_equal(((volatile uint8_t *)at)[0], 0);
	assert_int_equal(at[PAGE], 7);
	memory_unmap(&m);
	munmap(room, 8 * PAGE);
	close(cut);
}

TEST(sigbus__elsewhere_kills)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		int cut = memfd_create("cut", MFD_CLOEXEC);
		volatile uint8_t *at;

		signal(SIGBUS, SIG_DFL);
		memory_guard();
		at = ftruncate(cut, 4096)
			     ? NULL
			     : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, cut, 0);
		if (ftruncate(cut, 0) == 0)
			at[0] = 1;
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

static sigjmp_buf back;

static void jump_back(int sig)
{
	siglongjmp(back, sig);
}

/* As EAL's while it maps a hugepage: a client's fault would jump from an lcore into the thread that maps. */
TEST(sigbus__of_clients_stays_ours)
{
	const struct sigaction theirs = {.sa_handler = jump_back};
	struct sigaction before, seen;
	struct mapping m, other;

	assert_int_equal(memory_guard(), 0);
	assert_int_equal(sigaction(SIGBUS, &theirs, &before), 0);
	map_and_cut(&m);
	map_and_cut(&other);
	memory_unguard(other.range);
	if (sigsetjmp(back, 1))
		fail_msg("a client's fault reached another's handler");
	assert_int_equal(((volatile uint8_t *)m.base)[0], 0);
	assert_int_equal(memory_faults(&m), 1);
	if (!sigsetjmp(back, 1))
		fail_msg("%d in what is no client's", ((volatile uint8_t *)other.base)[0]);
	assert_int_equal(sigaction(SIGBUS, &before, &seen), 0);
	assert_ptr_equal(seen.sa_handler, jump_back);
	/* Libraries find it, too. */
	assert_ptr_equal(dlsym(RTLD_DEFAULT, "sigaction"), (void *)(uintptr_t)sigaction);
	memory_unmap(&m);
	memory_unmap(&other);
}

TEST(ranges__are_reused)
{
	struct mapping m[3];
	int fd = raw_memfd(4096, RAW_SEALS);
	const char *why;
	uint32_t middle;

	for (int i = 0; i < 3; i++)
		assert_int_equal(memory_map(fd, 4096, 0, &m[i], &why), 0);
	middle = m[1].range;
	memory_unmap(&m[1]);
	assert_int_equal(memory_map(fd, 4096, 0, &m[1], &why), 0);
	assert_int_equal(m[1].range, middle);
	for (int i = 0; i < 3; i++)
		memory_unmap(&m[i]);
	close(fd);
}

/* Clients of one user, not served. */
static struct control control;
static struct client client = {.control = &control}, brother = {.control = &control};

static int with_shares(void **state)
{
	TAILQ_INIT(&control.long_turns);
	TAILQ_INIT(&control.long_deferred);
	control.shares = shares_create(1);
	shares_set_total(control.shares, SHARE_mappings, 0, memory_ranges_max());
	share_client_begin(control.shares, 1000, 0, &client.shares);
	share_client_begin(control.shares, 1000, 0, &brother.shares);
	return 0;
}

static int without(void **state)
{
	pieces_unmap_all(&control);
	share_client_end(&client.shares);
	share_client_end(&brother.shares);
	shares_destroy(control.shares);
	return 0;
}

/* Mappings being unmapped still count towards the kernel's limit for a process. */
TEST_WITH(ranges__count_until_they_are_unmapped, with_shares, without)
{
	static struct mapping m[1 << 16];
	struct piece piece = {.object.client = &client};
	int fd = raw_memfd(4096, 0);
	uint32_t n = 0;
	const char *why;

	while (memory_map_piece(fd, 0, 4096, false, &m[n], &why) == 0)
		n++;
	assert_int_equal(mapping_charge(&client, 4096), 0);
	piece.mapping = m[--n];
	piece_unmap(&piece);
	assert_int_equal(memory_map_piece(fd, 0, 4096, false, &m[n], &why), -ENOSPC);
	pieces_turn(&control);
	assert_false(pieces_pending(&control));
	assert_int_equal(memory_map_piece(fd, 0, 4096, false, &m[n], &why), 0);
	for (; n != UINT32_MAX; n--)
		memory_unmap(&m[n]);
	close(fd);
}

/* A request waits for what is leaving only if that gets it room, and unmaps nothing itself, which would delay others. */
TEST_WITH(pieces__wait_for_room_that_comes, with_shares, without)
{
	static const struct {
		uint64_t bytes; /* MiB */
		int before, after;
	} row[] = {{2 << 20, -ENOSPC, -ENOSPC}, /* more than a piece may have */
		   {257, -ENOSPC, -ENOSPC},	/* than a client may */
		   {160, 0, 0},
		   {161, -EAGAIN, 0},
		   {256, -EAGAIN, 0}};
	struct piece piece = {.object.client = &client};
	int fd = raw_memfd(96 << 20, 0), rc;
	struct share_info info;
	const char *why;

	/* 512 MiB for one user, 256 for one client */
	shares_set_total(control.shares, SHARE_mapped_bytes, 0, 1024 << 20);
	assert_int_equal(mapping_charge(&brother, 256 << 20), 0);
	assert_int_equal(mapping_charge(&client, 96 << 20), 0);
	assert_int_equal(memory_map_piece(fd, 0, 96 << 20, false, &piece.mapping, &why), 0);
	piece_unmap(&piece);
	for (int leaves = 1; leaves >= 0; leaves--) {
		for (unsigned int i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
			rc = mapping_charge(&client, row[i].bytes << 20);
			assert_int_equal(rc, leaves ? row[i].before : row[i].after);
			if (rc == 0)
				mapping_uncharge(&client, row[i].bytes << 20);
			shares_info(control.shares, SHARE_mapped_bytes, 0, &info);
			assert_int_equal(info.used >> 20, 256 + leaves * 96);
		}
		pieces_unmap_all(&control);
	}
	close(fd);
}

TEST(numbers__grow_and_run_out)
{
	static struct object objects[65];
	struct table t;

	assert_int_equal(table_create(&t, 4, 64, 24, 0), 0);
	for (int i = 0; i < 64; i++) {
		assert_int_equal(table_add(&t, &objects[i]), 0);
		assert_true(objects[i].number >> 24 == 0 && objects[i].number >= 64);
	}
	assert_int_equal(table_add(&t, &objects[64]), -ENOSPC);
	for (int i = 0; i < 64; i++)
		assert_ptr_equal(table_find(&t, objects[i].number, NULL), &objects[i]);
	for (int i = 0; i < 1000; i++) {
		uint32_t before = objects[7].number;

		table_remove(&t, &objects[7]);
		assert_null(table_find(&t, before, NULL));
		assert_int_equal(table_add(&t, &objects[7]), 0);
		assert_int_not_equal(objects[7].number, before);
		assert_int_equal(objects[7].number & 63, before & 63);
	}
	table_destroy(&t);
}

/* What a table keeps, nobody gets by chance: neither that number nor its place. */
TEST(numbers__one_is_kept)
{
	static struct object objects[16], kept, second;
	struct table t;

	assert_int_equal(table_create(&t, 16, 16, 24, 0), 0);
	assert_int_equal(table_add_reserved(&t, &kept), -ENOSPC);
	t.reserved = 1;
	for (int i = 0; i < 15; i++) {
		assert_int_equal(table_add(&t, &objects[i]), 0);
		assert_int_not_equal(objects[i].number & 15, 1);
	}
	assert_int_equal(table_add(&t, &objects[15]), -ENOSPC);
	assert_int_equal(table_add_reserved(&t, &kept), 0);
	assert_int_equal(kept.number, 1);
	assert_ptr_equal(table_find(&t, 1, NULL), &kept);
	assert_int_equal(table_add_reserved(&t, &second), -EBUSY);
	table_remove(&t, &kept);
	assert_null(table_find(&t, 1, NULL));
	assert_int_equal(table_add(&t, &objects[15]), -ENOSPC);
	assert_int_equal(table_add_reserved(&t, &second), 0);
	table_destroy(&t);
}

/* All ones is the QPN of multicast packets. */
TEST(numbers__never_all_ones)
{
	static struct object objects[4];
	uint32_t seen = 0;
	struct table t;

	assert_int_equal(table_create(&t, 4, 4, 5, 0), 0);
	for (int i = 0; i < 1000; i++) {
		struct object *o = &objects[i % 4];

		if (i >= 4)
			table_remove(&t, o);
		assert_int_equal(table_add(&t, o), 0);
		seen |= 1u << o->number;
	}
	assert_int_equal(seen, 0x7ffffff0);
	table_destroy(&t);
}

/* Keys: a tag below the place. What lies above both differs at each reuse and is not zero, so that
 * no tag that an owner may choose makes it 0 or somebody's former key. */
TEST(numbers__keys_reused)
{
	static struct object objects[16];
	const uint32_t tag = (1u << KEY_TAG_BITS) - 1;
	uint32_t tags = 0;
	struct table t;

	assert_int_equal(table_create(&t, 16, 16, 32, KEY_TAG_BITS), 0);
	for (uint32_t i = 0; i < 16; i++) {
		assert_int_equal(table_add(&t, &objects[i]), 0);
		assert_int_equal(objects[i].number >> KEY_TAG_BITS & 15, i);
	}
	for (int i = 0; i < 1000; i++) {
		uint32_t before = objects[0].number;

		assert_ptr_equal(table_find(&t, before, NULL), &objects[0]);
		assert_null(table_find(&t, before ^ 1, NULL));
		table_remove(&t, &objects[0]);
		assert_int_equal(table_add(&t, &objects[0]), 0);
		assert_int_equal(objects[0].number >> KEY_TAG_BITS & 15, 0);
		assert_int_not_equal(objects[0].number & ~tag, before & ~tag);
		assert_int_not_equal(objects[0].number & ~tag, 0);
		tags |= 1u << (objects[0].number & 31);
	}
	assert_int_equal(tags, UINT32_MAX);
	table_destroy(&t);
}

/* MTT entries in blocks of any size, in any order: none is given twice, all come back as one. */
TEST(mtt_space__blocks_never_overlap)
{
	enum { ENTRIES = 4096, BLOCKS = 64 };
	static struct {
		uint32_t first, size;
	} block[BLOCKS];
	static bool taken[ENTRIES];
	struct mtt_space s;
	uint32_t first, refused = 0;

	assert_int_equal(mtt_space_size(1), 4);
	assert_int_equal(mtt_space_size(4), 4);
	assert_int_equal(mtt_space_size(5), 8);
	assert_int_equal(mtt_space_size((1u << MTT_INDEX_BITS_MAX) + 1), 0);
	assert_int_equal(mtt_space_create(&s, ENTRIES), 0);
	assert_false(mtt_space_take(&s, 2 * ENTRIES, &first));
	for (int i = 0; i < 20000; i++) {
		uint32_t k = control_random() % BLOCKS, size = block[k].size;

		if (size) {
			memset(taken + block[k].first, false, size);
			mtt_space_put(&s, block[k].first, size);
			block[k].size = 0;
			continue;
		}
		size = mtt_space_size(1 +
				      (control_random() & 1023) % (1 + (control_random() & 1023)));
		if (!mtt_space_take(&s, size, &first)) {
			refused++;
			continue;
		}
		assert_true(first % size == 0 && first + size <= ENTRIES);
		for (uint32_t e = first; e < first + size; e++) {
			assert_false(taken[e]);
			taken[e] = true;
		}
		block[k].first = first;
		block[k].size = size;
	}
	assert_in_range(refused, 1, 19999);
	for (int k = 0; k < BLOCKS; k++)
		if (block[k].size)
			mtt_space_put(&s, block[k].first, block[k].size);
	assert_true(mtt_space_take(&s, ENTRIES, &first));
	assert_int_equal(first, 0);
	mtt_space_destroy(&s);
}
