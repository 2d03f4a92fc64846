#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every message of the connection manager that we build, in frames as QP 1 sends them (cm/frames.c):
# tshark finds nothing malformed, nothing to warn of, and the values that were put in. So it does in a packet of
# each opcode that queue pairs send, tagged, with MigReq, though it has no name for some of them.
. "$(dirname "$0")/lib.sh"
need_command tshark

mkdir "$SCRATCH/captures"
"$(program tests/system/cm_frames)" "$SCRATCH/captures" >"$SCRATCH/filters" || fail 'cm_frames'
"$(program tests/system/cm_frames)" "$SCRATCH/captures" opcodes >"$SCRATCH/opcodes" || fail 'opcodes'
capture=$SCRATCH/captures/cm.pcap
frames=$(wc -l <"$SCRATCH/filters")

# found FILTER: the numbers of the frames that a display filter lets through.
found() { tshark -r "$capture" -Y "$1" -T fields -e frame.number 2>"$SCRATCH/tshark.err"; }

# Every frame passes its own filter. Says of those that do not which part is wrong.
values_right() {
	local line part
	found "$(sed 's/.*/(&)/' "$SCRATCH/filters" | paste -sd'|' | sed 's/|/ || /g')" \
		>"$SCRATCH/right"
	[ "$(wc -l <"$SCRATCH/right")" -eq "$frames" ] && return
	cut -c1-200 "$SCRATCH/tshark.err" | head -n 3
	seq "$frames" | grep -vxFf "$SCRATCH/right" | head -n 2 | while read -r line; do
		sed -n "${line}p" "$SCRATCH/filters" | sed 's/ && /\n/g' | while read -r part; do
			[ -n "$(found "frame.number == $line && $part")" ] ||
				echo "frame $line: not $part"
		done
	done
	return 1
}

# UDP over IPv6 without a checksum is what RoCEv2 does; tshark has an opinion on that.
nothing_to_warn_of() {
	tshark -r "$SCRATCH/captures/$1.pcap" -Y _ws.expert -T fields -e frame.number -e _ws.expert.message \
		2>/dev/null | grep -v '^[0-9]*.Illegal checksum value (0)$' >"$SCRATCH/expert"
	no_lines "$SCRATCH/expert"
}

check "$frames frames are dissected" [ "$(found 'infiniband.mad' | wc -l)" -eq "$frames" ]
check 'each field has the value that was put in' values_right
check 'no expert warns' nothing_to_warn_of cm

capture=$SCRATCH/captures/opcodes.pcap
has_tag='vlan.priority == 5 && vlan.id == 0'
each_opcode() {
	tshark -r "$capture" -Y "$has_tag && infiniband.bth.m == 1 && infiniband.bth.destqp == 0x123456" \
		-T fields -e infiniband.bth.opcode 2>/dev/null | cmp - "$SCRATCH/opcodes"
}
check "$(wc -l <"$SCRATCH/opcodes") opcodes are dissected" each_opcode
check 'no expert warns of them' nothing_to_warn_of opcodes
frames_right "$SCRATCH/captures"
finish
