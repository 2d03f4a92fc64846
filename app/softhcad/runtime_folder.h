/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RUNTIME_FOLDER_H
#define RUNTIME_FOLDER_H
/*
 * Where EAL keeps its files and sockets: FOLDER/dpdk/PREFIX, where FOLDER is that of
 * paths_runtime(). Created and checked before EAL starts, so that EAL finds nothing that others
 * have prepared, and removed through the descriptors that were checked. Control thread.
 */
#include <stdbool.h>
#include <sys/types.h>
#include "config/config.h"

struct runtime_folder {
	int folder, dpdk, own; /* -1: not open */
	bool taken_back;       /* `folder` was the user's */
	char prefix[CONFIG_PREFIX_BYTES];
};

/*
 * Creates what is missing of folder/dpdk/prefix, the last two with mode 0700, and makes EAL use it
 * (RUNTIME_DIRECTORY). `user`: whom the process will become, or is; what an earlier daemon gave to
 * that user is taken back first, so that root does not write where that user may have prepared
 * something. 0; -EPERM: a part of it is another user's or a link, or other users may replace files
 * in `folder`; -ENAMETOOLONG; another -errno. Logged. Nothing is open unless 0.
 */
int runtime_folder_open(struct runtime_folder *f, const char *folder, const char *prefix,
			uid_t user);

/* Gives what EAL uses, and what was taken back, to the user that the process will become. 0 or
 * -errno. */
int runtime_folder_give(const struct runtime_folder *f, uid_t user, gid_t group);

/* Removes the files that EAL makes, and the folders if nothing else is in them. EAL is not used any
 * more. */
void runtime_folder_remove(struct runtime_folder *f);

#endif
