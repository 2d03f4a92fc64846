#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A hostile client (hostile/) attacks the daemon with everything that it can say and everything that
# it shares. Beside it two others run verified traffic and must not be disturbed: each operation
# completes, all data are right. Then: the daemon lives, holds nothing, and has counted each kind of
# refusal under its name.
# With the argument memif, on HCAs whose driver reads payload in clients' memory.
# SOFTHCA_HOSTILE_SECONDS (20 under a sanitizer, else 10), SOFTHCA_HOSTILE_SEED (the time).
. "$(dirname "$0")/lib.sh"

seconds=${SOFTHCA_HOSTILE_SECONDS:-$(sanitized && echo 20 || echo 10)}
seed=${SOFTHCA_HOSTILE_SEED:-$(date +%s)}
[ "${1:-}" != sanitised ] || grep -q __asan_init "$DAEMON" || skip 'the build has no AddressSanitizer'
if [ "${1:-}" = memif ]; then memif_pair_config; else ring_config 'engines = 2'; fi >"$SCRATCH/ring.conf"
daemon ring -c "$SCRATCH/ring.conf"
daemon=$started
export SOFTHCA_SOCKET=$SCRATCH/ring.sock

# What must have been refused, each for its own reason.
expected=(drop_doorbell_qpn drop_doorbell_state drop_doorbell_size bad_wqe bad_wqe_opcode
	bad_wqe_length bad_wqe_access bad_wqe_address bad_recv_wqe srq_errors cq_overruns
	eq_overruns v2p_key_error v2p_pd_error v2p_flags_error v2p_length_error control_malformed
	control_refused commands_refused clients_gone nak_access_sent nak_invalid_sent)

ask() { timeout 10 "$TOOL" --socket "$SOFTHCA_SOCKET" --json "$@"; }

held() {
	{
		ask status
		ask held
	} | python3 "$(dirname "$0")/stress/held.py" "$daemon"
}

all_back() {
	held >"$SCRATCH/after" && diff "$SCRATCH/before" "$SCRATCH/after"
}

# Counters that are not 0: name and sum over both HCAs.
counters() {
	ask counters | python3 -c '
import json, sys
sums = {}
for line in sys.stdin:
    answer = json.loads(line)
    answer = answer.get("/softhca/counters", answer)
    for name, value in answer["counters"].items():
        sums[name] = sums.get(name, 0) + value
print("\n".join(f"{n} {v}" for n, v in sorted(sums.items()) if v))'
}

# Numbers of the queue pairs that live now.
numbers() { ask qp | grep -oE '"qpn": *[0-9]+' | grep -oE '[0-9]+$' | head -n 16; }

perf() { timeout -k 5 $((seconds * 3 + 120)) "$PERF" "$@" --qp-timeout 18 --pair left,right; }

# Soak after soak: random operations, each once and right.
soaks() {
	local until=$((SECONDS + seconds + 2))
	while [ $SECONDS -lt $until ]; do
		perf --soak 2000 || return 1
	done
}

note_held() { held >"$SCRATCH/before"; }
wait_for 20 cm_holds_its_own
note_held
check 'a first run fills the stocks' perf --soak 500
wait_for 60 all_back >/dev/null 2>&1
check 'what is held before' note_held
start victim1 perf write_bw --verify -s 20000 -D $((seconds + 2))
victim1=$started
start victim2 perf send_bw --verify -s 3000 -D $((seconds + 2))
victim2=$started
start victim3 soaks
victim3=$started
sleep 1
mapfile -t qpns < <(numbers)
check "$seconds s of attacks, seed $seed, on ${#qpns[@]} queue pairs of others, too" \
	timeout -k 5 $((seconds + 120)) "$(program tests/system/hostile)" --seconds "$seconds" \
	--seed "$seed" "${qpns[@]}"
sed 's/^/   /' "$SCRATCH/check.log"
check 'the daemon lives' kill -0 "$daemon"
for name in victim1 victim2 victim3; do
	if wait "${!name}"; then
		ok "$name was not disturbed: $(tail -n 1 "$SCRATCH/$name.log")"
	else
		fail "$name was disturbed"
		tail -n 20 "$SCRATCH/$name.log"
	fi
done
check 'nothing is held any more' wait_for 300 all_back
counters >"$SCRATCH/counters"
for name in "${expected[@]}"; do
	check "counted: $(grep "^$name " "$SCRATCH/counters" || echo "$name 0")" \
		grep -q "^$name " "$SCRATCH/counters"
done
check 'the daemon ends cleanly' stop "$daemon"
# shellcheck disable=SC2251
check 'no error reported' no_lines <(grep -A60 -E 'ERROR: AddressSanitizer|runtime error' "$SCRATCH/ring.log")
finish
