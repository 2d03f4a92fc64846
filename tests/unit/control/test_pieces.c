/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of files and MRs in them: what is accepted, what is refused, where VirtToPhys finds the
 * bytes, and what a hostile client can do to the memory that it gave. */
#include <linux/mount.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include "control_priv.h"
#include "hca_test.h"
#include "raw_client.h"

enum { PAGE = 4096 };

static int add(const struct raw *r, int fd, uint64_t offset, uint64_t bytes, uint32_t *piece)
{
	const struct control_piece in = {.offset = offset, .bytes = bytes};

	return raw_add_piece(r->fd, fd, &in, piece);
}

/* An MR of one run, as soon as it is there taken back. */
static int reg(const struct raw *r, uint32_t piece, uint64_t offset, uint64_t bytes,
	       uint32_t access)
{
	const struct control_mr in = {
		.pd = r->pd, .access = access, .count = 1, .run = {{piece, 0, offset, bytes}}};
	uint32_t lkey;
	int rc = raw_reg_mr(r->fd, &in, &lkey);

	return rc ? rc : raw_number(r->fd, CONTROL_DEREG_MR, lkey);
}

/* Of these one client gets 20 mappings, 20 ranges and 4 TiB. */
static struct fixture_total few[] = {{SHARE_mappings, 40},
				     {SHARE_ranges, 80},
				     {SHARE_mapped_bytes, (16ull << 40) + (1 << 30)},
				     {0}};

CLIENT_TEST(pieces__each_wrong_one)
{
	static const struct {
		uint64_t offset, bytes;
	} wrong[] = {{16 * PAGE, PAGE},
		     {15 * PAGE, 2 * PAGE},
		     {1, PAGE},
		     {512, PAGE},
		     {0, 0},
		     {UINT64_MAX - PAGE + 1, PAGE},
		     {1ull << 63, PAGE},
		     {0, UINT64_MAX - PAGE + 1},
		     {UINT64_MAX, UINT64_MAX},
		     {0, (1ull << 40) + PAGE}};
	int fd = raw_memfd(16 * PAGE, 0);
	struct control_piece in = {.bytes = PAGE};
	uint32_t piece;

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(add(&r, fd, wrong[i].offset, wrong[i].bytes, NULL), -EINVAL);
	in.flags = 2;
	assert_int_equal(raw_add_piece(r.fd, fd, &in, NULL), -EINVAL);
	in.flags = 0;
	in.reserved = 1;
	assert_int_equal(raw_add_piece(r.fd, fd, &in, NULL), -EINVAL);
	/* Its bytes, and none beyond. */
	assert_int_equal(add(&r, fd, 3 * PAGE, 2 * PAGE, &piece), 0);
	assert_int_equal(reg(&r, piece, 5, 2 * PAGE - 5, 0xf), 0);
	assert_int_equal(reg(&r, piece, 5, 2 * PAGE - 4, 0xf), -EINVAL);
	assert_int_equal(raw_number(r.fd, CONTROL_DROP_PIECE, piece + 1), -ENOENT);
	assert_int_equal(raw_number(r.fd, CONTROL_DROP_PIECE, piece), 0);
	assert_int_equal(reg(&r, piece, 0, PAGE, 0xf), -ENOENT);
	close(fd);
}

/* As many as the file has, and as the client may have. */
TEST_STATE(pieces__several_at_once, start, stop, few)
{
	/* The first of them lies behind the file, the second in it. */
	struct control_pieces in = {
		.first = {.offset = 64 * PAGE, .bytes = PAGE}, .stride = -PAGE, .count = 8};
	struct control_pieces_reply out;
	int fd = raw_memfd(64 * PAGE, 0);
	struct raw r = raw_client(f.path); /* has two: its page, and one */

	assert_int_equal(raw_add_pieces(r.fd, fd, &in, &out), -EINVAL);
	in.first.offset = 0;
	in.stride = 4 * PAGE;
	assert_int_equal(raw_add_pieces(r.fd, fd, &in, &out), 0);
	assert_int_equal(out.count, 8);
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(reg(&r, out.number[i], 0, PAGE, 0xf), 0);
	assert_int_equal(raw_number(r.fd, CONTROL_DROP_PIECE, out.number[7]), 0);
	in.first.offset = 56 * PAGE;
	assert_int_equal(raw_add_pieces(r.fd, fd, &in, &out), 0);
	assert_int_equal(out.count, 2);
	assert_int_equal(reg(&r, out.number[1], 0, PAGE, 0xf), 0);
	assert_int_equal(out.number[2], 0);
	in.first.offset = 0;
	assert_int_equal(raw_add_pieces(r.fd, fd, &in, &out), 0);
	assert_int_equal(raw_add_pieces(r.fd, fd, &in, &out), 0);
	assert_int_equal(out.count, 1);
	assert_int_equal(raw_add_pieces(r.fd, fd, &in, &out), -ENOSPC);
	in.count = 9;
	assert_int_equal(raw_add_pieces(r.fd, fd, &in, &out), -EINVAL);
	in.count = 0;
	assert_int_equal(raw_add_pieces(r.fd, fd, &in, &out), -EINVAL);
	in.count = in.reserved = 1;
	assert_int_equal(raw_add_pieces(r.fd, fd, &in, &out), -EINVAL);
	close(fd);
	close(r.fd);
}

