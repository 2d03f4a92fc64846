/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths of the control and telemetry sockets. Reads the environment and the user ID; creates at
 * most one directory. */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "config/paths.h"

static int print_path(char *out, size_t bytes, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int print_path(char *out, size_t bytes, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(out, bytes, format, arguments);
	va_end(arguments);
	return length < 0 || (size_t)length >= bytes ? -ENAMETOOLONG : 0;
}

int paths_default_socket(char *out, size_t bytes)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (geteuid() == 0)
		return print_path(out, bytes, "/run/softhca/softhca.sock");
	if (runtime && *runtime)
		return print_path(out, bytes, "%s/softhca/softhca.sock", runtime);
	return print_path(out, bytes, "/tmp/softhca-%u/softhca.sock", (unsigned)geteuid());
}

/* FNV-1a: only has to differ between the few daemons of one user. */
static uint32_t hash_of(const char *text)
{
	uint32_t hash = 2166136261u;

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 16777619u;
	return hash;
}

int paths_prefix(const char *control_socket, char *out, size_t bytes)
{
	char standard[PATHS_BYTES_MAX], here[3072], absolute[4096];

	if (paths_default_socket(standard, sizeof(standard)) == 0 &&
	    strcmp(standard, control_socket) == 0)
		return print_path(out, bytes, "softhca");
	if (control_socket[0] == '/' || !getcwd(here, sizeof(here)))
		here[0] = '\0';
	snprintf(absolute, sizeof(absolute), "%s%s%s", here, here[0] ? "/" : "", control_socket);
	return print_path(out, bytes, "softhca-%08x", hash_of(absolute));
}

int paths_dpdk_directory(const char *prefix, char *out, size_t bytes)
{
	const char *directory = getenv("RUNTIME_DIRECTORY");

	if (!directory && getuid() == 0)
		directory = "/var/run";
	if (!directory)
		directory = getenv("XDG_RUNTIME_DIR");
	if (!directory)
		directory = "/tmp";
	return print_path(out, bytes, "%s/dpdk/%s", directory, prefix);
}

int paths_telemetry(const char *prefix, char *out, size_t bytes)
{
	char directory[PATHS_BYTES_MAX];
	int ret = paths_dpdk_directory(prefix, directory, sizeof(directory));

	return ret ? ret : print_path(out, bytes, "%s/dpdk_telemetry.v2", directory);
}

int paths_make_directory_of(const char *file)
{
	char directory[4096];
	const char *slash = strrchr(file, '/');
	struct stat made;
	int length = slash ? (int)(slash - file) : 0;

	if (length == 0)
		return 0;
	if (print_path(directory, sizeof(directory), "%.*s", length, file))
		return -ENAMETOOLONG;
	if (mkdir(directory, 0755) == 0)
		return 0;
	if (errno != EEXIST || stat(directory, &made))
		return -errno;
	return made.st_uid == geteuid() || made.st_uid == 0 ? 0 : -EPERM;
}
