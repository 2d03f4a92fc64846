# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For the tests that kill programs and daemons to source, after lib.sh: a daemon that may die and is
# started again, programs in the middle of their traffic, and the resources held for the dead.
# SOFTHCA_KILL_SEED (the time).

RANDOM=${SOFTHCA_KILL_SEED:-$(date +%s)}
ring_config >"$SCRATCH/ring.conf"
export SOFTHCA_SOCKET=$SCRATCH/ring.sock

# Starts the daemon, or another one after it. Leaves its process in $daemon.
up() {
	rm -f "$SOFTHCA_SOCKET"
	daemon ring -c "$SCRATCH/ring.conf"
	daemon=$started
	wait_for 10 answers
}

answers() { "$TOOL" status && "$TOOL" cm; } >/dev/null 2>&1

# All but the stock of packet elements, which is kept.
held() { "$TOOL" --json held | sed 's/,"stock":[0-9]*//'; }

# As much is held as the test noted with `held >"$SCRATCH/before"`.
all_back() {
	held >"$SCRATCH/after"
	diff "$SCRATCH/before" "$SCRATCH/after"
}

# sending HCA: one of its queue pairs does. Not QP 1, which is the connection manager's and always is
# in RTS.
sending() { "$TOOL" --hca "$1" qp 2>/dev/null | grep -w RTS | grep -qv '^ *1 '; }

# amid_traffic NAME LOG LOG HCA...: returns at a random moment after a queue pair of each HCA has
# begun to send. If one does not: shows the logs of the two programs and ends the test.
amid_traffic() {
	local name=$1 logs=("$SCRATCH/$2.log" "$SCRATCH/$3.log") hca
	for hca in "${@:4}"; do
		wait_for 30 sending "$hca" && continue
		sed 's/^/   /' "${logs[@]}"
		fail "$name: two programs talk"
		finish
	done
	sleep 0.$((RANDOM % 9))
}

# ends_itself PID: in time.
ends_itself() {
	wait_for 60 not_running "$1" && return
	kill -KILL "$1"
	echo 'it hangs'
	return 1
}
