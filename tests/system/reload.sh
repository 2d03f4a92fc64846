#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A daemon changes while it runs: SIGHUP makes it read its configuration again and apply what it can,
# and says what it cannot; a file with an error changes nothing. It happens under traffic, which goes on.
# `softhca set` changes one setting, if it may; whoever may connect may look.
. "$(dirname "$0")/lib.sh"
need_command python3
need_command ibv_asyncwatch
need_command rping

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
mkfifo "$SCRATCH/ring.conf"
kill -HUP "$daemon"
check 'nor a pipe, for which it would wait' says 'ring.conf: not a regular file'
rm "$SCRATCH/ring.conf"
# The same by request, which is answered.
asks_reload() { "$TOOL" --socket "$SCRATCH/ring.sock" reload >"$SCRATCH/set.log" 2>"$SCRATCH/set.err"; }
asked_reload() { ring_config "$@" >"$SCRATCH/ring.conf" && asks_reload; }
complains() { ! "${@:2}" && grep -q "$1" "$SCRATCH/set.err" && no_lines "$SCRATCH/set.log"; }
check 'whoever asks for it is told why not' complains 'nothing has changed: .*ring.conf: No such file' asks_reload
check 'and where a file is wrong' complains 'nothing has changed: .*ring.conf:6: loss: 2 is out of range' asked_reload 'loss = 2' 'ack_interval = 8'
check 'what has changed' asked_reload 'loss = 0.01' 'qps = 64'
check 'is counted, and what needs a restart named' grep -qx '6 differences; these need a restart: left.qps, right.qps' "$SCRATCH/set.log"
check 'and logged with the user' says ": user $(id -u): reload: left.loss: 0.02 -> 0.01, applied"
check 'the traffic goes on, and is right' wait "$traffic"
check 'its packets had their payload with them' [ "$(counted payload_refs)" -le $((refs + 1000)) ]

reload
check 'back to what was' says 'reload: left.loss: 0.01 -> 0, applied'
lost=$(counted impaired_lost)
moves
check 'nothing is lost any more' [ "$(counted impaired_lost)" = "$lost" ]
for _ in $(seq 50); do kill -HUP "$daemon"; done
check 'many are as good as one' says 'reload: 0 differences'

runner=()
set_() { "${runner[@]}" "$TOOL" --socket "$SCRATCH/ring.sock" set "$@" >"$SCRATCH/set.log" 2>&1; }
# as USER GROUP GROUPS ARGUMENTS...: set_ with these IDs; GROUPS: --clear-groups, or --groups=LIST.
as() {
	local runner=(setpriv --reuid "$1" --regid "$2" "$3")
	set_ "${@:4}"
}
refused() { ! "$@" && grep -q "$why" "$SCRATCH/set.log"; }
check 'one setting of one HCA' set_ left.loss 0.02
check 'is told' grep -qx 'left.loss: 0 -> 0.02' "$SCRATCH/set.log"
check 'and logged with its user' says ": user $(id -u): "
lost=$(counted impaired_lost)
moves
check 'it applies' lost_more_than "$lost"
check 'the same of both' set_ loss 0
check 'where it differs' grep -qx 'right.loss: as before' "$SCRATCH/set.log"
why='left.qps: needs a restart' check 'not what needs a restart' refused set_ left.qps 128
why='out of range' check 'nor what the file may not have' refused set_ left.loss 2
check 'log level of a module' set_ daemon.log_level error,control=debug
set_
check 'which logs programs' says ', connected'
check 'log level' set_ daemon.log_level error
check 'poll' set_ daemon.poll busy
moves
check 'what changed is listed' set_
check 'with its value' grep -q 'daemon.poll  *busy' "$SCRATCH/set.log"
check 'the file counts again' set_ daemon.log_level notice
reload
check 'after a reload' says 'reload: daemon.poll: busy -> adaptive, applied'

