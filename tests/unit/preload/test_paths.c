/* SPDX-License-Identifier: BSD-3-Clause */
/* Which paths are shown, and where they lead: of a daemon whose socket is a.sock in a new folder.
 */
#include <sys/stat.h>

#include "test.h"
#include "view.h"

static char folder[] = "/tmp/softhca-view.XXXXXX";
static char tree[100], link_name[100];

/* The daemon is named through a link: what the kernel says of files below it has another name. */
static int start(void **state)
{
	char socket[120];

	if (!mkdtemp(folder))
		return -1;
	snprintf(tree, sizeof(tree), "%s/a.sock.sysfs", folder);
	snprintf(link_name, sizeof(link_name), "%s/link", folder);
	snprintf(socket, sizeof(socket), "%s/a.sock", link_name);
	return mkdir(tree, 0700) || symlink(folder, link_name) ||
	       setenv("SOFTHCA_SOCKET", socket, 1);
}

static int stop(void **state)
{
	return rmdir(tree) || unlink(link_name) || rmdir(folder);
}

static void expect(const char *path, const char *below)
{
	char out[PATH_MAX], wanted[PATH_MAX];
	const char *shown = view_path(path, out);

	snprintf(wanted, sizeof(wanted), "%s%s", tree, below);
	assert_ptr_not_equal(shown, path);
	assert_string_equal(shown, wanted);
	assert_true(view_is_tree(shown));
}

TEST(paths__of_the_class_lead_into_the_tree)
{
	expect("/sys/class/infiniband", "/sys/class/infiniband");
	expect("/sys/class/infiniband/", "/sys/class/infiniband/");
	expect("/sys/class/infiniband/a/ports/1/gids/0", "/sys/class/infiniband/a/ports/1/gids/0");
	expect("/sys/class/infiniband_verbs/uverbs0", "/sys/class/infiniband_verbs/uverbs0");
	expect("/dev/infiniband/uverbs0", "/dev/infiniband/uverbs0");
	expect("/sys/devices/virtual/softhca/a", "/sys/devices/virtual/softhca/a");
	expect("//sys//class/./infiniband///a", "/sys/class/infiniband/a");
	expect("/sys/class/infiniband/a/.", "/sys/class/infiniband/a/.");
}

TEST(paths__of_others_stay)
{
	static const char *const others[] = {"",
					     "/",
					     "/sys/class",
					     "/sys/class/infinibandage",
					     "/sys/class/infiniband_mad/umad0",
					     "sys/class/infiniband",
					     "/dev/infinibands",
					     "/home/softhca/infiniband",
					     "/sys/devices/virtual/softhcas",
					     "/proc/self/root/sys/class/infiniband"};
	char out[PATH_MAX], *long_path = malloc(PATH_MAX + 100);

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_ptr_equal(view_path(others[i], out), others[i]);
	assert_null(view_path(NULL, out));
	memset(long_path, 'x', PATH_MAX + 99);
	long_path[PATH_MAX + 99] = 0;
	memcpy(long_path, "/sys/class/infiniband/", 22);
	assert_ptr_equal(view_path(long_path, out), long_path);
	long_path[PATH_MAX - 10] = 0; /* fits, but not behind the tree's own path */
	assert_ptr_equal(view_path(long_path, out), long_path);
	free(long_path);
}

TEST(paths__of_the_tree_lead_back)
{
	char text[PATH_MAX];
	long n = snprintf(text, sizeof(text), "%s/sys/class/infiniband/a", tree);

	n = view_back(text, n);
	text[n] = 0;
	assert_string_equal(text, "/sys/class/infiniband/a");
	assert_int_equal(view_back(text, n), n);
	assert_string_equal(text, "/sys/class/infiniband/a");
	assert_false(view_is_tree(text));
	snprintf(text, sizeof(text), "%ss/sys", tree);
	assert_false(view_is_tree(text));
}

TEST_GROUP(.setup = start, .teardown = stop);
