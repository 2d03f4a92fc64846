#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two hosts with two wires each, ports with a backup, which waits or has its share of the traffic. One wire after the other is
# taken away while messages run, every byte checked: no queue pair notices but by a pause.
. "$(dirname "$0")/lib.sh"

# second_wire: hca1 on both hosts, beside hca0.
second_wire() {
	local end=sh$$
	ip link add "${end}c" type veth peer name "${end}d" &&
		ip link set "${end}c" netns "$HOST_A" && ip link set "${end}d" netns "$HOST_B" &&
		ip -n "$HOST_A" link set "${end}c" name hca1 mtu 4200 up &&
		ip -n "$HOST_B" link set "${end}d" name hca1 mtu 4200 up
}

# counted NAME COUNTER: of daemon NAME.
counted() {
	"$TOOL" --socket "$SCRATCH/$1.sock" counters --all | awk -v counter="$2" '$1 == counter { print $2; exit }'
}

# both COUNTER TIMES: so often or more.
both() { [ "$(counted a "$1")" -ge "$2" ] && [ "$(counted b "$1")" -ge "$2" ]; }

# cut FIRST: the two wires in turn, FIRST times already done; a wire returns when both daemons have gone over, and is in use again
# before the next one goes, if it waits for nothing else.
cut() {
	local times=$1 wire
	for wire in hca0 hca1 hca0 hca1; do
		sleep 0.5
		times=$((times + 1))
		ip -n "$HOST_A" link set "$wire" down
		wait_for 10 both failovers $times || echo "nobody went over from $wire"
		sleep 0.3
		ip -n "$HOST_A" link set "$wire" up
		[ "$mode" = active-backup ] || wait_for 10 both failbacks $times || echo "nobody came back to $wire"
	done
}

# during ARGUMENTS...: a test between the hosts, while the wires are cut four times.
during() {
	local cutter
	: >"$SCRATCH/cut.log"
	cut $cuts >"$SCRATCH/cut.log" &
	cutter=$!
	between "$@"
	wait "$cutter"
	cuts=$((cuts + 4))
	check "$1: four failovers at each end" no_lines "$SCRATCH/cut.log"
}

# daemons MODE
daemons() {
	local number
	mode=$1 cuts=0
	for number in 1 2; do
		network_config $number $((number > 1 && $(nproc) > 1)) >"$SCRATCH/$number.conf"
		printf 'backup = hca1\nfailover_ms = 5\nbond_mode = %s\nupdelay = 100\n' "$mode" >>"$SCRATCH/$number.conf"
	done
	daemon a on "$HOST_A" -c "$SCRATCH/1.conf"
	daemon_a=$started
	daemon b on "$HOST_B" -c "$SCRATCH/2.conf"
	daemon_b=$started
}

daemons_end() {
	check 'daemon a ends cleanly' stop "$daemon_a"
	check 'daemon b ends cleanly' stop "$daemon_b"
}

active() { "$TOOL" --socket "$SCRATCH/a.sock" --json status | grep -q "\"active\":\"$1\""; }
sent() { on "$HOST_A" cat "/sys/class/net/$1/statistics/tx_packets"; }
asked() { [ "$(counted a relink_probes)" -gt 0 ]; }

need_netns
hosts 4200
second_wire || skip 'cannot lay a second wire'
a_side=(on "$HOST_A") b_side=(on "$HOST_B")
# The exchange over TCP needs a wire that stays.
ip link add "sh$$e" type veth peer name "sh$$f" && ip link set "sh$$e" netns "$HOST_A" && ip link set "sh$$f" netns "$HOST_B"
ip -n "$HOST_A" address add 198.51.100.1/24 dev "sh$$e" && ip -n "$HOST_A" link set "sh$$e" up
ip -n "$HOST_B" address add 198.51.100.2/24 dev "sh$$f" && ip -n "$HOST_B" link set "sh$$f" up
server_address=198.51.100.2

daemons active-backup
during write_bw --verify -q 4 -s 65536 -D 8
during read_bw --verify -b -q 2 -s 20000 -D 8
during send_bw --verify -e -s 3000 -D 8
check 'queue pairs asked because the port went over' asked
check 'one interface is in use' active 'hca[01]'
daemons_end

daemons balance-xor
check 'both interfaces are in use' active 'hca0 hca1'
first=$(sent hca0) second=$(sent hca1)
between write_bw --verify -b -q 32 -t 16 -s 16384 -n 64
check 'the first one carried some of it' [ "$(sent hca0)" -gt $((first + 500)) ]
check 'and so did the second one' [ "$(sent hca1)" -gt $((second + 500)) ]
during write_bw --verify -b -q 32 -t 16 -s 16384 -D 8
during send_bw --verify -q 4 -s 3000 -D 8
daemons_end
finish
