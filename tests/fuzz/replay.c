/* SPDX-License-Identifier: BSD-3-Clause */
/* Repeats inputs in place of libFuzzer: each file named, and each file of each folder named. */
#include <dirent.h>
#include <sys/stat.h>

#include "fuzz.h"

enum { INPUT_BYTES_MAX = 1 << 20 };
static unsigned int inputs;

static void replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *whole = malloc(INPUT_BYTES_MAX), *input;
	size_t n;

	REQUIRE(f && whole);
	n = fread(whole, 1, INPUT_BYTES_MAX, f);
	fclose(f);
	/* of its exact size, so that a sanitizer sees a read behind its end */
	input = malloc(n ? n : 1);
	REQUIRE(input);
	memcpy(input, whole, n);
	LLVMFuzzerTestOneInput(input, n);
	free(input);
	free(whole);
	inputs++;
}

static void replay_folder(const char *path)
{
	struct dirent **names;
	int n = scandir(path, &names, NULL, alphasort);

	REQUIRE(n >= 0);
	for (int i = 0; i < n; i++) {
		char file[4096];

		snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
		if (names[i]->d_name[0] != '.')
			replay_file(file);
		free(names[i]);
	}
	free(names);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct stat s;

		REQUIRE(stat(argv[i], &s) == 0);
		if (S_ISDIR(s.st_mode))
			replay_folder(argv[i]);
		else
			replay_file(argv[i]);
	}
	printf("%u inputs\n", inputs);
	return inputs ? 0 : 1;
}
