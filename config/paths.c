/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths of the control and telemetry sockets. Reads the environment, unless the program was given
 * more rights than its user has, and the user ID; creates at most one folder. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "config/paths.h"

static int paths_print_path(char *out, size_t bytes, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int paths_print_path(char *out, size_t bytes, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(out, bytes, format, arguments);
	va_end(arguments);
	return length < 0 || (size_t)length >= bytes ? -ENAMETOOLONG : 0;
}

/* The private folder of an ordinary user's daemon. */
static int own_folder(char *out, size_t bytes)
{
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");

	if (runtime && *runtime)
		return paths_print_path(out, bytes, "%s/softhca", runtime);
	return paths_print_path(out, bytes, "/tmp/softhca-%u", (unsigned)geteuid());
}

int paths_default_socket(char *out, size_t bytes)
{
	char folder[PATHS_BYTES_MAX];
	int ret;

	if (geteuid() == 0)
		return paths_print_path(out, bytes, PATHS_SYSTEM_SOCKET);
	ret = own_folder(folder, sizeof(folder));
	return ret ? ret : paths_print_path(out, bytes, "%s/softhca.sock", folder);
}

/* FNV-1a: only has to differ between the few daemons of one user. */
static uint32_t paths_hash_of(const char *text)
{
	uint32_t hash = 2166136261u;

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 16777619u;
	return hash;
}

static bool is_default(const char *control_socket)
{
	char standard[PATHS_BYTES_MAX];

	return strcmp(control_socket, PATHS_SYSTEM_SOCKET) == 0 ||
	       (paths_default_socket(standard, sizeof(standard)) == 0 &&
		strcmp(control_socket, standard) == 0);
}

int paths_prefix(const char *control_socket, char *out, size_t bytes)
{
	char here[3072], absolute[4096];

	if (is_default(control_socket))
		return paths_print_path(out, bytes, "softhca");
	if (control_socket[0] == '/' || !getcwd(here, sizeof(here)))
		here[0] = '\0';
	snprintf(absolute, sizeof(absolute), "%s%s%s", here, here[0] ? "/" : "", control_socket);
	return paths_print_path(out, bytes, "softhca-%08x", paths_hash_of(absolute));
}

int paths_runtime(const char *control_socket, char *out, size_t bytes)
{
	const char *given = secure_getenv("RUNTIME_DIRECTORY");

	if (given && *given)
		return paths_print_path(out, bytes, "%s", given);
	if (geteuid() == 0 || strcmp(control_socket, PATHS_SYSTEM_SOCKET) == 0)
		return paths_print_path(out, bytes, PATHS_SYSTEM_FOLDER);
	return own_folder(out, bytes);
}

static bool may_own(uid_t owner, uid_t also)
{
	return owner == geteuid() || owner == 0 || owner == also;
}

/* Neither another user's, nor one in which others may replace what is not theirs. */
static int paths_check_folder(const char *path, uid_t also)
{
	struct stat st;
	int fd, ret = 0;

	/* A link must be as trustworthy as what it leads to. */
	if (lstat(path, &st))
		return -errno;
	if (!may_own(st.st_uid, also))
		return -EPERM;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		ret = -errno;
	else if (!may_own(st.st_uid, also) || (st.st_mode & S_IWOTH && !(st.st_mode & S_ISVTX)))
		ret = -EPERM;
	close(fd);
	return ret;
}

int paths_make_folder(const char *path, uid_t also)
{
	if (mkdir(path, 0755) && errno != EEXIST)
		return -errno;
	return paths_check_folder(path, also);
}

int paths_make_folder_of(const char *file, uid_t also)
{
	char folder[4096];
	const char *slash = strrchr(file, '/');

	if (!slash || slash == file)
		return 0;
	if (paths_print_path(folder, sizeof(folder), "%.*s", (int)(slash - file), file))
		return -ENAMETOOLONG;
	return paths_make_folder(folder, also);
}
