#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Multicast by verbs programs: on one HCA, between two of a daemon, between two daemons over a wire;
# a daemon reports and answers there like a kernel.
. "$(dirname "$0")/lib.sh"
need_command python3
here=$(dirname "$0")
PROGRAM=$(program tests/system/multicast) || exit 1

# multicast NAME [on HOST] ARGUMENTS...: the program at daemon NAME, in place of this shell.
multicast() {
	local name=$1 where=()
	shift
	if [ "$1" = on ]; then
		where=(on "$2")
		shift 2
	fi
	SOFTHCA_SOCKET=$SCRATCH/$name.sock drop_in "${where[@]}" timeout 60 "$PROGRAM" "$@"
}

# receiver LOG NAME [on HOST] ARGUMENTS...: in the background, until it is ready. Leaves $started.
receiver() {
	local log=$1
	shift
	: >"$SCRATCH/$log.log" # the one before was ready, too
	multicast "$@" >"$SCRATCH/$log.log" 2>&1 &
	started=$!
	pids+=("$started")
	wait_for 20 grep -q ready "$SCRATCH/$log.log" || cat "$SCRATCH/$log.log"
}

# done_by WHAT PID LOG: it ended well.
done_by() {
	if wait "$2"; then
		ok "$1"
	else
		fail "$1"
		sed 's/^/   /' "$SCRATCH/$3.log"
	fi
}

# both_sides WHAT GROUP SENDER... -- FIRST... -- SECOND...: two receivers, then the sender, which is
# attached itself, and once more one that is not. Each side: NAME [on HOST] DEVICE.
both_sides() {
	local what=$1 group=$2 i=0 attached first second
	local -a side=("" "" "")
	local name
	shift 2
	for name in "$@"; do
		if [ "$name" = -- ]; then i=$((i + 1)); else side[i]+=" $name"; fi
	done
	for attached in 1 0; do
		# shellcheck disable=SC2086
		receiver first ${side[1]} "$group" receive 3 50
		first=$started
		# shellcheck disable=SC2086
		receiver second ${side[2]} "$group" receive 1 50
		second=$started
		# shellcheck disable=SC2086
		check "$what: sends, attached: $attached" multicast ${side[0]} "$group" send $attached 50
		done_by "$what: three queue pairs of one program" $first first
		done_by "$what: a program more" $second second
	done
}

ring_config >"$SCRATCH/ring.conf"
daemon ring -c "$SCRATCH/ring.conf"
ring=$started
for group in 239.129.2.3 ff0e::1:2:3; do
	both_sides "rings, $group" $group ring left -- ring left -- ring right
done
check 'the daemon ends cleanly' stop "$ring"

# ---- a wire, and a kernel ----
wire_daemons

for group in 239.129.2.3 ff0e::1:2:3; do
	both_sides "wire, $group" $group b on "$HOST_B" hca0 -- b on "$HOST_B" hca0 \
		-- a on "$HOST_A" hca0
done

# reports FILTER FIELD...: the fields of the frames that pass, each once.
reports() {
	local filter=$1 field fields=()
	shift
	for field in "$@"; do fields+=(-e "$field"); done
	tshark -r "$SCRATCH/captures/wire.pcapng" -Y "$filter" -T fields "${fields[@]}" 2>/dev/null |
		sort -u
}
# Of one group each; which it is is left out.
v4_reports() {
	reports "igmp.maddr == $1 && igmp.num_grp_recs == 1 && igmp.type == 0x22" eth.dst ip.dst \
		ip.hdr_len ip.dsfield ip.ttl ip.flags ip.opt.type ip.opt.len ip.opt.ra ip.len \
		igmp.type igmp.checksum.status igmp.record_type igmp.aux_data_len igmp.num_src
}
v6_reports() {
	reports "icmpv6.mldr.mar.multicast_address == $1 && icmpv6.mldr.nb_mcast_records == 1" \
		eth.dst ipv6.dst ipv6.hlim ipv6.tclass ipv6.flow ipv6.nxt ipv6.plen \
		ipv6.hopopts.nxt ipv6.opt.type ipv6.opt.length ipv6.opt.router_alert icmpv6.type \
		icmpv6.checksum.status icmpv6.mldr.mar.record_type icmpv6.mldr.mar.aux_data_len \
		icmpv6.mldr.mar.nb_sources
}

# Somebody who stays, while the kernel of the other host joins, asks, and leaves.
receiver stays4 b on "$HOST_B" hca0 239.129.2.3 receive 1 1
stays4=$started
receiver stays6 b on "$HOST_B" hca0 ff0e::1:2:3 receive 1 1
stays6=$started
mkfifo "$SCRATCH/until"
on "$HOST_A" python3 "$here/verbs/groups.py" join hca0 239.129.9.9 ff0e::9:9 \
	<"$SCRATCH/until" >"$SCRATCH/kernel.log" 2>&1 &
pids+=("$!")
exec 3>"$SCRATCH/until"
wait_for 10 grep -q joined "$SCRATCH/kernel.log"
query() { check "a kernel asks for $2" on "$1" python3 "$here/verbs/groups.py" query hca0 "$2"; }
query "$HOST_A" 0.0.0.0
query "$HOST_A" ::
query "$HOST_B" 239.129.9.9 # for the kernel
query "$HOST_B" ff0e::9:9
# answered IPv4-GROUP IPv6-GROUP: field 13 or 14 is the record's type: 2 is an answer.
answered() { v4_reports "$1" | cut -f 13 | grep -qx 2 && v6_reports "$2" | cut -f 14 | grep -qx 2; }
wait_for 30 answered 239.129.2.3 ff0e::1:2:3
wait_for 30 answered 239.129.9.9 ff0e::9:9
exec 3>&-
kill "$stays4" "$stays6"
# reported IPv4-GROUP IPv6-GROUP: that it was joined, is there, and was left.
reported() { [ "$(v4_reports "$1" | wc -l)" -ge 3 ] && [ "$(v6_reports "$2" | wc -l)" -ge 3 ]; }
wait_for 30 reported 239.129.2.3 ff0e::1:2:3
wait_for 30 reported 239.129.9.9 ff0e::9:9

wire_ends

# as_kernel WHAT OURS THEIRS: joins, answers and leaves, three lines, and the same.
as_kernel() {
	[ "$(wc -l <"$2")" -eq 3 ] && diff "$2" "$3" && return
	echo "$1, ours, and the kernel's:"
	cat "$2"
	echo ---
	cat "$3"
	return 1
}
v4_reports 239.129.2.3 >"$SCRATCH/ours4.txt"
v4_reports 239.129.9.9 >"$SCRATCH/theirs4.txt"
v6_reports ff0e::1:2:3 >"$SCRATCH/ours6.txt"
v6_reports ff0e::9:9 >"$SCRATCH/theirs6.txt"
check 'IGMP as a kernel' as_kernel IGMP "$SCRATCH/ours4.txt" "$SCRATCH/theirs4.txt"
check 'MLD as a kernel' as_kernel MLD "$SCRATCH/ours6.txt" "$SCRATCH/theirs6.txt"
reports 'infiniband.bth.destqp == 0xffffff' eth.dst ip.dst ip.ttl ipv6.dst ipv6.hlim \
	>"$SCRATCH/datagrams.txt"
printf '01:00:5e:01:02:03\t239.129.2.3\t1\t\t\n33:33:00:02:00:03\t\t\tff0e::1:2:3\t1\n' \
	>"$SCRATCH/expected.txt"
check 'datagrams to the groups' diff "$SCRATCH/expected.txt" "$SCRATCH/datagrams.txt"
finish
