#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Any mapping of stages to lcores works: neighbouring stages on different CPUs (so that every
# channel crosses), and several engines, each on a lossy wire with every operation checked.
# SOFTHCA_SOAK: how many operations (20000).
. "$(dirname "$0")/lib.sh"

operations=${SOFTHCA_SOAK:-20000}
stages=(doorbell_wqe segmentation header_parse requester_recv responder_exec)
loss=('loss = 0.01' 'duplicate = 0.01' 'reorder = 0.01')
patience=()

# soak NAME DAEMON OPTIONS... $patience: options of softhca-perf.
soak() {
	local name=$1
	shift
	ring_config "${loss[@]}" >"$SCRATCH/$name.conf"
	daemon "$name" -c "$SCRATCH/$name.conf" "$@"
	check "$name: every operation once and right" timeout 300 "$PERF" --soak "$operations" "${patience[@]}" \
		--socket "$SCRATCH/$name.sock" --pair left,right
	check "$name: the daemon ends cleanly" stop "$started"
}

if [ "$(nproc)" -ge 2 ]; then
	alternate=()
	for i in "${!stages[@]}"; do
		alternate+=(--set "left.lcore.${stages[i]}=$((i % 2))")
		alternate+=(--set "right.lcore.${stages[i]}=$(((i + 1) % 2))")
	done
	# One CPU may not run while the other does.
	patience=(--qp-timeout 18)
	soak alternate "${alternate[@]}"
	patience=()
fi
soak engines --set left.engines=2 --set right.engines=2
finish
