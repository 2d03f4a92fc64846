/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Configuration files and --set options: whatever they hold, they are taken or refused with a reason.
 *
 * Input: a file, or, behind an '=' as its first byte, options, one in a line.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "config/config.h"
#include "fuzz.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config_error error = {0};
	static struct config c;
	int rc;

	config_defaults(&c);
	rc = size && data[0] == '=' ? set_options(&c, data + 1, size - 1, &error)
				    : read_file(&c, data, size, &error);
	judge(rc, &error);
	if (rc == 0)
		judge(config_check(&c, "input", &error), &error);
	return 0;
}
