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

static void folder_close_all(struct runtime_folder *f)
{
	close_folder(&f->own);
	close_folder(&f->dpdk);
	close_folder(&f->folder);
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
	rewinddir(directory); /* the copy shares the position */
	while ((entry = readdir(directory)) != NULL)
		if (is_of_eal(entry->d_name))
			unlinkat(folder, entry->d_name, 0);
	closedir(directory);
}

/* Takes back a folder that an earlier daemon gave to `user`, before anything is written there that
 * this user might redirect. 1: taken back; 0: it is ours; -EPERM: another user's; another
 * -errno. */
static int take_back(int fd, uid_t user)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_uid == geteuid())
		return 0;
	if (st.st_uid != user)
		return -EPERM;
	return fchown(fd, geteuid(), getegid()) ? -errno : 1;
}

/* Opens a folder in `parent` that only we own, with nothing in it that EAL would take for its own
 * if it was the user's. A descriptor or -errno. */
static int private_folder(int parent, const char *name, uid_t user)
{
	struct stat st;
	int fd, ret;

	if (mkdirat(parent, name, 0700) && errno != EEXIST)
		return -errno;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno;
	ret = take_back(fd, user);
	if (ret >= 0 && (fstat(fd, &st) || (st.st_mode & 077 && fchmod(fd, 0700))))
		ret = -errno;
	if (ret < 0) {
		close(fd);
		return ret;
	}
	if (ret == 1)
		remove_files(fd);
	return fd;
}

static int open_all(struct runtime_folder *f, const char *folder, uid_t user)
{
	int ret = paths_make_folder(folder, user);

	if (ret)
		return ret;
	f->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->folder < 0)
		return -errno;
	ret = take_back(f->folder, user);
	f->taken_back = ret == 1;
	if (ret < 0 && ret != -EPERM) /* root's will do: paths_make_folder() has checked it */
		return ret;
	f->dpdk = private_folder(f->folder, "dpdk", user);
	if (f->dpdk < 0)
		return f->dpdk;
	f->own = private_folder(f->dpdk, f->prefix, user);
	return f->own < 0 ? f->own : 0;
}

int runtime_folder_open(struct runtime_folder *f, const char *folder, const char *prefix,
			uid_t user)
{
	int ret;

	f->folder = f->dpdk = f->own = -1;
	f->taken_back = false;
	snprintf(f->prefix, sizeof(f->prefix), "%s", prefix);
	ret = open_all(f, folder, user);
	if (!ret && setenv("RUNTIME_DIRECTORY", folder, 1))
		ret = -errno;
	if (!ret)
		return 0;
	folder_close_all(f);
	LOG(ERR, "cannot use %s/dpdk/%s for DPDK's files: %s", folder, prefix,
	    ret == -EPERM ? "another user's, or open to others" : strerror(-ret));
	return ret;
}

int runtime_folder_give(const struct runtime_folder *f, uid_t user, gid_t group)
{
	if (fchown(f->own, user, group) || fchown(f->dpdk, user, group) ||
	    (f->taken_back && fchown(f->folder, user, group)))
		return -errno;
	return 0;
}

void runtime_folder_remove(struct runtime_folder *f)
{
	if (f->own < 0)
		return;
	remove_files(f->own);
	unlinkat(f->dpdk, f->prefix, AT_REMOVEDIR);
	unlinkat(f->folder, "dpdk", AT_REMOVEDIR);
	folder_close_all(f);
}
