#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `softhca pause`, `step` and `resume` at a running daemon: every module stands in the way of traffic
# once, and nothing is lost.
. "$(dirname "$0")/lib.sh"

ring_config 'debug = on' >"$SCRATCH/ring.conf"
daemon ring -c "$SCRATCH/ring.conf" --set daemon.admin_group=games
daemon=$started
chmod 711 "$SCRATCH"
export SOFTHCA_SOCKET=$SCRATCH/ring.sock

says() { "${@:2}" 2>&1 | grep -qE "$1"; }
# fill HCA FIFO: elements in it.
fill() { "$TOOL" --json --hca "$1" fifos | grep -o "\"$2\":{\"depth\":[0-9]*,\"used\":[0-9]*" | sed 's/.*://'; }
filled() { [ "$(fill "$1" "$2")" -ge "$3" ]; }
counter() { "$TOOL" --json --hca "$1" counters | grep -o "\"$2\":[0-9]*" | head -1 | cut -d: -f2; }

# traffic: in the background, in $traffic; it must end well.
traffic() {
	start traffic timeout 120 "$PERF" write_bw --verify -s 20000 -n 64 --pair left,right
	traffic=$started
}
# endless PAIR: the same, until it ends().
endless() {
	start traffic "$PERF" write_bw -s 64 -D 100 --pair "$1"
	traffic=$started
}
ends() { kill "$traffic" && wait_for 10 not_running "$traffic"; }
over() { wait_for 60 not_running "$traffic" && wait "$traffic"; }

# Each module, and a stage at both ends, for longer than timers wait. While none stands timers go on: a machine that stood
# still then makes them expire, and the module gets another chance.
sent_twice() { counter left retransmitted_packets; }
for what in left.dbp left.ws left.wp left.dp left.rtc left.rpg left.txa right.hp right.ee right.respg \
	left.hp left.rrc left.tc segmentation; do
	for _ in 1 2 3; do
		before=$(sent_twice)
		check "$what is paused" says "${what#*.}|[a-z]+ paused" "$TOOL" pause "$what" --keep
		traffic
		sleep 0.4
		[ "$what" = left.tc ] || check "$what holds all up" kill -0 "$traffic"
		check "$what steps" says 'took|put|served|nothing' "$TOOL" step "$what" 3
		check "$what is resumed" says 'resumed' "$TOOL" resume
		check "$what lost nothing" over
		[ "$(sent_twice)" != "$before" ] || break
	done
	check "$what: no packet was sent twice" test "$(sent_twice)" = "$before"
done
# Times are those of the modules, which have stood for seconds.
endless left,right
progress() {
	local qpn
	qpn=$("$TOOL" --hca left qp | awk '$2 == "RC" && $3 == "RTS" && $6 { print $1 }')
	"$TOOL" --json --hca left qp "$qpn" | grep -qE '"progress_ms_ago":[0-9]{1,3}[,}]'
}
check 'a queue pair is seen to go on' wait_for 10 progress
ends

# One element at a time, of as many as there are when the module before it stands, too.
"$TOOL" pause right.ee --keep >/dev/null
traffic
check 'the fifo before it fills' wait_for 20 filled right hp_ee 5
"$TOOL" pause right.hp --keep >/dev/null
used=$(fill right hp_ee)
check 'fifos shows it' says 'ee is paused' "$TOOL" --hca right fifos
check 'a step takes one' says 'right ee: took 1 from hp_ee \(QP [0-9]+, RC RDMA WRITE' "$TOOL" step ee
check 'of all' test "$(fill right hp_ee)" = $((used - 1))
check 'steps take so many' says 'took 3 from hp_ee' "$TOOL" step right.ee 3
check 'of the rest' test "$(fill right hp_ee)" = $((used - 4))

"$TOOL" resume >/dev/null
check 'the rest goes on' over

# Queue pairs are reset, and killed programs leave, whatever stands, and whatever waits for it.
RESET=$(program tests/system/reset) || exit 1
stuck() {
	start reset "$RESET" "$SOFTHCA_SOCKET" left right "$@"
	reset=$started
	wait_for 20 grep -q stuck "$SCRATCH/reset.log"
}
gone() { ! "$TOOL" --json held | grep -q '"leaving":[1-9]' && [ "$("$TOOL" --json clients | grep -o '"qps":[0-9]*' | grep -vc ':[01]$')" = 0 ]; }
for what in dbp respg txa rpg ee rtc hp; do
	"$TOOL" pause $what --keep >/dev/null
	stuck
	check "queue pairs are reset with $what paused" wait_for 30 grep -q 'reset in' "$SCRATCH/reset.log"
	"$TOOL" resume >/dev/null
	check 'they work again' wait "$reset"
	"$TOOL" pause $what --keep >/dev/null
	stuck stay
	kill -KILL "$reset"
	check "a program that is killed with $what paused leaves" wait_for 30 gone
	"$TOOL" resume >/dev/null
