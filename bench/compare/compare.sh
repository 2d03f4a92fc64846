#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: compare.sh [--publish] BUILD [ROUNDS [SIZE...]]
# The same transfers between two programs of this host, by each way in turns: bandwidth, message rate and
# one-way latency over the size of the message. Prints the medians of the rounds as a table and draws them in
# BUILD/compare.svg; with --publish, puts both into README.md and bench/compare/compare.svg instead.
# BUILD/compare.tsv keeps all results. One program runs on CPU 0, the other on CPU 1, the daemon on the last.
set -euo pipefail
here=$(dirname "$0")
publish=
if [ "${1:-}" = --publish ]; then
	publish=yes
	shift
fi
build=$(realpath "$1") rounds=${2:-5}
shift $(($# < 2 ? $# : 2))
declare -A sizes=([bw]=${*:-64 512 4096 65536 1048576} [lat]=${*:-16 64 512 4096 65536})

# What the table calls it, and the function below that measures it when given bw or lat, and a size.
ways=(
	'softhca-perf|verbs native'
	'softhca-perf, both ends in one process|verbs pair'
	'perftest over softhca|verbs perftest'
	'MPI over softhca (Open MPI, NetPIPE)|mpi'
	'UCX over softhca|ucx rc_v'
	'rsockets over softhca (rstream)|rsockets'
	'UCX over shared memory|ucx posix,cma'
	'UCX over TCP|ucx tcp'
	'TCP (iperf3, sockperf)|sockets tcp'
	'UDP (iperf3, sockperf)|sockets udp'
)

. "$here/../path/daemon.sh"
start
run=("$build/app/softhca" run --)
port=$((10000 + RANDOM % 20000)) # another one for each transfer

# until_served PID: until somebody listens on $port, at the kernel's address or softhca's, or PID has ended.
until_served() {
	local tries
	for ((tries = 0; tries < 100; tries++)); do
		kill -0 "$1" 2>/dev/null || return 0
		! { ss -tulnH && "$build/app/softhca" cm; } | grep ":$port " >/dev/null || return 0
		sleep 0.05
	done
}

# both SERVER... @@ CLIENT...: the client's output.
both() {
	local server=() pid
	while [ "$1" != @@ ]; do
		server+=("$1")
		shift
	done
	shift
	timeout 60 taskset -c 1 "${server[@]}" >"$scratch/server" 2>&1 &
	pid=$!
	until_served "$pid"
	timeout 60 taskset -c 0 "$@" 2>"$scratch/client" || true
	kill "$pid" 2>/dev/null || true
	wait "$pid" 2>/dev/null || true
}

# From here on each function's last two arguments are bw or lat, and the size; it prints Gbit/s or microseconds.

# Options and tables of softhca-perf are perftest's. Short messages are posted in lists of 32.
verbs() {
	local options=(-s "$3" -n 5000) column=5 perf=$build/bench/path/softhca-perf
	if [ "$2" = bw ]; then
		options=(-s "$3" -D 1) column=4
		[ "$3" -ge 4096 ] || options+=(-l 32 -t 256)
	fi
	case $1 in
	perftest) on_hcas "${run[@]}" "ib_write_$2" -x 1 -F --report_gbits "${options[@]}" ;;
	native) on_hcas "$perf" "write_$2" "${options[@]}" ;;
	pair) timeout 60 taskset -c 0 "$perf" "write_$2" "${options[@]}" --pair hca0,hca1 ;;
	esac | awk -v size="$3" -v column=$column '$1 == size { print $column }'
}

# on_hcas PROGRAM...: server on hca0, client on hca1.
on_hcas() { both "$@" -d hca0 -p "$port" @@ "$@" -d hca1 -p "$port" 127.0.0.1; }

