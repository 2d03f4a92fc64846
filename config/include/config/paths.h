/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFIG_PATHS_H
#define CONFIG_PATHS_H
/*
 * Where to find a daemon: shared by softhcad and the command-line tool. Needs no EAL and
 * no DPDK library.
 */
#include <stddef.h>
#include <sys/types.h>

enum { PATHS_BYTES_MAX = 108 }; /* capacity of a Unix socket address, terminator included */

/* Of the system's daemon. Only root can create folders in /run, so it chose this one's owner. */
#define PATHS_SYSTEM_FOLDER "/run/softhca"
#define PATHS_SYSTEM_SOCKET PATHS_SYSTEM_FOLDER "/softhca.sock"

/*
 * The default control socket: /run/softhca/softhca.sock for root; for others softhca/softhca.sock
 * in $XDG_RUNTIME_DIR, or /tmp/softhca-UID/softhca.sock if that is unset. 0; -ENAMETOOLONG.
 */
int paths_default_socket(char *out, size_t bytes);

/*
 * The default DPDK process name of the daemon at that control socket: "softhca" for the system's
 * and for the default socket, else "softhca-" and eight hexadecimal digits of a hash of the path.
 * 0; -ENAMETOOLONG.
 */
int paths_prefix(const char *control_socket, char *out, size_t bytes);

/*
 * The folder below which the daemon at that control socket keeps DPDK's files, each of its
 * processes in dpdk/PREFIX: $RUNTIME_DIRECTORY, which a service manager sets, else /run/softhca for
 * root and for the system's daemon, $XDG_RUNTIME_DIR/softhca or /tmp/softhca-UID for others. Never
 * shared with other users, as /tmp/dpdk, DPDK's own choice, would be. 0; -ENAMETOOLONG.
 */
int paths_runtime(const char *control_socket, char *out, size_t bytes);

/*
 * Creates a folder, one level, mode 0755, unless it exists. 0; -EPERM: it, or the link in its
 * place, belongs to a user who is neither this one nor root nor `also`, or other users may replace
 * files in it; another -errno.
 */
int paths_make_folder(const char *path, uid_t also);

/* The same for the folder of a file. */
int paths_make_folder_of(const char *file, uid_t also);

#endif
