#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# An HCA leaves a running daemon under traffic, as an adapter that is pulled out. Its programs get the
# events that a kernel would give, and errors; the programs of the others notice nothing; the daemon
# shows it no more. `softhca remove`, as several users; and a file without it that SIGHUP makes it read.
. "$(dirname "$0")/lib.sh"
survivor=$(program tests/system/survivor) || exit 1
steps=$(program tests/system/cm_steps) || skip 'needs librdmacm'
need_command ibv_devices
need_command rping

other_config() { printf '[hca other]\nport = ring\npeer = other\naddress = 192.168.78.1/24\n'; }
{ ring_config 'debug = on'; other_config; } >"$SCRATCH/ring.conf"
daemon ring -c "$SCRATCH/ring.conf"
daemon=$started
export SOFTHCA_SOCKET=$SCRATCH/ring.sock
mkfifo "$SCRATCH/to_left" "$SCRATCH/to_right"

says() { wait_for 10 grep -qF -- "$1" "$SCRATCH/ring.log"; }
tool() { "$TOOL" --socket "$SCRATCH/ring.sock" "$@" >"$SCRATCH/tool.log" 2>&1; }
run() { "$TOOL" --socket "$SCRATCH/ring.sock" run -- "$@"; }
refused() { ! "$@" && grep -q "$why" "$SCRATCH/tool.log"; }
log_has() { grep -q "$2" "$SCRATCH/$1.log"; }
# ended PROCESS: by itself, as it should.
ended() { wait_for 20 not_running "$1" && wait "$1"; }
# senders NAME: queue pairs of that HCA that have sent something.
senders() {
	"$TOOL" --socket "$SCRATCH/ring.sock" --json qp --hca "$1" |
		grep -o '"service":"RC","state":"RTS"[^}]*"sent":[1-9]' | wc -l
}

# Two programs of verbs, and two of librdmacm, across what will be cut; a third listens everywhere.
run "$survivor" left cable 0<>"$SCRATCH/to_left" >"$SCRATCH/to_right" 2>"$SCRATCH/left.log" &
left=$!
run "$survivor" right daemon 0<>"$SCRATCH/to_right" >"$SCRATCH/to_left" 2>"$SCRATCH/right.log" &
right=$!
pids+=("$left" "$right")
start server "$TOOL" --socket "$SCRATCH/ring.sock" run -- "$steps" server 192.168.77.2 7174 traffic
server=$started
start anywhere "$TOOL" --socket "$SCRATCH/ring.sock" run -- "$steps" server 0.0.0.0 7175 none
anywhere=$started
wait_for 20 log_has server 'at listening'
wait_for 20 log_has anywhere 'at listening'
start client "$TOOL" --socket "$SCRATCH/ring.sock" run -- "$steps" client 192.168.77.2 7174 traffic
client=$started
start host "$TOOL" --socket "$SCRATCH/ring.sock" run -- rping -s -a 192.168.77.2 -p 7176
listens() { tool cm && grep -q 'LISTEN.*:7176' "$SCRATCH/tool.log"; }
wait_for 20 listens
start guest "$TOOL" --socket "$SCRATCH/ring.sock" run -- rping -c -a 192.168.77.2 -I 192.168.77.1 -p 7176
start stays "$PERF" write_bw --verify -D 30 -s 20000 --socket "$SCRATCH/ring.sock" --pair other,other
stays=$started
start copies "$PERF" write_bw -D 60 -s 20000 --socket "$SCRATCH/ring.sock" --pair left,right
copies=$started
start capture "$TOOL" --socket "$SCRATCH/ring.sock" capture right -w "$SCRATCH/right.pcapng" -s 64
capture=$started
sends() { [ "$(senders right)" -ge 4 ] && [ "$(senders left)" -ge 3 ] && [ "$(senders other)" -ge 1 ]; }
check 'all have something to lose' wait_for 25 sends
check 'the HCA is captured' wait_for 20 test -s "$SCRATCH/right.pcapng"

# What its peer has received and not looked at yet refers to memory that goes with it. Time stands for both.
check 'its peer stands' tool pause left.ee --keep
sleep 0.2
check 'the HCA is removed' tool remove right
check 'which is told' grep -qx 'right: removed' "$SCRATCH/tool.log"
"$TOOL" --socket "$SCRATCH/ring.sock" resume >/dev/null
check 'and logged with the user' says ": user $(id -u): "
check 'its program gets DEVICE_FATAL and errors, and ends' eval 'ended "$right" || { cat "$SCRATCH/right.log"; false; }'
check 'that of its peer that the link is down, and errors' eval 'ended "$left" || { cat "$SCRATCH/left.log"; false; }'
check 'a program of librdmacm ends' ended "$server"
check 'as it is told' [ "$(grep -c 'event DEVICE_REMOVAL 0' "$SCRATCH/server.log")" = 2 ]
check 'its client, too' ended "$client"
check 'which had chosen the same HCA' log_has client 'event DEVICE_REMOVAL 0'
check 'connections to another one end in order' wait_for 10 log_has guest 'DISCONNECT EVENT'
check 'whoever uses both of them' eval '! wait "$copies"'
check 'whoever captures it' wait_for 10 not_running "$capture"
check 'whoever uses another one notices nothing, and has right data' wait "$stays"

