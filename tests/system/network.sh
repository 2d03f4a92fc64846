#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two daemons in two network namespaces with a wire between them: every operation, all data
# verified; every frame on the wire dissected and its ICRC checked; over IPv4 and IPv6.
. "$(dirname "$0")/lib.sh"
need_netns
need_command tshark
need_command dumpcap
hosts 4200

# network_config NUMBER: the HCA has addresses of its own, so that no kernel answers for it.
network_config() {
	printf '[daemon]\nlcores = %s\n[hca hca0]\nport = af_packet\ndevice = hca0\n' "$2"
	printf 'address = 192.0.2.10%s/24, 2001:db8::10%s/64\n' "$1" "$1"
}
network_config 1 0 >"$SCRATCH/a.conf"
network_config 2 $(($(nproc) > 1)) >"$SCRATCH/b.conf"

mkdir "$SCRATCH/captures"
start dumpcap on "$HOST_A" dumpcap -q -i hca0 -w "$SCRATCH/captures/wire.pcapng"
dumpcap=$started
wait_for 10 test -s "$SCRATCH/captures/wire.pcapng"
daemon a on "$HOST_A" -c "$SCRATCH/a.conf"
daemon_a=$started
daemon b on "$HOST_B" -c "$SCRATCH/b.conf"
daemon_b=$started

a_side=(on "$HOST_A")
b_side=(on "$HOST_B")
server_address=192.0.2.2
every_operation between
between write_bw --verify -x 2 -s 10000 -n 100
between send_bw --verify -x 2 -c UD -s 1000 -n 64
between read_lat --verify -x 2 -n 50
between write_bw --verify -m 256 -s 3000 -n 64

check 'daemon a ends cleanly' stop "$daemon_a"
check 'daemon b ends cleanly' stop "$daemon_b"
kill -INT "$dumpcap"
wait_for 10 not_running "$dumpcap"
frames_right "$SCRATCH/captures"
finish