# Other addresses, while programs use the HCA: connections at one that stays go on, those at one that is
# gone end as if the peer were gone.
drop_in() { "$TOOL" --socket "$SCRATCH/ring.sock" run "$@"; }
start watch drop_in stdbuf -oL ibv_asyncwatch -d left
wait_for 10 grep -q 'async event FD' "$SCRATCH/watch.log"
# One of the connection manager, at the address that stays.
cm_() { "$TOOL" --socket "$SCRATCH/ring.sock" --json cm; }
start host "$TOOL" --socket "$SCRATCH/ring.sock" run rping -s -a fd77::1 -p 7175
host=$started
listens() { cm_ | grep -q 'LISTEN.*\[fd77::1\]:7175'; }
wait_for 10 listens
start guest "$TOOL" --socket "$SCRATCH/ring.sock" run rping -c -a fd77::1 -p 7175
guest=$started
start goes "$PERF" write_bw -D 60 -s 20000 --socket "$SCRATCH/ring.sock" --pair left,right
goes=$started
# they_send N: so many queue pairs of left: both of rping, one of each of the others.
they_send() {
	[ "$("$TOOL" --socket "$SCRATCH/ring.sock" --json qp --hca left |
		grep -o '"service":"RC","state":"RTS"[^}]*"sent":[1-9]' | wc -l)" = "$1" ]
}
wait_for 30 they_send 3
# The last to begin, as it ends by itself: it still sends when the address changes.
start stays "$PERF" write_bw --verify -D 12 -s 20000 -x 2 --socket "$SCRATCH/ring.sock" --pair left,right
stays=$started
check 'all have something to lose' wait_for 20 they_send 4
check 'other addresses' set_ left.address '192.168.77.3/24, fd77::1/64'
check 'the neighbours are told of the new one' [ "$(counted announced)" = 1 ]
check 'programs are told' wait_for 10 grep -q 'GID_CHANGE (18), port 1' "$SCRATCH/watch.log"
check 'the connection at the old one ends' eval "! wait $goes"
check 'as if the peer were gone' grep -q 'retry counter exceeded' "$SCRATCH/goes.log"
check 'the connection at the one that stays goes on, and is right' wait "$stays"
moves
check 'the GIDs are others' eval "drop_in ibv_devinfo -v -d left | grep -q 'GID.*1.*::ffff:192.168.77.3, RoCE'"
check 'in sysfs too' eval "drop_in cat /sys/class/infiniband/left/ports/1/gids/1 | grep -q ffff:c0a8:4d03"
start server drop_in rping -s -a 192.168.77.3 -C 10
meet() { drop_in timeout 10 rping -c -a 192.168.77.3 -C 10; }
check 'the connection manager knows it' wait_for 10 meet
perf_() { "$PERF" write_bw -n 10 "$@" --socket "$SCRATCH/ring.sock" >"$SCRATCH/set.log" 2>&1; }
check 'one address less' set_ left.address fd77::1/64
kill "$host"
check 'a connection ends in order, though its GID has another index' wait_for 10 grep -q 'DISCONNECT EVENT' "$SCRATCH/guest.log"
check 'and from its address' [ "$(cm_ | grep -o '"dropped_path":[1-9]' | wc -l)" = 0 ]
kill "$guest" 2>/dev/null
check 'two again' set_ left.address '192.168.77.3/24, fd77::1/64'
why='HCA left has no GID 9, only 0 to 2' check 'a GID that is not there is named' refused perf_ -x 9 --pair left,right
why="no HCA 'nosuch'; there are: left right" check 'so is an HCA' refused perf_ --pair left,nosuch
why='listed twice' check 'not one of another HCA' refused set_ left.address 192.168.77.2/24
why='has no address' check 'nor none' refused set_ left.address ''
reload
check 'the file counts again' says 'reload: left.address: 192.168.77.3/24, fd77::1/64 -> 192.168.77.1/24, fd77::1/64, applied'
moves
check 'the daemon ends cleanly' stop "$daemon"