# NetPIPE decides how often it repeats; its megabit is 2^20 bits. One-sided transfers (osc) are not used.
mpi() {
	local options=(-l "$2" -u "$2" -p 0 -o "$scratch/netpipe") job=()
	[ "$1" = lat ] || options+=(-s)
	for rank in 0 1; do
		job+=(-np 1 env "UCX_NET_DEVICES=hca$((1 - rank)):1" "UCX_TLS=rc_v,self" "${run[@]}"
			taskset -c "$rank" NPopenmpi "${options[@]}" :)
	done
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 60 mpirun --oversubscribe --bind-to none \
		--mca pml ucx --mca btl ^openib --mca osc ^rdma "${job[@]}" </dev/null 2>&1 >/dev/null |
		awk -v kind="$1" '/Mbps in/ { print kind == "bw" ? $(NF - 4) * 1.048576 / 1000 : $(NF - 1) }'
}

# Tagged messages.
ucx() {
	local program=(env "UCX_TLS=$1,self") options=(-t "tag_$2" -s "$3" -w 1000 -f) column=2
	[ "$1" != rc_v ] || program+=("${run[@]}")
	program+=(ucx_perftest -p "$port")
	if [ "$2" = bw ]; then
		options+=(-n "$(messages "$3")")
		column=6
	else
		options+=(-n 10000)
	fi
	both "${program[@]}" @@ "${program[@]}" "${options[@]}" 127.0.0.1 |
		awk -v kind="$2" -v column=$column 'NF == 8 { print kind == "bw" ? $column * 8 * 1.048576 / 1000 : $column }'
}

# rstream sends messages one way and then as many back; for latency one each way, many times.
rsockets() {
	local program=("${run[@]}" rstream -p "$port" -T b -S "$2") column=7
	if [ "$1" = bw ]; then
		program+=(-I 1 -C "$(messages "$2")")
	else
		program+=(-I 5000 -C 1) column=8
	fi
	both "${program[@]}" -b 192.168.77.1 @@ "${program[@]}" -b 192.168.77.2 -s 192.168.77.1 |
		awk -v column=$column '$1 == "custom" { print $column }'
}

# iperf3 sends UDP as fast as it can; what arrives counts. Both ends of sockperf poll. UDP and sockperf take 65507
# bytes at most, for 64 KiB.
sockets() {
	local size=$3 flood=() polls=(-f "$scratch/feed" -F poll --timeout 0)
	[ "$3" != 65536 ] || [ "$1-$2" = tcp-bw ] || size=65507
	[ "$1" = tcp ] || flood=(-u -b 0)
	case $2 in
	bw) both iperf3 -s -1 -p "$port" @@ iperf3 -c 127.0.0.1 -p "$port" -l "$size" -t 1 -f k "${flood[@]}" |
		awk '/receiver/ { sub(/ Kbits.*/, ""); print $NF / 1e6 }' ;;
	lat)
		echo "${1:0:1}:127.0.0.1:$port" >"$scratch/feed"
		both sockperf server "${polls[@]}" @@ sockperf ping-pong "${polls[@]}" -m "$size" -t 1 |
			awk '/percentile 50/ { print $NF }'
		;;
	esac
}

# messages SIZE: a GB of them, but 300000 at most.
messages() { echo $(($1 < 3333 ? 300000 : 1000000000 / $1)); }

for ((round = 1; round <= rounds; round++)); do
	for way in "${ways[@]}"; do
		read -ra measure <<<"${way#*|}"
		for kind in bw lat; do
			for size in ${sizes[$kind]}; do
				port=$((port + 1))
				printf '%s\t%s\t%s\t%s\n' "${way%|*}" $kind "$size" "$("${measure[@]}" $kind "$size")"
			done
		done
	done
	[ ! -t 2 ] || echo "round $round of $rounds" >&2
done >"$build/compare.tsv"

cpu() { sed -n "s/^$1\s*: //p;T;q" /proc/cpuinfo; }
machine="$(cpu 'model name') (family $(cpu 'cpu family'), model $(cpu model)), $(nproc) CPUs, Linux $(uname -r)"
crc=$("$build/app/softhca" status | sed -n 's/.*, crc //p')
if [ "$publish" ]; then
	outputs=("$here/compare.svg" "$here/../../README.md")
else
	outputs=("$build/compare.svg")
fi
"$here/plot.py" "$build/compare.tsv" "$machine, CRC $crc, $(date +%F)" "${outputs[@]}"
