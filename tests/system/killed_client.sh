#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Clients that are killed in the middle of their traffic hurt themselves alone: the daemon lives,
# a client beside them loses nothing, and new ones come.
. "$(dirname "$0")/lib.sh"

ring_config >"$SCRATCH/ring.conf"
daemon ring -c "$SCRATCH/ring.conf"
daemon=$started

victim() {
	start "victim$1" "$PERF" "$2" "${@:3}" --socket "$SCRATCH/ring.sock" --pair left,right
	victim=$started
}

# The one that must not notice: verified traffic for as long as the others die.
start survivor "$PERF" write_bw --verify -s 20000 -D 8 --socket "$SCRATCH/ring.sock" \
	--pair left,right
survivor=$started
n=0
for test in write_bw send_bw read_bw atomic_bw 'send_bw -c UD' 'write_bw -q 32'; do
	n=$((n + 1))
	# shellcheck disable=SC2086
	victim $n $test -b -D 60
	sleep 0.7
	check "$test was running" kill -0 "$victim"
	kill -KILL "$victim"
	wait "$victim" 2>/dev/null
done
check 'the daemon lives' kill -0 "$daemon"
if wait "$survivor"; then
	ok 'the client beside them lost nothing'
else
	fail 'the client beside them lost nothing'
	cat "$SCRATCH/survivor.log"
fi
pair ring send_bw --verify -b -s 5000 -n 200
check 'the daemon ends cleanly' stop "$daemon"
finish
