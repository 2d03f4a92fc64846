#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `softhca run`: its variables, its output, its exit codes; and what the program then sees in /sys
# and /dev, with counters that are live, without anything of it on the host.
. "$(dirname "$0")/lib.sh"
LOOK=$(program tests/system/look) || exit 1

# The first device is in a ring with itself, so that its port is up.
printf '[daemon]\n[hca own]\npeer = own\naddress = 10.9.0.1/24, fd09::1/64\n' >"$SCRATCH/run.conf"
SOCKET=$SCRATCH/run.sock
run() { "$TOOL" run --socket "$SOCKET" -- "$@"; }

# exits CODE COMMAND...: with that code.
exits() {
	local code=$1
	shift
	"$@"
	[ $? -eq "$code" ]
}
# prints TEXT COMMAND...: somewhere on stdout or stderr.
prints() {
	local text=$1
	shift
	"$@" >"$SCRATCH/printed" 2>&1
	grep -F -- "$text" "$SCRATCH/printed"
}

check 'without a daemon it says so' prints "no daemon answers at $SOCKET" run true
check 'and exits with 125' exits 125 run true
daemon run -c "$SCRATCH/run.conf"
daemon=$started
check 'the exit code is the program'"'"'s' exits 7 run sh -c 'exit 7'
check 'a program that is not there' exits 127 run softhca-no-such-program
check 'a program that cannot be run' exits 126 run /etc/passwd
check 'no program' exits 125 "$TOOL" run --socket "$SOCKET"
check 'no libraries' exits 125 "$TOOL" run --socket "$SOCKET" --libdir "$SCRATCH" true
check 'options behind the program are its own' prints -v run echo -v
check 'it says what it set' prints LD_PRELOAD= "$TOOL" run -v --socket "$SOCKET" true
check 'registrations are shown' prints SOFTHCA_VERBOSE=1 "$TOOL" run -v --socket "$SOCKET" true
check 'and which devices there are' prints 'device own, port active' \
	"$TOOL" run --verbose --socket "$SOCKET" true
check 'their GIDs' prints 'GID 1: ::ffff:10.9.0.1' "$TOOL" run -v --socket "$SOCKET" true
check 'a socket named from here' prints "$SOCKET" \
	sh -c "cd '$SCRATCH' && '$TOOL' run --socket run.sock printenv SOFTHCA_SOCKET"
check 'what was preloaded stays so' prints "libsofthca-preload.so:/nowhere.so" \
	env LD_PRELOAD=/nowhere.so "$TOOL" run --socket "$SOCKET" printenv LD_PRELOAD

check 'shared anonymous memory has a file' prints '/memfd:shared-anonymous' run python3 -c '
import mmap; memory = mmap.mmap(-1, 4096); print(open("/proc/self/maps").read())'
check 'every way to look' run "$LOOK" own
check 'programs that look for it' prints 'hca_type' run ls -la /sys/class/infiniband/own/
check 'and their children' prints fd09: run sh -c 'grep -r : /sys/class/infiniband/own/ports/1/'
check 'a shell expands names there' prints '4: ACTIVE' \
	run bash -c 'cat /sys/class/infiniband/*/ports/1/state'
check 'a shell goes there' prints '4: ACTIVE' \
	run sh -c 'cd /sys/class/infiniband && cat own/ports/1/state'
check 'and knows where it is' prints /sys/class/infiniband \
	run bash -c 'cd /sys/class/infiniband && pwd -P'
given ibstatus check 'ibstatus' prints '4: ACTIVE' run ibstatus

# What a kernel says by netlink.
if command -v rdma >/dev/null; then
	guid=$(run ibv_devices | awk '$1 == "own" { print $2 }' | sed 's/....\B/&:/g')
	check 'rdma dev' prints "0: own: node_type ca fw 0.1.0 node_guid $guid" run rdma dev
	check 'rdma dev of one' prints own: run rdma dev show own
	check 'rdma dev of one that is not there' exits 1 run rdma dev show other
	check 'rdma link' prints 'link own/1 state ACTIVE physical_state LINK_UP' run rdma link
	check 'rdma resource' prints 'own: qp 1 cq 2 srq 0' run rdma resource
	check 'rdma statistic' prints 'link_changes 1' run rdma statistic
	check 'nothing can be changed by it' exits 1 run rdma dev set own name mine
else
	leave_out rdma of iproute2
fi

# ibstat and ibv_devinfo, one from the file, one from the library.
hw_rev() {
	[ $(($(run cat /sys/class/infiniband/own/hw_rev))) = \
		$(($(run ibv_devinfo -d own | awk '$1 == "hw_ver:" { print $2 }'))) ]
}
given ibv_devinfo check 'one hw_rev' hw_rev
check 'nothing of it on the host' exits 2 ls /sys/class/infiniband/own

counter() { run cat "/sys/class/infiniband/own/ports/1/$1"; }
before=$(counter counters/port_xmit_packets)
check 'traffic' "$PERF" write_bw -s 4096 -n 1000 --socket "$SOCKET" --pair own,own
packets=$(($(counter counters/port_xmit_packets) - before))
check "packets are counted ($packets)" test $packets -ge 1000
check 'data are counted in words of 4 bytes' test \
	"$(counter counters/port_rcv_data)" -ge $((1000 * 4096 / 4))
check 'our own counters' test "$(counter hw_counters/requests)" -ge 1000
# A reader that keeps the file open sees it change: 0 at first, then more.
reread() {
	run python3 -c '
import os, subprocess, sys
fd = os.open("/sys/class/infiniband/own/ports/1/counters/port_xmit_packets", os.O_RDONLY)
before = int(os.read(fd, 99))
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
os.lseek(fd, 0, os.SEEK_SET)
sys.exit(int(os.read(fd, 99)) < before + 100)
' "$PERF" write_bw -s 4096 -n 100 --socket "$SOCKET" --pair own,own
}
check 'a counter that is kept open' reread
check 'no errors' test "$(counter counters/port_rcv_errors)" = 0

# A program whose sanitizer refuses libraries loaded before it.
echo 'int main(void) { return 7; }' >"$SCRATCH/asan.c"
if cc -fsanitize=address -o "$SCRATCH/asan" "$SCRATCH/asan.c" 2>/dev/null; then
	check 'a program with AddressSanitizer' exits 7 run "$SCRATCH/asan"
else
	leave_out a compiler with AddressSanitizer
fi

# The commands that PROGRAMS.md begins with, as a script.
first_block() {
	ln -sfn "$(realpath "$BUILD")" "$SCRATCH/build"
	{
		echo 'set -e; trap "kill \$(jobs -p); wait" EXIT'
		awk '/^```/ { n++ } n == 1 && !/^```/' \
			"$(dirname "$0")/../../lib/host/verbs/PROGRAMS.md"
		echo 'wait %2' # the server of the pingpong
	} >"$SCRATCH/block.sh"
	(cd "$SCRATCH" && timeout 60 bash block.sh)
}
for _ in 1 2 3; do given ibv_rc_pingpong check 'the first block of PROGRAMS.md' first_block; done

check 'the daemon ends cleanly' stop "$daemon"
check 'and takes the tree with it' test ! -e "$SOCKET.sysfs"
daemon run -c "$SCRATCH/run.conf"
kill -KILL "$started"
wait "$started" 2>/dev/null
check 'a daemon that was killed has no device' exits 125 run true
daemon run -c "$SCRATCH/run.conf"
check 'the next one replaces what it left' prints '4: ACTIVE' \
	run cat /sys/class/infiniband/own/ports/1/state
finish
