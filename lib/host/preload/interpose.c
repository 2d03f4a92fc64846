/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of libc that take a path, in front of libc's own (LD_PRELOAD): each shows the
 * daemon's tree where the program asks for the kernel's RDMA files, and passes all else on
 * untouched. Any thread. Does nothing before the first call and holds no resources.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "cm.h"
#include "next.h"
#include "view.h"

#define HAS_MODE(flags) ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE)

/* ---- open ---- */

/* The device, a live attribute, or VIEW_NOT_SPECIAL. dir: the directory of a relative path. */
static int open_special(int dir, const char *path, const char *shown, int flags)
{
	if (VIEWED(shown, path))
		return view_is_cm_path(shown) ? view_open_cm(flags) : view_open_live(shown, flags);
	return view_is_cm_at(dir, path) ? view_open_cm(flags) : VIEW_NOT_SPECIAL;
}

/* Opens one of those, else evaluates `call`. */
#define OPEN(dir, path, flags, call)                                                               \
	({                                                                                         \
		char tree[PATH_MAX];                                                               \
		const char *shown = view_path(path, tree);                                         \
		int fd = open_special(dir, path, shown, flags);                                    \
                                                                                                   \
		fd == VIEW_NOT_SPECIAL ? (call) : fd;                                              \
	})

/* Relative to a directory that may lie in the tree: the file opened may be a live attribute. */
static bool is_below(int dir, const char *path)
{
	return path && path[0] != '/' && (dir != AT_FDCWD || view_cwd_is_tree());
}

#define MODE_OF(flags)                                                                             \
	({                                                                                         \
		mode_t mode = 0;                                                                   \
		va_list arguments;                                                                 \
                                                                                                   \
		if (HAS_MODE(flags)) {                                                             \
			va_start(arguments, flags);                                                \
			mode = va_arg(arguments, mode_t);                                          \
			va_end(arguments);                                                         \
		}                                                                                  \
		mode;                                                                              \
	})

#define DEFINE_OPEN(name)                                                                          \
	SHOWN int name(const char *path, int flags, ...)                                           \
	{                                                                                          \
		mode_t m = MODE_OF(flags);                                                         \
		int opened = OPEN(AT_FDCWD, path, flags, NEXT(name)(shown, flags, m));             \
                                                                                                   \
		return is_below(AT_FDCWD, path) ? view_relive(opened, flags) : opened;             \
	}

#define DEFINE_OPENAT(name)                                                                        \
	SHOWN int name(int dir, const char *path, int flags, ...)                                  \
	{                                                                                          \
		mode_t m = MODE_OF(flags);                                                         \
		int opened = OPEN(dir, path, flags, NEXT(name)(dir, shown, flags, m));             \
                                                                                                   \
		return is_below(dir, path) ? view_relive(opened, flags) : opened;                  \
	}

/* Called by programs compiled with _FORTIFY_SOURCE. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);

#define DEFINE_OPEN_2(name)                                                                        \
	SHOWN int name(const char *path, int flags)                                                \
	{                                                                                          \
		int opened = OPEN(AT_FDCWD, path, flags, NEXT(name)(shown, flags));                \
                                                                                                   \
		return is_below(AT_FDCWD, path) ? view_relive(opened, flags) : opened;             \
	}

#define DEFINE_OPENAT_2(name)                                                                      \
	SHOWN int name(int dir, const char *path, int flags)                                       \
	{                                                                                          \
		int opened = OPEN(dir, path, flags, NEXT(name)(dir, shown, flags));                \
                                                                                                   \
		return is_below(dir, path) ? view_relive(opened, flags) : opened;                  \
	}

DEFINE_OPEN(open)
DEFINE_OPEN(open64)
DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)
DEFINE_OPEN_2(__open_2)
DEFINE_OPEN_2(__open64_2)
DEFINE_OPENAT_2(__openat_2)
DEFINE_OPENAT_2(__openat64_2)

/* fopen() opens the file inside libc, past us. shown: the path of a live attribute, or one relative
 * to a directory of the tree. */
