/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions composed of pieces of files: what is accepted, what is refused, and what a hostile client
 * can do to the memory that it gave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include "hca_fixture.h"
#include "raw_client.h"

enum { PAGE = 4096 };
static struct fixture f;

static int compose(const struct raw *r, const struct control_compose *in, int fd, uint32_t *region)
{
	struct control_number out = {0};
	int rc =
		raw_call(r->fd, CONTROL_COMPOSE_REGION, in, sizeof(*in), &fd, 1, &out, sizeof(out));

	if (region)
		*region = out.number;
	return rc;
}

static int add(
	const struct raw *r, uint32_t region, uint64_t at, uint64_t offset, uint64_t bytes, int fd)
{
	const struct control_piece in = {
		.region = region, .at = at, .offset = offset, .bytes = bytes};

	return raw_call(r->fd, CONTROL_ADD_PIECE, &in, sizeof(in), &fd, 1, NULL, 0);
}

static int reg(
	const struct raw *r, uint32_t region, uint64_t offset, uint64_t length, uint32_t access)
{
	const struct control_mr in = {.pd = r->pd,
		.region = region,
		.offset = offset,
		.length = length,
		.access = access};
	struct control_mr_reply out = {0};
	int rc = raw_call(r->fd, CONTROL_REG_MR, &in, sizeof(in), NULL, 0, &out, sizeof(out));

	return rc ? rc : raw_number(r->fd, CONTROL_DEREG_MR, out.lkey);
}

static struct control_compose of(uint64_t length, uint64_t bytes)
{
	return (struct control_compose){.length = length, .bytes = bytes, .log_page = 12};
}

static void pieces__in_order(void **state)
{
	int fd = raw_memfd(16 * PAGE, 0);
	struct control_compose in = of(8 * PAGE, 2 * PAGE);
	uint32_t region;
	struct raw r;

	(void)state;
	raw_set_up(&r, f.path);
	in.address = 0x12345000;
	in.log_page = 21;
	in.offset = 3 * PAGE;
	assert_int_equal(compose(&r, &in, fd, &region), 0);
	/* An MR lies in what is filled, not beyond. */
	assert_int_equal(reg(&r, region, 0, 2 * PAGE, 0xf), 0);
	assert_int_equal(reg(&r, region, 0, 2 * PAGE + 1, 0xf), -EINVAL);
	assert_int_equal(reg(&r, region, 4 * PAGE, PAGE, 0xf), -EINVAL);
	/* The next piece begins where the last ended, nowhere else. */
	assert_int_equal(add(&r, region, 0, 0, PAGE, fd), -EINVAL);
	assert_int_equal(add(&r, region, PAGE, 0, PAGE, fd), -EINVAL);
	assert_int_equal(add(&r, region, 3 * PAGE, 0, PAGE, fd), -EINVAL);
	assert_int_equal(add(&r, region, 2 * PAGE, 0, 7 * PAGE, fd), -EINVAL);
	assert_int_equal(add(&r, region, 2 * PAGE, 0, UINT64_MAX - PAGE + 1, fd), -EINVAL);
	assert_int_equal(add(&r, region, 2 * PAGE, 0, 0, fd), -EINVAL);
	assert_int_equal(add(&r, region, 2 * PAGE, 5 * PAGE, 6 * PAGE, fd), 0);
	assert_int_equal(add(&r, region, 8 * PAGE, 0, PAGE, fd), -EINVAL);
	assert_int_equal(reg(&r, region, PAGE + 5, 7 * PAGE - 5, 0xf), 0);
	assert_int_equal(add(&r, r.region, RAW_REGION_BYTES, 0, PAGE, fd), -EINVAL);
	assert_int_equal(add(&r, region + 1, 0, 0, PAGE, fd), -ENOENT);
	assert_int_equal(raw_number(r.fd, CONTROL_DROP_REGION, region), 0);
	close(fd);
	close(r.fd);
}

static void offsets__outside_of_the_file(void **state)
{
	static const struct {
		uint64_t offset, bytes;
	} wrong[] = {{16 * PAGE, PAGE}, {15 * PAGE, 2 * PAGE}, {1, PAGE}, {0, 1}, {0, PAGE + 1},
		{512, PAGE}, {UINT64_MAX - PAGE + 1, PAGE}, {1ull << 63, PAGE},
		{0, UINT64_MAX - PAGE + 1}, {UINT64_MAX, UINT64_MAX}};
	int fd = raw_memfd(16 * PAGE, 0);
	struct raw r;

	(void)state;
	raw_set_up(&r, f.path);
	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct control_compose in = of(64 * PAGE, wrong[i].bytes);

		in.offset = wrong[i].offset;
		assert_int_equal(compose(&r, &in, fd, NULL), -EINVAL);
	}
	close(fd);
	close(r.fd);
}

