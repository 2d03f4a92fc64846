/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Live attributes: an empty file of the tree stands for a text that the daemon is asked for when it
 * is opened, as a kernel writes it when it is read. The program gets a memfd with it. Any thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "host-abi/sysfs.h"
#include "softhca/softhca.h"
#include "view.h"

enum { NOT_LIVE = -2, TEXT_BYTES = 480 };

/* stat() as the kernel has it: ours would lead here again. */
static bool is_empty_file(const char *path)
{
	struct stat st;

	return syscall(SYS_newfstatat, AT_FDCWD, path, &st, 0) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size == 0;
}

/*
 * "…/sys/class/infiniband/hca0/ports/1/state" or "…/softhca/hca0/infiniband/hca0/ports/1/state":
 * the device, and what follows it. False: neither.
 */
static bool attribute_of(const char *shown, char device[32], const char **name)
{
	const char *at = strstr(shown, SYSFS_CLASS "/");
	size_t n;

	if (at) {
		at += strlen(SYSFS_CLASS "/");
	} else {
		at = strstr(shown, SYSFS_DEVICES "/");
		at = at ? strstr(at, "/infiniband/") : NULL;
		at = at ? at + strlen("/infiniband/") : NULL;
	}
	n = at ? strcspn(at, "/") : 0;
	if (n == 0 || n >= 32 || !at[n])
		return false;
	memcpy(device, at, n);
	device[n] = 0;
	*name = at + n + 1;
	return true;
}

static int memory_with(const char *text, size_t bytes, int flags)
{
	int fd = memfd_create("sysfs", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);

	if (fd < 0)
		return -1;
	if (write(fd, text, bytes) == (ssize_t)bytes && lseek(fd, 0, SEEK_SET) == 0)
		return fd;
	close(fd);
	errno = EIO;
	return -1;
}

int view_open_live(const char *shown, int flags)
{
	char device[32], text[TEXT_BYTES];
	const char *name;
	int n;

	if (flags & (O_DIRECTORY | O_PATH) || !is_empty_file(shown) ||
		!attribute_of(shown, device, &name))
		return NOT_LIVE;
	if ((flags & O_ACCMODE) != O_RDONLY) {
		errno = EACCES;
		return -1;
	}
	n = softhca_read_attribute(NULL, device, name, text, sizeof(text));
	if (n >= 0)
		return memory_with(text, n, flags);
	errno = n == -ENOENT ? ENOENT : ENODEV;
	return -1;
}

int view_relive(int fd, int flags)
{
	char link[32], path[PATH_MAX];
	struct stat st;
	int live;
	ssize_t n;

	if (fd < 0 || syscall(SYS_fstat, fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size != 0)
		return fd;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = syscall(SYS_readlink, link, path, sizeof(path) - 1);
	if (n <= 0)
		return fd;
	path[n] = 0;
	live = view_is_tree(path) ? view_open_live(path, flags) : NOT_LIVE;
	if (live == NOT_LIVE)
		return fd;
	close(fd);
	return live;
}
