/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Live attributes: an empty file of the tree represents a text that is requested from the daemon
 * whenever the file is opened, or read from its beginning, just as a kernel would generate it. The
 * program gets a memfd with the text. Any thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "host-abi/sysfs.h"
#include "marks.h"
#include "softhca/softhca.h"
#include "view.h"

#define NAME_PREFIX "softhca/"

enum { TEXT_BYTES = 480, NAME_BYTES = 160 };

/* stat() by system call: ours would recurse. */
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

/* Descriptors opened as live attributes; the program may have closed them since. */
static struct marks attributes;

/* The memfd is named after the attribute: any process that holds the descriptor can refresh it. */
static int memory_with(const char *device, const char *name, const char *text, size_t bytes,
		       int flags)
{
	char full[NAME_BYTES];
	int fd;

	snprintf(full, sizeof(full), NAME_PREFIX "%s/%s", device, name);
	fd = memfd_create(full, flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
	if (fd < 0)
		return -1;
	if (syscall(SYS_pwrite64, fd, text, bytes, 0l) == (ssize_t)bytes) {
		marks_add(&attributes, fd);
		return fd;
	}
	close(fd);
	errno = EIO;
	return -1;
}

/* The device and name of the attribute in this memfd. False: the fd is something else by now. */
static bool attribute_behind(int fd, char device[32], char name[NAME_BYTES])
{
	static const char before[] = "/memfd:" NAME_PREFIX, after[] = " (deleted)";
	char path[NAME_BYTES + sizeof(before) + sizeof(after)], *slash;
	size_t n = view_name_of(fd, path, sizeof(path));

	if (n < sizeof(after) || strncmp(path, before, sizeof(before) - 1) != 0 ||
	    strcmp(path + n - (sizeof(after) - 1), after) != 0)
		return false;
	path[n - (sizeof(after) - 1)] = 0;
	slash = strchr(path + sizeof(before) - 1, '/');
	if (!slash || slash - (path + sizeof(before) - 1) >= 32)
		return false;
	*slash = 0;
	strcpy(device, path + sizeof(before) - 1);
	snprintf(name, NAME_BYTES, "%s", slash + 1);
	return true;
}

static void ask_again(int fd)
{
	char device[32], name[NAME_BYTES], text[TEXT_BYTES];
	int n;

	if (!attribute_behind(fd, device, name)) {
		marks_remove(&attributes, fd);
		return;
	}
	n = softhca_read_attribute(NULL, device, name, text, sizeof(text));
	if (n > 0 && syscall(SYS_pwrite64, fd, text, (size_t)n, 0l) == n)
		syscall(SYS_ftruncate, fd, (long)n);
}

void view_refresh(int fd, long offset)
{
	int error = errno;

	if (!marks_has(&attributes, fd))
		return;
	if (offset == VIEW_WHERE_IT_IS)
		offset = lseek(fd, 0, SEEK_CUR);
	if (offset == 0)
		ask_again(fd);
	errno = error;
}

int view_open_live(const char *shown, int flags)
{
	char device[32], text[TEXT_BYTES];
	const char *name;
	int n;

	if (flags & (O_DIRECTORY | O_PATH) || !is_empty_file(shown) ||
	    !attribute_of(shown, device, &name))
		return VIEW_NOT_SPECIAL;
	if ((flags & O_ACCMODE) != O_RDONLY) {
		errno = EACCES;
		return -1;
	}
	n = softhca_read_attribute(NULL, device, name, text, sizeof(text));
	if (n >= 0)
		return memory_with(device, name, text, n, flags);
	errno = n == -ENOENT ? ENOENT : ENODEV;
	return -1;
}

int view_relive(int fd, int flags)
{
	char path[PATH_MAX];
	struct stat st;
	int live;

	if (fd < 0 || syscall(SYS_fstat, fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size != 0 ||
	    !view_name_of(fd, path, sizeof(path)))
		return fd;
	live = view_is_tree(path) ? view_open_live(path, flags) : VIEW_NOT_SPECIAL;
	if (live == VIEW_NOT_SPECIAL)
		return fd;
	close(fd);
	return live;
}
