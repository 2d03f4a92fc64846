/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the file behind a shared mapping: in the kernel's list of mapped files (root only), among
 * the process's descriptors, by its path. Opens only files in memory, since opening a device may
 * have side effects.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "sharing_priv.h"

static bool in_memory(const struct statfs *fs, const struct stat *st, uint8_t *log_page)
{
	if (!S_ISREG(st->st_mode))
		return false;
	*log_page = 12;
	if (fs->f_type == HUGETLBFS_MAGIC)
		*log_page = (uint8_t)__builtin_ctzl((unsigned long)fs->f_bsize);
	return fs->f_type == HUGETLBFS_MAGIC || fs->f_type == TMPFS_MAGIC;
}

static bool file_is_same(const struct stat *st, const struct vma *v)
{
	return st->st_ino == v->inode && (st->st_dev == v->device || v->device == VMA_SEGMENT);
}

/* Opens the path if it is the wanted file: a descriptor, or -1. */
static int open_path(const char *path, const struct vma *v, bool write, uint8_t *log_page)
{
	struct statfs fs;
	struct stat st;
	int fd;

	if (stat(path, &st) || statfs(path, &fs) || !file_is_same(&st, v) ||
	    !in_memory(&fs, &st, log_page))
		return -1;
	fd = open(path, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) == 0 && file_is_same(&st, v))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool suits(int fd, const struct vma *v, bool write, uint8_t *log_page)
{
	struct statfs fs;
	struct stat st;
	int mode;

	if (fstat(fd, &st) || !file_is_same(&st, v) || fstatfs(fd, &fs) ||
	    !in_memory(&fs, &st, log_page))
		return false;
	mode = fcntl(fd, F_GETFL);
	if (mode < 0 || mode & O_PATH)
		return false;
	return (mode & O_ACCMODE) == O_RDWR || (!write && (mode & O_ACCMODE) == O_RDONLY);
}

static int file_open_own(const struct vma *v, bool write, uint8_t *log_page)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *e;
	int found = -1;

	while (folder && found < 0 && (e = readdir(folder))) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] != '.' && fd != dirfd(folder) && suits(fd, v, write, log_page))
			found = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	}
	if (folder)
		closedir(folder);
	return found;
}

uint64_t file_segment_bytes(const struct vma *v)
{
	struct shmid_ds segment;

	if (v->device != VMA_SEGMENT || v->inode > INT_MAX ||
	    shmctl((int)v->inode, IPC_STAT, &segment))
		return 0;
	return (segment.shm_segsz + SHARING_PAGE - 1) & ~(uint64_t)(SHARING_PAGE - 1);
}

int file_open(const struct vma *v, bool write, int *fd, uint8_t *log_page)
{
	char path[80];

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", v->start, v->end);
	*fd = open_path(path, v, write, log_page);
	if (v->device == VMA_SEGMENT) /* has no other descriptor */
		return *fd < 0 ? -EOPNOTSUPP : 0;
	if (*fd < 0)
		*fd = file_open_own(v, write, log_page);
	if (*fd < 0 && v->path[0] == '/')
		*fd = open_path(v->path, v, write, log_page);
	return *fd < 0 ? -EOPNOTSUPP : 0;
}
