#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# SIGKILL of either side, and of the daemon, at each step of a connection: the other side's events,
# with Debian's librdmacm (cm/steps.c says what the steps are).
#
# What a kernel gives, and so do we. Sources: drivers/infiniband/core of Linux, where 5.x and a tree as
# recent as ib_prepare_cm_mra() agree; ucma_close() destroys the identifiers of who is killed:
#  - cm.c, cm_destroy_id(), by the state of the dead side: REQ sent: REJ 4 (timeout); REQ received,
#    REP sent or received: REJ 28 (consumer defined); established: DREQ; DREQ received: DREP.
#    Without a listener cm_match_req() rejects with 8 (invalid service ID).
#  - cma.c, cma_ib_handler(): a REJ becomes REJECTED with the reason as its status, a DREQ or DREP
#    DISCONNECTED 0. ucma.c, ucma_event_handler(), reports no event for a request that was not accepted
#    yet: its program finds out by EINVAL of cm_init_qp_init_attr() or cm_init_qp_rtr_attr(), that is
#    of rdma_create_qp() and rdma_accept().
#  - librdmacm, rdma_get_cm_event(): the same EINVAL, where the REP is answered, makes CONNECT_ERROR -1
#    of it, and the REJECTED that follows is kept back.
#  - cma.c, cma_send_device_removal_put(), where a device goes: DEVICE_REMOVAL 0 of each identifier that
#    is on it, if its program has accepted it. In addition we say ENODEV to who asks for an event after
#    that, or has no such identifier: there will never be another one, while a kernel lets it wait for
#    a device to come. ucma.c, ucma_destroy_id(): it can still be destroyed.
#
# client_dies STEP, the server being at STEP: what it then gets. After each it must serve another
# client.
client_rows() {
	client_dies id listening
	client_dies address listening
	client_dies route listening
	client_dies connect listening 'event CONNECT_REQUEST 0' 'rdma_create_qp: EINVAL'
	client_dies connect request 'rdma_accept: EINVAL'
	client_dies connect accept 'event REJECTED 28'
	client_dies connected accept 'event ESTABLISHED 0' 'event DISCONNECTED 0'
	client_dies connected established 'event DISCONNECTED 0'
	client_dies connected disconnect 'event DISCONNECTED 0'
	client_dies traffic traffic 'event DISCONNECTED 0'
	client_dies disconnect established 'event DISCONNECTED 0'
	client_dies disconnect disconnect 'event DISCONNECTED 0'
}

# server_dies STEP, the client being at STEP: what it then gets.
server_rows() {
	server_dies listening route 'event REJECTED 8'
	server_dies listening connect 'event REJECTED 28'
	server_dies request connect 'event REJECTED 28'
	server_dies accept connect 'event CONNECT_ERROR -1'
	server_dies established connected 'event DISCONNECTED 0'
	server_dies established disconnect 'event DISCONNECTED 0'
	server_dies traffic traffic 'event DISCONNECTED 0'
	server_dies disconnect connected 'event DISCONNECTED 0'
	server_dies disconnect disconnect 'event DISCONNECTED 0'
}

# The daemon is killed below pairs of programs: at which steps, and how many of the server's identifiers
# are then told; the client's is but before it has an address. In rdma_get_cm_event() already is who is
# at STEP+; who is in traffic takes the event that ends it; the others ask for one next. The listener is
# bound to an address, and so on a device.
daemon_rows='
id listening+ 1
address listening 1
route listening 1
connect request 1
connect+ request 1
connect accept+ 2
connected established+ 2
connected+ established 2
traffic traffic 2
disconnect disconnect 2'

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/verbs/kill.sh"

[ -x "$BUILD/tests/system/cm_steps" ] || skip 'needs librdmacm-dev when it is built'
steps=$(program tests/system/cm_steps) || exit 1
address=192.168.77.1

# No identifier, and otherwise the state before the first program.
none_left() {
	"$TOOL" cm >"$SCRATCH/cm"
	grep -q '^0 identifiers' "$SCRATCH/cm" && all_back >/dev/null
}

nothing_held() {
	wait_for 60 none_left && return
	cat "$SCRATCH/cm"
	all_back
	return 1
}

# Every MAD that was sent has been received, so that nothing of what has happened is still to come.
settled() {
	"$TOOL" --json cm | grep -oE '"(sent|received)":[0-9]+' |
		awk -F: '/sent/ { n += $2 } /received/ { n -= $2 } END { exit n != 0 }'
}

is_released() { ! "$TOOL" cm | grep -qE "^ +[0-9]+ +$1 "; }

# launch NAME ROLE STEP: reads its lines from a pipe that never ends; its process in $started. At STEP+
# it does not stop, but makes no further progress.
launch() {
	local stop=$3
	[ "$stop" = "${stop%+}" ] || stop=none
	rm -f "$SCRATCH/to_$1" "$SCRATCH/$1.log" # the last one's
	mkfifo "$SCRATCH/to_$1"
	"$TOOL" run -- "$steps" "$2" $address $TCP_PORT "$stop" 0<>"$SCRATCH/to_$1" \
		>"$SCRATCH/$1.log" 2>"$SCRATCH/$1.err" &
	started=$!
	pids+=("$started")
}

