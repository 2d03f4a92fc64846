# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by system tests: requirements of a test (it is skipped if they are missing), hosts in
# network namespaces, processes that end with the test, a count of what passed. Everything is named
# after this process and removed when it exits, so tests may run side by side.
#
#	. "$(dirname "$0")/setup/setup.sh"
#	need_netns
#	hosts 4200                           # $HOST_A, $HOST_B; hca0 in each, 192.0.2.1 and .2
#	start daemon on "$HOST_A" softhcad ...
#	wait_for 5 grep -q ready "$SCRATCH/daemon.log" && ok 'daemon is up' || fail 'daemon is up'
#	finish                               # N passed, N failed[, N skipped]
set -uo pipefail

SKIP=77 # what meson takes for 'skipped'
SCRATCH=$(mktemp -d /tmp/softhca-test.XXXXXX)
HOST_A=softhca-$$-a
HOST_B=softhca-$$-b
passed=0
failed=0
skipped=0
pids=()
hosts_laid=no

# Ends what start() began and removes what hosts() laid, the scratch folder last. Runs at exit.
clean_up() {
	local pid host
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
	for pid in "${pids[@]}"; do wait_for 5 not_running "$pid" || kill -KILL "$pid" 2>/dev/null; done
	if [ "$hosts_laid" = yes ]; then
		for host in "$HOST_A" "$HOST_B"; do
			# What others have started there, a job launcher for example.
			for pid in $(ip netns pids "$host" 2>/dev/null); do kill -KILL "$pid" 2>/dev/null; done
			ip netns del "$host" 2>/dev/null
		done
	fi
	rm -rf "$SCRATCH"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

not_running() { ! kill -0 "$1" 2>/dev/null; }

skip() {
	echo "skipped: $*"
	exit $SKIP
}

need_root() { [ "$(id -u)" -eq 0 ] || skip 'needs root'; }

need_command() { command -v "$1" >/dev/null || skip "needs $1"; }

# Network namespaces may be made here, and entered: root, iproute2, and a kernel or container that
# lets us. Not in a chroot.
may_netns() {
	local probe=softhca-$$-probe able=yes
	[ "$(id -u)" -eq 0 ] && command -v ip >/dev/null || return
	ip netns add "$probe" 2>/dev/null || return
	ip netns exec "$probe" true 2>/dev/null || able=
	ip netns del "$probe"
	[ "$able" ]
}

need_netns() {
	need_root
	need_command ip
	may_netns || skip 'may not make and enter network namespaces'
}

# need_hugepages N: N free pages of 2 MiB. Tests that can do without must not ask.
need_hugepages() {
	local free
	free=$(awk '/^HugePages_Free/ { print $2 }' /proc/meminfo)
	[ "${free:-0}" -ge "$1" ] || skip "needs $1 free hugepages, $free are there"
}

# host NAME INTERFACE NUMBER MTU: moves an interface in as hca0 with the addresses of host NUMBER.
host() {
	ip link set "$2" netns "$1" &&
		ip -n "$1" link set "$2" name hca0 mtu "$4" &&
		ip -n "$1" address add "192.0.2.$3/24" dev hca0 &&
		ip -n "$1" address add "2001:db8::$3/64" dev hca0 nodad &&
		ip -n "$1" link set lo up &&
		ip -n "$1" link set hca0 up
}

# hosts MTU: two hosts, HOST_A (.1) and HOST_B (.2), and a wire between them.
hosts() {
	local end=sh$$
	hosts_laid=yes
	if ! { ip netns add "$HOST_A" && ip netns add "$HOST_B" &&
		ip link add "${end}a" type veth peer name "${end}b" &&
		host "$HOST_A" "${end}a" 1 "$1" &&
		host "$HOST_B" "${end}b" 2 "$1"; }; then
		echo 'could not lay the hosts' >&2
		exit 1
	fi
}

# on HOST COMMAND...: runs it there, in place of this shell when it is the last thing a job does.
on() {
	local name=$1
	shift
	ip netns exec "$name" "$@"
}

# start NAME COMMAND...: in the background, its output in $SCRATCH/NAME.log; ended at exit.
# `on HOST` may come before the command. Leaves the process in $started.
start() {
	local log=$SCRATCH/$1.log
	shift
	if [ "$1" = on ]; then
		set -- ip netns exec "${@:2}"
	fi
	: >"$log" # at once: who looks into it must not find what the one before has said
	"$@" >"$log" 2>&1 </dev/null &
	started=$!
	pids+=("$started")
}

# wait_for SECONDS COMMAND...: until the command succeeds; not 0 when it did not in time. At last once
# more: a machine that stood still may have used up the time of a single try.
wait_for() {
	local deadline=$((SECONDS + $1 + 1))
	shift
	until "$@"; do
		if [ "$SECONDS" -ge "$deadline" ]; then
			"$@"
			return
		fi
		sleep 0.05
	done
}

ok() {
	passed=$((passed + 1))
	echo "ok $*"
}

fail() {
	failed=$((failed + 1))
	echo "FAIL $*"
}

# leave_out WHAT...: a part of the test needs this and is not run. Counted.
leave_out() {
	skipped=$((skipped + 1))
	echo "skipped: needs $*"
}

# given PROGRAM COMMAND...: runs the command where the program is installed, else leaves it out.
given() {
	if command -v "$1" >/dev/null; then
		"${@:2}"
	else
		leave_out "$1"
	fi
}

# check NAME COMMAND...: ok or fail by its exit code; shows its output when it failed.
check() {
	local name=$1
	shift
	if "$@" >"$SCRATCH/check.log" 2>&1; then
		ok "$name"
	else
		fail "$name: $*"
		sed 's/^/   /' "$SCRATCH/check.log"
	fi
}

# Closing line and exit code of the test.
finish() {
	local left_out=''
	[ "$skipped" -eq 0 ] || left_out=", $skipped skipped"
	echo "$passed passed, $failed failed$left_out"
	[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
	exit
}
