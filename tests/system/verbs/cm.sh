# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For the tests of the connection manager to source, after lib.sh and pairs.sh: programs that find
# each other by address, below our libraries and the distribution's librdmacm.

patience=60

# Where the programs of the place are: server_ip, client_ip, server_ip6, client_ip6.
addresses() {
	case $place in
	'one HCA') server_ip=192.168.77.1 client_ip=192.168.77.1 server_ip6=fd77::1 client_ip6=fd77::1 ;;
	'one daemon') server_ip=192.168.77.1 client_ip=192.168.77.2 server_ip6=fd77::1 client_ip6=fd77::2 ;;
	'two daemons') server_ip=10.9.0.1 client_ip=10.9.0.2 server_ip6=fd09::1 client_ip6=fd09::2 ;;
	esac
}

# The addresses of all HCAs in a network namespace of their own, for programs that also want to
# bind or connect to them with TCP. Not on lo: libfabric looks for them on the other interfaces.
# Leaves in $inside what to put before a command.
inside=()
host_addresses() {
	local address
	need_netns
	hosts_laid=yes
	ip netns add "$HOST_A" && ip -n "$HOST_A" link set lo up &&
		ip -n "$HOST_A" link add rdma0 type veth peer name rdma0-far &&
		ip -n "$HOST_A" link set rdma0 up && ip -n "$HOST_A" link set rdma0-far up ||
		skip 'no network namespace'
	for address in 192.168.77.1 192.168.77.2 10.9.0.1 10.9.0.2; do
		ip -n "$HOST_A" address add $address/24 dev rdma0
	done
	inside=(ip netns exec "$HOST_A")
}

as_server() { "${inside[@]}" "$TOOL" run --socket "$server_socket" -- timeout $patience "$@"; }
as_client() { "${inside[@]}" "$TOOL" run --socket "$client_socket" -- timeout $patience "$@"; }

# An identifier of the process, or of a child of its, listens.
cm_listens() {
	local pid
	for pid in "$1" $(pgrep -P "$1"); do
		"$TOOL" --socket "$server_socket" cm 2>/dev/null | grep -qE " $pid +[A-Z]+ +LISTENING " && return
	done
	return 1
}

listens_or_ended() { cm_listens "$1" || not_running "$1"; }

# Something accepts TCP connections where the programs are, or the process is gone.
tcp_listens_or_gone() {
	"${inside[@]}" ss -Htln "sport = :$1" | grep -q . || not_running "$2"
}

# serve COMMAND...: as the server, until it listens. Leaves its process in $server.
serve() {
	start server "${inside[@]}" "$TOOL" run --socket "$server_socket" -- timeout $patience "$@"
	server=$started
	wait_for 20 listens_or_ended "$server" || fail "$place: $* listens"
}

# Tries of a client that may come too soon.
chances=1

once_client() {
	local status=0
	as_client "$@" >"$SCRATCH/client.log" 2>&1 || status=$?
	echo "ended with $status" >>"$SCRATCH/client.log"
	return $status
}

was_rejected() { [ "$tries" -lt "$chances" ] && grep -q 'Event rejected' "$SCRATCH/client.log"; }

# client COMMAND...: to a server that continues; as often as $chances allows, if it is rejected. Checked.
client() { attempts was_rejected once_client "$@"; }

# once_both SERVER... -- CLIENT...: both end well.
once_both() {
	local words=() status=0
	while [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	shift
	serve "${words[@]}"
	once_client "$@" || status=$?
	ended_well $status "$SCRATCH/client.log" && wait_for 20 not_running "$server" &&
		waited_well "$server" "$SCRATCH/server.log" && return
	kill "$server" 2>/dev/null
	wait_for 5 not_running "$server"
	return 1
}

has_chances() { [ "$tries" -lt "$chances" ] || { [ "$tries" -lt 3 ] && gave_up; }; }

# both SERVER... -- CLIENT...: the same, as often as $chances allows; three times if they have given up. Checked.
both() { attempts has_chances once_both "$@"; }

# No identifier of a program is left at a daemon.
nothing_left() {
	local socket
	for socket in "$server_socket" "$client_socket"; do
		"$TOOL" --socket "$socket" cm 2>/dev/null | grep -q '^0 identifiers' || return 1
	done
}
