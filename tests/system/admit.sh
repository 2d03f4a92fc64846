#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Peers that the setting `admit` does not list: nobody connects to them, and what they send is dropped
# and counted.
. "$(dirname "$0")/lib.sh"
need_command rping

ring_config >"$SCRATCH/ring.conf"
daemon admit -c "$SCRATCH/ring.conf" --set left.admit=fd77::2,192.168.78.0/24
daemon=$started

listens() { "$TOOL" --socket "$SCRATCH/admit.sock" cm | grep -qw LISTENING; }

# asks FROM TO: a program on the HCA with address FROM connects to a listener at TO, within $patience seconds.
patience=60
asks() {
	local server status=0
	start listener "$TOOL" run --socket "$SCRATCH/admit.sock" -- rping -s -a "$2" -C 3
	server=$started
	wait_for 20 listens
	timeout "$patience" "$TOOL" run --socket "$SCRATCH/admit.sock" -- rping -c -I "$1" -a "$2" -C 3 \
		>"$SCRATCH/client.log" 2>&1 || status=$?
	kill "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	wait_for 20 no listens
	ended_well $status "$SCRATCH/client.log"
}
no() { ! "$@"; }

# dropped NUMBER: so many packets of strangers, at least.
dropped() {
	local n
	n=$("$TOOL" --socket "$SCRATCH/admit.sock" --hca left counters --all |
		sed -n 's/.*drop_rx_peer *\([0-9]*\).*/\1/p')
	[ "${n:-0}" -ge "$1" ]
}

check 'a listed address may connect' asks fd77::2 fd77::1
check 'may be connected to' asks fd77::1 fd77::2
check 'nothing was dropped' no dropped 1
# None of its programs connects. One that gets no CPU for its 5 s has not even asked; the next may.
kept_out() {
	local patience=5
	for _ in 1 2 3 4 5; do
		no asks 192.168.77.2 192.168.77.1 || return
		dropped 1 && return
	done
}
check 'a stranger may not connect' kept_out
check 'its request was counted' dropped 1
check 'nor is it connected to' no asks 192.168.77.1 192.168.77.2
check 'own addresses need not be listed' asks 192.168.77.1 192.168.77.1
check 'the daemon ends cleanly' stop "$daemon"
finish
