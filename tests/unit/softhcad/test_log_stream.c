/* SPDX-License-Identifier: BSD-3-Clause */
/* What precedes lines of the log in the journal. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rte_log.h>

#include "test.h"
#include "log_stream.h"

TEST(journal__one_priority_for_each_line)
{
	char path[] = "/tmp/softhca-log-stream.XXXXXX", name[64], text[128] = "";
	int log = mkstemp(path), before = dup(STDERR_FILENO);
	struct stat st;

	assert_true(log >= 0 && before >= 0 && fstat(log, &st) == 0);
	unlink(path);
	snprintf(name, sizeof(name), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", name, 1);
	dup2(log, STDERR_FILENO);
	log_stream_open();
	rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "two\nlines\n");
	rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "in ");
	rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "%s", "");
	rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "parts\nnext ");
	rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "line\n");
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	rte_openlog_stream(NULL);
	assert_true(pread(log, text, sizeof(text) - 1, 0) > 0);
	assert_string_equal(text, "<3>two\n<3>lines\n<3>in parts\n<3>next line\n");
	close(log);
}
