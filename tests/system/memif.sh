#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two daemons joined by memif: every operation, all data verified; the daemons' own captures
# dissected and every ICRC checked.
. "$(dirname "$0")/lib.sh"
need_command tshark

mkdir "$SCRATCH/captures"
memif_daemons "$SCRATCH/captures"

a_side=()
b_side=()
server_address=127.0.0.1
every_operation between

check 'daemon b ends cleanly' stop "$daemon_b"
check 'daemon a ends cleanly' stop "$daemon_a"
frames_right "$SCRATCH/captures"
finish