static FILE *stream_of(const char *shown, const char *mode, bool *live)
{
	int flags = strchr(mode, 'e') ? O_CLOEXEC : 0, fd;
	FILE *f;

	flags |= mode[0] == 'r' && !strchr(mode, '+') ? O_RDONLY : O_RDWR;
	fd = shown[0] == '/' ? view_open_live(shown, flags) : open(shown, flags);
	*live = fd != VIEW_NOT_SPECIAL;
	if (fd < 0)
		return NULL;
	f = fdopen(fd, mode);
	if (!f)
		close(fd);
	return f;
}

/* ... and must not create a file. */
static bool is_stream_of_ours(const char *shown, const char *path, const char *mode)
{
	return VIEWED(shown, path) || (mode[0] == 'r' && is_below(AT_FDCWD, path));
}

#define DEFINE_FOPEN(name)                                                                         \
	SHOWN FILE *name(const char *path, const char *mode)                                       \
	{                                                                                          \
		char tree[PATH_MAX];                                                               \
		const char *shown = view_path(path, tree);                                         \
		bool live = false;                                                                 \
		FILE *f = is_stream_of_ours(shown, path, mode) ? stream_of(shown, mode, &live)     \
							       : NULL;                             \
                                                                                                   \
		return live ? f : NEXT(name)(shown, mode);                                         \
	}

DEFINE_FOPEN(fopen)
DEFINE_FOPEN(fopen64)

/* ---- reading ---- */

SHOWN ssize_t read(int fd, void *to, size_t bytes)
{
	if (view_is_cm(fd))
		return view_read_cm();
	view_refresh(fd, VIEW_WHERE_IT_IS);
	return NEXT(read)(fd, to, bytes);
}

ssize_t __read_chk(int fd, void *to, size_t bytes, size_t room);

SHOWN ssize_t __read_chk(int fd, void *to, size_t bytes, size_t room)
{
	if (view_is_cm(fd))
		return view_read_cm();
	view_refresh(fd, VIEW_WHERE_IT_IS);
	return NEXT(__read_chk)(fd, to, bytes, room);
}

#define DEFINE_PREAD(name, type)                                                                   \
	SHOWN ssize_t name(int fd, void *to, size_t bytes, type offset)                            \
	{                                                                                          \
		view_refresh(fd, offset);                                                          \
		return NEXT(name)(fd, to, bytes, offset);                                          \
	}

#define DEFINE_FSEEK(name, type)                                                                   \
	SHOWN int name(FILE *f, type offset, int whence)                                           \
	{                                                                                          \
		if (offset == 0 && whence == SEEK_SET)                                             \
			view_refresh(fileno(f), 0);                                                \
		return NEXT(name)(f, offset, whence);                                              \
	}

DEFINE_PREAD(pread, off_t)
DEFINE_PREAD(pread64, off64_t)
DEFINE_FSEEK(fseek, long)
DEFINE_FSEEK(fseeko, off_t)
DEFINE_FSEEK(fseeko64, off64_t)

SHOWN void rewind(FILE *f)
{
	view_refresh(fileno(f), 0);
	NEXT(rewind)(f);
}

/* ---- functions that only look ---- */

/* A function whose path is its first argument ... */
#define DEFINE_FIRST(type, name, types, names)                                                     \
	SHOWN type name types                                                                      \
	{                                                                                          \
		char tree[PATH_MAX];                                                               \
		const char *shown = view_path(path, tree);                                         \
                                                                                                   \
		return NEXT(name) names;                                                           \
	}

DEFINE_FIRST(int, stat, (const char *restrict path, struct stat *restrict st), (shown, st))
DEFINE_FIRST(int, stat64, (const char *restrict path, struct stat64 *restrict st), (shown, st))
DEFINE_FIRST(int, lstat, (const char *restrict path, struct stat *restrict st), (shown, st))
DEFINE_FIRST(int, lstat64, (const char *restrict path, struct stat64 *restrict st), (shown, st))
DEFINE_FIRST(int, access, (const char *path, int how), (shown, how))
DEFINE_FIRST(int, eaccess, (const char *path, int how), (shown, how))
DEFINE_FIRST(int, euidaccess, (const char *path, int how), (shown, how))
DEFINE_FIRST(DIR *, opendir, (const char *path), (shown))
DEFINE_FIRST(int, scandir,
	     (const char *restrict path, struct dirent ***restrict list,
	      int (*filter)(const struct dirent *),
	      int (*order)(const struct dirent **, const struct dirent **)),
	     (shown, list, filter, order))
