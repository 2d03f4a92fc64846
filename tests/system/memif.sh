#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two daemons joined by memif: every operation, all data verified; the daemons' own captures
# dissected and every ICRC checked.
. "$(dirname "$0")/lib.sh"
need_command tshark

mkdir "$SCRATCH/captures"
# memif_config NUMBER SERVER CPU
memif_config() {
	printf '[daemon]\nlcores = %s\n[hca hca0]\nport = memif\ndevice = %s/memif.sock\n' \
		"$3" "$SCRATCH"
	printf 'memif_server = %s\naddress = 10.9.0.%s/24\n' "$2" "$1"
	printf 'capture = %s/captures/%s.pcapng\n' "$SCRATCH" "$1"
}
memif_config 1 yes 0 >"$SCRATCH/a.conf"
memif_config 2 no $(($(nproc) > 1)) >"$SCRATCH/b.conf"
daemon a -c "$SCRATCH/a.conf"
daemon_a=$started
daemon b -c "$SCRATCH/b.conf"
daemon_b=$started

a_side=()
b_side=()
server_address=127.0.0.1
every_operation between

check 'daemon b ends cleanly' stop "$daemon_b"
check 'daemon a ends cleanly' stop "$daemon_a"
frames_right "$SCRATCH/captures"
finish
