#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: compare.sh BUILD [ROUNDS [SIZE...]]
# The same transfers between two processes of this host, by different programs in turns: bandwidth in
# Gbit/s, the rate of short messages, the one-way latency of 8 bytes in microseconds. Medians of the
# rounds. A column is a program and what carries its data. One program runs on CPU 0, the other on
# CPU 1, softhca's daemon on the last. Writes BUILD/compare.svg as well.
set -euo pipefail
here=$(dirname "$0")
build=$1 rounds=${2:-5}
shift $(($# < 2 ? $# : 2))
sizes=("$@")
[ $# -gt 0 ] || sizes=(64 512 4096 65536 1048576)
scratch=$(mktemp -d)
export SOFTHCA_SOCKET=$scratch/socket RUNTIME_DIRECTORY=$scratch
port=$((20000 + RANDOM % 20000))

"$build/app/softhcad" --socket "$SOFTHCA_SOCKET" --set daemon.log_level=warning </dev/null &
daemon=$!
trap 'kill "$daemon"; wait "$daemon" 2>/dev/null; rm -rf "$scratch"' EXIT
until [ -S "$SOFTHCA_SOCKET" ]; do
	kill -0 "$daemon"
	sleep 0.1
done
run=("$build/app/softhca" run --)

# both SERVER... @@ CLIENT...: the client's output. PORT stands for a port that nobody else has.
both() {
	local server=() pid
	port=$((port + 1))
	while [ "$1" != @@ ]; do
		server+=("${1/PORT/$port}")
		shift
	done
	shift
	timeout 60 taskset -c 1 "${server[@]}" >"$scratch/server" 2>&1 &
	pid=$!
	sleep 0.5
	timeout 60 taskset -c 0 "${@/PORT/$port}" 2>"$scratch/client" || true
	kill "$pid" 2>/dev/null || true
	wait "$pid" 2>/dev/null || true
}

# same PROGRAM... @ CLIENT OPTIONS...: both run PROGRAM, the client with more options.
same() {
	local common=()
	while [ "$1" != @ ]; do
		common+=("$1")
		shift
	done
	shift
	both "${common[@]}" @@ "${common[@]}" "$@"
}

# Short messages are posted in lists of 32.
lists() { [ "$1" -ge 4096 ] || echo -l 32 -t "$2"; }

tcp_iperf3() {
	both iperf3 -s -1 -p PORT @@ iperf3 -c 127.0.0.1 -p PORT -l "$1" -t 1 -f k |
		awk '/receiver/ { print $(NF - 2) / 1e6 }'
}
tcp_iperf3_lat() { "$build/bench/limit/softhca-limit" 1 1 2>/dev/null | awk '$1 == "tcp-busy" { print $2 / 1000 }'; }

# ucx COMMAND...: UCX's own benchmark, tagged messages; some seconds' worth of them.
ucx() {
	same "$@" ucx_perftest -p PORT @ -t tag_bw -s "$size" -n $((size < 4096 ? 300000 : 1500000000 / size)) \
		-w 1000 -f 127.0.0.1 | awk 'NF == 8 { print $6 * 8 * 1.048576 / 1000 }'
}
ucx_lat() {
	same "$@" ucx_perftest -p PORT @ -t tag_lat -s 8 -n 20000 -w 1000 -f 127.0.0.1 | awk 'NF == 8 { print $2 }'
}
tcp_ucx() { size=$1 ucx env UCX_TLS=tcp,self; }
tcp_ucx_lat() { ucx_lat env UCX_TLS=tcp,self; }
shm_ucx() { size=$1 ucx env UCX_TLS=posix,cma,self; }
shm_ucx_lat() { ucx_lat env UCX_TLS=posix,cma,self; }
softhca_ucx() { size=$1 ucx env UCX_TLS=rc_v,self "${run[@]}"; }
softhca_ucx_lat() { ucx_lat env UCX_TLS=rc_v,self "${run[@]}"; }

# perftest PROGRAM OPTIONS...: server on hca0, client on hca1.
perftest() {
	both "${run[@]}" "$@" -d hca0 -x 1 -F -p PORT @@ "${run[@]}" "$@" -d hca1 -x 1 -F -p PORT 127.0.0.1
}
softhca_perftest() {
	# shellcheck disable=SC2046 # several words
	perftest ib_write_bw -s "$1" -D 1 --report_gbits $(lists "$1" 256) | awk -v s="$1" '$1 == s { print $4 }'
}
softhca_perftest_lat() { perftest ib_write_lat -s 8 -n 5000 | awk '$1 == 8 { print $5 }'; }

native() { taskset -c 0 "$build/bench/path/softhca-perf" "$@" --pair hca0,hca1; }
softhca_native() {
	# shellcheck disable=SC2046
	native write_bw -s "$1" -D 1 $(lists "$1" 256) | awk -v s="$1" '$1 == s { print $4 }'
}
softhca_native_lat() { native write_lat -s 8 -n 20000 | awk '$1 == 8 { print $5 }'; }

ways=(tcp_iperf3 tcp_ucx shm_ucx softhca_ucx softhca_perftest softhca_native)
for ((round = 1; round <= rounds; round++)); do
	for way in "${ways[@]}"; do
		for size in "${sizes[@]}"; do
			echo "$way $size $("$way" "$size")"
		done
		echo "$way latency $("${way}_lat")"
	done
	[ ! -t 2 ] || echo "round $round of $rounds" >&2
done >"$scratch/all"

# Medians, '-' where a program said nothing.
sort -k1,1 -k2,2 -k3,3n "$scratch/all" | awk '
	function flush() { if (name) print name, n ? v[int((n + 1) / 2)] : "-" }
	$1 " " $2 != name { flush(); name = $1 " " $2; n = 0 }
	NF == 3 { v[++n] = $3 }
	END { flush() }' >"$scratch/medians"
machine="$(sed -n 's/^model name.*: //p;T;q' /proc/cpuinfo), $(nproc) CPUs, CRC $("$build/app/softhca" status | awk '/crc/ { print $NF; exit }')"
"$here/plot.py" "$machine" "$build/compare.svg" "${ways[@]}" <"$scratch/medians"
