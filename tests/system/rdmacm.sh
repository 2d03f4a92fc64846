#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The programs of librdmacm, as Debian packages them, unmodified: on one HCA, between two HCAs of a
# daemon, between two daemons; IPv4 and IPv6.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/verbs/pairs.sh"
. "$(dirname "$0")/verbs/cm.sh"
need_command rping

with_rping() {
	both rping -s -a "$server_ip" -C 1000 -v -- rping -c -a "$server_ip" -I "$client_ip" -C 1000 -v
	both rping -s -a "$server_ip" -C 20 -V -S 65000 -- rping -c -a "$server_ip" -C 20 -V -S 65000
	both rping -s -q -C 20 -V -- rping -c -q -a "$server_ip" -C 20 -V
	both rping -s -a "$server_ip6" -C 100 -V -- rping -c -a "$server_ip6" -I "$client_ip6" -C 100 -V
	both rping -s -a ::0 -C 20 -V -- rping -c -a "$server_ip6" -C 20 -V
}

# Clients in parallel, one server process for all. They begin one after another: the server keeps but
# one request in mind, so of two at once it forgets one and takes the other twice.
persistent() {
	local clients=() bad=0 status i
	rm -f "$SCRATCH"/client.[0-9]*
	serve rping -s -P -p 7175
	for ((i = 0; i < $1; i++)); do
		as_client stdbuf -oL rping -c -a "$server_ip" -p 7175 -C 300 -v >"$SCRATCH/client.$i" 2>&1 &
		clients+=($!)
		wait_for 10 grep -qs rdma-ping-0 "$SCRATCH/client.$i"
	done
	for i in "${!clients[@]}"; do
		status=0
		wait "${clients[i]}" || status=$?
		ended_well $status "$SCRATCH/client.$i" && continue
		echo "client $i: exit code $status" >>"$SCRATCH/client.$i"
		bad=$((bad + 1))
	done
	cat "$SCRATCH"/client.[0-9]* >"$SCRATCH/client.log"
	if [ $bad -eq 0 ] && ! not_running "$server"; then
		ok "$place: rping -s -P, $1 clients in parallel"
	else
		fail "$place: rping -s -P, $1 clients in parallel: $bad failed"
		show_both | grep -v 'ping data' | sort | uniq -c | head -n 40
	fi
	kill "$server" 2>/dev/null
}

with_connections() {
	both ucmatose -b "$server_ip" -c 10 -C 50 -S 4096 -- \
		ucmatose -s "$server_ip" -b "$client_ip" -c 10 -C 50 -S 4096
	both ucmatose -b "$server_ip" -c 10 -C 10 -m -- \
		ucmatose -s "$server_ip" -b "$client_ip" -c 10 -C 10 -m
	both ucmatose -f ipv6 -b "$server_ip6" -c 2 -- ucmatose -f ipv6 -s "$server_ip6" -b "$client_ip6" -c 2
	both udaddy -b "$server_ip" -c 10 -C 50 -S 1024 -- \
		udaddy -s "$server_ip" -b "$client_ip" -c 10 -C 50 -S 1024
	both udaddy -f ipv6 -b "$server_ip6" -c 2 -- udaddy -f ipv6 -s "$server_ip6" -b "$client_ip6" -c 2
	both rdma_server -s "$server_ip" -- rdma_client -s "$server_ip"
	both rdma_server -s "$server_ip6" -p 7471 -- rdma_client -s "$server_ip6" -p 7471
	both rdma_xserver -c r -- rdma_xclient -s "$server_ip" -c r
}

# rsockets: a few transfers of each size, not the thousands that they take by themselves. -b is the
# client's port, too, and on one HCA the server's already. (rstream -T a takes a server that has
# sent all and closed for an error.)
streams() {
	local size from=(-b "$client_ip")
	[ "$place" != 'one HCA' ] || from=()
	for size in 1 64 4096 65536 1000000; do
		both "$1" -b "$server_ip" -T v -S $size -I 4 -C 5 -- \
			"$1" -s "$server_ip" "${from[@]}" -T v -S $size -I 4 -C 5
	done
	both "$1" -b "$server_ip" -T n -S 5000 -I 50 -C 10 -- "$1" -s "$server_ip" -T n -S 5000 -I 50 -C 10
	both "$1" -b "$server_ip6" -f ipv6 -T b -S 64 -I 50 -C 10 -- \
		"$1" -s "$server_ip6" -f ipv6 -T b -S 64 -I 50 -C 10
}

with_streams() {
	streams rstream
	streams riostream
	both riostream -b "$server_ip" -T a -S 64 -I 50 -C 10 -- riostream -s "$server_ip" -T a -S 64 -I 50 -C 10
}

copied() {
	cmp "$SCRATCH/file" "$SCRATCH/copy"
}

with_rcopy() {
	head -c 3000001 /dev/urandom >"$SCRATCH/file"
	serve rcopy -p 7427
	rm -f "$SCRATCH/copy"
	client rcopy "$SCRATCH/file" "$server_ip:$SCRATCH/copy" -p 7427
	check "$place: the copy is right" copied
	kill "$server" 2>/dev/null
}

with_cmtime() {
	serve cmtime -b "$server_ip" -p 7176
	client cmtime -s "$server_ip" -b "$client_ip" -p 7176 -c 1000
	kill "$server" 2>/dev/null
}

# The receiver has joined before the sender sends: nothing sent to a group waits for anybody.
joined() { grep -q 'joined dgid' "$SCRATCH/server.log" || not_running "$server"; }

# group ADDRESS SERVER CLIENT
group() {
	start server "$TOOL" run --socket "$server_socket" -- timeout 20 stdbuf -o0 \
		mckey -m "$1" -b "$2" -C 10
	server=$started
	wait_for 10 joined
	if as_client mckey -m "$1" -b "$3" -s -C 10 >"$SCRATCH/client.log" 2>&1 && wait "$server"; then
		ok "$place: mckey -m $1"
	else
		fail "$place: mckey -m $1"
		show_both
		kill "$server" 2>/dev/null
	fi
}

with_mckey() {
	group 239.1.2.3 "$server_ip" "$client_ip"
	group ff05::123 "$server_ip6" "$client_ip6"
}

with_all() {
	addresses
	with_rping
	with_connections
	with_streams
	with_rcopy
	with_mckey
	check "$place: nothing is left" wait_for 30 nothing_left
}

one_hca
with_all
two_hcas
with_all
persistent 100
with_cmtime
check "$place: nothing is left" wait_for 30 nothing_left
two_daemons
with_all
persistent 20
with_cmtime
check "$place: nothing is left" wait_for 30 nothing_left
finish
