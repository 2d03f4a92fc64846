/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs or reads softhca-limit, whose output is 'name value unit' a line. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "machine_limit.h"

static void parse_line(struct machine_limit *m, const char *line)
{
	double value;

	if (sscanf(line, "bulk %lf", &value) == 1)
		m->bulk_gbps = value * 8;
	else if (sscanf(line, "messages %lf", &value) == 1)
		m->messages_mpps = value;
	else if (sscanf(line, "core-to-core-after %lf", &value) == 1)
		m->core_to_core_ns = value;
}

/* The path of the program, or false. */
static int find_program(char path[PATH_MAX])
{
	static const char *const beside[] = {"../limit/softhca-limit", "softhca-limit"};
	const char *named = getenv("SOFTHCA_LIMIT");
	char self[PATH_MAX / 2];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (named) {
		snprintf(path, PATH_MAX, "%s", named);
		return 0;
	}
	self[n > 0 ? n : 0] = 0;
	if (strrchr(self, '/'))
		*strrchr(self, '/') = 0;
	for (unsigned i = 0; i < sizeof(beside) / sizeof(*beside); i++) {
		snprintf(path, PATH_MAX, "%s/%s", self, beside[i]);
		if (!access(path, X_OK))
			return 0;
	}
	return -1;
}

static FILE *open_program(void)
{
	char path[PATH_MAX], command[PATH_MAX + 32];

	if (find_program(path)) {
		errno = ENOENT;
		return NULL;
	}
	snprintf(command, sizeof(command), "'%s' 50 5 2>/dev/null", path);
	return popen(command, "r");
}

int machine_limit_get(struct machine_limit *m, const char *file)
{
	FILE *in = file ? fopen(file, "r") : open_program();
	char line[256];
	int error;

	*m = (struct machine_limit){0};
	if (!in) {
		fprintf(stderr, "softhca-perf: %s: %s\n", file ? file : "softhca-limit",
			strerror(errno));
		return -1;
	}
	while (fgets(line, sizeof(line), in))
		parse_line(m, line);
	error = file ? fclose(in) : pclose(in);
	if (error || m->bulk_gbps <= 0 || m->messages_mpps <= 0) {
		fprintf(stderr, "softhca-perf: the limit model failed\n");
		return -1;
	}
	return 0;
}

struct machine_limit machine_limit_mean(const struct machine_limit *a,
					const struct machine_limit *b)
{
	return (struct machine_limit){.bulk_gbps = (a->bulk_gbps + b->bulk_gbps) / 2,
				      .messages_mpps = (a->messages_mpps + b->messages_mpps) / 2,
				      .core_to_core_ns =
					      (a->core_to_core_ns + b->core_to_core_ns) / 2};
}
