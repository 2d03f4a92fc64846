#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: bench.sh BUILD [floors.py OPTION...]
# The benchmarks of `make bench` that need a daemon: starts one with two HCAs joined by rings on a
# private socket, runs softhca-perf on it, stops it. With options: floors.py alone.
set -euo pipefail
build=$1
shift
scratch=$(mktemp -d /tmp/softhca-bench.XXXXXX)
daemon=
clean_up() {
	[ -z "$daemon" ] || { kill "$daemon" && wait "$daemon"; } || true
	rm -rf "$scratch"
}
trap clean_up EXIT
export RUNTIME_DIRECTORY=$scratch SOFTHCA_SOCKET=$scratch/daemon.sock

# start OPTION...: a daemon, in place of the one before
start() {
	[ -z "$daemon" ] || { kill "$daemon" && wait "$daemon"; } || true
	"$build/app/softhcad" --socket "$SOFTHCA_SOCKET" --set daemon.log_level=warning "$@" </dev/null &
	daemon=$!
	for ((i = 0; i < 500; i++)); do
		[ ! -S "$SOFTHCA_SOCKET" ] || break
		kill -0 "$daemon"
		sleep 0.02
	done
}

# The daemon takes the last CPU; a client that shares it waits for the scheduler in each turn.
beside=()
[ "$(nproc)" -lt 2 ] || beside=(taskset -c 0)

perf() {
	printf '\n=== softhca-perf %s\n' "$*"
	"${beside[@]}" "$build/bench/path/softhca-perf" "$@" --pair hca0,hca1
}
good=0
start --set hca0.icrc=always --set hca1.icrc=always
"$(dirname "$0")/floors.py" --icrc "$@" -- "$build" "${beside[@]}" || good=$?
start
"$(dirname "$0")/floors.py" "$@" -- "$build" "${beside[@]}" || good=$?
[ $# -eq 0 ] || exit $good
perf --demo
perf write_bw -s 65536 -D 2
perf write_bw -s 64 -l 32 -t 256 -D 2
perf write_bw -s 64 -l 16 -q 1000 -D 2
perf write_lat -n 20000
perf send_lat -n 20000
perf read_lat -n 20000
perf --dead-peer
exit $good
