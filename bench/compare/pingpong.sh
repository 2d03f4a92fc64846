#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: pingpong.sh BUILD [ROUNDS]
# Two programs that poll, and a daemon, on the CPUs of this process: one-way latency of a small
# message in microseconds, each program once in each round, then medians; TCP's busy and blocking
# ping-pong (two programs on CPUs 0 and 1, no daemon) beside them. `taskset -c 0,1` gives two CPUs.
set -euo pipefail
build=$1 rounds=${2:-5}
. "$(dirname "$0")/../path/daemon.sh"
start
port=$((20000 + RANDOM % 20000))

# both PROGRAM...: server on hca0, client on hca1. The client's output.
both() {
	port=$((port + 1))
	timeout 60 "$@" -d hca0 -p $port >"$scratch/server" 2>&1 &
	local server=$!
	sleep 0.5
	timeout 60 "$@" -d hca1 -p $port 127.0.0.1 2>/dev/null
	wait "$server"
}

run=("$build/app/softhca" run --)
for ((round = 0; round < rounds; round++)); do
	both "${run[@]}" ibv_rc_pingpong -g 1 -s 8 -n 5000 |
		awk '/usec\/iter/ { print "ibv_rc_pingpong", $(NF - 1) / 2 }'
	both "${run[@]}" ib_write_lat -x 1 -F -s 8 -n 5000 |
		awk '$1 == 8 { print "ib_write_lat", $6; print "ib_write_lat-typical", $5 }'
	both "$build/bench/path/softhca-perf" send_lat -s 8 -n 5000 |
		awk '$1 == 8 { print "softhca-perf-send_lat", $6 }'
	"$build/bench/limit/softhca-limit" 1 1 2>/dev/null |
		awk '/^tcp-/ { print $1, $2 / 1000 }'
done | tee "$scratch/all"

echo "medians of $rounds rounds on $(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg)"
sort -k1,1 -k2,2n "$scratch/all" | awk '
	function flush() { if (n) printf "%-24s %8.2f us\n", name, v[int((n + 1) / 2)] }
	$1 != name { flush(); name = $1; n = 0 }
	{ v[++n] = $2 }
	END { flush() }'