done
traffic
check 'others go on' over

# As long as the command, which is not taken for one that has nothing to say.
start held "$TOOL" pause rtc
held=$started
wait_for 10 grep -q Ctrl-C "$SCRATCH/held.log"
silence() { "$TOOL" set daemon.hello_timeout_s "$1" >/dev/null; }
check 'who says nothing has a second' silence 1
sleep 1.5
check 'the command still runs' kill -0 "$held"
check 'the others have their time again' wait_for 20 silence 30
traffic
sleep 0.4
check 'it stands once' refuses already "$TOOL" pause rtc
check 'it holds all up' kill -0 "$traffic"
kill -KILL "$held"
check 'until it ends, however' over
start held "$TOOL" pause rtc
held=$started
wait_for 10 grep -q Ctrl-C "$SCRATCH/held.log"
"$TOOL" resume rtc >/dev/null
check 'or somebody resumes it' wait_for 10 not_running "$held"
check 'which it says' grep -q 'somebody else' "$SCRATCH/held.log"
start held "$TOOL" pause left.ee
held=$started
wait_for 10 grep -q Ctrl-C "$SCRATCH/held.log"
"$TOOL" pause left.ee --keep >/dev/null
check 'or keeps it' wait_for 10 not_running "$held"
check 'as it is' says 'ee is paused' "$TOOL" --hca left fifos
start held "$TOOL" pause right.rtc
held=$started
wait_for 10 grep -q Ctrl-C "$SCRATCH/held.log"
kill -INT "$held"
check 'a signal ends it' wait_for 10 grep -q '^softhca: resumed' "$SCRATCH/held.log"

# While left stands, so does the time of right, as long as its debug is on.
"$TOOL" set right.debug off >/dev/null
"$TOOL" set right.debug on >/dev/null
endless right,left
timeouts() { [ "$(counter right loss_timeouts)" -gt "$1" ]; }
sleep 0.5
check 'no timer expires' test "$(counter right loss_timeouts)" = 0
"$TOOL" set right.debug off >/dev/null
check 'where debug goes off they do' wait_for 10 timeouts 0
"$TOOL" set left.debug off >/dev/null
not_paused() { ! says 'is paused' "$TOOL" fifos; }
check 'and what stands runs again' not_paused
ends
start held "$TOOL" --socket "$SCRATCH/nowhere.sock" pause ee
check 'no daemon is none' wait_for 10 grep -q 'no daemon answers at' "$SCRATCH/held.log"

"$TOOL" set debug off >/dev/null
check 'where debug is off nothing stands' refuses 'debug of every HCA is off' "$TOOL" pause ee
"$TOOL" set left.debug on >/dev/null
check 'where it is on, it does' says '^left: ee paused$' "$TOOL" pause ee --keep
"$TOOL" resume >/dev/null
check 'not what is called' refuses 'stands with it' "$TOOL" pause sem
check 'nor what there is not' refuses "did you mean 'rtc'" "$TOOL" pause left.rtcc
check 'nor elsewhere' refuses 'no HCA nowhere' "$TOOL" pause nowhere.ee
check 'nor so often' refuses 'no number of steps' "$TOOL" step ee 1001
check 'what runs is not stepped' refuses 'not paused' "$TOOL" step ee

if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	cp "$TOOL" "$SCRATCH/softhca" && chmod 755 "$SCRATCH/softhca"
	user() { timeout 20 setpriv --reuid 65534 --regid 65534 "$@"; }
	check 'another user may not' refuses 'only root' user --clear-groups "$SCRATCH/softhca" pause ee
	check 'one of the admin_group may' says 'paused' user --groups games "$SCRATCH/softhca" pause left.ee --keep
else
	echo 'not run: another user (needs root, setpriv)'
fi

"$TOOL" pause left.ee --keep >/dev/null 2>&1
traffic
start held "$TOOL" pause left.rtc
held=$started
wait_for 10 grep -q Ctrl-C "$SCRATCH/held.log"
check 'the daemon ends cleanly, paused or not' stop "$daemon"
check 'which is not taken for a resume' wait_for 10 grep -q 'the daemon has gone' "$SCRATCH/held.log"
finish
