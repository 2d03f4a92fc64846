/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_DESCRIPTORS_H
#define UNIT_DESCRIPTORS_H
/* For tests that check for leaks of descriptors and threads. */
#include <dirent.h>

#include "test.h"

/* . and .. are among them. */
static inline unsigned int folder_entries(const char *path)
{
	DIR *folder = opendir(path);
	unsigned int n = 0;

	assert_non_null(folder);
	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}

/* Of this process; three more than there are, always. */
static inline unsigned int open_descriptors(void)
{
	return folder_entries("/proc/self/fd");
}

#endif
