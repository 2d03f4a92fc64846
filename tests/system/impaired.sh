#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two daemons joined by memif, whose ports are made a bad link of 50 Mbit/s: rate, delay, jitter, loss, reordering,
# duplication, corruption. Every byte right, no error, and the goodput that the simulator has for the same link, within
# 20 %. The link is slow so that a busy machine is fast enough; what it loses all the same is measured on the link without
# faults.
. "$(dirname "$0")/lib.sh"
NETWORK=$(program tests/conformance/test_conformance_network) || exit 1

mbps=50 delay_us=3000

# faults LOSS REORDER DUPLICATE CORRUPT JITTER_US: of both ports, from now on.
faults() {
	local key
	for key in loss reorder duplicate corrupt jitter_us; do
		SOFTHCA_SOCKET=$SCRATCH/a.sock "$TOOL" set "hca1.$key" "$1" &&
			SOFTHCA_SOCKET=$SCRATCH/b.sock "$TOOL" set "hca2.$key" "$1" || return
		shift
	done >>"$SCRATCH/set.log"
}

# transfer: Mbit/s of payload that pass, in $goodput. Checked.
transfer() {
	between write_bw --verify -s 65536 -n 300 -t 8 --json
	goodput=$(sed -n 's/.*"bw_average_gbps": \([0-9.]*\).*/\1/p' "$SCRATCH/client.log")
	goodput=$(awk -v gbps="${goodput:-0}" 'BEGIN {print gbps * 1000}')
}

# predict LOSS REORDER DUPLICATE CORRUPT: the same in the simulator, median of three seeds.
predict() {
	local seed
	for seed in 1 2 3; do
		SOFTHCA_SEEDS=$seed,1 "$NETWORK" link "$mbps" "$delay_us" "$@" | grep -x '[0-9.]*'
	done | sort -n | sed -n 2p
}

# within IS SHOULD [MACHINE]: a fifth less than SHOULD times MACHINE at most, or a fifth more than SHOULD, which is the link's.
within() {
	awk -v is="$1" -v should="$2" -v machine="${3:-1}" 'BEGIN {exit !(is > should * machine * 0.8 && is < should * 1.2)}'
}

# as_predicted NAME LOSS REORDER DUPLICATE CORRUPT JITTER_US: six times at most, since what else runs here delays repetitions.
as_predicted() {
	local name=$1 expected try
	shift
	expected=$(predict "$1" "$2" "$3" "$4")
	faults "$@" || fail "faults are set: $name"
	for try in 1 2 3 4 5 6; do
		transfer
		within "$goodput" "$expected" "$clean" && break
	done
	check "$name: $goodput Mbit/s, simulated $expected, machine $clean (try $try)" within "$goodput" "$expected" "$clean"
}

a_side=() b_side=() server_address=127.0.0.1
memif_config 1 0 yes >"$SCRATCH/a.conf"
memif_config 2 $(($(nproc) > 1)) no >"$SCRATCH/b.conf"
for side in a b; do
	printf 'rate_mbps = %s\ndelay_us = %s\n' "$mbps" "$delay_us" >>"$SCRATCH/$side.conf"
	daemon "$side" -c "$SCRATCH/$side.conf"
done

clean=1
as_predicted 'no faults' 0 0 0 0 0
clean=$(awk -v is="$goodput" -v should="$(predict 0 0 0 0)" 'BEGIN {print is < should ? is / should : 1}')
as_predicted 'jitter' 0 0 0 0 1000
as_predicted 'loss' 0.01 0 0 0 0
as_predicted 'all of them' 0.005 0.01 0.01 0.005 500
finish