check 'it is not shown' eval 'tool status && ! grep -q right: "$SCRATCH/tool.log"'
for view in qp fifos counters held limits cm topology clients set all metrics; do
	check "nor by $view" eval "tool $view && ! grep -E '\\<right([ ,.:/\"]|$)' \$SCRATCH/tool.log | grep -vE 'peer|access right'"
done
check 'nor to programs' eval 'run ibv_devices >"$SCRATCH/tool.log" && ! grep -q right "$SCRATCH/tool.log" && grep -q other "$SCRATCH/tool.log"'
check 'nor in sysfs' eval '! run ls /sys/class/infiniband | grep -q right'
why="there is no HCA 'right'" check 'nor can it be changed' refused tool set right.loss 0.1
why="there is no HCA 'right'" check 'nor removed again' refused tool remove right
why='remove which' check 'nor nothing' refused tool remove
check 'the link of its peer is down' eval 'tool status && grep -q "left.* down " "$SCRATCH/tool.log"'
start late "$TOOL" --socket "$SCRATCH/ring.sock" run -- "$steps" client 192.168.78.1 7175 last
check 'whoever listens everywhere still serves the others' ended "$started"
check 'and ends' ended "$anywhere"

if [ "$(id -u)" -eq 0 ]; then
	chmod 755 "$SCRATCH"
	cp "$TOOL" "$SCRATCH/softhca"
	as_nobody() { setpriv --reuid 65533 --regid 65533 --clear-groups "$SCRATCH/softhca" --socket "$SCRATCH/ring.sock" "$@" >"$SCRATCH/tool.log" 2>&1; }
	why=EPERM check 'not every user may' refused as_nobody remove left
	check 'the attempt is logged' says 'user 65533 may not remove HCAs'
fi

# Its packets are those of all HCAs. Its lcores sleep long: whatever waits for them has to wake them.
{ ring_config 'debug = on'; other_config; } >"$SCRATCH/full.conf"
daemon full -c "$SCRATCH/full.conf" --set daemon.idle_sleep_us=100000
full=$started
full() { "$TOOL" --socket "$SCRATCH/full.sock" "$@"; }
# Free elements of the pools, with those that the last HCA keeps in stock.
buffers() {
	{ full --json status && full --json held --hca other; } |
		grep -oE '"(free|stock)":[0-9]+' | awk -F: '{ sum += $2 } END { print sum }'
}
SOFTHCA_SOCKET=$SCRATCH/full.sock wait_for 20 cm_holds_its_own
all_buffers=$(buffers)
have_come_back() { [ "$(buffers)" -ge "$all_buffers" ]; }
are_used() { [ "$(buffers)" -lt $((all_buffers - 200)) ]; }
start sends "$PERF" write_bw -D 60 -s 65536 --socket "$SCRATCH/full.sock" --pair left,right
check 'packets are kept until they are acknowledged' wait_for 30 are_used
full pause ee --keep >/dev/null
full remove right >/dev/null
full remove left >/dev/null
full resume >/dev/null
check 'no packet goes with an HCA' eval 'wait_for 30 have_come_back || { echo "$(buffers) of $all_buffers"; false; }'
check 'its daemon ends cleanly' stop "$full"

kill -HUP "$daemon"
check 'a file that still has it brings it back' says 'hca right: added'
check 'with its link' eval 'tool status && grep -q "left.* up " "$SCRATCH/tool.log"'
{
	echo '[daemon]'
	other_config
} >"$SCRATCH/ring.conf"
kill -HUP "$daemon"
check 'HCAs that the file no longer has are removed' says 'reload: hca left was removed, applied'
check 'at once' says 'hca left: removed'
right_twice() { [ "$(grep -c 'hca right: removed' "$SCRATCH/ring.log")" = 2 ]; }
check 'each of them' wait_for 10 right_twice
why='other is the last HCA' check 'one has to stay' refused tool remove other
check 'it serves' "$PERF" write_bw --verify -n 200 -s 20000 --socket "$SCRATCH/ring.sock" --pair other,other
check 'the daemon ends cleanly' stop "$daemon"
finish