CLIENT_TEST(file__ends_within_a_page)
{
	int fd = raw_memfd(PAGE + 16, 0);

	assert_int_equal(add(&r, fd, 0, 2 * PAGE, NULL), 0);
	assert_int_equal(add(&r, fd, 0, 3 * PAGE, NULL), -EINVAL);
	close(fd);
}

/* Mappings of the daemon, which is this process; *of_files: those of clients' files. */
static unsigned int mappings(unsigned int *of_files)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned int n = 0;
	char line[512];

	assert_non_null(maps);
	for (*of_files = 0; fgets(line, sizeof(line), maps); n++)
		*of_files += strstr(line, "/memfd:") != NULL;
	fclose(maps);
	return n;
}

/* More than one client's part of the table of regions. */
static struct fixture_total many_keys[] = {{SHARE_keys, 8192}, {0}};

/* A piece is mapped once; MRs in it are entries of tables. */
TEST_STATE(pieces__mrs_add_no_mappings, start, stop, many_keys)
{
	enum { MRS = 1000 };
	int fd = raw_memfd(16 * PAGE, 0);
	unsigned int all, files, with_piece, piece_files;
	uint32_t piece;
	struct raw r = raw_client(f.path);

	mappings(&files);
	assert_int_equal(add(&r, fd, 0, 16 * PAGE, &piece), 0);
	with_piece = mappings(&piece_files);
	assert_int_equal(piece_files, files + 1);
	for (uint32_t i = 0; i < MRS; i++)
		raw_mr(r.fd, r.pd, piece, 4 * PAGE, 0x10000000 + i);
	all = mappings(&files);
	assert_int_equal(files, piece_files);
	assert_true(all <= with_piece + MRS / 100); /* malloc()'s, if any */
	close(fd);
	close(r.fd);
}

/* ---- MRs of several runs ---- */

enum { MAPPED_PAGES = 64 };

