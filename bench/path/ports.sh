#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: ports.sh BUILD [SECONDS [KIND...]]
# What two daemons move over each kind of port, as a share of what the port does alone in the same run: DPDK's
# testpmd sends and receives frames of the same length through the same driver. Messages of 64 KiB, one
# queue pair; one daemon, or testpmd, on CPU 0, the other on CPU 1, and on the next two CPUs their clients, if there
# are so many.
#
# Kinds that need root run in a network namespace of their own. Each measurement takes SECONDS (1).
set -euo pipefail
build=$1
seconds=${2:-1}
if [ "$(id -u)" -eq 0 ] && [ -z "${PORTS_APART:-}" ] && unshare -n true 2>/dev/null; then
	PORTS_APART=yes exec unshare -n "$0" "$@"
fi
scratch=$(mktemp -d /tmp/softhca-ports.XXXXXX)
export RUNTIME_DIRECTORY=$scratch
perf=$build/bench/path/softhca-perf
[ -z "${PORTS_APART:-}" ] || ip link set lo up
tcp=$((20000 + RANDOM % 10000))
pids=()

# Ends what runs in the background.
stop() {
	kill "${pids[@]}" 2>/dev/null || true
	wait "${pids[@]}" 2>/dev/null || true
	pids=()
}
trap 'stop; rm -rf "$scratch"' EXIT

cpus=$(nproc)
of_daemon() { echo $(($1 % cpus)); }
of_client() { echo $((cpus < 4 ? $1 % cpus : $1 + 2)); }

# until_true COMMAND...: waits for ten seconds at most
until_true() {
	for ((i = 0; i < 100; i++)); do
		! "$@" || return 0
		sleep 0.1 # the CPUs are needed
	done
	return 1
}

# ---- kinds: the HCA's settings, testpmd's device, for ends 0 and 1; path MTU ----

settings() {
	case $kind in
	memif*) echo "port = memif"; echo "device = $scratch/memif"; [ "$1" -eq 1 ] || echo "memif_server = yes" ;;
	*) echo "port = $kind"; echo "device = port$1" ;;
	esac
	[ "$kind" != memif ] || echo "icrc = never"
}

device() {
	local role=client
	[ "$1" -eq 1 ] || role=server
	case $kind in
	memif*) echo "net_memif0,role=$role,id=0,bsize=4608,rsize=9,socket=$scratch/memif,socket-abstract=no" ;;
	af_packet) echo "net_af_packet0,iface=port$1,blocksz=303104,framesz=4736,framecnt=896" ;;
	af_xdp) echo "net_af_xdp0,iface=port$1" ;;
	tap) echo "net_tap0,iface=port$1" ;;
	esac
}

path_mtu() {
	case $kind in
	af_xdp) echo 2048 ;;
	tap) echo 1024 ;;
	*) echo 4096 ;;
	esac
}

# A veth; its MTU for af_xdp is the largest that XDP takes.
lay() {
	local mtu=4200
	rm -f "$scratch/memif" "$scratch"/testpmd*
	[ "$kind" != af_xdp ] || mtu=3000
	case $kind in
	af_*)
		ip link add port0 mtu $mtu type veth peer name port1 mtu $mtu
		ip link set port0 up
		ip link set port1 up
		;;
	tap)
		ip link add bridge type bridge
		ip link set bridge up
		;;
	esac
}

# Once both taps are there: a bridge between them.
join() {
	local end
	[ "$kind" = tap ] || return 0
	for end in 0 1; do
		until_true ip link show "port$end" &>/dev/null
		ip link set "port$end" master bridge up
	done
}

unlay() {
	case $kind in
	af_*) ip link del port0 ;;
	tap) ip link del bridge ;;
	esac
}

# ---- the port alone ----

