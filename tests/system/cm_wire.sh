#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The connection managers of two daemons, joined by memif: rping in both directions, over IPv4 and
# IPv6. Their own captures are dissected: each connection is made and ended by the messages of the
# standard, each sent once. Of two HCAs each says whether it gives credits. And an unused thread
# sleeps; daemon.cm = off. And what equals send on a bad network.
. "$(dirname "$0")/lib.sh"
need_command tshark
need_command rping

PINGS=20 size=()
mkdir "$SCRATCH/captures"

# cm NAME: what `softhca cm` says of daemon NAME.
cm() { "$TOOL" --socket "$SCRATCH/$1.sock" cm; }
listens() { cm "$1" | grep -q LISTEN; }

# on_daemon NAME COMMAND...: with daemon NAME as its device.
on_daemon() {
	local name=$1
	shift
	timeout 60 "$TOOL" run --socket "$SCRATCH/$name.sock" -- "$@"
}

# pings SERVER CLIENT ADDRESS OPTIONS...: rping between programs of these daemons; options of the
# client.
pings() {
	local server status=0
	start server timeout 60 "$TOOL" run --socket "$SCRATCH/$1.sock" -- \
		rping -s -a "$3" -v -C $PINGS "${size[@]}"
	server=$started
	wait_for 20 listens "$1" || { cat "$SCRATCH/server.log"; return 1; }
	on_daemon "$2" rping -c -a "$3" -v -C $PINGS "${size[@]}" "${@:4}" >"$SCRATCH/client.log" 2>&1 || status=$?
	ended_well $status "$SCRATCH/client.log" || {
		kill "$server" 2>/dev/null
		cat "$SCRATCH/client.log"
		return 1
	}
	waited_well "$server" "$SCRATCH/server.log" &&
		[ "$(grep -c '^ping data: rdma-ping' "$SCRATCH/client.log")" -eq $PINGS ]
}

# messages ATTRIBUTE-ID: how many of them daemon a's port has seen. Those of one direction: with
# `and` and a display filter.
messages() {
	tshark -r "$SCRATCH/captures/1.pcapng" -Y "infiniband.mad.attributeid == $1 ${*:2}" \
		2>/dev/null | wc -l
}

# Each of the four connections, no message twice: nothing was lost, not even the first answer.
ids=(0x0010 0x0013 0x0014 0x0015 0x0016) # REQ, REP, RTU, DREQ, DREP
each_message_once() {
	local id
	for id in "${ids[@]}"; do
		[ "$(messages $id)" -eq 4 ] || {
			echo "attribute $id: $(messages $id) messages"
			return 1
		}
	done
	[ "$(messages 0x0010 and ip.src == 10.9.0.1)" -eq 1 ] &&
		[ "$(messages 0x0010 and ipv6.src == fd09::1)" -eq 1 ]
}

# Is a message there more often?
repeated() {
	local id
	for id in "${ids[@]}"; do
		[ "$(messages "$id")" -le 4 ] || return 0
	done
	return 1
}

# credits ATTRIBUTE-ID FIELD: that bit of these messages between left and right, in their order.
credits() {
	tshark -r "$SCRATCH/credits.pcapng" -Y "infiniband.mad.attributeid == $1" \
		-T fields -e "infiniband.cm.$2.e2eflowctrl" 2>/dev/null | xargs
}

# Left gives none, right does: first it asks left, then left asks it.
credits_told() {
	[ "$(credits 0x0010 req), $(credits 0x0013 rep)" = '0x01 0x00, 0x00 0x01' ] || {
		echo "REQ $(credits 0x0010 req), REP $(credits 0x0013 rep)"
		return 1
	}
}

# From QP 1 to QP 1 with its Q_Key.
all_from_qp_1() {
	tshark -r "$SCRATCH/captures/1.pcapng" -Y 'infiniband.mad && !(infiniband.bth.destqp == 1 &&
		infiniband.deth.srcqp == 1 && infiniband.deth.q_key == 0x80010000)' \
		2>/dev/null >"$SCRATCH/strange"
	no_lines "$SCRATCH/strange"
}

