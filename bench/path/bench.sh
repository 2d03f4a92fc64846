#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: bench.sh BUILD [floors.py OPTION...]
# The benchmarks of `make bench` that need a daemon: the shares of floors.py, then softhca-perf. With options:
# floors.py alone.
set -euo pipefail
build=$1
shift
. "$(dirname "$0")/daemon.sh"

perf() {
	printf '\n=== softhca-perf %s\n' "$*"
	"${beside[@]}" "$build/bench/path/softhca-perf" "$@" --pair hca0,hca1
}
failed=0
start --set hca0.icrc=always --set hca1.icrc=always
"$(dirname "$0")/floors.py" --icrc "$@" -- "$build" "${beside[@]}" || failed=$?
start --set hca0.qps=32768 --set hca1.qps=32768
"$(dirname "$0")/floors.py" "$@" -- "$build" "${beside[@]}" || failed=$?
[ $# -eq 0 ] || exit $failed
start # without 2^14 queue pairs that it is destroying
perf --demo
perf write_bw -s 65536 -D 2
perf write_bw -s 64 -l 32 -t 256 -D 2
perf write_bw -s 64 -l 16 -q 1000 -D 2
perf write_lat -n 20000
perf send_lat -n 20000
perf read_lat -n 20000
perf --dead-peer
exit $failed