said() { grep -qsx "at ${2%+}" "$SCRATCH/$1.log"; }

# is_at NAME PID STEP: in time, and alive.
is_at() {
	wait_for 60 said_or_gone "$1" "$2" "$3"
	! not_running "$2" && said "$1" "$3" && return
	show
	fail "$row: the $1 comes to $3"
	finish
}

said_or_gone() { said "$1" "$3" || not_running "$2"; }

show() { (cd "$SCRATCH" && tail -n 20 {server,client}"$pair".{log,err}) | sed 's/^/   /'; }

# both_at CLIENT_STEP SERVER_STEP: their processes in $client and $server. $pair: if there are several.
pair=''
both_at() {
	TCP_PORT=$((TCP_PORT + 1))
	launch "server$pair" server "$2"
	server=$started
	is_at "server$pair" "$server" listening
	launch "client$pair" client "$1"
	client=$started
	is_at "client$pair" "$client" "$1"
	is_at "server$pair" "$server" "$2"
	wait_for 60 settled
	client_lines=$(wc -l <"$SCRATCH/client$pair.log")
	server_lines=$(wc -l <"$SCRATCH/server$pair.log")
}

# Dead, and the daemon has noticed; who it was connected to, too.
killed() {
	kill -KILL "$1"
	wait "$1" 2>/dev/null
	wait_for 60 is_released "$1"
	wait_for 60 settled
}

# ends NAME PID: it terminates in time, and could free everything.
ends() {
	ends_itself "$2" || return
	wait "$2" || {
		echo "the $1 ended with $?"
		return 1
	}
}

# heard NAME LINES EXPECTED...: its output after that many lines, except for its steps.
heard() {
	local name=$1 lines=$2
	shift 2
	[ $# -eq 0 ] || printf '%s\n' "$@" >"$SCRATCH/expected"
	[ $# -gt 0 ] || : >"$SCRATCH/expected"
	tail -n +$((lines + 1)) "$SCRATCH/$name.log" | grep -v '^at ' | diff "$SCRATCH/expected" -
}

# Another client, that the server is to end with.
serves_another() {
	launch another client last
	ends another "$started" || return
	echo 'and the server'
	ends server "$server"
}

client_dies() {
	local row="client killed at $1, server at $2"
	both_at "$1" "$2"
	shift 2
	killed "$client"
	echo go 1<>"$SCRATCH/to_server"
	check "$row: another client is served" serves_another
	check "$row: the server gets ${*:-nothing}" heard server "$server_lines" "$@" \
		'event CONNECT_REQUEST 0' 'event ESTABLISHED 0' 'event DISCONNECTED 0'
	check "$row: nothing is held" nothing_held
}

server_dies() {
	local row="server killed at $1, client at $2"
	both_at "$2" "$1"
	shift 2
	killed "$server"
	echo go 1<>"$SCRATCH/to_client"
	check "$row: the client ends" ends client "$client"
	check "$row: it gets $*" heard client "$client_lines" "$@"
	check "$row: nothing is held" nothing_held
}

# told NAME PID LINES EXPECTED...
told() {
	echo event 1<>"$SCRATCH/to_$1"
	check "$row: the $1 ends" ends "$1" "$2"
	check "$row: it gets ${*:4}" heard "$1" "${@:3}"
}

daemon_dies() {
	local row rows=() clients=() servers=() client_from=() server_from=()
	local client_step server_step ids gone='event DEVICE_REMOVAL 0' expected
	while read -r client_step server_step ids; do
		row="client at $client_step, server at $server_step"
		pair=${#rows[@]}
		both_at "$client_step" "$server_step"
		rows+=("$client_step $server_step $ids")
		clients+=("$client")
		servers+=("$server")
		client_from+=("$client_lines")
		server_from+=("$server_lines")
	done < <(grep . <<<"$daemon_rows")
	kill -KILL "$daemon"
	wait "$daemon" 2>/dev/null
	for pair in "${!rows[@]}"; do
		read -r client_step server_step ids <<<"${rows[$pair]}"
		row="daemon killed, client at $client_step, server at $server_step"
		expected=("$gone")
		[ "$client_step" != id ] || expected=('rdma_get_cm_event: ENODEV')
		told "client$pair" "${clients[$pair]}" "${client_from[$pair]}" "${expected[@]}"
		expected=("$gone")
		[ "$ids" = 1 ] || expected+=("$gone")
		told "server$pair" "${servers[$pair]}" "${server_from[$pair]}" "${expected[@]}"
	done
	pair=''
}

up
wait_for 20 cm_holds_its_own
held >"$SCRATCH/before"
client_rows
server_rows
daemon_dies
up
client_dies connect accept 'event REJECTED 28'
finish
