/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which paths we show, and where they lead: to the tree that the daemon keeps beside its socket
 * (host-abi/sysfs.h). Pure, except that the environment is read once. Any thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "ask.h"
#include "host-abi/sysfs.h"
#include "view.h"

enum { ROOT_BYTES = ASK_PATH_BYTES + sizeof(SYSFS_TREE_SUFFIX) };

static const char *const shown_folders[] = {SYSFS_CLASS, SYSFS_VERBS_CLASS, SYSFS_DEVICES,
					    SYSFS_DEVICE_FOLDER};

size_t view_name_of(int fd, char *name, size_t room)
{
	char link[32];
	long n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = syscall(SYS_readlinkat, AT_FDCWD, link, name, room);
	if (n <= 0 || (size_t)n >= room)
		return 0;
	name[n] = 0;
	return (size_t)n;
}

/* Resolves to the kernel's name for it, comparable with what the kernel reports. */
static void resolve_links(char path[ROOT_BYTES])
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC);
	char found[ROOT_BYTES];
	size_t n;

	if (fd < 0)
		return;
	n = view_name_of(fd, found, sizeof(found));
	close(fd);
	if (n)
		memcpy(path, found, n + 1);
}

/* The tree. Every thread finds the same, whichever comes first. */
static const char *root(size_t *length)
{
	static char path[ROOT_BYTES];
	static size_t known; /* atomic: its length; 0: not yet */
	size_t n = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
	char mine[ROOT_BYTES];

	if (!n) {
		if (ask_socket_path(NULL, mine))
			strcpy(mine, "/nonexistent");
		strcat(mine, SYSFS_TREE_SUFFIX);
		resolve_links(mine);
		n = strlen(mine);
		memcpy(path, mine, n + 1);
		__atomic_store_n(&known, n, __ATOMIC_RELEASE);
	}
	*length = n;
	return path;
}

/* Removes doubled slashes and "/./". False: too long. */
static bool tidy(const char *path, char out[PATH_MAX])
{
	size_t n = 0;

	for (; *path; path++) {
		if (n + 1 == PATH_MAX)
			return false;
		if (*path == '/' && path[1] == '/')
			continue;
		if (*path == '/' && path[1] == '.' && path[2] == '/') {
			path++;
			continue;
		}
		out[n++] = *path;
	}
	out[n] = 0;
	return true;
}

static bool is_shown(const char *path)
{
	for (size_t i = 0; i < sizeof(shown_folders) / sizeof(shown_folders[0]); i++) {
		size_t n = strlen(shown_folders[i]);

		if (strncmp(path, shown_folders[i], n) == 0 && (!path[n] || path[n] == '/'))
			return true;
	}
	return false;
}

const char *view_path(const char *path, char out[PATH_MAX])
{
	char clean[PATH_MAX];
	const char *tree;
	size_t length;

	/* Nearly all paths stop here. */
	if (!path || path[0] != '/' || !strstr(path, "infiniband"))
		if (!path || path[0] != '/' || !strstr(path, "softhca"))
			return path;
	if (!tidy(path, clean) || !is_shown(clean))
		return path;
	tree = root(&length);
	if (length + strlen(clean) >= PATH_MAX)
		return path;
	memcpy(out, tree, length);
	strcpy(out + length, clean);
	return out;
}

bool view_is_tree(const char *path)
{
	size_t length;
	const char *tree = root(&length);

	return strncmp(path, tree, length) == 0 && path[length] == '/';
}

long view_back(char *text, long n)
{
	size_t length;
	const char *tree = root(&length);

	if (n <= (long)length || memcmp(text, tree, length) != 0 || text[length] != '/')
		return n;
	memmove(text, text + length, n - length);
	return n - (long)length;
}

/* ---- the working directory ---- */

enum { CWD_UNKNOWN, CWD_ELSEWHERE, CWD_IN_TREE };

static int cwd; /* atomic; also unknown in a program that inherits it */

void view_cwd_changed(void)
{
	__atomic_store_n(&cwd, CWD_UNKNOWN, __ATOMIC_RELAXED);
}

bool view_cwd_is_tree(void)
{
	int known = __atomic_load_n(&cwd, __ATOMIC_RELAXED);
	char path[PATH_MAX];
	int error = errno;

	if (known == CWD_UNKNOWN) {
		known = syscall(SYS_getcwd, path, sizeof(path)) > 0 && view_is_tree(path)
				? CWD_IN_TREE
				: CWD_ELSEWHERE;
		errno = error;
		__atomic_store_n(&cwd, known, __ATOMIC_RELAXED);
	}
	return known == CWD_IN_TREE;
}