/* A piece, and the same memory as the client sees it. */
static uint32_t shared_piece(const struct raw *r, uint32_t **memory)
{
	int fd = raw_memfd(MAPPED_PAGES * PAGE, 0);
	uint32_t piece;

	*memory = mmap(NULL, MAPPED_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_int_equal(add(r, fd, 0, MAPPED_PAGES * PAGE, &piece), 0);
	close(fd);
	return piece;
}

/* VirtToPhys's answer to an access, and how many contiguous bytes are there. */
static enum v2p_state look(const struct raw *r, uint32_t lkey, uint64_t va, uint64_t bytes,
			   uint32_t **at, uint64_t *run)
{
	static struct counters counters;
	static struct v2p_port port;
	uint8_t *addr;
	enum v2p_state s;

	port = (struct v2p_port){.v2p = &f.hca->v2p, .counters = &counters};
	s = v2p_request(&port, V2P_EE_DATA,
			&(struct v2p_access){.pd = r->pd,
					     .key = lkey,
					     .va = va,
					     .length = bytes,
					     .rights = ACCESS_LOCAL_WRITE},
			&addr, run);
	*at = (uint32_t *)addr;
	return s;
}

/* Pages of a file in any order: more of them than one message and than one WRITE_MTT takes. */
CLIENT_TEST(runs__scattered_pages)
{
	enum { RUNS = 1500 };
	struct control_mr in = {.iova = 0x10000000 + 100, .access = 0xf};
	struct control_runs more = {0};
	uint32_t *memory, *at, piece, lkey, where[RUNS];
	uint64_t run;

	piece = shared_piece(&r, &memory);
	in.pd = r.pd;
	for (uint32_t i = 0; i < RUNS; i++) {
		where[i] = i * 37 % MAPPED_PAGES;
		more.run[more.count++] = (struct control_run){
			piece, 0, where[i] * PAGE + (i ? 0 : 100), PAGE - (i ? 0 : 100)};
		if (more.count < CONTROL_RUNS_MAX && i + 1 < RUNS)
			continue;
		assert_int_equal(raw_tell(r.fd, CONTROL_ADD_RUNS, &more), 0);
		more.count = 0;
	}
	assert_int_equal(raw_reg_mr(r.fd, &in, &lkey), 0);
	for (uint32_t i = 0; i < RUNS; i++) {
		assert_int_equal(look(&r, lkey, 0x10000000 + i * PAGE + 2048, 4, &at, &run), 0);
		*at = i;
		assert_int_equal(memory[where[i] * PAGE / 4 + 512], i);
	}
	assert_int_equal(look(&r, lkey, 0x10000000 + 2 * PAGE - 8, 4096, &at, &run), 0);
	assert_int_equal(run, 8);
	assert_int_equal(look(&r, lkey, 0x10000000 + 99, 4, &at, &run), V2P_LENGTH_ERR);
	assert_int_equal(look(&r, lkey, 0x10000000 + RUNS * PAGE - 3, 4, &at, &run),
			 V2P_LENGTH_ERR);
	assert_int_equal(raw_number(r.fd, CONTROL_DROP_PIECE, piece), -EBUSY);
	assert_int_equal(raw_number(r.fd, CONTROL_DEREG_MR, lkey), 0);
	assert_int_equal(raw_number(r.fd, CONTROL_DROP_PIECE, piece), 0);
	munmap(memory, MAPPED_PAGES * PAGE);
}

/* The largest page that all breaks allow; none where the bytes follow one another anyhow. */
CLIENT_TEST(runs__page_sizes)
{
	static const struct {
		struct {
			uint64_t offset, bytes; /* pages of 4 KiB */
		} run[3];
		int log_page; /* 0: direct */
	} rows[] = {
		{{{0, 4}, {4, 8}, {12, 1}}, 0},
		{{{8, 8}, {0, 8}}, 16},
		{{{4, 4}, {16, 4}, {8, 4}}, 14},
		{{{7, 1}, {24, 8}, {0, 8}}, 15},
		{{{3, 2}, {9, 1}, {0, 1}}, 12},
		{{{512, 512}, {0, 512}}, 21},
		{{{511, 1}, {1024, 512}, {512, 3}}, 21},
		{{{0, 512}, {1024, 1}, {513, 1}},
		 12}, /* the last where it were without the other */
	};
	int fd = raw_memfd(2048 * PAGE, 0);
	uint32_t piece, lkey, whole, *at, *there;
	uint64_t run;

	assert_int_equal(add(&r, fd, 0, 2048 * PAGE, &piece), 0);
	whole = raw_mr(r.fd, r.pd, piece, 2048 * PAGE, 0);
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct control_mr in = {.pd = r.pd, .access = 1, .count = 3};
		struct mpt_entry m;
		uint64_t before = 0;

		for (int k = 0; k < 3; k++)
			in.run[k] = (struct control_run){.piece = piece,
							 .offset = rows[i].run[k].offset * PAGE,
							 .bytes = rows[i].run[k].bytes * PAGE};
		in.count -= !in.run[2].bytes;
		assert_int_equal(raw_reg_mr(r.fd, &in, &lkey), 0);
		assert_true(v2p_entry_get(&f.hca->v2p, lkey, &m));
		m.log_page = m.log_page < 21 ? m.log_page : 21; /* pieces lie at 2 MiB, or better */
		assert_int_equal(m.flags & MPT_PAGES ? m.log_page : 0, rows[i].log_page);
		for (uint32_t k = 0; k < in.count; before += in.run[k++].bytes) {
			look(&r, whole, in.run[k].offset, 4, &there, &run);
			assert_int_equal(look(&r, lkey, before, 4, &at, &run), 0);
			assert_ptr_equal(at, there);
		}
		assert_int_equal(raw_number(r.fd, CONTROL_DEREG_MR, lkey), 0);
	}
	close(fd);
}

