# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For the tests of the drop-in to source, after lib.sh: pairs of programs that find each other over
# TCP, each on its own HCA, and the HCAs for them.

# Something accepts connections at the TCP port.
listens() {
	grep -qiE ":$(printf %04X "$1") [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# Where the two programs find their HCAs: by topology().
server_socket='' server_hca='' client_socket='' client_hca='' place=''

# one_hca, two_hcas: of one daemon; two_daemons: each with one HCA, joined by memif. Starts what is
# needed; to be called once each.
one_hca() {
	ring_config >"$SCRATCH/one.conf"
	daemon one -c "$SCRATCH/one.conf"
	two_hcas
	place='one HCA' client_hca=left
}

two_hcas() {
	place='one daemon'
	server_socket=$SCRATCH/one.sock client_socket=$SCRATCH/one.sock
	server_hca=left client_hca=right
}

# port_up SOCKET: the first HCA's there; memif's other end may take a while.
port_up() {
	drop_in env SOFTHCA_SOCKET="$1" ibv_devinfo 2>/dev/null | grep -q PORT_ACTIVE
}

two_daemons() {
	memif_daemons
	wait_for 20 port_up "$SCRATCH/a.sock"
	wait_for 20 port_up "$SCRATCH/b.sock"
	place='two daemons'
	server_socket=$SCRATCH/a.sock client_socket=$SCRATCH/b.sock
	server_hca=hca1 client_hca=hca2
}

# once COMMAND ARGUMENTS...: as server and as client: both end well.
once() {
	local server command=$1
	shift
	TCP_PORT=$((TCP_PORT + 1))
	start server drop_in env SOFTHCA_SOCKET="$server_socket" timeout "$patience" "$command" \
		-d "$server_hca" -p $TCP_PORT "$@"
	server=$started
	wait_for 20 listens_or_gone $TCP_PORT "$server"
	drop_in env SOFTHCA_SOCKET="$client_socket" timeout "$patience" "$command" \
		-d "$client_hca" -p $TCP_PORT "$@" 127.0.0.1 >"$SCRATCH/client.log" 2>&1 &&
		wait "$server" && return
	kill "$server" 2>/dev/null
	return 1
}

listens_or_gone() {
	listens "$1" || not_running "$2"
}

# Of two daemons one had no core for so long that the other, or a program, has given up.
gave_up() { [ "$place" = 'two daemons' ] && waited_in_vain; }

# attempts AGAIN COMMAND...: COMMAND until it ends well, as long as AGAIN allows another try after
# $tries. Checked: as the COMMAND's arguments.
attempts() {
	local may_again=$1 command=$2 tries again=''
	shift 2
	for ((tries = 1;; tries++)); do
		"$command" "$@" && ok "$place: $*$again" && return
		"$may_again" || break
		again=', tried again'
	done
	fail "$place: $*"
	show_both
}

lost_or_gave_up() { [ "$tries" -lt 3 ] && { [ "$lossy" = yes ] || gave_up; }; }

# programs COMMAND ARGUMENTS...: as once() has them. Checked. What may be lost may be lost: a daemon
# that has no core for long takes no frames from the other, and the programs wait for a lost datagram
# for ever, so they get another chance. So do pingpongs whose queue pairs give up after half a second;
# perftest's have time.
programs() {
	local lossy=no patience=100
	if [[ "$*" =~ _u[cd]_|-c\ U[CD] ]]; then
		[ "$place" != 'two daemons' ] || lossy=yes patience=20
	elif [[ "$1" = ib_* ]]; then
		set -- "$@" -u 18
	fi
	attempts lost_or_gave_up once "$@"
}
