#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# An lcore of a daemon stands still, then its control thread, then that of the connection manager, because a debugger has stopped it: the watchdog says
# so, with its stack as soon as it can be had, and does not feed the service manager's watchdog meanwhile.
. "$(dirname "$0")/lib.sh"
need_command python3
HERE=$(dirname "$0")/watchdog

start manager "$HERE/manager" "$SCRATCH/notify"
wait_for 10 test -S "$SCRATCH/notify"
export NOTIFY_SOCKET=$SCRATCH/notify WATCHDOG_USEC=30000000
daemon dog
daemon=$started
fed() { grep -c WATCHDOG=1 "$SCRATCH/manager.log"; }
fed_more_than() { [ "$(fed)" -gt "$1" ]; }
check 'says that it is ready' wait_for 10 grep -qx READY=1 "$SCRATCH/manager.log"
check 'feeds the watchdog of the service manager' wait_for 10 fed_more_than 1

stack() { sed -n "/$1 .*has stood still/,\$p" "$SCRATCH/dog.log" | grep -q 'softhcad(+0x'; }
times_noticed() { [ "$(grep -c 'has stood still' "$SCRATCH/dog.log")" = "$1" ]; }
# heard NUMBER: the manager has printed whatever it was sent so far.
heard() {
	python3 -c 'import os, socket, sys
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(sys.argv[1].encode(), os.environ["NOTIFY_SOCKET"])' "MARK=$1" &&
		wait_for 20 grep -qx "MARK=$1" "$SCRATCH/manager.log"
}
# stands_still THREAD NAME NUMBER: the first thread that the kernel calls so, what the watchdog calls it, how many did so.
stands_still() {
	local before stopper
	start stopper "$HERE/stop_thread" "$daemon" "$1"
	stopper=$started
	wait_for 10 grep -q . "$SCRATCH/stopper.log"
	grep -q stopped "$SCRATCH/stopper.log" || skip "may not stop a thread: $(cat "$SCRATCH/stopper.log")"
	check 'tells who stands still' wait_for 20 grep -q "$2 .*has stood still" "$SCRATCH/dog.log"
	check 'what the service manager had been sent is read' heard "$3"
	before=$(fed)
	sleep 3
	check 'and does not feed meanwhile' [ "$(fed)" = "$before" ]
	kill "$stopper"
	check 'tells that it goes on' wait_for 10 grep -q "$2 goes on" "$SCRATCH/dog.log"
	check 'and where it stood' wait_for 10 stack "$2"
	check 'feeds again' wait_for 10 fed_more_than "$before"
	check 'has noticed nobody else' times_noticed "$3"
}
stands_still worker 'the lcore on CPU [0-9]*' 1
stands_still softhcad 'the control thread' 2
stands_still softhca-cm 'the CM thread' 3
check 'stops' stop "$daemon"
check 'and says so' grep -qx STOPPING=1 "$SCRATCH/manager.log"
finish
