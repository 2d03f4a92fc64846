/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_DESCRIPTORS_H
#define UNIT_DESCRIPTORS_H
/* For tests that look whether descriptors leak. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Of this process; three more than there are, always. */
static inline unsigned int open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(folder);
	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}

#endif