TEST(runs__each_wrong_one)
{
	struct control_runs more = {0};
	uint32_t *memory, piece, lkey;
	struct control_mr in;
	struct raw r = raw_client(f.path);

	piece = shared_piece(&r, &memory);
#define RUNS(rc, ...)                                                                              \
	do {                                                                                       \
		in = (struct control_mr){                                                          \
			.pd = r.pd,                                                                \
			.access = 1,                                                               \
			.count = 2,                                                                \
			.run = {{piece, 0, 4 * PAGE, PAGE}, {piece, 0, 0, PAGE}}};                 \
		__VA_ARGS__;                                                                       \
		assert_int_equal(raw_reg_mr(r.fd, &in, &lkey), rc);                                \
	} while (0)
	RUNS(0, );
	RUNS(0, in.run[0].offset++; in.run[0].bytes--);
	RUNS(0, in.run[1].bytes = 1);
	RUNS(-EINVAL, in.run[0].bytes--); /* breaks in the middle of a page */
	RUNS(-EINVAL, in.run[1].offset++);
	RUNS(-EINVAL, in.run[0].offset++);
	RUNS(-EINVAL, in.run[0].bytes = 0);
	RUNS(-EINVAL, in.run[1].bytes = 0);
	RUNS(-EINVAL, in.run[1].bytes = UINT64_MAX - PAGE + 1);
	RUNS(-ENOENT, in.run[1].piece++);
	RUNS(-EINVAL, in.iova = UINT64_MAX - PAGE);
	assert_int_equal(raw_tell(r.fd, CONTROL_ADD_RUNS, &more), -EINVAL);
	more.count = CONTROL_RUNS_MAX + 1;
	assert_int_equal(raw_tell(r.fd, CONTROL_ADD_RUNS, &more), -EINVAL);
	/* Runs that are wrong are found out later, and are forgotten with the MR that they spoil.
	 */
	more.count = 1;
	assert_int_equal(raw_tell(r.fd, CONTROL_ADD_RUNS, &more), 0);
	RUNS(-ENOENT, );
	RUNS(0, );
	munmap(memory, MAPPED_PAGES * PAGE);
	close(r.fd);
}

/* MTT entries run out for one client, not for another, and come back. */
TEST(runs__pages_run_out)
{
	struct control_mr in = {.access = 1, .count = 2};
	uint64_t bytes = 8192 * PAGE; /* of 65536 pages that there may be */
	int fd = raw_memfd(bytes, 0), n = 0, rc;
	struct raw r, other;
	uint32_t lkey;

	r = raw_client_as(f.path, 1000);
	other = raw_client_as(f.path, 1001);
	in.pd = r.pd;
	assert_int_equal(add(&r, fd, 0, bytes, &in.run[0].piece), 0);
	in.run[1] = in.run[0];
	in.run[0].offset = in.run[0].bytes = in.run[1].bytes = bytes / 2;
	in.run[0].bytes -= PAGE;
	while ((rc = raw_reg_mr(r.fd, &in, &lkey)) == 0)
		n++;
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(n, 4); /* half */
	assert_int_equal(raw_number(r.fd, CONTROL_DEREG_MR, lkey), -ENOENT);
	in.pd = other.pd;
	assert_int_equal(add(&other, fd, 0, bytes, &in.run[0].piece), 0);
	in.run[1].piece = in.run[0].piece;
	for (n = 0; n < 2; n++)
		assert_int_equal(raw_reg_mr(other.fd, &in, &lkey), 0);
	assert_int_equal(raw_reg_mr(other.fd, &in, &lkey), -ENOSPC);
	close(r.fd);
	assert_true(fixture_wait_clients(&f, 1));
	assert_int_equal(raw_reg_mr(other.fd, &in, &lkey), 0);
	close(other.fd);
	close(fd);
}

static unsigned int asked; /* file systems */

int fstatfs(int fd, struct statfs *out)
{
	asked++;
	return (int)syscall(SYS_fstatfs, fd, out);
}

