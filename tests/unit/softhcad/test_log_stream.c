/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of the log in the journal: what precedes them, or comes with them. */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <rte_log.h>

#include "test.h"
#include "base/log.h"
#include "log_stream.h"

static int before;

/* A file to which stderr goes, which the journal is said to read. `socket`: where the journal listens. */
static int log_into_file(const char *socket)
{
	char path[] = "/tmp/softhca-log-stream.XXXXXX", name[64];
	int log = mkstemp(path);
	struct stat st;

	before = dup(STDERR_FILENO);
	assert_true(log >= 0 && before >= 0 && fstat(log, &st) == 0);
	unlink(path);
	snprintf(name, sizeof(name), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", name, 1);
	dup2(log, STDERR_FILENO);
	log_stream_open(socket);
	return log;
}

static void expect_in_file(int log, const char *expected)
{
	char text[256] = "";

	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	rte_openlog_stream(NULL);
	assert_true(pread(log, text, sizeof(text) - 1, 0) >= 0);
	assert_string_equal(text, expected);
	close(log);
}

TEST(journal__one_priority_for_each_line)
{
	int log = log_into_file("/nonexistent/socket");

	rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "two\nlines\n");
	rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "in ");
	rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "%s", "");
	rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "parts\nnext ");
	rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "line\n");
	expect_in_file(log, "<3>two\n<3>lines\n<3>in parts\n<3>next line\n");
}

static void expect_fields(int journal, const char *line, const char *fields)
{
	char text[512] = "", expected[512];

	uint32_t type =
		strncmp(line, "softhca", 7) == 0 ? (uint32_t)log_types[LOG_cm] : RTE_LOGTYPE_USER1;

	rte_log(RTE_LOG_WARNING, type, "%s\n", line);
	assert_true(recv(journal, text, sizeof(text) - 1, MSG_DONTWAIT) > 0);
	snprintf(expected, sizeof(expected),
		 "PRIORITY=4\nSYSLOG_IDENTIFIER=softhcad\nMESSAGE=%s\n%s", line, fields);
	assert_string_equal(text, expected);
}

TEST(journal__fields_of_each_line)
{
	static const char *const lines[][2] = {
		{"softhca: ready after 7 ms", "SOFTHCA_MODULE=cm\n"},
		{"softhca: hca left: removed", "SOFTHCA_MODULE=cm\nSOFTHCA_HCA=left\n"},
		{"softhca: port right: link down: pid 3: no",
		 "SOFTHCA_MODULE=cm\nSOFTHCA_HCA=right\n"},
		{"softhca: client 3: pid 77: captures left",
		 "SOFTHCA_MODULE=cm\nSOFTHCA_CLIENT=3\nSOFTHCA_PID=77\n"},
		{"softhca: pid 77: user 0: right.loss: 0 -> 1, applied",
		 "SOFTHCA_MODULE=cm\nSOFTHCA_PID=77\nSOFTHCA_USER=0\n"},
		{"EAL: hugepages: none", "SOFTHCA_MODULE=EAL\n"},
		{"hca left: removed", ""},
		{"softhca: hca : ", "SOFTHCA_MODULE=cm\n"},
		{": ", ""},
		{"", ""},
		{"softhca:", ""},
	};
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int journal = socket(AF_UNIX, SOCK_DGRAM, 0), log;

	snprintf(at.sun_path, sizeof(at.sun_path), "/tmp/softhca-journal.%d", (int)getpid());
	assert_int_equal(bind(journal, (const struct sockaddr *)&at, sizeof(at)), 0);
	log = log_into_file(at.sun_path);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		expect_fields(journal, lines[i][0], lines[i][1]);
	rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "a part, ");
	rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "and the rest\n");
	close(journal);
	rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "nobody listens\n");
	unlink(at.sun_path);
	expect_in_file(log, "<3>a part, and the rest\n<3>nobody listens\n");
}
