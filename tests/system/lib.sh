# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For the system tests to source: daemons and softhca-perf on top of setup/setup.sh. The build
# folder comes as SOFTHCA_BUILD, or is ../../build.
# shellcheck source=tests/system/setup/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup/setup.sh"

BUILD=${SOFTHCA_BUILD:-$(dirname "${BASH_SOURCE[0]}")/../../build}

# program NAME...: the first of these files of the build folder that is there.
program() {
	local name
	for name in "$@"; do
		if [ -f "$BUILD/$name" ] && [ -x "$BUILD/$name" ]; then
			echo "$BUILD/$name"
			return
		fi
	done
	echo "lib.sh: none of these was built: $*" >&2
	exit 1
}

DAEMON=$(program app/softhcad) || exit 1
PERF=$(program bench/path/softhca-perf) || exit 1
# shellcheck disable=SC2034
TOOL=$(program app/softhca) || exit 1
# Below those that the kernel gives out, and 2^15: tgtd takes its port for a signed short.
TCP_PORT=$((10000 + $$ % 20000))

# DPDK keeps its sockets and locks here instead of in /run.
export RUNTIME_DIRECTORY=$SCRATCH/run
mkdir -p "$RUNTIME_DIRECTORY"

# drop_in COMMAND...: with our libibverbs in place of the system's. SOFTHCA_SOCKET says which daemon.
drop_in() {
	LD_PRELOAD=$BUILD/lib/host/verbs/libibverbs.so.1 LD_LIBRARY_PATH=$BUILD/lib/host/verbs "$@"
}

# Is the daemon built with a sanitizer?
sanitized() { grep -qE '__[at]san_init' "$DAEMON"; }