static bool locked; /* mmap() says that too much is */

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (locked && fd >= 0 && bytes == PAGE) {
		errno = EAGAIN;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

/* EAGAIN of mmap(), that is, too much memory is locked, is an answer and not "later": the request
 * would be asked again without its descriptor, which is not kept. */
CLIENT_TEST(pieces__eagain_of_mmap_is_refused)
{
	int fd = raw_memfd(PAGE, 0);

	__atomic_store_n(&locked, true, __ATOMIC_SEQ_CST);
	assert_int_equal(add(&r, fd, 0, PAGE, NULL), -ENOMEM);
	__atomic_store_n(&locked, false, __ATOMIC_SEQ_CST);
	assert_int_equal(add(&r, fd, 0, PAGE, NULL), 0);
	close(fd);
}

/* Only what lies in memory: a disk or a program behind a file system could stop the data path. Nor
 * is such a program asked what it is: it need not answer. */
CLIENT_TEST(descriptors__that_are_no_memory)
{
	char disk[] = "/var/tmp/regions-XXXXXX";
	int fd[8], n = 0, pair[2];

	fd[n++] = mkstemp(disk);
	unlink(disk);
	assert_int_equal(ftruncate(fd[0], PAGE), 0);
	assert_int_equal(pipe(pair), 0);
	fd[n++] = pair[0];
	fd[n++] = pair[1];
	fd[n++] = eventfd(0, 0);
	fd[n++] = open("/dev/zero", O_RDWR);
	fd[n++] = open("/proc/self/maps", O_RDONLY);
	fd[n++] = open("/dev/shm", O_RDONLY | O_DIRECTORY);
	fd[n++] = socket(AF_UNIX, SOCK_STREAM, 0);
	asked = 0;
	for (int i = 0; i < n; i++) {
		assert_int_equal(add(&r, fd[i], 0, PAGE, NULL), -EINVAL);
		close(fd[i]);
	}
	assert_int_equal(asked, 0);
}

CLIENT_TEST(read_only__takes_no_rights_to_write)
{
	struct control_piece in = {.bytes = PAGE};
	int fd = raw_memfd(4 * PAGE, 0), weak;
	struct control_mr both = {.access = ACCESS_REMOTE_READ, .count = 2};
	uint32_t piece, lkey;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	weak = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(raw_add_piece(r.fd, weak, &in, NULL), -EACCES);
	in.flags = PIECE_READ_ONLY;
	assert_int_equal(raw_add_piece(r.fd, weak, &in, &piece), 0);
	assert_int_equal(reg(&r, piece, 0, PAGE, ACCESS_REMOTE_READ), 0);
	assert_int_equal(reg(&r, piece, 0, PAGE, ACCESS_LOCAL_WRITE), -EFAULT);
	/* Nor do others beside it make it so. */
	both.pd = r.pd;
	both.run[0] = (struct control_run){r.piece, 0, 0, PAGE};
	both.run[1] = (struct control_run){piece, 0, 0, PAGE};
	assert_int_equal(raw_reg_mr(r.fd, &both, &lkey), 0);
	both.access = 0xf;
	assert_int_equal(raw_reg_mr(r.fd, &both, &lkey), -EFAULT);
	close(weak);
	close(fd);
	/* No piece beyond the end of a sealed file. */
	fd = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	in.flags = 0;
	assert_int_equal(raw_add_piece(r.fd, fd, &in, NULL), -EPERM);
	in.flags = PIECE_READ_ONLY;
	assert_int_equal(raw_add_piece(r.fd, fd, &in, NULL), 0);
	close(fd);
}

/* Cut and punched after it was given: queues lie in it. The daemon survives, the client goes. */
TEST(memory__cut_under_the_queues)
{
	int fd = memfd_create("cut", MFD_CLOEXEC);
	struct control_cq cq;
	struct raw r, bystander;
	uint32_t piece, lkey, cqn, qpn;
	struct control_qp qp;

	bystander = raw_client(f.path);
	r = raw_client(f.path);
	assert_int_equal(ftruncate(fd, RAW_PIECE_BYTES), 0);
	assert_int_equal(add(&r, fd, 0, RAW_PIECE_BYTES, &piece), 0);
	lkey = raw_mr(r.fd, r.hello.queue_pd, piece, RAW_PIECE_BYTES, RAW_IOVA);
	cqn = raw_cq(r.fd, lkey);
	qp = raw_qp_in(r.pd, cqn, lkey);
	assert_int_equal(raw_create_qp(r.fd, &qp, &qpn), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	cq = raw_cq_in(lkey); /* the daemon reads the record, which has gone */
	raw_tell(r.fd, CONTROL_CREATE_CQ, &cq);
	qp = raw_qp_in(r.pd, cqn, lkey);
	raw_create_qp(r.fd, &qp, NULL);
	close(r.fd);
	close(fd);
	assert_int_equal(raw_number(bystander.fd, CONTROL_DESTROY_QP, bystander.qpn), 0);
	close(bystander.fd);
	assert_true(fixture_wait_clients(&f, 0));
}

/* Pieces of huge pages are whole huge pages; untouched ones are not reserved. */
CLIENT_TEST(huge__whole_pages)
{
	const uint64_t huge = 2 << 20;
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
	uint32_t piece;

	if (fd < 0 || ftruncate(fd, 2 * (off_t)huge))
		skip();
	assert_int_equal(add(&r, fd, PAGE, huge, NULL), -EINVAL);
	assert_int_equal(add(&r, fd, 0, PAGE, NULL), -EINVAL);
	assert_int_equal(add(&r, fd, 0, 2 * huge, &piece), 0);
	assert_int_equal(reg(&r, piece, huge + 5, huge - 5, 0xf), 0);
	close(fd);
}

/* An MR with a few bytes of each of many huge pages populates none of them. */
static void little_of_many(int fd)
{
	enum { PAGES = 33 };
	const uint64_t huge = 2 << 20;
	struct control_runs more = {.count = 1};
	struct control_mr in = {.access = 1};
	struct stat st;
	uint32_t piece, lkey;
	struct raw r;

	if (fd < 0 || ftruncate(fd, PAGES * (off_t)huge) || fallocate(fd, 0, 0, (off_t)huge) ||
	    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)huge))
		skip(); /* not one is free */
	r = raw_client(f.path);
	in.pd = r.pd;
	assert_int_equal(add(&r, fd, 0, PAGES * huge, &piece), 0);
	for (uint32_t i = 0; i < PAGES; i++) {
		more.run[0] = (struct control_run){piece, 0, i * huge, PAGE};
		assert_int_equal(raw_tell(r.fd, CONTROL_ADD_RUNS, &more), 0);
	}
	assert_int_equal(raw_reg_mr(r.fd, &in, &lkey), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_blocks, 0);
	close(fd);
	close(r.fd);
}

