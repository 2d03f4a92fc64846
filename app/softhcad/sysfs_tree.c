/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes and removes the tree of sysfs_tree.h. Follows no link that it did not create. Control
 * thread. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attributes.h"
#include "base/log.h"
#include "device.h"
#include "host-abi/sysfs.h"
#include "sysfs_tree.h"

enum { PATH_BYTES = 512, DEPTH_MAX = 16 };

static int tree_print_path(char *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int tree_print_path(char *out, const char *format, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(out, PATH_BYTES, format, arguments);
	va_end(arguments);
	return n < 0 || n >= PATH_BYTES ? -ENAMETOOLONG : 0;
}

/* ---- removing ---- */

/* Everything in the folder, which is closed. */
static void empty_folder(int fd, unsigned int depth)
{
	DIR *dir = fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		close(fd);
		return;
	}
	while ((e = readdir(dir)) != NULL) {
		int sub;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(dir), e->d_name, 0) == 0 || depth == DEPTH_MAX)
			continue;
		sub = openat(dirfd(dir), e->d_name,
			     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub >= 0)
			empty_folder(sub, depth + 1);
		unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR);
	}
	closedir(dir);
}

/* The root of the tree, with its path in `root`; -1: there is none of ours. */
static int tree_open_own(const char *socket_path, char root[PATH_BYTES])
{
	struct stat st;
	int fd;

	if (tree_print_path(root, "%s" SYSFS_TREE_SUFFIX, socket_path))
		return -1;
	fd = open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || (fstat(fd, &st) == 0 && st.st_uid == geteuid()))
		return fd;
	close(fd);
	return -1;
}

void sysfs_tree_remove(const char *socket_path)
{
	char root[PATH_BYTES];
	int fd = tree_open_own(socket_path, root);

	if (fd < 0)
		return;
	empty_folder(fd, 0);
	rmdir(root);
}

/* Without the leading slash: below the root. */
#define BELOW(path) (&(path)[1])

/* The links first, so that nobody follows one to a folder that is half gone. */
void sysfs_tree_remove_device(const char *socket_path, const char *device, unsigned int index)
{
	char root[PATH_BYTES], path[PATH_BYTES];
	int fd = tree_open_own(socket_path, root), folder;

	if (fd < 0)
		return;
	tree_print_path(path, "%s/%s", BELOW(SYSFS_CLASS), device);
	unlinkat(fd, path, 0);
	tree_print_path(path, "%s/uverbs%u", BELOW(SYSFS_VERBS_CLASS), index);
	unlinkat(fd, path, 0);
	tree_print_path(path, "%s/uverbs%u", BELOW(SYSFS_DEVICE_FOLDER), index);
	unlinkat(fd, path, 0);
	tree_print_path(path, "%s/%s", BELOW(SYSFS_DEVICES), device);
	folder = openat(fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder >= 0)
		empty_folder(folder, 0);
	unlinkat(fd, path, AT_REMOVEDIR);
	close(fd);
}

/* ---- creating; each takes a path below the root, which is open as *ctx ---- */