DEFINE_FIRST(int, scandir64,
	     (const char *restrict path, struct dirent64 ***restrict list,
	      int (*filter)(const struct dirent64 *),
	      int (*order)(const struct dirent64 **, const struct dirent64 **)),
	     (shown, list, filter, order))

/* ... or its second, behind a descriptor (those that may mean the descriptor: descriptors.c). */
DEFINE_FIRST(int, faccessat, (int dir, const char *path, int how, int flags),
	     (dir, shown, how, flags))

/* `ls -l` calls it. */
DEFINE_FIRST(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t bytes),
	     (shown, name, value, bytes))
DEFINE_FIRST(ssize_t, lgetxattr, (const char *path, const char *name, void *value, size_t bytes),
	     (shown, name, value, bytes))

/* Called by programs built with glibc before 2.33. */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);

DEFINE_FIRST(int, __xstat, (int version, const char *path, struct stat *st), (version, shown, st))
DEFINE_FIRST(int, __xstat64, (int version, const char *path, struct stat64 *st),
	     (version, shown, st))
DEFINE_FIRST(int, __lxstat, (int version, const char *path, struct stat *st), (version, shown, st))
DEFINE_FIRST(int, __lxstat64, (int version, const char *path, struct stat64 *st),
	     (version, shown, st))

/* ---- links ---- */

DEFINE_FIRST(ssize_t, readlink, (const char *restrict path, char *restrict to, size_t bytes),
	     (shown, to, bytes))
DEFINE_FIRST(ssize_t, readlinkat,
	     (int dir, const char *restrict path, char *restrict to, size_t bytes),
	     (dir, shown, to, bytes))

/* Converts a result of realpath() in the tree to the path that the program knows. */
static char *path_shown(char *found)
{
	if (found)
		found[view_back(found, (long)strlen(found))] = 0;
	return found;
}

SHOWN char *realpath(const char *restrict path, char *restrict resolved)
{
	char tree[PATH_MAX];
	const char *shown = view_path(path, tree);
	char *found = NEXT(realpath)(shown, resolved);

	return VIEWED(shown, path) || is_below(AT_FDCWD, path) ? path_shown(found) : found;
}

SHOWN char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}

char *__realpath_chk(const char *path, char *resolved, size_t bytes);

SHOWN char *__realpath_chk(const char *path, char *resolved, size_t bytes)
{
	char tree[PATH_MAX];
	const char *shown = view_path(path, tree);
	char *found = NEXT(__realpath_chk)(shown, resolved, bytes);

	return VIEWED(shown, path) || is_below(AT_FDCWD, path) ? path_shown(found) : found;
}

ssize_t __readlink_chk(const char *path, char *to, size_t bytes, size_t room);

DEFINE_FIRST(ssize_t, __readlink_chk, (const char *path, char *to, size_t bytes, size_t room),
	     (shown, to, bytes, room))

/* ---- the working directory ---- */

SHOWN int chdir(const char *path)
{
	char tree[PATH_MAX];
	int rc = NEXT(chdir)(view_path(path, tree));

	view_cwd_changed();
	return rc;
}

SHOWN int fchdir(int fd)
{
	int rc = NEXT(fchdir)(fd);

	view_cwd_changed();
	return rc;
}

SHOWN char *getcwd(char *to, size_t bytes)
{
	return path_shown(NEXT(getcwd)(to, bytes));
}

SHOWN char *get_current_dir_name(void)
{
	return path_shown(NEXT(get_current_dir_name)());
}

char *__getcwd_chk(char *to, size_t bytes, size_t room);

SHOWN char *__getcwd_chk(char *to, size_t bytes, size_t room)
{
	return path_shown(NEXT(__getcwd_chk)(to, bytes, room));
}
