#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs and daemons are killed at random moments while verbs programs run. Who is left gets the
# errors and events that a driver would give and ends; the daemon holds nothing of the dead; a
# daemon that was started again serves as before.
# SOFTHCA_KILL_ROUNDS (6), SOFTHCA_KILL_SEED (the time).
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/verbs/kill.sh"

survivor=$(program tests/system/survivor) || exit 1
ldd "$survivor" | grep -q 'libibverbs.*not found' && skip 'needs libibverbs'
rounds=${SOFTHCA_KILL_ROUNDS:-6}
mkfifo "$SCRATCH/to_left" "$SCRATCH/to_right"

# two ROLE ROLE: survivors on left and right, joined; their processes in $left and $right.
two() {
	"$TOOL" run -- "$survivor" left "$1" 0<>"$SCRATCH/to_left" >"$SCRATCH/to_right" \
		2>"$SCRATCH/left.log" &
	left=$!
	"$TOOL" run -- "$survivor" right "$2" 0<>"$SCRATCH/to_right" >"$SCRATCH/to_left" \
		2>"$SCRATCH/right.log" &
	right=$!
	pids+=("$left" "$right")
	# Joined once both QPs send.
	amid_traffic "round $round" left right left right
}

# ends NAME PID: it terminates in time, and saw what it expects.
ends() {
	ends_itself "$2" && wait "$2" && return
	cat "$SCRATCH/$1.log"
	return 1
}

up
wait_for 20 cm_holds_its_own
held >"$SCRATCH/before"
for ((round = 1; round <= rounds; round++)); do
	two program program
	if ((RANDOM % 2)); then
		kill -KILL "$left"
		check "round $round: left is killed, right gets errors and ends" ends right "$right"
	else
		kill -KILL "$right"
		check "round $round: right is killed, left gets errors and ends" ends left "$left"
	fi
	check "round $round: nothing of them is held" wait_for 20 all_back

	two daemon daemon
	kill -KILL "$daemon"
	check "round $round: the daemon is killed, left is told and ends" ends left "$left"
	check "round $round: and right" ends right "$right"
	up
done
finish
