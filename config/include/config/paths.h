/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFIG_PATHS_H
#define CONFIG_PATHS_H
/*
 * Where to find a daemon: shared by softhcad and the command-line tool. Needs no EAL and
 * no DPDK library.
 */
#include <stddef.h>

enum { PATHS_BYTES_MAX = 108 }; /* what a Unix socket address holds, terminator included */

/*
 * The default control socket: /run/softhca/softhca.sock for root; for others softhca/softhca.sock
 * in $XDG_RUNTIME_DIR, or /tmp/softhca-UID/softhca.sock if that is unset. 0; -ENAMETOOLONG.
 */
int paths_default_socket(char *out, size_t bytes);

/*
 * The default DPDK process name of the daemon at that control socket: "softhca" for the default
 * socket, else "softhca-" and eight hexadecimal digits of a hash of the path. 0; -ENAMETOOLONG.
 */
int paths_prefix(const char *control_socket, char *out, size_t bytes);

/* DPDK's directory for that name ("/var/run/dpdk/softhca"), by DPDK's own rules. 0; -ENAMETOOLONG.
 */
int paths_dpdk_directory(const char *prefix, char *out, size_t bytes);

/* The telemetry socket of that name, in this directory. 0; -ENAMETOOLONG. */
int paths_telemetry(const char *prefix, char *out, size_t bytes);

/* Creates the directory of a file, one level, mode 0755, if it is missing. 0 or
 * -errno. */
int paths_make_directory_of(const char *file);

#endif
