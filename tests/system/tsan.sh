#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The whole daemon under ThreadSanitizer, on a wire that loses, doubles and reorders: neighbouring
# stages on different CPUs, so that every channel crosses; then two engines; then while settings
# change. Each operation is checked, no race may be reported. Skips in builds without TSan.
# SOFTHCA_SOAK: how many operations of each (1500).
. "$(dirname "$0")/lib.sh"

# Code 18, 1.07 s: the daemon is ten times slower than usual, and its peer may not run at the time.
soak=(timeout 300 "$PERF" --soak "${SOFTHCA_SOAK:-1500}" --qp-timeout 18 --pair left,right)
stages=(doorbell_wqe segmentation header_parse requester_recv responder_exec)
loss=('loss = 0.01' 'duplicate = 0.01' 'reorder = 0.01')

grep -q __tsan_init "$DAEMON" || skip 'the build has no ThreadSanitizer'
# DPDK's libraries are not instrumented, but all that we do between lcores is inlined into our code,
# or made so for this (app/softhcad/visible_pools.c, which has the only suppression).
export TSAN_OPTIONS="halt_on_error=1 exitcode=66 history_size=4"

# changes NAME PID: of that daemon all kinds of settings that change while it runs, again and again.
changes() {
	local setting
	while :; do
		for setting in 'poll busy' 'idle_spin_us 0' 'loss 0.02' 'jitter_us 5' 'ack_interval 4' \
			'quantum_bytes 8192' 'nt_copy_bytes 4096' 'admit 192.168.77.0/24,fd77::/64' \
			'left.address 192.168.77.1/24,fd77::1/64,192.168.77.3/24'; do
			# shellcheck disable=SC2086
			"$TOOL" --socket "$SCRATCH/$1.sock" set $setting
		done
		sleep 0.2
		kill -HUP "$2"
		sleep 0.2
	done >"$SCRATCH/changes.log" 2>&1
}

# soak NAME DAEMON OPTIONS...
soak() {
	local name=$1 serving changer=
	shift
	ring_config "${loss[@]}" >"$SCRATCH/$name.conf"
	daemon "$name" -c "$SCRATCH/$name.conf" "$@"
	serving=$started
	if [ "$name" = changing ]; then
		changes "$name" "$serving" &
		changer=$!
	fi
	check "$name: every operation once and right" "${soak[@]}" \
		--socket "$SCRATCH/$name.sock"
	[ -z "$changer" ] || kill "$changer"
	check "$name: the daemon ends cleanly" stop "$serving"
	check "$name: no race" no_race "$SCRATCH/$name.log"
}

# trains --socket SOCKET: long messages and lists of short ones.
trains() {
	local kind
	for kind in write send read; do
		timeout 300 "$PERF" "${kind}_bw" --verify -b -s 262144 -q 4 -n 100 --qp-timeout 18 --pair left,right "$@" || return
		timeout 300 "$PERF" "${kind}_bw" --verify -b -s 64 -q 4 -n 2000 -l 16 --qp-timeout 18 --pair left,right "$@" || return
	done
	timeout 300 "$PERF" atomic_bw -b -q 4 -n 2000 -l 16 --qp-timeout 18 --pair left,right "$@"
}

no_race() {
	! grep -h -A60 'WARNING: ThreadSanitizer' "$@"
}

# placed ENGINES: options that put neighbouring stages, and the same stage of neighbouring engines,
# on different CPUs; into $options.
placed() {
	local i e
	options=()
	for i in "${!stages[@]}"; do
		for ((e = 0; e < $1; e++)); do
			options+=(--set "left.lcore.${stages[i]}.$e=$(((i + e) % cpus))")
			options+=(--set "right.lcore.${stages[i]}.$e=$(((i + e + 1) % cpus))")
		done
	done
}

cpus=$(($(nproc) < 2 ? 1 : 2))
placed 1
soak alternate "${options[@]}"
placed 2
soak engines --set left.engines=2 --set right.engines=2 "${options[@]}"
soak=(timeout 300 "$PERF" --soak $((10 * ${SOFTHCA_SOAK:-1500})) --qp-timeout 18 --pair left,right)
placed 1
soak changing "${options[@]}"
for change in 'poll: adaptive -> busy' 'left.address: .* -> .*192.168.77.3/24'; do
	check "changing: $change" grep -q "$change" "$SCRATCH/changes.log"
done
# A clean wire: packets refer to their payload and travel as trains, first from lcore to lcore, then from HCA to HCA.
loss=()
soak=(trains)
placed 1
soak spread "${options[@]}"
options=()
for stage in "${stages[@]}"; do
	options+=(--set "left.lcore.$stage=0" --set "right.lcore.$stage=$((cpus - 1))")
done
soak apart "${options[@]}"
again_if_detector_gave_up "$@"
finish
