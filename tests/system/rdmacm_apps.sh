#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs that connect through librdmacm, as Debian packages them, unmodified: perftest -R, qperf,
# libfabric, UCX; between two HCAs of a daemon, between two daemons.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/verbs/pairs.sh"
. "$(dirname "$0")/verbs/cm.sh"
need_command ib_write_bw

port() { TCP_PORT=$((TCP_PORT + 1)); }

# bench COMMAND ARGUMENTS...: one of perftest's. It makes two connections; for the second the client
# does not wait until the server listens, so it may come too soon, is rejected, and crashes.
bench() {
	local chances=4
	port
	both "$1" -R -p $TCP_PORT "${@:2}" -- "$1" -R -p $TCP_PORT "${@:2}" "$server_ip"
}

with_perftest() {
	local kind
	for kind in write read atomic send; do
		bench ib_${kind}_bw -n 100
		bench ib_${kind}_lat -n 50
	done
	bench ib_write_bw -n 50 -q 8
	bench ib_send_bw -n 50 -e
	bench ib_send_lat -n 50 -c UD -s 64
	bench ib_send_bw -n 50 -c UD -s 1024
	bench ib_send_bw -n 50 --use-srq
	bench ib_send_lat -n 20 -s 100000
}

# It asks for the server's address what both TCP and the connection manager have to know. Its server
# names its port before it listens there (mended upstream after 0.4.11), so a client may be rejected.
with_qperf() {
	local chances=4 row
	port
	start server "${inside[@]}" "$TOOL" run --socket "$server_socket" -- qperf -lp $TCP_PORT
	server=$started
	wait_for 10 tcp_listens_or_gone $TCP_PORT "$server"
	for row in rc_lat rc_bw rc_bi_bw rc_rdma_read_lat rc_rdma_read_bw rc_rdma_write_lat \
		rc_rdma_write_bw rc_rdma_write_poll_lat rc_compare_swap_mr rc_fetch_add_mr \
		ver_rc_compare_swap ver_rc_fetch_add; do
		client qperf -lp $TCP_PORT -to 60 -t 1 "$server_ip" -cm 1 "$row"
	done
	kill "$server" 2>/dev/null
}

# fabric PROVIDER TYPE DOMAIN: its endpoints of that type.
fabric() {
	port
	start server "${inside[@]}" "$TOOL" run --socket "$server_socket" -- timeout $patience \
		fi_pingpong -p "$1" -e "$2" -c -d "$3" -B $TCP_PORT
	server=$started
	wait_for 20 tcp_listens_or_gone $TCP_PORT "$server"
	client fi_pingpong -p "$1" -e "$2" -P $TCP_PORT -c "$server_ip"
	wait_for 10 not_running "$server" || kill "$server" 2>/dev/null
}

with_libfabric() {
	fabric verbs msg "$server_hca"
	fabric verbs dgram "$server_hca-dgram"
	fabric 'verbs;ofi_rxm' rdm "$server_hca"
}

with_ucx() {
	local kind
	export UCX_TLS=rc_verbs,ud_verbs UCX_SOCKADDR_TLS_PRIORITY=rdmacm
	for kind in stream tag am; do
		port
		serve "$SCRATCH/ucp" -c $kind -p $TCP_PORT -i 20 -s 100000
		client "$SCRATCH/ucp" -c $kind -p $TCP_PORT -i 20 -s 100000 -a "$server_ip"
		kill "$server" 2>/dev/null
	done
	unset UCX_TLS UCX_SOCKADDR_TLS_PRIORITY
}

with_all() {
	addresses
	with_perftest
	with_qperf
	with_libfabric
	[ ! -x "$SCRATCH/ucp" ] || with_ucx
	check "$place: nothing is left" wait_for 30 nothing_left
}

examples=/usr/share/doc/libucx-dev/examples
if [ -f $examples/ucp_client_server.c ]; then
	check 'ucp_client_server' cc -O1 -o "$SCRATCH/ucp" $examples/ucp_client_server.c -lucp -lucs
else
	leave_out the examples of libucx-dev
fi
host_addresses
one_hca
two_hcas
with_all
two_daemons
with_all
finish
