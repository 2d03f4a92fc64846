#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two daemons in two network namespaces with a wire between them: every operation, all data
# verified; every frame on the wire dissected and its ICRC checked; over IPv4 and IPv6.
. "$(dirname "$0")/lib.sh"
wire_daemons

a_side=(on "$HOST_A")
b_side=(on "$HOST_B")
server_address=192.0.2.2
every_operation between
between write_bw --verify -x 2 -s 10000 -n 100
between send_bw --verify -x 2 -c UD -s 1000 -n 64
between read_lat --verify -x 2 -n 50
between write_bw --verify -m 256 -s 3000 -n 64

wire_ends
finish