TEST(huge__little_of_many)
{
	little_of_many(memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB));
}

/* Of a tmpfs that has huge pages wherever it can, mounted nowhere. */
TEST(huge__little_of_many_in_tmpfs)
{
	int context = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC), mount, fd;

	if (context < 0 ||
	    syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, "huge", "always", 0) ||
	    syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		skip(); /* nobody may mount here, or no huge pages */
	mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
	fd = openat(mount, "huge", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	close(mount);
	close(context);
	little_of_many(fd);
}

/* What one may have in regions is bounded by what there is, and counts no further than it lies in a
 * file. */
static struct fixture_total little_memory[] = {{SHARE_registered_bytes, 4096 * PAGE}, {0}};

TEST_STATE(memory__registered_is_bounded, start, stop, little_memory)
{
	const uint64_t bytes = 1024 * PAGE;
	int fd = raw_memfd(bytes, 0), n = 0;
	uint32_t piece, first, lkey;
	struct control_mr in = {.access = 1, .count = 1};
	struct share_info info;
	struct raw r = raw_client_as(f.path, 1000), other = raw_client_as(f.path, 1001);

	in.pd = r.pd;
	assert_int_equal(add(&r, fd, 0, bytes, &first), 0);
	in.run[0] = (struct control_run){first, 0, 0, bytes};
	assert_int_equal(raw_reg_mr(r.fd, &in, &lkey), 0);
	for (int i = 0; i < 10; i++) /* again and again the same */
		assert_int_equal(reg(&r, first, 0, bytes, 1), 0);
	do
		assert_int_equal(add(&r, fd, 0, bytes, &piece), 0);
	while (in.run[0].piece = piece, raw_reg_mr(r.fd, &in, &lkey) == 0 && ++n);
	assert_int_equal(n, 1); /* less than three quarters, with the queues */
	assert_int_equal(raw_reg_mr(r.fd, &in, &lkey), -ENOMEM);
	assert_int_equal(add(&other, fd, 0, bytes, &piece), 0);
	in.run[0].piece = piece;
	in.pd = other.pd;
	assert_int_equal(raw_reg_mr(other.fd, &in, &lkey), 0);
	close(r.fd);
	close(other.fd);
	assert_true(fixture_wait_clients(&f, 0));
	shares_info(f.shares, SHARE_registered_bytes, 0, &info);
	assert_int_equal(info.used, 0);
	close(fd);
}

