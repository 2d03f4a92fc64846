/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Configuration files, settings, and command lines of the daemon: whatever they hold, they are taken or refused with a reason.
 *
 * Input: a file; behind an '=' as its first byte, settings, or behind a '-' words of a command line, one in a line.
 */
#include <errno.h>
#include <getopt.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/config.h"
#include "environment.h"
#include "fuzz.h"
#include "options.h"

static void judge(int rc, const struct config_error *error)
{
	REQUIRE(rc <= 0);
	REQUIRE(rc == 0 || (error->text[0] && memchr(error->text, 0, sizeof(error->text))));
}

static int read_file(struct config *c, const uint8_t *data, size_t size, struct config_error *error)
{
	static int fd = -1;
	char path[32];

	if (fd < 0)
		fd = memfd_create("settings", MFD_CLOEXEC);
	REQUIRE(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return config_read(c, path, error);
}

static int set_options(struct config *c, const uint8_t *data, size_t size,
		       struct config_error *error)
{
	char *text = strndup((const char *)data, size), *rest = text, *option;
	int rc = 0;

	REQUIRE(text);
	while (rc == 0 && (option = strsep(&rest, "\n")))
		rc = config_set(c, option, error);
	free(text);
	return rc;
}

/* What the daemon asks the machine. */
unsigned environment_check(const struct config *c)
{
	return 0;
}

void port_kernel_addresses(enum port_type type, const char *device, struct port_addresses *out)
{
}

/* No file that a command line names. */
int __real_config_read(struct config *c, const char *path, struct config_error *error);
int __wrap_config_read(struct config *c, const char *path, struct config_error *error);
int __wrap_config_read(struct config *c, const char *path, struct config_error *error)
{
	if (strncmp(path, "/proc/self/fd/", 14) == 0)
		return __real_config_read(c, path, error);
	strcpy(error->text, "another file");
	return -ENOENT;
}

enum { WORDS = 32 };

static void read_words(const uint8_t *data, size_t size)
{
	static struct config written, c;
	char *text = strndup((const char *)data, size), *rest = text, *argv[WORDS] = {"softhcad"};
	struct options o = {0};
	enum options_outcome outcome;
	int argc = 1;

	REQUIRE(text);
	while (argc < WORDS - 1 && (argv[argc] = strsep(&rest, "\n")))
		argc++;
	argv[argc] = NULL;
	optind = 0; /* getopt begins anew */
	outcome = options_read(argc, argv, &o, &written, &c);
	REQUIRE(outcome <= OPTIONS_USAGE && o.sets <= OPTIONS_SETS_MAX);
	free(text);
}

/* What it prints is not looked at. */
static void be_silent(void)
{
	static FILE *nowhere;

	if (nowhere)
		return;
	nowhere = fopen("/dev/null", "w");
	REQUIRE(nowhere);
	stdout = stderr = nowhere;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config_error error = {0};
	static struct config c;
	int rc;

	if (size && data[0] == '-') {
		be_silent();
		read_words(data, size);
		return 0;
	}
	config_defaults(&c);
	rc = size && data[0] == '=' ? set_options(&c, data + 1, size - 1, &error)
				    : read_file(&c, data, size, &error);
	judge(rc, &error);
	if (rc == 0)
		judge(config_check(&c, "input", &error), &error);
	return 0;
}
