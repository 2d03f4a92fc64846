#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: clients.sh BUILD [SECONDS]
# What 1, 8 and 64 programs move between two HCAs of a daemon, as a share of what one of them does: by the daemon's
# counters over SECONDS (1), once all of them are connected. Each has one queue pair and sleeps for completions, since
# all clients share a CPU.
set -euo pipefail
build=$1
seconds=${2:-1}
. "$(dirname "$0")/daemon.sh"

# What, its unit; the daemon's counter, and what one of it each ns is in that unit; softhca-perf's options.
rows=(
	'WRITE 64 KiB|Gbit/s|request_bytes|8|-s 65536 -m 4096 -t 32 -Q 8'
	'WRITE 64 B|M/s|requests|1000|-s 64 -l 32 -t 256'
)

tool() { "$build/app/softhca" --socket "$SOFTHCA_SOCKET" --hca hca0 "$@"; }
count_of() { tool counters | awk -v name="$1" '$1 == name { print $2 }'; }
connected() { tool qp | grep -c 'RTS.*softhca-perf'; }

# rate N COUNTER FACTOR OPTION...: of N programs, in $got
rate() {
	local n=$1 counter=$2 factor=$3 pids=() began count
	shift 3
	start
	for ((i = 0; i < n; i++)); do
		timeout 60 "${beside[@]}" "$build/bench/path/softhca-perf" write_bw "$@" -D 60 -e --pair hca0,hca1 >/dev/null 2>&1 &
		pids+=($!)
	done
	for ((i = 0; i < 300 && $(connected || true) < n; i++)); do
		sleep 0.1 # the CPUs are needed
	done
	((i < 300)) || echo "only $(connected || true) of $n clients are connected" >&2
	began=$(date +%s%N) count=$(count_of "$counter")
	sleep "$seconds"
	count=$(($(count_of "$counter") - count))
	got=$(awk -v count="$count" -v ns=$(($(date +%s%N) - began)) -v factor="$factor" 'BEGIN { print count * factor / ns }')
	kill "${pids[@]}" 2>/dev/null || true
	wait "${pids[@]}" 2>/dev/null || true
}

for row in "${rows[@]}"; do
	IFS='|' read -r what unit counter factor options <<<"$row"
	one=
	for n in 1 8 64; do
		# shellcheck disable=SC2086 # several words
		rate $n "$counter" "$factor" $options
		one=${one:-$got}
		awk -v n=$n -v got="$got" -v one="$one" -v what="$what" -v unit="$unit" \
			'BEGIN { printf "%-12s %2d clients %8.2f of %8.2f %-6s share %.2f\n", what, n, got, one, unit, one ? got / one : 0 }'
	done
done