/* What is unmapped leaves bit by bit, and others are served meanwhile; all of it comes back. */
TEST_STATE(limits__of_pieces, start, stop, few)
{
	int fd = raw_memfd(PAGE, 0), large = raw_memfd(1ull << 40, 0);
	uint32_t piece[18], last;
	struct raw r, other;

	for (int round = 0; round < 2; round++) {
		r = raw_client(f.path); /* has two: its page, and one */
		for (int i = 0; i < 18; i++)
			assert_int_equal(
				add(&r, i ? fd : large, 0, i ? PAGE : 1ull << 40, &piece[i]), 0);
		assert_int_equal(add(&r, fd, 0, PAGE, NULL), -ENOSPC);
		assert_int_equal(raw_number(r.fd, CONTROL_DROP_PIECE, piece[0]), 0);
		/* They are four now, for a moment or two. */
		for (int i = 0; i < 4; i++) {
			assert_int_equal(raw_number(r.fd, CONTROL_DROP_PIECE, piece[i + 1]), 0);
			assert_int_equal(add(&r, large, 0, 1ull << 40, &piece[i + 1]), 0);
		}
		assert_int_equal(add(&r, large, 0, 1ull << 40, &last), -ENOSPC);
		other = raw_client(f.path);
		for (int i = 0; i < 5; i++)
			assert_int_equal(add(&other, large, 0, 1ull << 40, &last),
					 i < 4 ? 0 : -ENOSPC);
		close(r.fd);
		close(other.fd);
		assert_true(fixture_wait_clients(&f, 0));
	}
	close(large);
	close(fd);
}

TEST_STATE(limits__of_runs, start, stop, few)
{
	struct control_runs more = {.count = 15};
	struct control_mr in = {.count = 1};
	struct raw r;
	uint32_t lkey;

	r = raw_client(f.path); /* its queues have one */
	in.pd = r.pd;
	for (int i = 0; i < 15; i++)
		more.run[i] = (struct control_run){r.piece, 0, (i ^ 1) * PAGE, PAGE};
	in.run[0] = more.run[0];
	for (int i = 0; i < 2; i++)
		assert_int_equal(raw_tell(r.fd, CONTROL_ADD_RUNS, &more), i ? -ENOSPC : 0);
	assert_int_equal(raw_reg_mr(r.fd, &in, &lkey), 0);
	assert_int_equal(raw_reg_mr(r.fd, &in, &lkey), 0);
	while (raw_reg_mr(r.fd, &in, &lkey) == 0)
		;
	assert_int_equal(raw_reg_mr(r.fd, &in, &lkey), -ENOSPC);
	close(r.fd);
}

/* A user who has all his mappings waits while any of them is unmapping, but no longer. */
TEST_STATE(limits__of_mappings, start, stop, few)
{
	const struct control_segment shared = {.id = (uint32_t)shmget(IPC_PRIVATE, PAGE, 0600)};
	int fd = raw_memfd(PAGE, 0), large = raw_memfd(1ull << 40, 0), late = raw_connect(f.path);
	int page = raw_memfd(sizeof(struct client_page), RAW_SEALS);
	struct control_hello_reply hello;
	struct control_number out;
	uint32_t piece[3];
	struct raw r = raw_client(f.path), other = raw_client(f.path);

	for (int i = 0; i < 3; i++) /* so large that they take a while to leave */
		assert_int_equal(add(&r, large, 0, 1ull << 40, &piece[i]), 0);
	while (add(&other, fd, 0, PAGE, NULL) == 0)
		;
	while (add(&r, fd, 0, PAGE, NULL) == 0)
		;
	assert_int_equal(raw_hello_with(late, page, &hello), -ENOSPC);
	raw_number(r.fd, CONTROL_DROP_PIECE, piece[0]);
	assert_int_equal(raw_hello_with(late, page, &hello), 0);
	raw_number(r.fd, CONTROL_DROP_PIECE, piece[1]);
	assert_int_equal(raw_ask(r.fd, CONTROL_ADD_SEGMENT, &shared, &out), 0);
	raw_number(r.fd, CONTROL_DROP_PIECE, piece[2]);
	assert_int_equal(add(&r, fd, 0, PAGE, NULL), 0);
	assert_int_equal(add(&r, fd, 0, PAGE, NULL), -ENOSPC);
	shmctl((int)shared.id, IPC_RMID, NULL);
	close(large);
	close(page);
	close(late);
	close(r.fd);
	close(other.fd);
	close(fd);
}