static void file__ends_within_a_page(void **state)
{
	struct control_compose in = of(64 * PAGE, 2 * PAGE);
	int fd = raw_memfd(PAGE + 16, 0);
	struct raw r;

	(void)state;
	raw_set_up(&r, f.path);
	assert_int_equal(compose(&r, &in, fd, NULL), 0);
	in.bytes = 3 * PAGE;
	assert_int_equal(compose(&r, &in, fd, NULL), -EINVAL);
	close(fd);
	close(r.fd);
}

static void compositions__each_wrong_one(void **state)
{
	int fd = raw_memfd(16 * PAGE, 0);
	struct control_compose in;
	struct raw r;

	(void)state;
	raw_set_up(&r, f.path);
	in = of(0, PAGE);
	assert_int_equal(compose(&r, &in, fd, NULL), -EINVAL);
	in = of(PAGE + 1, PAGE);
	assert_int_equal(compose(&r, &in, fd, NULL), -EINVAL);
	in = of(PAGE, 2 * PAGE);
	assert_int_equal(compose(&r, &in, fd, NULL), -EINVAL);
	in = of((1ull << 40) + PAGE, PAGE);
	assert_int_equal(compose(&r, &in, fd, NULL), -EINVAL);
	in = of(UINT64_MAX - PAGE + 1, PAGE);
	assert_int_equal(compose(&r, &in, fd, NULL), -EINVAL);
	for (uint32_t log_page = 0; log_page < 70; log_page++) {
		in = of(PAGE, PAGE);
		in.log_page = log_page;
		assert_int_equal(
			compose(&r, &in, fd, NULL), log_page < 12 || log_page > 30 ? -EINVAL : 0);
	}
	in = of(PAGE, PAGE);
	in.flags = 2;
	assert_int_equal(compose(&r, &in, fd, NULL), -EINVAL);
	in = of(PAGE, PAGE);
	in.address = 1;
	assert_int_equal(compose(&r, &in, fd, NULL), -EINVAL);
	close(fd);
	close(r.fd);
}

/* Only what lies in memory: a disk or a program behind a file system could stop the data path. */
static void descriptors__that_are_no_memory(void **state)
{
	const struct control_compose in = of(PAGE, PAGE);
	char disk[] = "/var/tmp/regions-XXXXXX";
	struct raw r;
	int fd[8], n = 0, pair[2];

	(void)state;
	raw_set_up(&r, f.path);
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
	for (int i = 0; i < n; i++) {
		assert_int_equal(compose(&r, &in, fd[i], NULL), -EINVAL);
		close(fd[i]);
	}
	close(r.fd);
}

static void read_only__takes_no_rights_to_write(void **state)
{
	struct control_compose in = of(4 * PAGE, PAGE);
	int fd = raw_memfd(4 * PAGE, 0), weak;
	char path[64];
	uint32_t region;
	struct raw r;

	(void)state;
	raw_set_up(&r, f.path);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	weak = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(compose(&r, &in, weak, NULL), -EACCES);
	in.flags = REGION_READ_ONLY;
	assert_int_equal(compose(&r, &in, weak, &region), 0);
	assert_int_equal(add(&r, region, PAGE, 0, PAGE, fd), 0);
	assert_int_equal(reg(&r, region, 0, 2 * PAGE, ACCESS_REMOTE_READ), 0);
	assert_int_equal(reg(&r, region, 0, PAGE, ACCESS_LOCAL_WRITE), -EFAULT);
	assert_int_equal(reg(&r, region, PAGE, PAGE, 0xf), -EFAULT);
	/* Nor does a sealed file give what it does not have. */
	close(weak);
	close(fd);
	fd = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	in.flags = 0;
	assert_int_equal(compose(&r, &in, fd, NULL), -EPERM);
	in.flags = REGION_READ_ONLY;
	assert_int_equal(compose(&r, &in, fd, NULL), 0);
	close(fd);
	close(r.fd);
}

