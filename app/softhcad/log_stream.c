/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <rte_common.h>
#include <rte_log.h>
#include "base/log.h"
#include "journal.h"
#include "log_stream.h"

static enum { READER_OTHER, READER_TERMINAL, READER_JOURNAL } reader;

/* The journal names the descriptor that it reads: one that was passed on may have been
 * redirected. */
static bool is_journal(int fd)
{
	const char *named = secure_getenv("JOURNAL_STREAM");
	uint64_t device, inode;
	struct stat st;

	return named && sscanf(named, "%" SCNu64 ":%" SCNu64, &device, &inode) == 2 &&
	       fstat(fd, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

/* DPDK's levels are those of syslog, counted from 1. */
static int priority(void)
{
	return RTE_MAX(rte_log_cur_msg_loglevel(), 1) - 1;
}

/* The module of ours that logs; NULL: another's. */
static const char *module(void)
{
	for (unsigned int i = 0; i < LOG_MODULE_COUNT; i++)
		if (log_types[i] == rte_log_cur_msg_logtype())
			return log_module_names[i];
	return NULL;
}

/* What precedes a line, in `text`. */
static void prefix(char *text, size_t bytes)
{
	struct timespec now;
	struct tm tm;
	size_t length;

	text[0] = '\0';
	switch (reader) {
	case READER_JOURNAL:
		snprintf(text, bytes, "<%d>", priority());
		break;
	case READER_TERMINAL:
		clock_gettime(CLOCK_REALTIME, &now);
		length = strftime(text, bytes, "%H:%M:%S", localtime_r(&now.tv_sec, &tm));
		snprintf(text + length, bytes - length, ".%03ld ", now.tv_nsec / 1000000);
		break;
	case READER_OTHER:
		break;
	}
}

/* A line or a part of one, up to `end`. Only whole lines have fields. */
static void log_write_line(const char *line, const char *end, const char *before)
{
	bool whole = before[0] && end[-1] == '\n';

	if (reader == READER_JOURNAL && whole &&
	    journal_send(priority(), module(), line, (size_t)(end - line - 1)))
		return;
	fprintf(stderr, "%s%.*s", before, (int)(end - line), line);
}

/* Each message arrives whole, in the thread that logs it. Some are parts of a line. */
static ssize_t log_write_lines(void *cookie, const char *text, size_t bytes)
{
	static bool within; /* the last text ended within a line; atomic */
	const char *end = text + bytes;
	bool begun;
	char before[24];

	if (!bytes)
		return 0;
	begun = __atomic_exchange_n(&within, end[-1] != '\n', __ATOMIC_RELAXED);

	prefix(before, sizeof(before));
	for (const char *line = text, *next; line < end; line = next) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));

		next = newline ? newline + 1 : end;
		log_write_line(line, next, begun ? "" : before);
		begun = false;
	}
	return (ssize_t)bytes;
}

void log_stream_open(const char *journal)
{
	FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = log_write_lines});

	tzset();
	reader = isatty(STDERR_FILENO)	     ? READER_TERMINAL
		 : is_journal(STDERR_FILENO) ? READER_JOURNAL
					     : READER_OTHER;
	if (reader == READER_JOURNAL)
		journal_open(journal);
	if (stream)
		setvbuf(stream, NULL, _IONBF, 0);
	rte_openlog_stream(stream ? stream : stderr);
}
