#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two daemons joined by memif: every operation, all data verified; the daemons' own captures
# dissected and every ICRC checked. Then without ICRC, which both must want.
. "$(dirname "$0")/lib.sh"
need_command tshark

mkdir "$SCRATCH/captures"
memif_daemons "$SCRATCH/captures"
joined() { wait_for 30 link_up a && wait_for 30 link_up b; }
check 'the ports are joined' joined

a_side=()
b_side=()
server_address=127.0.0.1
every_operation between

check 'daemon b ends cleanly' stop "$daemon_b"
check 'daemon a ends cleanly' stop "$daemon_a"
frames_right "$SCRATCH/captures"

rm "$SCRATCH"/captures/*
daemon a -c "$SCRATCH/a.conf" --set hca1.icrc=never
daemon_a=$started
daemon b -c "$SCRATCH/b.conf"
daemon_b=$started
check 'they are again' joined
drops() { "$TOOL" --socket "$SCRATCH/b.sock" counters | grep -qE ' drop_rx_icrc +[1-9]'; }
start server "$PERF" write_bw --socket "$SCRATCH/b.sock" -p $TCP_PORT
"$PERF" write_bw -n 1 -u 10 --retry 1 --socket "$SCRATCH/a.sock" -p $TCP_PORT 127.0.0.1 &>"$SCRATCH/client.log"
check 'a daemon that was not told takes nothing without ICRC' grep 'retry counter exceeded' "$SCRATCH/client.log"
check 'and says why' wait_for 20 drops
check 'daemon b ends cleanly' stop "$daemon_b"
daemon b -c "$SCRATCH/b.conf" --set hca2.icrc=never
daemon_b=$started
check 'and again' joined
between write_bw --verify -s 65537 -n 24
between send_bw --verify -s 1 -n 24
between read_bw --verify -b -s 5000 -n 24
check 'daemon b ends cleanly' stop "$daemon_b"
check 'daemon a ends cleanly' stop "$daemon_a"
rm "$SCRATCH"/pcap/*
frames_right "$SCRATCH/captures"
finish
