/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "journal.h"

enum { FIELDS_BYTES = 512, VALUE_BYTES_MAX = 64, NAME_BYTES_MAX = 32 };
#define MODULE_FIELD "SOFTHCA_MODULE"

static int journal = -1;
static struct sockaddr_un at = {.sun_family = AF_UNIX};

void journal_open(const char *path)
{
	if (strlen(path) >= sizeof(at.sun_path))
		return;
	strcpy(at.sun_path, path);
	journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/* The field of "KEY VALUE: "; NULL: it is none of those. */
static const char *field_of(const char *part, size_t key_bytes)
{
	static const char *const fields[][2] = {
		{"hca", "SOFTHCA_HCA"},	      {"port", "SOFTHCA_HCA"}, /* called like its HCA */
		{"client", "SOFTHCA_CLIENT"}, {"pid", "SOFTHCA_PID"},
		{"user", "SOFTHCA_USER"}, /* who changes something */
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strlen(fields[i][0]) == key_bytes && memcmp(fields[i][0], part, key_bytes) == 0)
			return fields[i][1];
	return NULL;
}

static bool journal_add_field(char *fields, size_t *used, const char *name, const char *value,
			      size_t length)
{
	if (length == 0 || length > VALUE_BYTES_MAX ||
	    *used + length + NAME_BYTES_MAX > FIELDS_BYTES)
		return false;
	*used += (size_t)snprintf(fields + *used, FIELDS_BYTES - *used, "%s=%.*s\n", name,
				  (int)length, value);
	return true;
}

/* Adds the field that a part of a line, up to its colon, contains. False: it is part of the
 * message. */
static bool add_part(char *fields, size_t *used, const char *part, size_t length)
{
	const char *space = memchr(part, ' ', length);
	size_t key_bytes = space ? (size_t)(space - part) : 0;
	const char *name = space ? field_of(part, key_bytes) : NULL;

	return name && journal_add_field(fields, used, name, space + 1, length - key_bytes - 1);
}

/* "softhca: client 3: pid 77: ..." has three fields. Their length. */
static size_t line_fields(char *fields, const char *module, const char *line, size_t length)
{
	const char *part = line, *end = line + length, *colon;
	size_t used = 0;
	bool more = true;

	while (more && (colon = memmem(part, (size_t)(end - part), ": ", 2)) != NULL) {
		size_t bytes = (size_t)(colon - part);

		if (part != line)
			more = add_part(fields, &used, part, bytes);
		else if (module)
			more = journal_add_field(fields, &used, MODULE_FIELD, module,
						 strlen(module));
		else
			more = !memchr(part, ' ', bytes) &&
			       journal_add_field(fields, &used, MODULE_FIELD, part, bytes);
		part = colon + 2;
	}
	return used;
}

bool journal_send(int priority, const char *module, const char *line, size_t length)
{
	char head[64], fields[FIELDS_BYTES];
	int head_bytes = snprintf(head, sizeof(head),
				  "PRIORITY=%d\nSYSLOG_IDENTIFIER=softhcad\nMESSAGE=", priority);
	struct iovec parts[] = {
		{head, (size_t)head_bytes},
		{(char *)(uintptr_t)line, length},
		{"\n", 1},
		{fields, line_fields(fields, module, line, length)},
	};
	const struct msghdr message = {
		.msg_name = &at, .msg_namelen = sizeof(at), .msg_iov = parts, .msg_iovlen = 4};

	return journal >= 0 && sendmsg(journal, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}