if [ "$(id -u)" -eq 0 ]; then
	chmod 755 "$SCRATCH"
	cp "$TOOL" "$SCRATCH/softhca"
	TOOL=$SCRATCH/softhca
	daemon ring -c "$SCRATCH/ring.conf" --set daemon.admin_group="$(getent group 65534 | cut -d: -f1)"
	daemon=$started
	# look_ USER ARGUMENTS...
	look_() { setpriv --reuid "$1" --regid "$1" --clear-groups "$TOOL" --socket "$SCRATCH/ring.sock" "${@:2}" >"$SCRATCH/set.log" 2>&1; }
	for view in status qp clients counters fifos held limits cm 'runtime -i 0.1' all metrics; do
		check "every user may look: $view" look_ 65533 $view
	done
	check 'not every user starts a measurement' eval 'look_ 65533 runtime -i 0.1 && grep -q "left,0 is not measured" "$SCRATCH/set.log"'
	check 'root does' eval 'look_ 0 runtime -i 0.1 && grep -qE "^left,0: [0-9.]+ s" "$SCRATCH/set.log"'
	check 'whoever looks' look_ 65533 clients
	check 'does not see himself' grep -qx '2 clients' "$SCRATCH/set.log"
	# With the PSNs of his own queue pairs; root's are those of the connection manager.
	cp "$PERF" "$BUILD/lib/host/client/libsofthca.so.0" "$SCRATCH"
	start his setpriv --reuid 65533 --regid 65533 --clear-groups env LD_LIBRARY_PATH="$SCRATCH" \
		"$SCRATCH/softhca-perf" write_bw -D 60 -s 2000 --socket "$SCRATCH/ring.sock" --pair left,right
	his=$started
	# psns USER: of how many queue pairs he is shown them.
	psns() { look_ "$1" --json qp && grep -o next_psn "$SCRATCH/set.log" | wc -l; }
	sees() { [ "$(psns "$1")" = "$2" ]; }
	check 'root sees all PSNs' wait_for 10 sees 0 4
	check 'a user sees those of his own queue pairs' sees 65533 2
	check 'and nobody else does' sees 65532 0
	check 'nor whom they talk to' eval '! grep -qE "psn|dest_qpn" "$SCRATCH/set.log"'
	look_ 65532 qp
	check 'a dash stands for them' grep -qE 'RTS .* - .* - .* - ' "$SCRATCH/set.log"
	look_ 65532 qp 1 --hca left
	check 'also for those of one queue pair' [ "$(grep -cE '_(psn|qpn|ip) +-$' "$SCRATCH/set.log")" = 6 ]
	kill "$his"
	as_stranger() { setpriv --reuid 65533 --regid 65533 --clear-groups "$TOOL" --socket "$SCRATCH/ring.sock" "$@" >"$SCRATCH/set.log" 2>"$SCRATCH/set.err"; }
	check 'not every user may reload' complains EPERM as_stranger reload
	why=EPERM check 'not every user' refused as 65533 65533 --clear-groups loss 0.1
	check 'the attempts are logged' says 'user 65533 may not reload'
	check 'each of them' says 'user 65533 may not change settings'
	check 'and counted' [ "$(counted control_refused)" -gt 0 ]
	check 'every user may look' as 65533 65533 --clear-groups loss
	check 'a member of the group' as 65533 65534 --clear-groups loss 0.1
	check 'also if it is one of many' as 65533 65533 --groups=65532,65534 loss 0
	why=EPERM check 'not of others' refused as 65533 65533 --groups=65531,65532 loss 0.1
	check 'nothing else has happened' [ "$(grep -c ': user 65533: .*applied' "$SCRATCH/ring.log")" = 4 ]
	check 'the daemon ends cleanly' stop "$daemon"
	daemon ring -c "$SCRATCH/ring.conf" --set daemon.socket_mode=0660
	daemon=$started
	why="may not connect .*EACCES.*group '$(id -gn)'" check 'whoever may not connect is told who may' \
		refused as 65533 65533 --clear-groups
	for view in status capture; do
		why='may not connect .*EACCES' check "also by $view" refused look_ 65533 $view
	done
	check 'the daemon ends cleanly' stop "$daemon"
	check 'there must be such a group' eval \
		"! timeout 20 $DAEMON --socket $SCRATCH/none.sock --set daemon.admin_group=nosuch"
fi
finish
