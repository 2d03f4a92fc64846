/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue in front of a capture's file: what is written, what is kept, what is refused. */
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "test.h"
#include "spool.h"

enum { MIB = 1 << 20, MIBS_AT_LEAST = 2, END_MIB = 1 };

#undef TEST
#define TEST(name) TEST_WITH(name, set_up, tear_down)

static char folder[64], path[96], old[104];
static uint8_t bytes[6 * MIB + 1234];

static int set_up(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/softhca-test.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/file", folder);
	snprintf(old, sizeof(old), "%s.1", path);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 13 + i / 4099);
	return 0;
}

static int tear_down(void **state)
{
	unlink(path);
	unlink(old);
	return rmdir(folder);
}

static void put(FILE *f, size_t from, size_t to)
{
	assert_int_equal(fwrite(bytes + from, 1, to - from, f), to - from);
	assert_int_equal(fflush(f), 0);
}

static size_t size_of(const char *file)
{
	struct stat st;

	return stat(file, &st) ? 0 : (size_t)st.st_size;
}

/* Until the file has so many bytes. */
static void wait_for_size(size_t size)
{
	while (size_of(path) != size)
		poll(NULL, 0, 1);
}

static void check_file(const char *file, size_t from, size_t to)
{
	uint8_t *read = malloc(sizeof(bytes));
	FILE *f = fopen(file, "rb");

	assert_true(read && f);
	assert_int_equal(fread(read, 1, sizeof(bytes), f), to - from);
	assert_memory_equal(read, bytes + from, to - from);
	fclose(f);
	free(read);
}

/* Parts of blocks are written when nothing follows for a while, and whole ones past the page cache. */
TEST(file__is_what_was_put_in)
{
	static const size_t pauses[] = {1,	    4095,	 70000,	       MIB - 1,
					MIB + 4096, 3 * MIB + 1, sizeof(bytes)};
	struct spool *s = spool_begin(path, 8 * MIB);
	FILE *f = spool_stream(s);
	size_t at = 0;

	for (unsigned i = 0; i < sizeof(pauses) / sizeof(pauses[0]); at = pauses[i++]) {
		put(f, at, pauses[i]);
		wait_for_size(pauses[i]);
	}
	assert_int_equal(ftello(f), sizeof(bytes));
	fclose(f);
	assert_int_equal(spool_end(s), 0);
	check_file(path, 0, sizeof(bytes));
}

TEST(turn__begins_the_next_file)
{
	struct spool *s = spool_begin(path, 8 * MIB);
	const size_t ends[] = {0, 3 * MIB + 77, 4 * MIB + 77,
			       sizeof(bytes)}; /* the second: whole blocks */

	for (unsigned i = 1; i < 4; i++) {
		FILE *f = spool_stream(s);

		put(f, ends[i - 1], ends[i]);
		assert_int_equal(ftello(f), ends[i] - ends[i - 1]);
		fclose(f);
		if (i < 3)
			spool_turn(s);
	}
	assert_int_equal(spool_end(s), 0);
	check_file(old, ends[1], ends[2]);
	check_file(path, ends[2], ends[3]);
}

/* Nobody reads the pipe: what has room waits, one block more for the end of a file, the rest is refused. */
TEST(pipe__that_stalls_fills_the_queue)
{
	const size_t most = (MIBS_AT_LEAST + END_MIB) * MIB;
	int ends[2], out = dup(STDOUT_FILENO);
	struct spool *s;
	FILE *f;

	fflush(stdout);
	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], STDOUT_FILENO);
	s = spool_begin(NULL, 0);
	f = spool_stream(s);
	setvbuf(f, NULL, _IONBF, 0);
	assert_true(spool_has_room(s));
	put(f, 0, most);
	assert_false(spool_has_room(s));
	assert_int_equal(spool_error(s), 0);
	assert_int_equal(fwrite(bytes, 1, 1, f), 0);
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(spool_error(s), -ENOMEM);
	close(ends[0]); /* or the thread would wait for a reader */
	fclose(f);
	assert_int_equal(spool_end(s), -ENOMEM);
	dup2(out, STDOUT_FILENO);
	close(ends[1]);
	close(out);
}

/* As on a full disk. */
TEST(file__that_cannot_grow_is_an_error)
{
	struct rlimit before, limit;
	struct spool *s;
	FILE *f;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = MIB + MIB / 2;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	s = spool_begin(path, 8 * MIB);
	f = spool_stream(s);
	put(f, 0, 3 * MIB);
	while (!spool_error(s))
		poll(NULL, 0, 1);
	assert_int_equal(spool_error(s), -EFBIG);
	assert_true(fwrite(bytes, 1, 1, f) == 0 || fflush(f) != 0);
	assert_int_equal(errno, EFBIG);
	fclose(f);
	assert_int_equal(spool_end(s), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &before);
	check_file(path, 0, MIB + MIB / 2);
}
