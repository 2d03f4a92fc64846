#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: bench.sh BUILD [floors.py OPTION...]
# The benchmarks of `make bench` that need a daemon: the shares of floors.py, then softhca-perf, softhca-post and many clients. With
# options: floors.py alone.
set -euo pipefail
build=$1
shift
here=$(dirname "$0")
. "$here/daemon.sh"

# Of floors.py: a daemon's rows, and its settings of both HCAs.
daemons=(
	'icrc icrc=always'
	'tx_copy tx_copy=always'
	'plain qps=32768'
)

perf() {
	printf '\n=== softhca-perf %s\n' "$*"
	"${beside[@]}" "$build/bench/path/softhca-perf" "$@" --pair hca0,hca1
}
failed=0
for daemon_rows in "${daemons[@]}"; do
	read -r rows setting <<<"$daemon_rows"
	start --set "hca0.$setting" --set "hca1.$setting"
	"$here/floors.py" --rows "$rows" "$@" -- "$build" "${beside[@]}" || failed=$?
done
[ $# -eq 0 ] || exit $failed
start # without 2^14 queue pairs that it is destroying
perf --demo
perf write_bw -s 65536 -D 2
perf write_bw -s 64 -l 32 -t 256 -D 2
perf write_bw -s 64 -l 16 -q 1000 -D 2
perf write_lat -n 20000
perf send_lat -n 20000
perf read_lat -n 20000
perf --dead-peer || failed=$?
printf '\n=== softhca-post\n'
start --set daemon.poll=busy # else most posts have to wake it
"${beside[@]}" "$build/app/softhca" run -- "$build/bench/post/softhca-post" || failed=$?
stop
printf '\n=== many clients\n'
"$here/clients.sh" "$build"
exit $failed
