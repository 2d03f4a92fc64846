/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a registration is: on a terminal after a second, elsewhere never. */
#include <fcntl.h>

#include "test.h"
#include "base/progress.h"
#include "registration.h"

enum { GB = 1000000000 };
#define MS 1000000ull

/* A registration of 2 GB that takes 3 seconds, with stderr there. */
static void registered_with_stderr(int fd)
{
	static const struct {
		uint64_t ms, done;
	} steps[] = {{5000, 0},	     {5900, GB / 2},	  {7000, GB},
		     {7100, GB + 1}, {7500, GB + GB / 4}, {8000, 2ull * GB}};
	int before = dup(STDERR_FILENO);
	struct progress p;

	fflush(stderr);
	dup2(fd, STDERR_FILENO);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		registration_show(&p, steps[i].ms * MS, steps[i].done, 2ull * GB);
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
}

TEST(registration__is_shown_on_a_terminal)
{
	int screen = posix_openpt(O_RDWR | O_NOCTTY), keyboard;
	char text[256] = "";
	size_t length = 0;
	ssize_t got;

	assert_true(screen >= 0 && grantpt(screen) == 0 && unlockpt(screen) == 0);
	keyboard = open(ptsname(screen), O_RDWR | O_NOCTTY);
	assert_true(keyboard >= 0);
	registered_with_stderr(keyboard);
	close(keyboard); /* all that it has written is read then, and an error behind it */
	while ((got = read(screen, text + length, sizeof(text) - 1 - length)) > 0)
		length += (size_t)got;
	assert_string_equal(text, " 50 %  0.50 GB/s registered  2 s left\033[K\r"
				  " 62 %  0.50 GB/s registered  2 s left\033[K\r\033[K\r");
	close(screen);
}

TEST(registration__leaves_nothing_in_a_pipe)
{
	int ends[2];
	char text;

	assert_int_equal(pipe(ends), 0);
	registered_with_stderr(ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], &text, 1), 0);
	close(ends[0]);
}
