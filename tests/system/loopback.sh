#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs of one HCA communicate: frames addressed to the port itself return to it, on
# every kind of port, with several engines, under impairment, seen by the capture. Two processes,
# every service, all data verified.
. "$(dirname "$0")/lib.sh"

# loop NAME ARGUMENTS...: server and client, both on hca0 of daemon NAME. Checked.
loop() {
	local name=$1 server
	shift
	TCP_PORT=$((TCP_PORT + 1))
	start server timeout 60 "$PERF" "$@" --socket "$SCRATCH/$name.sock" -d hca0 -p $TCP_PORT
	server=$started
	if timeout 60 "$PERF" "$@" --socket "$SCRATCH/$name.sock" -d hca0 -p $TCP_PORT 127.0.0.1 \
		>"$SCRATCH/client.log" 2>&1 && wait "$server"; then
		ok "$name: $*"
	else
		fail "$name: $*"
		kill "$server" 2>/dev/null
		show_both
	fi
}

# each_service NAME: two processes on hca0 of daemon NAME.
each_service() {
	loop "$1" send_bw --verify -b -q 4 --random -s 10000 -n 200
	loop "$1" write_bw --verify -s 65537 -n 100
	loop "$1" read_bw --verify -s 65537 -n 100
	loop "$1" atomic_lat --verify -n 50
	loop "$1" send_lat --verify -e -n 50
	loop "$1" write_bw -c UC --verify -s 5000 -n 64
	loop "$1" send_bw -c UD --verify -s 1000 -n 64
	loop "$1" send_lat --verify -x 2 -n 50
}

# counted NAME HCA COUNTER: it is not 0.
counted() {
	"$TOOL" --socket "$SCRATCH/$1.sock" --hca "$2" counters >"$SCRATCH/counters" || return 1
	grep -qw "$3" "$SCRATCH/counters"
}

# untouched NAME HCA: it received nothing.
untouched() { ! counted "$1" "$2" rx_roce; }

# The end of a test of one daemon.
done_with() {
	check "$1: the port returned the frames itself" counted "$1" hca0 tx_looped
	check "$1: the daemon ends cleanly" stop "$daemon"
}

# Joined with another HCA, which must see none of it.
mkdir "$SCRATCH/captures"
{
	printf '[daemon]\n[hca hca0]\npeer = hca1\naddress = 10.9.0.1/24, fd09::1/64\n'
	printf 'capture = %s/captures/own.pcapng\n' "$SCRATCH"
	printf '[hca hca1]\npeer = hca0\naddress = 10.9.0.2/24, fd09::2/64\n'
} >"$SCRATCH/ring.conf"
daemon ring -c "$SCRATCH/ring.conf"
daemon=$started
each_service ring
check 'ring: the peer saw nothing' untouched ring hca1
done_with ring
if command -v tshark >/dev/null; then
	frames_right "$SCRATCH/captures"
fi

# Several engines: a frame comes back on the sender's queue and goes to the owner of the queue pair.
printf '[daemon]\n[hca hca0]\npeer = hca0\nengines = 2\naddress = 10.9.0.1/24, fd09::1/64\n' \
	>"$SCRATCH/engines.conf"
daemon engines -c "$SCRATCH/engines.conf"
daemon=$started
each_service engines
done_with engines

# Loss, duplicates and another order on the way back, as on the way out.
printf '[daemon]\n[hca hca0]\npeer = hca0\naddress = 10.9.0.1/24\n' >"$SCRATCH/lossy.conf"
printf 'loss = 0.01\nduplicate = 0.01\nreorder = 0.01\n' >>"$SCRATCH/lossy.conf"
daemon lossy -c "$SCRATCH/lossy.conf"
daemon=$started
loop lossy send_bw --verify -b -u 10 -s 10000 -n 200
loop lossy read_bw --verify -u 10 -s 10000 -n 200
check 'lossy: frames were lost on purpose' counted lossy hca0 impaired_lost
done_with lossy

# memif_end NAME NUMBER SERVER: one end of a memif link; the other one only makes that it is up.
memif_end() {
	{
		printf '[daemon]\n[hca hca0]\nport = memif\ndevice = %s/memif\n' "$SCRATCH"
		printf 'address = 10.9.0.%s/24, fd09::%s/64\nmemif_server = %s\n' "$2" "$2" "$3"
	} >"$SCRATCH/$1.conf"
	daemon "$1" -c "$SCRATCH/$1.conf"
}
memif_end other 2 yes
memif_end memif 1 no
daemon=$started
wait_for 10 counted memif hca0 link_changes
each_service memif
done_with memif

if [ "$(id -u)" -eq 0 ] && (need_netns) >/dev/null; then
	hosts 4200
	printf '[daemon]\n[hca hca0]\nport = af_packet\ndevice = hca0\n' >"$SCRATCH/packet.conf"
	printf 'address = 192.0.2.101/24, 2001:db8::101/64\n' >>"$SCRATCH/packet.conf"
	daemon packet on "$HOST_A" -c "$SCRATCH/packet.conf"
	daemon=$started
	each_service packet
	done_with packet

	# Without addresses of its own it has the interface's. The usual limit of locked memory is enough.
	printf '#!/bin/sh\nexec setpriv --inh-caps=-ipc_lock --bounding-set=-ipc_lock prlimit --memlock=%u %s "$@"\n' \
		$((8 << 20)) "$DAEMON" >"$SCRATCH/modest"
	chmod +x "$SCRATCH/modest"
	shared() { [[ "$("$TOOL" --socket "$SCRATCH/shared.sock" status)" == *"$1"* ]]; }
	printf '[daemon]\n[hca hca0]\nport = af_packet\ndevice = hca0\n' >"$SCRATCH/shared.conf"
	on "$HOST_A" ip address add 192.0.2.51/25 dev hca0
	DAEMON=$SCRATCH/modest daemon shared on "$HOST_A" -c "$SCRATCH/shared.conf"
	daemon=$started
	check 'without an address: that of the interface' wait_for 10 shared 192.0.2.51
	loop shared send_bw --verify -s 10000 -n 50
	on "$HOST_A" ip address add 192.0.2.52/25 dev hca0
	kill -HUP "$daemon"
	check 'a reload takes those that came' wait_for 10 shared 192.0.2.52
	check 'the daemon ends cleanly' stop "$daemon"
else
	echo 'not run: af_packet (needs root and network namespaces)'
fi
finish
