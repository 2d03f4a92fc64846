#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: goodput.sh BUILD [ROUNDS]
# Goodput under random loss: 64-KiB WRITEs, path MTU 4096, 32 outstanding, between two HCAs of a
# separate daemon whose ports lose frames at random, both directions alike. Every row copies the
# payload into packets: a port that changes frames takes no references. Rounds over all rates (5
# unless said otherwise), medians, as shares of the lossless wire's in the same run.
# Exit code 1: below a floor (0.8 at 10^-3, 0.5 at 10^-2).
set -euo pipefail
build=$1
rounds=${2:-5}
rates=(0 0.0001 0.001 0.003 0.01 0.03)
. "$(dirname "$0")/daemon.sh"

# counter NAME: of the HCA that sends
counter() { "$build/app/softhca" --socket "$SOFTHCA_SOCKET" --hca hca0 counters | awk -v n="$1" '$1 == n { v = $2 } END { print v + 0 }'; }

# measure RATE SEED: Gbit/s and the retransmissions, one line for that rate
measure() {
	start --set hca0.tx_copy=always --set hca1.tx_copy=always \
		--set hca0.loss="$1" --set hca1.loss="$1" --set hca0.seed="$2" --set hca1.seed="$2"
	gbit=$("${beside[@]}" timeout 60 "$build/bench/path/softhca-perf" write_bw --pair hca0,hca1 \
		-s 65536 -m 4096 -t 32 -D 1 | awk '$1 == 65536 { print $4 }')
	echo "${gbit:-0} $(counter request_packets) $(counter retransmitted_packets) $(counter loss_probes) $(counter loss_timeouts)" >>"$scratch/rate.$1"
	stop
}

for ((round = 1; round <= rounds; round++)); do
	for rate in "${rates[@]}"; do measure "$rate" "$round"; done
done

median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
lossless=$(median "$scratch/rate.0")
printf '%-8s %10s %6s %18s %10s %12s\n' loss Gbit/s share "sent again, %" probes timeouts
for rate in "${rates[@]}"; do
	awk -v rate="$rate" -v gbit="$(median "$scratch/rate.$rate")" -v lossless="$lossless" '
		{ packets += $2; again += $3; probes += $4; timeouts += $5 }
		END {
			floor = rate == 0.001 ? 0.8 : rate == 0.01 ? 0.5 : 0
			share = gbit / lossless
			printf "%-8s %10.2f %6.2f %18.1f %10d %12d%s\n", rate, gbit, share, 100 * again / packets,
				probes, timeouts, floor ? sprintf("   floor %.1f: %s", floor, share >= floor ? "ok" : "BELOW") : ""
			exit (share < floor)
		}' "$scratch/rate.$rate" || below=1
done
exit "${below:-0}"
