/* SPDX-License-Identifier: BSD-3-Clause */
/* Creates, checks and removes the folder of EAL's files (runtime_folder.h). Control thread. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/log.h"
#include "runtime_folder.h"

static void close_folder(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_all(struct runtime_folder *f)
{
	close_folder(&f->own);
	close_folder(&f->dpdk);
	close_folder(&f->folder);
}

/* Opens a folder in `parent` that only we own. A descriptor or -errno. */
static int private_folder(int parent, const char *name)
{
	struct stat st;
	int fd, ret = 0;

	if (mkdirat(parent, name, 0700) && errno != EEXIST)
		return -errno;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno;
	if (fstat(fd, &st))
		ret = -errno;
	else if (st.st_uid != geteuid())
		ret = -EPERM;
	else if (st.st_mode & 077 && fchmod(fd, 0700))
		ret = -errno;
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

static int open_all(struct runtime_folder *f, const char *folder)
{
	int ret = paths_make_folder(folder);

	if (ret)
		return ret;
	f->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->folder < 0)
		return -errno;
	f->dpdk = private_folder(f->folder, "dpdk");
	if (f->dpdk < 0)
		return f->dpdk;
	f->own = private_folder(f->dpdk, f->prefix);
	return f->own < 0 ? f->own : 0;
}

int runtime_folder_open(struct runtime_folder *f, const char *folder, const char *prefix)
{
	int ret;

	f->folder = f->dpdk = f->own = -1;
	snprintf(f->prefix, sizeof(f->prefix), "%s", prefix);
	ret = open_all(f, folder);
	if (!ret && setenv("RUNTIME_DIRECTORY", folder, 1))
		ret = -errno;
	if (!ret)
		return 0;
	close_all(f);
	LOG(ERR, "cannot use %s/dpdk/%s for DPDK's files: %s", folder, prefix,
	    ret == -EPERM ? "another user's, or open to others" : strerror(-ret));
	return ret;
}

int runtime_folder_give(const struct runtime_folder *f, uid_t user, gid_t group)
{
	return fchown(f->own, user, group) || fchown(f->dpdk, user, group) ? -errno : 0;
}

/* Is that what EAL calls its files? */
static bool is_of_eal(const char *name)
{
	static const char *const begins[] = {"config", "dpdk_telemetry.", "fbarray_", "hugepage_",
					     "mp_socket"};

	for (unsigned i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (strncmp(name, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

static void remove_files(int folder)
{
	int copy = dup(folder);
	DIR *directory = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!directory) {
		close_folder(&copy);
		return;
	}
	while ((entry = readdir(directory)) != NULL)
		if (is_of_eal(entry->d_name))
			unlinkat(folder, entry->d_name, 0);
	closedir(directory);
}

void runtime_folder_remove(struct runtime_folder *f)
{
	if (f->own < 0)
		return;
	remove_files(f->own);
	unlinkat(f->dpdk, f->prefix, AT_REMOVEDIR);
	unlinkat(f->folder, "dpdk", AT_REMOVEDIR);
	close_all(f);
}
