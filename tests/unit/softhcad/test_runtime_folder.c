/* SPDX-License-Identifier: BSD-3-Clause */
/* The folder of DPDK's files where others may prepare what they like. */
#include <fcntl.h>
#include <sys/stat.h>

#include "test.h"
#include "base/log.h"
#include "runtime_folder.h"

enum { OTHER_USER = 65534 };

#undef TEST
#define TEST(name) TEST_WITH(name, set_up, tear_down)

static char scratch[64];

static char *in_scratch(const char *name)
{
	static char path[2][160];
	static unsigned turn;

	snprintf(path[++turn % 2], sizeof(path[0]), "%s/%s", scratch, name);
	return path[turn % 2];
}

static void make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static int set_up(void **state)
{
	snprintf(scratch, sizeof(scratch), "/tmp/softhca-test.XXXXXX");
	return mkdtemp(scratch) && mkdir(in_scratch("victim"), 0755) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", scratch);
	return system(command);
}

static int open_in(struct runtime_folder *f, const char *name)
{
	return runtime_folder_open(f, in_scratch(name), "prefix", geteuid());
}

TEST(runtime_folder__leaves_nothing_of_its_own)
{
	struct runtime_folder f;

	assert_int_equal(open_in(&f, "run"), 0);
	assert_string_equal(getenv("RUNTIME_DIRECTORY"), in_scratch("run"));
	make_file(in_scratch("run/dpdk/prefix/config"));
	make_file(in_scratch("run/dpdk/prefix/fbarray_memzone"));
	runtime_folder_remove(&f);
	assert_false(exists(in_scratch("run/dpdk")));
	runtime_folder_remove(&f); /* once is enough */
}

TEST(runtime_folder__leaves_what_is_not_its_own)
{
	struct runtime_folder f;

	assert_int_equal(open_in(&f, "run"), 0);
	make_file(in_scratch("run/dpdk/prefix/letter"));
	make_file(in_scratch("run/dpdk/prefix/mp_socket"));
	runtime_folder_remove(&f);
	assert_true(exists(in_scratch("run/dpdk/prefix/letter")));
	assert_false(exists(in_scratch("run/dpdk/prefix/mp_socket")));
}

TEST(runtime_folder__follows_no_link_below_its_folder)
{
	static const char *const links[] = {"run/dpdk", "run/dpdk/prefix"};
	struct runtime_folder f;

	make_file(in_scratch("victim/config"));
	assert_int_equal(mkdir(in_scratch("run"), 0755), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(symlink(in_scratch("victim"), in_scratch(links[i])), 0);
		assert_int_equal(open_in(&f, "run"), -EPERM);
		runtime_folder_remove(&f);
		assert_true(exists(in_scratch("victim/config")));
		assert_int_equal(unlink(in_scratch(links[i])), 0);
		assert_int_equal(mkdir(in_scratch(links[i]), 0700), 0);
	}
}

/* The name may lead elsewhere by now: only the opened folder counts. */
TEST(runtime_folder__removes_through_what_it_has_checked)
{
	struct runtime_folder f;

	make_file(in_scratch("victim/config"));
	assert_int_equal(open_in(&f, "run"), 0);
	assert_int_equal(rename(in_scratch("run/dpdk"), in_scratch("run/moved")), 0);
	assert_int_equal(mkdir(in_scratch("run/dpdk"), 0700), 0);
	assert_int_equal(symlink(in_scratch("victim"), in_scratch("run/dpdk/prefix")), 0);
	runtime_folder_remove(&f);
	assert_true(exists(in_scratch("victim/config")));
}

TEST(runtime_folder__closes_its_own_to_others)
{
	struct runtime_folder f;
	struct stat st;

	assert_int_equal(mkdir(in_scratch("run"), 0755), 0);
	assert_int_equal(mkdir(in_scratch("run/dpdk"), 0755), 0);
	assert_int_equal(chmod(in_scratch("run/dpdk"), 0777), 0);
	assert_int_equal(open_in(&f, "run"), 0);
	assert_int_equal(stat(in_scratch("run/dpdk"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	runtime_folder_remove(&f);
}

TEST(runtime_folder__not_where_anybody_may_replace_files)
{
	struct runtime_folder f;

	assert_int_equal(mkdir(in_scratch("run"), 0755), 0);
	assert_int_equal(chmod(in_scratch("run"), 0777), 0);
	assert_int_equal(open_in(&f, "run"), -EPERM);
	assert_int_equal(chmod(in_scratch("run"), 01777), 0);
	assert_int_equal(open_in(&f, "run"), 0);
	runtime_folder_remove(&f);
}

/* Another user was first: each folder of the path, or a link in its place, is his. */
TEST(runtime_folder__not_in_another_users)
{
	static const char *const taken[] = {"run", "run/dpdk", "run/dpdk/prefix"};
	struct runtime_folder f;

	if (geteuid() != 0)
		skip();
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(mkdir(in_scratch(taken[i]), 0777), 0);
		assert_int_equal(chown(in_scratch(taken[i]), OTHER_USER, OTHER_USER), 0);
		assert_int_equal(open_in(&f, "run"), -EPERM);
		assert_int_equal(chown(in_scratch(taken[i]), 0, 0), 0);
	}
	assert_int_equal(symlink(in_scratch("victim"), in_scratch("link")), 0);
	assert_int_equal(open_in(&f, "link"), 0); /* a link of one's own */
	runtime_folder_remove(&f);
	assert_int_equal(lchown(in_scratch("link"), OTHER_USER, OTHER_USER), 0);
	assert_int_equal(open_in(&f, "link"), -EPERM);
}

/* Given to a user by an earlier daemon, who may have prepared something since. */
TEST(runtime_folder__takes_back_what_it_gave)
{
	static const char *const parts[] = {"run/dpdk/prefix", "run/dpdk", "run"};
	struct runtime_folder f;
	struct stat st;

	if (geteuid() != 0)
		skip();
	assert_int_equal(open_in(&f, "run"), 0);
	assert_int_equal(runtime_folder_give(&f, OTHER_USER, OTHER_USER), 0);
	assert_int_equal(chown(in_scratch("run"), OTHER_USER, OTHER_USER), 0);
	make_file(in_scratch("victim/config"));
	assert_int_equal(symlink(in_scratch("victim/config"), in_scratch("run/dpdk/prefix/config")),
			 0);
	assert_int_equal(open_in(&f, "run"), -EPERM);
	assert_int_equal(runtime_folder_open(&f, in_scratch("run"), "prefix", OTHER_USER), 0);
	assert_false(exists(in_scratch("run/dpdk/prefix/config")));
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(stat(in_scratch(parts[i]), &st), 0);
		assert_int_equal(st.st_uid, 0);
	}
	assert_int_equal(runtime_folder_give(&f, OTHER_USER, OTHER_USER), 0);
	assert_int_equal(stat(in_scratch("run"), &st), 0);
	assert_int_equal(st.st_uid, OTHER_USER);
	make_file(in_scratch("run/dpdk/prefix/config"));
	runtime_folder_remove(&f);
	assert_false(exists(in_scratch("run/dpdk")));
	assert_true(exists(in_scratch("victim/config")));
}
