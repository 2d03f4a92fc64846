#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Threads of two clients create, use, modify and destroy everything at random (stress/), a third
# client is killed again and again; each HCA has two engines. Then, from outside: nothing is held,
# nothing has leaked, the counters add up. In a build with ThreadSanitizer the stages lie on two CPUs
# and no race may be reported.
# SOFTHCA_STRESS_SECONDS (20 under a sanitizer, else 10), SOFTHCA_STRESS_SEED (the time).
. "$(dirname "$0")/lib.sh"

seconds=${SOFTHCA_STRESS_SECONDS:-$(sanitized && echo 20 || echo 10)}
seed=${SOFTHCA_STRESS_SEED:-$(date +%s)}
options=()
case ${1:-} in
threads) grep -q __tsan_init "$DAEMON" || skip 'the build has no ThreadSanitizer' ;;
sanitised) grep -q __asan_init "$DAEMON" || skip 'the build has no AddressSanitizer' ;;
esac
if grep -q __tsan_init "$DAEMON"; then
	export TSAN_OPTIONS="halt_on_error=1 exitcode=66 history_size=4"
	cpus=$(($(nproc) < 2 ? 1 : 2)) i=0
	for stage in doorbell_wqe segmentation header_parse requester_recv responder_exec; do
		options+=(--set "left.lcore.$stage=$((i % cpus))")
		options+=(--set "right.lcore.$stage=$(((i + 1) % cpus))")
		i=$((i + 1))
	done
fi
ring_config 'engines = 2' >"$SCRATCH/ring.conf"
daemon ring -c "$SCRATCH/ring.conf" "${options[@]}"
daemon=$started
export SOFTHCA_SOCKET=$SCRATCH/ring.sock SOFTHCA_TOOL=$TOOL

# What the daemon holds, by name: of each HCA, of the process. All of it comes back.
held() {
	{
		"$TOOL" --socket "$SOFTHCA_SOCKET" --json status
		"$TOOL" --socket "$SOFTHCA_SOCKET" --json held
	} | python3 "$(dirname "$0")/stress/held.py" "$daemon"
}

# Held as at first? Work in flight when the last client ended takes a moment.
all_back() {
	held >"$SCRATCH/after" && diff "$SCRATCH/before" "$SCRATCH/after"
}

# stress ARGUMENTS...
stress() {
	timeout -k 5 $((seconds * 2 + 150)) "$(program tests/system/stress)" --seed "$seed" "$@"
}

# What one HCA has sent the other has received: the wire loses nothing but what it says.
counters_add_up() {
	"$TOOL" --socket "$SOFTHCA_SOCKET" --json counters |
		python3 "$(dirname "$0")/stress/sums.py" "$@"
}

# Asks for all about one queue pair after the other until $SCRATCH/watched is there. At least one
# must have reported what it waits for.
watch() {
	local qpn seen=1
	while [ -d "$SCRATCH" ] && [ ! -e "$SCRATCH/watched" ]; do
		qpn=$("$TOOL" --socket "$SOFTHCA_SOCKET" --hca left qp 2>/dev/null |
			awk '$1 ~ /^[0-9]+$/ { q = $1 } END { print q }')
		[ -z "$qpn" ] || "$TOOL" --socket "$SOFTHCA_SOCKET" --hca left qp "$qpn" 2>&1 |
			grep -q waits_for && seen=0
		sleep 0.2
	done
	return $seen
}

no_race() {
	! grep -h -A60 -E 'WARNING: ThreadSanitizer|ERROR: AddressSanitizer|runtime error' "$@"
}

note_held() { held >"$SCRATCH/before"; }
wait_for 20 cm_holds_its_own
note_held
check 'a first run fills the stocks' stress --seconds 2
cp "$SCRATCH/check.log" "$SCRATCH/first.log"
wait_for 60 all_back >/dev/null 2>&1
check 'what is held before' note_held
watch &
watcher=$!
check "$seconds s of everything at random, seed $seed" stress --seconds "$seconds" --kill
cp "$SCRATCH/check.log" "$SCRATCH/stress.log"
sed 's/^/   /' "$SCRATCH/stress.log"
touch "$SCRATCH/watched"
check 'queue pairs tell what they wait for' wait "$watcher"
# A daemon under a sanitizer on a busy machine has many killed clients to clear away by now.
check 'nothing is held any more' wait_for 300 all_back
check 'counters add up' counters_add_up "$SCRATCH/first.log" "$SCRATCH/stress.log"
check 'the daemon ends cleanly' stop "$daemon"
check 'no race, no error reported' no_race "$SCRATCH/ring.log" "$SCRATCH"/{first,stress}.log
again_if_detector_gave_up "$@"
finish
