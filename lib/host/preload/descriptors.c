/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of libc that take a descriptor, in front of libc's own (LD_PRELOAD): on an open
 * /dev/infiniband/rdma_cm they act as that device does (rdma_cm.c), on a NETLINK_RDMA socket they
 * answer (netlink.c); all else is passed on untouched. Reading, and functions that take only a
 * path, are in interpose.c. Any thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "cm.h"
#include "netlink.h"
#include "next.h"
#include "view.h"

SHOWN ssize_t write(int fd, const void *from, size_t bytes)
{
	if (__builtin_expect(view_is_cm(fd), 0))
		return view_write_cm(fd, from, bytes);
	if (__builtin_expect(view_is_netlink(fd), 0))
		return view_write_netlink(fd, from, bytes);
	return NEXT(write)(fd, from, bytes);
}

/* ---- stat ---- */

/* Makes the result of libc's stat() look like the device, if it was of a channel. */
#define STAT_OF(fd, found, st)                                                                     \
	({                                                                                         \
		int stat_rc = (found);                                                             \
                                                                                                   \
		if (stat_rc == 0 && view_is_cm(fd)) {                                              \
			(st)->st_mode = S_IFCHR | 0666;                                            \
			(st)->st_rdev = view_cm_device_number();                                   \
			(st)->st_uid = (st)->st_gid = 0;                                           \
		}                                                                                  \
		stat_rc;                                                                           \
	})

int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat64 *st);

SHOWN int fstat(int fd, struct stat *st)
{
	return STAT_OF(fd, NEXT(fstat)(fd, st), st);
}

SHOWN int fstat64(int fd, struct stat64 *st)
{
	return STAT_OF(fd, NEXT(fstat64)(fd, st), st);
}

/* Called by programs built with glibc before 2.33. */
SHOWN int __fxstat(int version, int fd, struct stat *st)
{
	return STAT_OF(fd, NEXT(__fxstat)(version, fd, st), st);
}

SHOWN int __fxstat64(int version, int fd, struct stat64 *st)
{
	return STAT_OF(fd, NEXT(__fxstat64)(version, fd, st), st);
}

/* The descriptor, if the call means it; -1: the call means the path. */
static int meant(int dir, const char *path, int flags)
{
	return flags & AT_EMPTY_PATH && (!path || !path[0]) ? dir : -1;
}

/* A function whose path is its second argument, which AT_EMPTY_PATH makes optional. */
#define DEFINE_STAT(name, types, names)                                                            \
	SHOWN int name types                                                                       \
	{                                                                                          \
		char tree[PATH_MAX];                                                               \
		const char *shown = view_path(path, tree);                                         \
                                                                                                   \
		return STAT_OF(meant(dir, path, flags), NEXT(name) names, st);                     \
	}

DEFINE_STAT(fstatat, (int dir, const char *restrict path, struct stat *restrict st, int flags),
	    (dir, shown, st, flags))
DEFINE_STAT(fstatat64, (int dir, const char *restrict path, struct stat64 *restrict st, int flags),
	    (dir, shown, st, flags))

int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);
int __fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags);

DEFINE_STAT(__fxstatat, (int version, int dir, const char *path, struct stat *st, int flags),
	    (version, dir, shown, st, flags))
DEFINE_STAT(__fxstatat64, (int version, int dir, const char *path, struct stat64 *st, int flags),
	    (version, dir, shown, st, flags))

SHOWN int statx(int dir, const char *restrict path, int flags, unsigned int mask,
		struct statx *restrict st)
{
	char tree[PATH_MAX];
	const char *shown = view_path(path, tree);
	int found = NEXT(statx)(dir, shown, flags, mask, st);
	dev_t device;

	if (found == 0 && view_is_cm(meant(dir, path, flags))) {
		device = view_cm_device_number();
		st->stx_mode = S_IFCHR | 0666;
		st->stx_rdev_major = major(device);
		st->stx_rdev_minor = minor(device);
		st->stx_uid = st->stx_gid = 0;
	}
	return found;
}

/* ---- copies ---- */

static int copied(int from, int to)
{
	return view_netlink_copied(from, view_cm_copied(from, to));
}

SHOWN int dup(int fd)
{
	return copied(fd, NEXT(dup)(fd));
}

SHOWN int dup2(int fd, int to)
{
	return copied(fd, NEXT(dup2)(fd, to));
}

SHOWN int dup3(int fd, int to, int flags)
{
	return copied(fd, NEXT(dup3)(fd, to, flags));
}

/* Only the command knows whether its argument is an integer or a pointer. */
#define DEFINE_FCNTL(name)                                                                         \
	SHOWN int name(int fd, int command, ...)                                                   \
	{                                                                                          \
		va_list arguments;                                                                 \
		void *argument;                                                                    \
		int done;                                                                          \
                                                                                                   \
		va_start(arguments, command);                                                      \
		argument = va_arg(arguments, void *);                                              \
		va_end(arguments);                                                                 \
		done = NEXT(name)(fd, command, argument);                                          \
		if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)                              \
			copied(fd, done);                                                          \
		return done;                                                                       \
	}

DEFINE_FCNTL(fcntl)
DEFINE_FCNTL(fcntl64)