# Starts this test again, twice at most, if ThreadSanitizer has ended a daemon because of a check of its own, as clang 14's
# does now and then (tsan_rtl.cpp:327).
again_if_detector_gave_up() {
	local tries=${SOFTHCA_TRIES:-1}
	grep -qs 'ThreadSanitizer: CHECK failed' "$SCRATCH"/*.log && [ "$tries" -lt 3 ] || return 0
	echo 'ThreadSanitizer failed at a check of its own: once more'
	clean_up
	SOFTHCA_TRIES=$((tries + 1)) exec "$0" "$@"
}

# http_server COMMAND: `softhca COMMAND`, exporter or web, on a port that is free. Leaves its address in $url, the process in
# $started. Ends the test if it was built without an HTTP server.
http_server() {
	start "$1" "$TOOL" "$1" --listen 127.0.0.1:0
	wait_for 10 grep -qs -e http: -e libmicrohttpd "$SCRATCH/$1.log"
	! grep -q libmicrohttpd "$SCRATCH/$1.log" || skip 'built without libmicrohttpd'
	# shellcheck disable=SC2034
	url=$(grep -m 1 -o 'http:.*' "$SCRATCH/$1.log")
}

# A configuration of two HCAs, left and right, joined by rings. Arguments: lines for both.
ring_config() {
	local name peer number
	echo '[daemon]'
	for name in left right; do
		peer=right number=1
		[ "$name" = left ] || { peer=left number=2; }
		printf '[hca %s]\nport = ring\npeer = %s\n' "$name" "$peer"
		printf 'address = 192.168.77.%s/24, fd77::%s/64\n' "$number" "$number"
		[ $# -eq 0 ] || printf '%s\n' "$@"
	done
}

# The same, joined by memif, with references to payload that the driver reads.
memif_pair_config() {
	ring_config "device = $SCRATCH/pair.memif" 'icrc = never' |
		sed '/^peer/d; s/^port = ring/port = memif/; 0,/^icrc/s//memif_server = yes\n&/'
}

# daemon NAME [on HOST] ARGUMENTS...: starts softhcad with the control socket $SCRATCH/NAME.sock and
# waits until it answers. Leaves the process in $started. Ends the test if it does not come up.
daemon() {
	local name=$1 where=()
	shift
	if [ "${1:-}" = on ]; then
		where=(on "$2")
		shift 2
	fi
	start "$name" "${where[@]}" "$DAEMON" --socket "$SCRATCH/$name.sock" "$@"
	wait_for 120 daemon_up "$name" "$started" && return
	echo "daemon $name did not come up:"
	cat "$SCRATCH/$name.log"
	fail "daemon $name comes up"
	finish
}

# Alive, and listening: its socket may have been left by the one before it.
daemon_up() {
	! not_running "$2" && grep -qs " 00010000 .* $SCRATCH/$1\.sock$" "/proc/$2/net/unix"
}

# Of an unused daemon: its connection manager has the queue pair that it holds on each
# HCA. That takes a moment more than coming up does.
cm_holds_its_own() { ! "$TOOL" --json held | grep -q '"qps":0'; }

# stop PID: SIGTERM; its exit code; 124 when it did not end.
stop() {
	kill -TERM "$1" 2>/dev/null
	wait_for 20 not_running "$1" || return 124
	wait "$1"
}

# network_config NUMBER CPU: an HCA on its host's end of the wire. It has different addresses, so
# that no kernel answers for it: 192.0.2.10NUMBER, 2001:db8::10NUMBER.
network_config() {
	printf '[daemon]\nlcores = %s\n[hca hca0]\nport = af_packet\ndevice = hca0\n' "$2"
	printf 'address = 192.0.2.10%s/24, 2001:db8::10%s/64\n' "$1" "$1"
}

# Daemon a on host A, b on B, which hosts() has laid. Leaves the processes in $daemon_a, $daemon_b.
network_daemons() {
	network_config 1 0 >"$SCRATCH/a.conf"
	network_config 2 $(($(nproc) > 1)) >"$SCRATCH/b.conf"
	daemon a on "$HOST_A" -c "$SCRATCH/a.conf"
	daemon_a=$started
	daemon b on "$HOST_B" -c "$SCRATCH/b.conf"
	daemon_b=$started
}

# The same with a capture of the wire in $SCRATCH/captures, by $dumpcap.
wire_daemons() {
	need_netns
	need_command tshark
	need_command dumpcap
	hosts 4200
	mkdir "$SCRATCH/captures"
	start dumpcap on "$HOST_A" dumpcap -q -i hca0 -w "$SCRATCH/captures/wire.pcapng"
	dumpcap=$started
	wait_for 10 test -s "$SCRATCH/captures/wire.pcapng"
	network_daemons
}

# Their end, and that of the capture, which must be right. Checked.
wire_ends() {
	check 'daemon a ends cleanly' stop "$daemon_a"
	check 'daemon b ends cleanly' stop "$daemon_b"
	kill -INT "$dumpcap"
	wait_for 10 not_running "$dumpcap"
	frames_right "$SCRATCH/captures"
}

# memif_config NUMBER CPU SERVER [FOLDER]: hcaNUMBER, one of two that are joined by memif, with the
# addresses 10.9.0.NUMBER and fd09::NUMBER. SERVER (yes, no): which end. What the port sees is
# captured in FOLDER/NUMBER.pcapng.
memif_config() {
	printf '[daemon]\nlcores = %s\n[hca hca%s]\nport = memif\n' "$2" "$1"
	printf 'device = %s/memif.sock\nmemif_server = %s\n' "$SCRATCH" "$3"
	printf 'address = 10.9.0.%s/24, fd09::%s/64\n' "$1" "$1"
	[ $# -le 3 ] || printf 'capture = %s/%s.pcapng\n' "$4" "$1"
}

# memif_daemons [FOLDER]: daemons a, with hca1, and b, with hca2. Leaves the processes in $daemon_a and
# $daemon_b. They may need a while until their ports are joined: link_up.
memif_daemons() {
	memif_config 1 0 yes "$@" >"$SCRATCH/a.conf"
	memif_config 2 $(($(nproc) > 1)) no "$@" >"$SCRATCH/b.conf"
	daemon a -c "$SCRATCH/a.conf"
	daemon_a=$started
	daemon b -c "$SCRATCH/b.conf"
	daemon_b=$started
}

# The port of daemon NAME is joined to the other's.
link_up() { "$TOOL" --socket "$SCRATCH/$1.sock" status | grep -q 'memif.*up'; }

# pair NAME ARGUMENTS...: softhca-perf with both sides in one process, on left and right of daemon
# NAME. Checked.
pair() {
	local name=$1
	shift
	check "$*" timeout "${PAIR_SECONDS:-120}" "$PERF" "$@" --socket "$SCRATCH/$name.sock" \
		--pair left,right
}

# ended_well STATUS LOG: of a program of librdmacm. rping destroys its event channel while its other
# thread may be about to wait there, which then exits with 255. (rdma-core mended that in 2025, after
# Debian 12.)
ended_well() {
	[ "$1" -eq 0 ] && return
	[ "$1" -eq 255 ] && grep -q 'DISCONNECT EVENT' "$2" &&
		grep -q '^rdma_get_cm_event: Bad file descriptor' "$2" && ! grep -q 'completion' "$2"
}

# waited_well PID LOG: the same of a process of this shell, at its end.
waited_well() {
	local status=0
	wait "$1" || status=$?
	ended_well $status "$2"
}

# What a server and a client said, where it did not work.
show_both() {
	sed 's/^/   client: /' "$SCRATCH/client.log"
	sed 's/^/   server: /' "$SCRATCH/server.log"
}

# between ARGUMENTS...: the same test, server with daemon b, client with daemon a. Checked. Set by
# the test: a_side, b_side (arrays: empty or `on HOST`), server_address.
between() {
	# Eight times a second at least: a daemon that gets no CPU for less is not taken for dead.
	local server patience=(--qp-timeout 18)
	TCP_PORT=$((TCP_PORT + 1))
	start server "${b_side[@]}" timeout 120 "$PERF" "$@" "${patience[@]}" --socket "$SCRATCH/b.sock" \
		-p $TCP_PORT
	server=$started
	if "${a_side[@]}" timeout 120 "$PERF" "$@" "${patience[@]}" --socket "$SCRATCH/a.sock" \
		-p $TCP_PORT "$server_address" >"$SCRATCH/client.log" 2>&1 && wait "$server"; then
		ok "$*"
	else
		fail "$*"
		kill "$server" 2>/dev/null
		show_both
	fi
}

# By what they said one has waited for the other in vain, as when that one's daemon did not run for seconds.
waited_in_vain() {
	grep -qsE 'retry counter exceeded|status:? 12\>|ADDR_ERROR, error:? -11[03]' "$SCRATCH/client.log" "$SCRATCH/server.log"
}

# every_operation COMMAND: COMMAND (pair ..., between) with each operation, service and way to
# complete, all data verified.
every_operation() {
	local kind size
	for kind in write write_imm send send_imm read; do
		for size in 0 1 8 1023 4096 65537 1048576; do
			"$@" ${kind}_bw --verify -s $size -n 24
		done
		"$@" ${kind}_bw --verify -b -q 4 -s 3000 -n 64
		"$@" ${kind}_lat --verify -n 50
	done
	for kind in FETCH_AND_ADD CMP_AND_SWAP; do
		"$@" atomic_bw -A $kind --verify -b -n 256
		"$@" atomic_lat -A $kind --verify -n 50
	done
	for kind in send write; do
		"$@" ${kind}_bw -c UC --verify -s 5000 -n 64
		"$@" ${kind}_lat -c UC --verify -n 50
	done
	"$@" send_bw -c UD --verify -s 1000 -n 64
	"$@" send_lat -c UD --verify -n 50
	"$@" send_bw --verify -e -s 2000 -n 64
	"$@" write_bw --verify -I 64 -l 8 -Q 4 -s 60 -n 512
}

# frames_right FOLDER: every capture in it (pcap or pcapng) through tshark, which must find nothing
# malformed, and through icrc_check, which must find every ICRC right. Checked.
frames_right() {
	local file protocol no_guesses=(--disable-heuristic eth_over_ib)
	# The payload is random data: whatever tshark takes it for is wrong. (Ethertype is more than a
	# guess: only its heuristic is disabled.)
	for protocol in $(tshark -G heuristic-decodes 2>/dev/null | sed -nE 's/^infiniband.payload\t(\S+).*/\1/p'); do
		[ "$protocol" = ethertype ] || no_guesses+=(--disable-protocol "$protocol")
	done
	mkdir -p "$SCRATCH/pcap"
	for file in "$1"/*; do
		# Classic pcap is what icrc_check reads.
		tshark -r "$file" -F pcap -w "$SCRATCH/pcap/$(basename "$file").pcap" 2>/dev/null
		tshark -r "$file" "${no_guesses[@]}" -Y _ws.malformed 2>/dev/null >"$SCRATCH/malformed.txt"
		check "no malformed frame in $(basename "$file")" no_lines "$SCRATCH/malformed.txt"
	done
	check "every ICRC is right" "$(program tests/system/icrc_check)" "$SCRATCH/pcap"
	sed 's/^/   /' "$SCRATCH/check.log"
}

# refuses PATTERN COMMAND...: the command fails, and says that.
refuses() {
	! "${@:2}" >"$SCRATCH/refused.log" 2>&1 && grep -q "$1" "$SCRATCH/refused.log"
}

# Fails with the first lines of a file or pipe, unless it is empty.
no_lines() { [ -r "$1" ] && ! head -n 20 "$1" | grep ''; }
