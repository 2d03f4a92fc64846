#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Others take the CPU from the daemon, again and again, while data flows without losses: nothing is
# sent twice. One lcore has everything, so that the machine's own use of the CPU makes no difference. Then
# programs that poll take its CPU. At last a peer dies: its requests fail, and not too early.
. "$(dirname "$0")/lib.sh"

cpu=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*\([0-9]*\).*/\1/p' /proc/self/status)
ring_config >"$SCRATCH/ring.conf"
daemon ring -c "$SCRATCH/ring.conf" --set "daemon.lcores=$cpu"
victim=$started

# Stops the daemon for 5 to 40 ms at a time, until it is stopped.
steal() {
	local i=0
	trap 'kill -CONT "$victim"; exit' TERM
	while :; do
		kill -STOP "$victim"
		sleep "$(printf "0.%03d" $((5 + i++ * 7 % 36)))"
		kill -CONT "$victim"
		sleep 0.02
	done
}

# What softhca counters says of losses, of both HCAs. Empty: none.
losses() {
	local hca
	for hca in left right; do
		"$TOOL" --socket "$SCRATCH/ring.sock" --hca "$hca" counters |
			grep -wE 'loss_probes|loss_timeouts|retransmitted_packets|drop_tx_stuck|retry_exceeded'
	done
}

steal &
thief=$!
# -u 22: a transport timer of 17 s, which no pause reaches
for test in 'write_bw -s 65536' 'send_bw -b -q 4 -s 5000' 'read_lat'; do
	# shellcheck disable=SC2086
	check "$test" timeout 60 "$PERF" $test --verify -u 22 -D 1 --socket "$SCRATCH/ring.sock" --pair left,right
done
kill "$thief"
wait "$thief"
kill -CONT "$victim"
# Client and lcore poll on one CPU: whichever finds nothing leaves it to the other.
for test in 'send_lat -n 2000' 'write_lat -n 2000' 'read_lat -n 2000'; do
	# shellcheck disable=SC2086
	check "on the lcore's CPU: $test" taskset -c "$cpu" timeout 60 "$PERF" $test --verify -u 22 \
		--socket "$SCRATCH/ring.sock" --pair left,right
done
check 'nothing was sent twice' [ -z "$(losses | tee /dev/stderr)" ]

now_ms() { date +%s%3N; }
# executed: requests that left has executed. executed_since N: more than N.
executed() {
	"$TOOL" --socket "$SCRATCH/ring.sock" --hca left counters | awk '$1 == "executed" { print $2 }'
}
executed_since() { [ "$(executed)" -gt "$1" ]; }

# -u 21: a transport timer of 8590 ms. The peer acknowledges something after $alive, and then dies.
steal &
thief=$!
dead=(write_bw -u 21 --retry 0 -D 100 --socket "$SCRATCH/ring.sock" -p 18599)
start server "$PERF" "${dead[@]}" -d left
peer=$started
start client "$PERF" "${dead[@]}" -d right 127.0.0.1
client=$started
check 'a peer is there' wait_for 30 executed_since "$(executed)"
alive=$(now_ms)
check 'it acknowledges' wait_for 30 executed_since "$(executed)"
kill -KILL "$peer"
check 'it is dead: the client ends' wait_for 60 not_running "$client"
took=$(($(now_ms) - alive))
kill "$thief"
wait "$thief"
kill -CONT "$victim"
check 'its request has failed' grep 'transport retry counter exceeded' "$SCRATCH/client.log"
check "not before its timer of 8590 ms, but after $took ms" [ "$took" -ge 8590 ]
check 'the daemon ends cleanly' stop "$victim"
finish
