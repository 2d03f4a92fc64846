/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WEB_H
#define WEB_H
/* The files of web/, as web/embed.py puts them into the program. */
#include <stddef.h>

struct web_file {
	const char *path, *type; /* of the content; both NULL: the end */
	char *text;		 /* constant */
	size_t bytes;
};
extern const struct web_file web_files[];

#endif
