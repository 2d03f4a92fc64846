#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What a running daemon may still do: its user, the capabilities of its threads, no new privileges, the
# filter of system calls, what a core dump holds; and that it works nevertheless.
. "$(dirname "$0")/lib.sh"
chmod 755 "$SCRATCH"
DAC_OVERRIDE=$((1 << 1)) NET_ADMIN=$((1 << 12)) NET_RAW=$((1 << 13)) IPC_OWNER=$((1 << 15))
SYS_PTRACE=$((1 << 19))
IPC_LOCK=$((1 << 14))
SEGMENTS=$((IPC_OWNER | SYS_PTRACE))
ROOT=$((SEGMENTS | DAC_OVERRIDE))

status() { awk -v key="$2:" '$1 == key { print $2 }' "/proc/$1/status"; }
has_at_most() { # PID MASK
	local thread
	for thread in /proc/"$1"/task/*; do
		[ $((0x$(status "$1/task/${thread##*/}" CapPrm) & ~$2)) -eq 0 ] || return 1
	done
}
every_thread() { # PID KEY VALUE
	local thread
	for thread in /proc/"$1"/task/*; do
		[ "$(status "$1/task/${thread##*/}" "$2")" = "$3" ] || return 1
	done
}
# moves NAME ARGUMENTS...: data between the HCAs of daemon NAME, with and without events.
moves() {
	SOFTHCA_SOCKET=$SCRATCH/$1.sock "$PERF" send_bw --verify -n 100 "${@:2}" &&
		SOFTHCA_SOCKET=$SCRATCH/$1.sock "$PERF" send_lat --verify -e -n 100 "${@:2}"
}

daemon plain
plain=$started
check 'no new privileges' [ "$(status "$plain" NoNewPrivs)" = 1 ]
check 'few capabilities' wait_for 10 has_at_most "$plain" $ROOT
check 'core dumps: private memory alone' [ "$(cat "/proc/$plain/coredump_filter")" = 00000011 ]
wait_for 10 grep -q 'ready after' "$SCRATCH/plain.log"
if grep -q 'no filter of system calls' "$SCRATCH/plain.log"; then
	echo "not checked: $(grep 'no filter' "$SCRATCH/plain.log")"
else
	check 'every thread is filtered' wait_for 10 every_thread "$plain" Seccomp 2
fi
check 'data moves' moves plain --pair hca0,hca1
check 'stops' stop "$plain"
daemon free --no-sandbox
check '--no-sandbox: no filter of its own' [ "$(status "$started" Seccomp)" = "$(status self Seccomp)" ]
check 'stops' stop "$started"

if [ "$(id -u)" -eq 0 ] && user=$(getent passwd 65534 | cut -d: -f1) && [ "$user" ]; then
	mkdir -m 755 "$SCRATCH/own"
	chown "$user" "$SCRATCH/own"
	for time in first second; do
		RUNTIME_DIRECTORY=$SCRATCH/own daemon own/changed --set daemon.user="$user"
		changed=$started
		check "becomes user $user, the $time time" every_thread "$changed" Uid 65534
		check 'with few capabilities' wait_for 10 has_at_most "$changed" $SEGMENTS
		check 'data moves' moves own/changed --pair hca0,hca1
		[ $time = first ] || break
		kill -KILL "$changed" # leaves its folders to the second
		wait_for 10 not_running "$changed"
		rm "$SCRATCH/own/changed.sock"
	done
	if program=$(program tests/system/memory); then
		cp "$program" "$BUILD"/lib/host/client/libsofthca.so.0 "$SCRATCH"
		check "a third user's memory of every kind" timeout 200 \
			setpriv --reuid 65533 --regid 65533 --clear-groups env LD_LIBRARY_PATH="$SCRATCH" \
			"$SCRATCH/memory" "$SCRATCH/own/changed.sock" hca0 hca1 16
	fi
	check 'stops' stop "$changed"
	check 'leaves nothing but its log' [ "$(ls -A "$SCRATCH/own")" = changed.log ]
	check 'there must be such a user' eval \
		"! timeout 20 $DAEMON --socket $SCRATCH/none.sock --set daemon.user=nosuch"
fi
if may_netns; then
	hosts 1500
	network_config 1 0 >"$SCRATCH/wire.conf"
	daemon wire on "$HOST_A" -c "$SCRATCH/wire.conf"
	check 'af_packet: those of its port, too' wait_for 10 has_at_most "$started" \
		$((ROOT | NET_RAW | NET_ADMIN | IPC_LOCK))
	check 'and these it has' [ $((0x$(status "$started" CapEff) & NET_RAW)) -ne 0 ]
	check 'data moves' moves wire --pair hca0,hca0
	check 'stops' stop "$started"
	# As the service manager starts it: an ordinary user with two capabilities, the third in place
	# of LimitMEMLOCK.
	caps=+net_raw,+net_admin,+ipc_lock
	mkdir -m 755 "$SCRATCH/service"
	chown 65534 "$SCRATCH/service"
	RUNTIME_DIRECTORY=$SCRATCH/service start service on "$HOST_A" \
		setpriv --reuid 65534 --regid 65534 --clear-groups \
		--inh-caps="$caps" --ambient-caps="$caps" --bounding-set="-all,$caps" \
		"$DAEMON" -c "$SCRATCH/wire.conf" --socket "$SCRATCH/service/d.sock"
	check 'as a service: af_packet as an ordinary user' wait_for 20 test -S "$SCRATCH/service/d.sock"
	check 'data moves' moves service/d --pair hca0,hca0
	check 'stops' stop "$started"
fi

# The memory of a daemon that dies under traffic, and of its client, which shows that the search finds it.
if ! sanitized && [[ $(cat /proc/sys/kernel/core_pattern) =~ ^core ]] && ulimit -c unlimited 2>/dev/null; then
	words=$(realpath "$(dirname "$0")")/core_words.py
	DAEMON=$(realpath "$DAEMON") PERF=$(realpath "$PERF") TOOL=$(realpath "$TOOL")
	ring_config 'delay_us = 50000' >"$SCRATCH/dumped.conf"
	mkdir "$SCRATCH/daemon" "$SCRATCH/client"
	cd "$SCRATCH/daemon" || exit 1
	daemon dumped -c "$SCRATCH/dumped.conf"
	dumped=$started
	cd "$SCRATCH/client" || exit 1
	start client "$PERF" write_bw --verify -s 65536 -D 60 --pair left,right --socket "$SCRATCH/dumped.sock"
	wait_for 30 eval "\"$TOOL\" --socket '$SCRATCH/dumped.sock' counters | grep -q 'tx_packets  *[1-9][0-9][0-9]'"
	kill -ABRT "$dumped" "$started"
	wait_for 20 not_running "$dumped"
	wait_for 20 not_running "$started"
	check "a client's core dump: its messages" [ "$("$words" core*)" -gt 100 ]
	check "the daemon's: no memory of clients, no packet" [ "$("$words" ../daemon/core*)" = 0 ]
else
	echo "not checked: core dumps do not go to a file here"
fi
finish
