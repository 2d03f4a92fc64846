#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `softhca trace` at a running daemon: a message through every module of both ends.
. "$(dirname "$0")/lib.sh"
need_command python3

ring_config >"$SCRATCH/ring.conf"
daemon ring -c "$SCRATCH/ring.conf"
daemon=$started
chmod 711 "$SCRATCH"
export SOFTHCA_SOCKET=$SCRATCH/ring.sock

qpn() { "$TOOL" --hca left qp | awk '$2 == "RC" && $3 == "RTS" && $6 { print $1 }'; }
has_one() { [ "$(qpn | wc -l)" = 1 ]; }
has_none() { [ -z "$(qpn)" ]; }
# traffic ARGUMENTS...: in the background, in $traffic, of queue pair $qpn.
traffic() {
	start traffic timeout 300 "$PERF" "$@" --pair left,right
	traffic=$started
	wait_for 20 has_one
	qpn=$(qpn)
}
ends() {
	kill "$traffic"
	wait_for 20 not_running "$traffic"
	wait_for 20 has_none
}

# One message at a time, forth and back: between two doorbells there is the life of each.
traffic write_lat -s 64 -n 100000000
check 'a message is followed' eval '"$TOOL" trace "$qpn" -c 1 -i 60 >"$SCRATCH/lines"'
modules() { grep "(left QP $qpn)" "$1" | awk '{ print $4 }' | tr '\n' ' '; }
forth() { modules "$SCRATCH/lines" | grep -q '^dbp ws wp dp rtc rpg txa .*hp rrc'; }
back() { grep '(right QP' "$SCRATCH/lines" | awk '{ print $4 }' | tr '\n' ' ' | grep -q 'hp .*ee respg .*txa'; }
check 'it passes the requester' forth
check 'and the responder' back
check 'its packet is the same everywhere' test "$(awk '$4 == "rpg" || $4 == "hp" && $5 == "hp_ee"' "$SCRATCH/lines" |
	grep -o 'PSN [0-9]*' | sort | uniq -c | awk '$1 == 2' | wc -l)" -ge 1
check 'times rise' sort -c -s -n -k1,1 <(tail -n +2 "$SCRATCH/lines")
check 'a file for Perfetto' "$TOOL" trace "$qpn" -c 10 -i 60 -w "$SCRATCH/trace.json"
right_file() {
	python3 - "$1" <<-'END'
		import json, sys
		events = json.load(open(sys.argv[1]))['traceEvents']
		steps = [e for e in events if e['ph'] == 'X']
		names = {(e['pid'], e['tid']): e['args']['name'] for e in events if e['name'] == 'thread_name'}
		processes = [e['args']['name'] for e in events if e['name'] == 'process_name']
		assert len(processes) == 2 and processes[0].startswith('left QP'), processes
		assert {names[e['pid'], e['tid']] for e in steps} >= {'dbp', 'rtc', 'txa', 'hp', 'ee', 'respg', 'rrc'}
		assert sum(names[e['pid'], e['tid']] == 'dbp' and e['pid'] == 0 for e in steps) == 10
		assert all(e['dur'] >= 0 and e['ts'] >= 0 for e in steps)
	END
}
check 'it is right' right_file "$SCRATCH/trace.json"
# One message: its WQE, its packet, that one's answer, at both ends and in order; a later one lies behind it.
message() { "$TOOL" trace "$qpn" --wqe "$1" -i 60 >"$SCRATCH/message$1" 2>"$SCRATCH/message$1.log"; }
check 'one message is followed' eval 'message 1 && message 3 && grep -q "doorbell to completion" "$SCRATCH/message3.log"'
life() { awk 'NR > 1 { print ($(NF - 2) == "(left" ? "" : "peer:") $4 }' "$SCRATCH/message$1" | tr '\n' ' '; }
whole() { life "$1" | grep -qE '^dbp ws wp dp rtc rpg txa peer:hp peer:ee peer:respg peer:txa hp rrc $'; }
check 'from the doorbell to the completion' eval 'whole 1 && whole 3'
check 'it is one' eval '[ "$(grep -o "PSN [0-9]*" "$SCRATCH/message3" | sort -u | wc -l)" = 1 ] &&
	[ "$(grep -o "WQE at [0-9]*" "$SCRATCH/message3" | sort -u | wc -l)" = 1 ]'
check 'for Perfetto, too' eval '"$TOOL" trace "$qpn" --wqe 2 -i 60 -w "$SCRATCH/one.json" &&
	[ "$(grep -o "\"ph\":\"X\"" "$SCRATCH/one.json" | wc -l)" = 13 ]'
check 'the traffic goes on' kill -0 "$traffic"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	cp "$TOOL" "$SCRATCH/softhca" && chmod 755 "$SCRATCH/softhca"
	check 'another user may not' refuses 'only root' setpriv --reuid 65534 --regid 65534 \
		--clear-groups "$SCRATCH/softhca" trace "$qpn"
else
	echo 'not run: another user (needs root, setpriv)'
fi
# The queue pair goes while it is followed.
start held "$TOOL" trace "$qpn" -i 100
held=$started
ends
kill "$held" 2>/dev/null
wait_for 10 not_running "$held"

# More than there is room for.
traffic write_bw -s 6000 -D 100
check 'a message of several packets' message 1
check 'both arrive' test "$(grep -c ' hp *hp_ee .*(right QP' "$SCRATCH/message1")" = 2
check 'one that comes too late' refuses 'not recorded' "$TOOL" trace "$qpn" --wqe 100000 -i 20
two() {
	"$TOOL" trace --qp "$qpn" -c 2 -i 20 >"$SCRATCH/two" 2>"$SCRATCH/two.log" &&
		grep -q ' of 2 messages$' "$SCRATCH/two.log" && grep -q ' rrc  *hp_rrc ' "$SCRATCH/two" &&
		[ "$(grep -o 'WQE at [0-9]*' "$SCRATCH/two" | sort -u | wc -l)" = 2 ]
}
check 'of many in flight two are followed to their completion' eval 'two || two || two'
check 'a full trace says so' eval '"$TOOL" trace "$qpn" -i 20 2>&1 >/dev/null | grep -q "was not recorded"'
ends
pair ring write_bw --verify -s 65537 -n 24
check 'the daemon ends cleanly' stop "$daemon"
finish
