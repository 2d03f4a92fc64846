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

# The queue pairs of one program use both engines, and what they send arrives where their peers' engine
# receives.
took_doorbells() {
	"$TOOL" --socket "$SCRATCH/program.sock" fifos | awk '$1 == "dbp_ws" && $5 > 0 { n++ } END { exit n != 4 }'
}
none_handed_over() {
	! "$TOOL" --socket "$SCRATCH/program.sock" counters | grep -w rx_handed_over
}
ring_config 'engines = 2' >"$SCRATCH/program.conf"
daemon program -c "$SCRATCH/program.conf"
for test in send_bw write_bw read_bw atomic_bw; do
	pair program "$test" --verify -b -q 4 --random -n 500
done
pair program send_bw -b -q 4 --srq -n 500
check 'one program: all engines of both HCAs took its doorbells' took_doorbells
check 'one program: every frame arrived at its engine' none_handed_over
check 'one program: the daemon ends cleanly' stop "$started"
finish