/* Cut and punched after it was given: queues lie in it. The daemon survives, the client goes. */
static void memory__cut_under_the_queues(void **state)
{
	struct control_compose in = of(RAW_REGION_BYTES, RAW_REGION_BYTES);
	int fd = memfd_create("cut", MFD_CLOEXEC);
	struct control_cq cq;
	struct raw r, bystander;
	uint32_t region, lkey, cqn, qpn;
	struct control_qp qp;

	(void)state;
	raw_set_up(&bystander, f.path);
	raw_set_up(&r, f.path);
	assert_int_equal(ftruncate(fd, RAW_REGION_BYTES), 0);
	assert_int_equal(compose(&r, &in, fd, &region), 0);
	lkey = raw_mr(r.fd, r.hello.queue_pd, region, RAW_REGION_BYTES, RAW_IOVA);
	cqn = raw_cq(r.fd, lkey);
	qp = raw_qp_in(r.pd, cqn, lkey);
	assert_int_equal(raw_create_qp(r.fd, &qp, &qpn), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	cq = raw_cq_in(lkey); /* the daemon reads the record, which has gone */
	raw_call(r.fd, CONTROL_CREATE_CQ, &cq, sizeof(cq), NULL, 0, NULL, 0);
	qp = raw_qp_in(r.pd, cqn, lkey);
	raw_create_qp(r.fd, &qp, NULL);
	close(r.fd);
	close(fd);
	assert_int_equal(raw_number(bystander.fd, CONTROL_DESTROY_QP, bystander.qpn), 0);
	close(bystander.fd);
	assert_true(fixture_wait_clients(&f, 0));
}

/* Pieces of huge pages lie where they may lie; where there are none, it is refused. */
static void huge__aligned_or_refused(void **state)
{
	const uint64_t huge = 2 << 20;
	struct control_compose in = of(2 * huge, huge);
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB), rc;
	uint32_t region;
	struct raw r;

	(void)state;
	if (fd < 0 || ftruncate(fd, 2 * (off_t)huge))
		skip();
	raw_set_up(&r, f.path);
	in.address = 5 * huge + PAGE;
	in.log_page = 21;
	assert_int_equal(compose(&r, &in, fd, NULL), -EINVAL);
	in.address = 5 * huge;
	in.bytes = PAGE;
	assert_int_equal(compose(&r, &in, fd, NULL), -EINVAL);
	in.bytes = huge;
	rc = compose(&r, &in, fd, &region);
	if (rc == 0) {
		assert_int_equal(add(&r, region, huge, huge + PAGE, huge - PAGE, fd), -EINVAL);
		assert_int_equal(reg(&r, region, 5, huge - 5, 0xf), 0);
	} else {
		assert_int_equal(rc, -ENOMEM);
	}
	close(fd);
	close(r.fd);
}

static void limits__of_pieces(void **state)
{
	int fd = raw_memfd(PAGE, 0);
	struct control_compose in = of(64 * PAGE, PAGE);
	uint32_t region[4];
	struct raw r;

	(void)state;
	raw_set_up(&r, f.path);
	for (int i = 0; i < 3; i++)
		assert_int_equal(compose(&r, &in, fd, &region[i]), 0);
	for (uint64_t i = 1; i < 8; i++)
		assert_int_equal(add(&r, region[0], i * PAGE, 0, PAGE, fd), 0);
	assert_int_equal(add(&r, region[0], 8 * PAGE, 0, PAGE, fd), -ENOSPC);
	assert_int_equal(compose(&r, &in, fd, NULL), -ENOSPC);
	assert_int_equal(raw_number(r.fd, CONTROL_DROP_REGION, region[0]), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(compose(&r, &in, fd, NULL), 0);
	assert_int_equal(compose(&r, &in, fd, NULL), -ENOSPC);
	close(r.fd);
	assert_true(fixture_wait_clients(&f, 0));
	/* all of it came back */
	raw_set_up(&r, f.path);
	for (int i = 0; i < 10; i++)
		assert_int_equal(compose(&r, &in, fd, NULL), 0);
	assert_int_equal(compose(&r, &in, fd, NULL), -ENOSPC);
	close(r.fd);
	close(fd);
}

static int start(void **state)
{
	static const struct control_limits limits = {.pieces = 10};

	fixture_start(&f, *state ? &limits : NULL, true);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	fixture_stop(&f);
	return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(pieces__in_order),
		TEST(offsets__outside_of_the_file),
		TEST(file__ends_within_a_page),
		TEST(compositions__each_wrong_one),
		TEST(descriptors__that_are_no_memory),
		TEST(read_only__takes_no_rights_to_write),
		TEST(memory__cut_under_the_queues),
		TEST(huge__aligned_or_refused),
		cmocka_unit_test_prestate_setup_teardown(limits__of_pieces, start, stop, &f),
	};

	fixture_eal();
	return cmocka_run_group_tests_name("control_regions", tests, NULL, NULL);
}
