#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A daemon changes while it runs: SIGHUP makes it read its configuration again and apply what it can,
# and says what it cannot; a file with an error changes nothing. It happens under traffic, which goes on.
. "$(dirname "$0")/lib.sh"
need_command python3

start manager "$(dirname "$0")/watchdog/manager" "$SCRATCH/notify"
wait_for 10 test -S "$SCRATCH/notify"
export NOTIFY_SOCKET=$SCRATCH/notify
ring_config >"$SCRATCH/ring.conf"
daemon ring -c "$SCRATCH/ring.conf" --set left.quantum_bytes=4096
daemon=$started

says() { wait_for 10 grep -qF -- "$1" "$SCRATCH/ring.log"; }
# reload LINE...: with these lines for both HCAs. Returns when the service manager has been told so.
reload() {
	local before
	before=$(grep -c READY=1 "$SCRATCH/manager.log")
	ring_config "$@" >"$SCRATCH/ring.conf"
	kill -HUP "$daemon"
	wait_for 10 ready_more_than "$before"
}
ready_more_than() { [ "$(grep -c READY=1 "$SCRATCH/manager.log")" -gt "$1" ]; }
# counted NAME: how often, at both HCAs.
counted() {
	"$TOOL" --socket "$SCRATCH/ring.sock" counters --all |
		awk -v name="$1" '$1 == name { n += $2 } END { print n + 0 }'
}
moves() { pair ring write_bw --verify -s 20000 -n 200 "$@"; }

wait_for 10 grep -q READY=1 "$SCRATCH/manager.log"
moves
check 'packets refer to their payload' [ "$(counted payload_refs)" -gt 0 ]
check 'nothing is lost' [ "$(counted impaired_lost)" = 0 ]

start traffic "$PERF" write_bw --verify -D 10 -s 20000 --socket "$SCRATCH/ring.sock" --pair left,right
traffic=$started
check 'SIGHUP does not end it' reload 'loss = 0.02' 'qps = 128' 'ack_interval = 4'
check 'what can be is applied' says 'reload: left.loss: 0 -> 0.02, applied'
check 'on every HCA' says 'reload: right.ack_interval: 16 -> 4, applied'
check 'what cannot is named' says 'reload: right.qps: 16384 -> 128: needs a restart'
check 'the command line goes on to apply' [ "$(grep -c quantum_bytes "$SCRATCH/ring.log")" = 0 ]
check 'the service manager is told first' grep -q RELOADING=1 "$SCRATCH/manager.log"
lost_more_than() { [ "$(counted impaired_lost)" -gt "$1" ]; }
check 'packets are lost from now on' wait_for 10 lost_more_than 0
refs=$(counted payload_refs)

check 'a wrong file does not end it' reload 'loss = 2' 'ack_interval = 8'
check 'the log says where' says "reload: nothing has changed: $SCRATCH/ring.conf:6: loss: 2 is out of range 0..1"
check 'nor does it change anything' [ "$(grep -c 'ack_interval: 4 -> 8' "$SCRATCH/ring.log")" = 0 ]
check 'the service manager hears of it' grep -q 'STATUS=Not reloaded: .*ring.conf:6: loss' "$SCRATCH/manager.log"
rm "$SCRATCH/ring.conf"
kill -HUP "$daemon"
check 'a missing one is no error of its own' says 'ring.conf: No such file'
check 'the traffic goes on, and is right' wait "$traffic"
check 'its packets had their payload with them' [ "$(counted payload_refs)" -le $((refs + 1000)) ]

reload
check 'back to what was' says 'reload: left.loss: 0.02 -> 0, applied'
lost=$(counted impaired_lost)
moves
check 'nothing is lost any more' [ "$(counted impaired_lost)" = "$lost" ]
for _ in $(seq 50); do kill -HUP "$daemon"; done
check 'many are as good as one' says 'reload: 0 differences'
check 'the daemon ends cleanly' stop "$daemon"
finish