# testpmd END OPTION... For af_xdp a buffer with all that belongs to it must fit into a page.
testpmd() {
	local end=$1 cpu buffer=4864
	shift
	[ "$kind" != af_xdp ] || buffer=3456
	cpu=$(of_daemon "$end")
	# It may not listen to anything but SIGKILL, and memif's driver may fall over a peer that has gone.
	timeout -s KILL 20 stdbuf -oL dpdk-testpmd --lcores "0@$cpu,1@$cpu" --no-pci --no-huge -m 256 --file-prefix "ports$end" \
		--vdev="$(device "$end")" -- --mbuf-size=$buffer --total-num-mbufs=4096 --mbcache=256 "$@" --auto-start \
		--stats-period 1 </dev/null >"$scratch/testpmd$end" 2>&1 &
	pids+=($!)
}

received() { [ "$(awk '/Rx-pps/ && $2 > 1000' "$scratch/testpmd0" | wc -l)" -gt $((seconds + 1)) ]; }

# Gbit/s of payload in the best second (in the first ones pages are missing), in $limit
alone() {
	local mtu
	mtu=$(path_mtu)
	testpmd 0 --forward-mode=rxonly
	[ "$kind" = tap ] || until_true grep -qs 'Rx-pps' "$scratch/testpmd0"
	testpmd 1 --forward-mode=txonly --txpkts=$((mtu + 74)) # headers of a middle packet over IPv4, and the ICRC
	join || true
	until_true received || true
	for pid in "${pids[@]}"; do kill -KILL "$(pgrep -P "$pid")" 2>/dev/null || true; done
	stop
	limit=$(awk -v mtu="$mtu" '/Rx-pps/ && $2 > best { best = $2 } END { print best * mtu * 8 / 1e9 }' "$scratch/testpmd0")
}

# ---- softhca ----

daemons() {
	local end
	for end in 0 1; do
		{
			printf '[daemon]\nlcores = %s\nlog_level = warning\n[hca hca0]\naddress = 10.77.0.%s/24\n' \
				"$(of_daemon $end)" $((end + 1))
			settings $end
		} >"$scratch/$end.conf"
		"$build/app/softhcad" --socket "$scratch/$end.sock" -c "$scratch/$end.conf" </dev/null >"$scratch/daemon$end" 2>&1 &
		pids+=($!)
		until_true [ -S "$scratch/$end.sock" ]
	done
	join
	sleep 0.3 # links
}

# gbit TEST: what end 1 moves, or has read, over there
gbit() {
	local options=("${1}_bw" -s 65536 -m "$(path_mtu)" -t 32 -Q 8 -D "$seconds" -e) server
	tcp=$((tcp + 1))
	timeout 20 taskset -c "$(of_client 0)" "$perf" "${options[@]}" --socket "$scratch/0.sock" -p $tcp >"$scratch/server" 2>&1 &
	server=$!
	sleep 0.1
	timeout 20 taskset -c "$(of_client 1)" "$perf" "${options[@]}" --socket "$scratch/1.sock" -p $tcp 127.0.0.1 \
		2>"$scratch/client" | awk '$1 == 65536 { v = $4 } END { print v + 0 }' || true
	wait $server || true
}

row() {
	local limit test got
	lay
	alone
	daemons 2>/dev/null
	for test in write read send; do
		got=$(gbit $test)
		awk -v kind="$kind" -v what="$test" -v got="$got" -v limit="$limit" \
			'BEGIN { printf "%-12s %-6s %8.2f of %8.2f Gbit/s share %s\n", kind, toupper(what), got, limit, limit ? sprintf("%.2f", got / limit) : "unknown" }'
	done
	stop
	unlay
}

if [ $# -le 2 ]; then
	kinds=(memif memif_icrc)
	[ -z "${PORTS_APART:-}" ] || kinds+=(af_packet tap af_xdp)
else
	kinds=("${@:3}")
fi
for kind in "${kinds[@]}"; do
	if command -v dpdk-testpmd >/dev/null; then row; else echo "$kind: needs dpdk-testpmd (dpdk-dev)"; fi
done