/* Creates the parent folders of path. */
static int make_way(int root, const char *path)
{
	char folder[PATH_BYTES];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		if (tree_print_path(folder, "%.*s", (int)(slash - path), path))
			return -ENAMETOOLONG;
		if (mkdirat(root, folder, 0755) && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int tree_make_file(int root, const char *path, const char *text, unsigned int bytes)
{
	int ret = make_way(root, path), fd;

	if (ret)
		return ret;
	fd = openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
	if (fd < 0)
		return -errno;
	if (bytes && write(fd, text, bytes) != (ssize_t)bytes)
		ret = errno ? -errno : -EIO;
	close(fd);
	return ret;
}

static int make_text(int root, const char *path, const char *text)
{
	return tree_make_file(root, path, text, strlen(text));
}

static int make_link(int root, const char *path, const char *to)
{
	int ret = make_way(root, path);

	if (ret)
		return ret;
	return symlinkat(to, root, path) ? -errno : 0;
}

static int show_attribute(void *ctx, struct device *v, const char *name, bool live)
{
	const char *device = v->section->name;
	char path[PATH_BYTES], text[ATTRIBUTE_TEXT_MAX];
	bool below = strncmp(name, "device/", 7) == 0;
	int n = live ? 0 : attribute_read(v, name, text, sizeof(text));

	if (n < 0)
		return n;
	if (below ? tree_print_path(path, "%s/%s/%s", BELOW(SYSFS_DEVICES), device, name + 7)
		  : tree_print_path(path, "%s/%s/infiniband/%s/%s", BELOW(SYSFS_DEVICES), device,
				    device, name))
		return -ENAMETOOLONG;
	return tree_make_file(*(int *)ctx, path, text, n);
}

/* Links the class to the device, and the device to its parent. */
static int show_links(int root, const char *device)
{
	char path[PATH_BYTES], to[PATH_BYTES];
	int ret;

	tree_print_path(path, "%s/%s", BELOW(SYSFS_CLASS), device);
	tree_print_path(to, "../../devices/virtual/softhca/%s/infiniband/%s", device, device);
	ret = make_link(root, path, to);
	tree_print_path(path, "%s/%s/infiniband/%s/device", BELOW(SYSFS_DEVICES), device, device);
	if (!ret)
		ret = make_link(root, path, "../..");
	return ret;
}

/* index: of the device in the daemon. */
static int show_verbs(int root, const char *device, unsigned int index)
{
	char path[PATH_BYTES], to[PATH_BYTES], folder[PATH_BYTES];
	int ret;

	tree_print_path(folder, "%s/%s/infiniband_verbs/uverbs%u", BELOW(SYSFS_DEVICES), device,
			index);
	tree_print_path(path, "%s/ibdev", folder);
	tree_print_path(to, "%s\n", device);
	ret = make_text(root, path, to);
	tree_print_path(path, "%s/abi_version", folder);
	if (!ret)
		ret = make_text(root, path, "1\n");
	tree_print_path(path, "%s/dev", folder);
	if (!ret)
		ret = make_text(root, path, "1:3\n"); /* of /dev/null */
	tree_print_path(path, "%s/device", folder);
	if (!ret)
		ret = make_link(root, path, "../..");
	tree_print_path(path, "%s/uverbs%u", BELOW(SYSFS_VERBS_CLASS), index);
	tree_print_path(to, "../../devices/virtual/softhca/%s/infiniband_verbs/uverbs%u", device,
			index);
	if (!ret)
		ret = make_link(root, path, to);
	tree_print_path(path, "%s/uverbs%u", BELOW(SYSFS_DEVICE_FOLDER), index);
	return ret ? ret : make_link(root, path, "/dev/null");
}

static int show_device(int root, struct device *v, unsigned int index)
{
	const char *name = v->section->name;
	int ret = attributes_each(v, show_attribute, &root);

	if (!ret)
		ret = show_links(root, name);
	return ret ? ret : show_verbs(root, name, index);
}

static int show_all(const char *path, struct device *devices, unsigned count)
{
	int root, ret;

	if (mkdir(path, 0755))
		return -errno;
	root = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0)
		return -errno;
	ret = make_text(root, BELOW(SYSFS_VERBS_CLASS "/abi_version"), "6\n");
	if (!ret)
		ret = make_link(root, BELOW(SYSFS_RDMA_CM), "/dev/null");
	for (unsigned i = 0; i < count && !ret; i++)
		ret = show_device(root, &devices[i], i);
	close(root);
	return ret;
}

void sysfs_tree_add_device(const char *socket_path, struct device *v, unsigned int index)
{
	char path[PATH_BYTES];
	mode_t mask = umask(022);
	int root = tree_open_own(socket_path, path);
	int ret = root < 0 ? -ENOENT : show_device(root, v, index);

	umask(mask);
	if (root >= 0)
		close(root);
	if (ret)
		LOG(WARNING, "cannot create files for programs that read /sys: %s: %s", path,
		    strerror(-ret));
}

void sysfs_tree_make(const char *socket_path, struct device *devices, unsigned count)
{
	char path[PATH_BYTES];
	mode_t mask = umask(022);
	int ret = tree_print_path(path, "%s" SYSFS_TREE_SUFFIX, socket_path);

	sysfs_tree_remove(socket_path);
	if (!ret)
		ret = show_all(path, devices, count);
	umask(mask);
	if (ret)
		LOG(WARNING, "cannot create files for programs that read /sys: %s: %s", path,
		    strerror(-ret));
}