# How often the threads of the connection manager have been woken.
wakes() {
	local task sum=0
	for task in /proc/"$1"/task/*; do
		[ "$(cat "$task/comm")" = softhca-cm ] || continue
		sum=$((sum + $(awk '/^voluntary/ { print $2 }' "$task/status")))
	done
	echo $sum
}

# But for a moment in each second, as the watchdog wants.
sleeps() {
	local before began=$SECONDS
	before=$(wakes "$1")
	sleep 2
	[ "$before" -gt 0 ] && [ "$(wakes "$1")" -le $((before + SECONDS - began + 3)) ]
}

refused() { ! "$@"; }

nothing_left() {
	[ "$(cm a | head -n 1)" = '0 identifiers' ] && [ "$(cm b | head -n 1)" = '0 identifiers' ]
}

both_ways() { pings a b 10.9.0.1 && pings b a 10.9.0.2 && pings a b fd09::1 && pings b a fd09::2; }

# Who gets no answer for seconds asks again, or gives up, so a machine that stands still for so long gets another chance.
for _ in 1 2; do
	rm -f "$SCRATCH"/captures/*
	memif_daemons "$SCRATCH/captures"
	check 'the ports are joined' wait_for 20 link_up b
	check 'the threads sleep before they are needed' sleeps "$daemon_a"
	both_ways >"$SCRATCH/pings.log" 2>&1 && worked=yes || worked=no
	[ $worked = no ] || check 'no identifier is left' wait_for 10 nothing_left
	check 'the daemons end cleanly' stop "$daemon_b"
	check 'both of them' stop "$daemon_a"
	if [ $worked = yes ]; then repeated; else waited_in_vain; fi || break
done
check 'rping from b to a, from a to b, IPv4 and IPv6' eval '[ $worked = yes ] || { cat "$SCRATCH/pings.log"; false; }'
check 'each message came once' each_message_once
check 'all from QP 1 to QP 1' all_from_qp_1
frames_right "$SCRATCH/captures"

ring_config >"$SCRATCH/ring.conf"
daemon ring -c "$SCRATCH/ring.conf" --set left.e2e_credits=no \
	--set left.capture="$SCRATCH/credits.pcapng"
check 'rping to left, which gives no credits' pings ring ring 192.168.77.1 -I 192.168.77.2
check 'rping to right, which does' pings ring ring 192.168.77.2 -I 192.168.77.1
check 'it ends cleanly' stop "$started"
check 'REQ and REP say who gives credits' credits_told
daemon off -c "$SCRATCH/ring.conf" --set daemon.cm=off
check 'daemon.cm=off: no QP 1' grep -q '0 queue pairs' \
	<("$TOOL" --socket "$SCRATCH/off.sock" --hca left qp)
check 'and it says so' grep -q 'no connection manager' <(cm off)
check 'rping has nobody to ask' refused on_daemon off rping -s -a 192.168.77.1 -C 1
check 'it ends cleanly' stop "$started"

# Equals on a bad network, several ways: what only they send, and CNPs, in packets with a priority.
mkdir "$SCRATCH/bad"
size=(-S 65000)
daemon bad -c "$SCRATCH/ring.conf" --set left.cc=dcqcn --set right.cc=dcqcn --set left.path_spread=4 \
	--set left.priority_tag=yes --set left.priority=3 --set left.loss=0.03 --set left.mark=0.05 \
	--set left.capture="$SCRATCH/bad/bad.pcapng"
check 'rping between equals, with losses' pings bad bad 192.168.77.1 -I 192.168.77.2
check 'it ends cleanly' stop "$started"
# values FILTER FIELD: its different values, in one line.
values() { tshark -r "$SCRATCH/bad/bad.pcapng" -Y "$1" -T fields -e "$2" 2>/dev/null | sort -u | paste -sd' '; }
is() { [ "$1" = "$2" ] || ! echo "$1"; }
check 'REQ and REP: ECE' is "$(values 'infiniband.mad.attributeid in {0x10, 0x13}' infiniband.mad.attributemodifier)" 0x53480001
check 'WRITEs: four ports' is "$(values 'infiniband.bth.opcode == 7' udp.srcport | wc -w)" 4
check 'a priority' is "$(values 'ip.src == 192.168.77.1' vlan.priority)" 3
check 'none of the peer' is "$(values 'ip.src == 192.168.77.2' vlan.priority)" ''
check 'selective acknowledgements' is "$(values 'infiniband.bth.opcode == 0xd3' ip.src)" 192.168.77.2
check 'CNPs' is "$(values 'infiniband.bth.opcode == 0x81' ip.dsfield.dscp)" 48
frames_right "$SCRATCH/bad"
finish
