#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `softhca capture` at a running daemon, while two HCAs of it send each other data whose ICRC and
# payload they leave out.
. "$(dirname "$0")/lib.sh"
need_command tshark

ring_config >"$SCRATCH/ring.conf"
daemon ring -c "$SCRATCH/ring.conf" --set daemon.admin_group=games
daemon=$started
chmod 711 "$SCRATCH"
export SOFTHCA_SOCKET=$SCRATCH/ring.sock

# capture NAME ARGUMENTS...: in the background; waits until it captures.
capture() {
	local name=$1
	shift
	start "$name" "$TOOL" capture "$@"
	capture=$started
	wait_for 10 grep -q 'capturing' "$SCRATCH/$name.log"
}

# ends SIGNAL: the capture does so by that signal, well.
ends() {
	kill "-$1" "$capture"
	wait_for 30 not_running "$capture" && wait "$capture"
}

# frames NAME: how many it says it has captured; lost NAME: how many were dropped.
frames() { sed -n 's/^\([0-9]*\) frames captured, .*/\1/p' "$SCRATCH/$1.log"; }
lost() { sed -n 's/.*frames captured, \([0-9]*\) dropped$/\1/p' "$SCRATCH/$1.log"; }

# packets FILE: how many there are in it.
packets() { tshark -r "$1" -T fields -e frame.number 2>/dev/null | wc -l; }

# dropped FILE: what its interface statistics say.
dropped() {
	python3 - "$1" <<-'END'
		import struct, sys
		data, at, lost = open(sys.argv[1], 'rb').read(), 0, None
		while at < len(data):
		    kind, total = struct.unpack_from('=II', data, at)
		    if kind == 5:
		        lost = struct.unpack_from('=Q', data, at + 36)[0]
		    at += total
		print(lost)
	END
}


# Whole frames, with the payload that both ends have left in their programs' memory.
mkdir "$SCRATCH/captures"
capture whole left -w "$SCRATCH/captures/whole.pcapng"
pair ring write_bw --verify -s 65537 -n 24
pair ring read_bw --verify -s 5000 -n 64
pair ring send_bw -c UD --verify -s 1000 -n 64
pair ring atomic_bw --verify -n 64
check 'it ends when told to' ends INT
check 'nothing was lost' test "$(lost whole)" = 0
check 'it counts what it wrote' test "$(frames whole)" = "$(packets "$SCRATCH/captures/whole.pcapng")"
frames_right "$SCRATCH/captures"

# What came before the signal is written, though the capture has not looked at it by then.
capture late left -w "$SCRATCH/late.pcapng"
kill -STOP "$capture"
pair ring write_bw -s 65536 -n 24
kill -INT "$capture"
kill -CONT "$capture"
check 'it ends, having stood when it was told to' wait_for 10 not_running "$capture"
check 'with what came meanwhile' test "$(frames late)" -gt $((24 * 16))
check 'it counts what it wrote then' test "$(frames late)" = "$(packets "$SCRATCH/late.pcapng")"

# Into a pipe whose reader stands: its frames wait in the capture's own memory, where the ring is too small for them.
mkfifo "$SCRATCH/pipe"
into_pipe() { exec "$@" >"$SCRATCH/pipe"; }
from_pipe() { exec cat <"$SCRATCH/pipe" >"$SCRATCH/$1.pcapng"; }
# standing NAME ARGUMENTS...: such a capture, of left.
standing() {
	start "reader_$1" from_pipe "$1"
	reader=$started
	start "$1" into_pipe "$TOOL" capture left -w - "${@:2}"
	capture=$started
	wait_for 10 grep -q capturing "$SCRATCH/$1.log"
	wait_for 10 test -s "$SCRATCH/$1.pcapng" # the reader has begun
	kill -STOP "$reader"
}
# goes_on NAME: its reader does, and reads to the end.
goes_on() {
	kill -CONT "$reader"
	check "$1: it ends" ends INT
	wait_for 20 not_running "$reader"
	check "$1: it counts what it wrote" test "$(frames "$1")" = "$(packets "$SCRATCH/$1.pcapng")"
}
memory() { awk '/^RssAnon/ { print $2 }' "/proc/$capture/status"; }
holds() { [ "$(memory)" -ge "$1" ]; }
standing waits
before=$(memory)
for round in 1 2 3; do
	pair ring write_bw -s 65536 -n 512
	check "it holds $((32 * round)) MiB" wait_for 20 holds $((before + 32 * round * 1024))
done
goes_on waits
check 'nothing was lost meanwhile' test "$(lost waits)" = 0
standing overflows --buffer 1M
pair ring write_bw -s 65536 -n 512
goes_on overflows
check 'what had no room is counted' test "$(lost overflows)" -gt 0
check 'in its file, too' test "$(dropped "$SCRATCH/overflows.pcapng")" = "$(lost overflows)"
standing stuck
pair ring write_bw -s 65536 -n 16
insists() { kill -INT "$capture" 2>/dev/null; not_running "$capture"; }
check 'one that is told again does not wait for a reader' wait_for 20 insists
kill -CONT "$reader"
wait_for 20 not_running "$reader"
rm "$SCRATCH"/{waits,overflows,stuck}.pcapng

# A file of its user's alone, whatever it was before.
others=$SCRATCH/others.pcapng
touch "$others"
chmod 644 "$others" "$SCRATCH/captures/whole.pcapng"
ln -s "$others" "$SCRATCH/link.pcapng"
ln "$others" "$SCRATCH/twice.pcapng"
check 'no link is followed' refuses 'symbolic links' "$TOOL" capture left -w "$SCRATCH/link.pcapng"
check 'no file of two names is written' refuses permitted "$TOOL" capture left -w "$SCRATCH/twice.pcapng"
capture mine left -w "$SCRATCH/captures/whole.pcapng"
check 'its file is its own from now on' test "$(stat -c %a "$SCRATCH/captures/whole.pcapng")" = 600
check 'it ends' ends INT
payload() { "$TOOL" --hca left counters | grep -qE ' payload_refs +[1-9]'; }
check 'packets referred to their payload' payload

start traffic timeout 300 "$PERF" write_bw -s 4096 -D 200 --pair left,right
traffic=$started
check '-c ends it' timeout 20 "$TOOL" capture right -c 50 -w "$SCRATCH/counted.pcapng"
check 'after so many' test "$(packets "$SCRATCH/counted.pcapng")" = 50
check 'a reader that has enough ends it' eval \
	'timeout 20 "$TOOL" capture -w - | tshark -r - -c 20 2>/dev/null | grep -c RRoCE | grep -q 20'
check 'frames as lines' eval \
	'timeout 20 "$TOOL" capture left -c 9 | grep -qE " out 192.168.77.1 > 192.168.77.2: RC RDMA WRITE .* length 4096"'
check 'only what passes a filter' eval \
	'timeout 20 "$TOOL" capture left -f "udp dst port 4791 and src host 192.168.77.2" -c 9 >"$SCRATCH/filtered" &&
	[ "$(grep -cE " in +192.168.77.2 > 192.168.77.1" "$SCRATCH/filtered")" = 9 ] && [ "$(wc -l <"$SCRATCH/filtered")" = 9 ]'
check 'a part of each frame' eval \
	'timeout 20 "$TOOL" capture left -s 60 -c 9 -w "$SCRATCH/cut.pcapng" &&
	! tshark -r "$SCRATCH/cut.pcapng" -T fields -e frame.cap_len 2>/dev/null | grep -qv "^60$"'
check 'a full file makes room' timeout 60 "$TOOL" capture left -c 5000 --rotate 1M -w "$SCRATCH/turning.pcapng"
small() { [ "$(stat -c %s "$1")" -lt 1100000 ] && [ "$(packets "$1")" -gt 100 ]; }
check 'the last file' test "$(packets "$SCRATCH/turning.pcapng")" -gt 0
check 'the one before' small "$SCRATCH/turning.pcapng.1"

# Channels: where debug is on, described, with headers and without payload.
LUA=$BUILD/app/softhca.lua
check 'channels only where debug is on' refuses 'debug is off' "$TOOL" capture right.hp_ee
"$TOOL" set debug on >/dev/null
check 'elements as lines' eval \
	'timeout 20 "$TOOL" capture right.hp_ee -c 9 >"$SCRATCH/elements" && [ "$(grep -cE \
	" hp_ee hp > ee: QP [0-9]+, RC RDMA WRITE .*, PSN [0-9]+, 4096 bytes$" "$SCRATCH/elements")" = 9 ]'
check 'only those with a frame that passes a filter' timeout 20 "$TOOL" --hca right capture hp_ee -f 'src host 192.168.77.1' -c 9
# dissected HCA.CHANNEL FROM TO FIELD...: these are not empty in any of 50 elements, and all is well.
dissected() {
	local channel=$1 file=$SCRATCH/$1.pcapng fields=() field
	timeout 20 "$TOOL" capture "$channel" -c 50 -w "$file" || return 1
	for field in "${@:4}"; do fields+=(-e "$field"); done
	tshark -X lua_script:"$LUA" -r "$file" -T fields -E separator=' ' -e _ws.malformed -e softhca.channel \
		-e softhca.producer -e softhca.consumer "${fields[@]}" 2>/dev/null >"$file.fields"
	[ "$(wc -l <"$file.fields")" = 50 ] && awk -v channel="${channel#*.}" -v from="$2" -v to="$3" -v n=$# \
		'$1 != channel || $2 != from || $3 != to || NF != n { print; bad = 1 } END { exit bad }' "$file.fields"
}
check 'doorbells' dissected left.dbp_ws dbp ws softhca.qpn softhca.wqe
check 'requests' dissected left.dp_rtc dp rtc softhca.qpn softhca.wqe softhca.length
check 'packets before they are built' dissected left.rtc_rpg rtc rpg softhca.wqe softhca.psn infiniband.bth.psn
check 'packets' dissected left.rpg_txa rpg txa softhca.wqe softhca.psn infiniband.bth.psn ip.src
check 'received' dissected right.hp_ee hp ee softhca.qpn softhca.psn infiniband.bth.psn ip.src
check 'responses' dissected right.respg_txa respg txa softhca.qpn softhca.psn infiniband.bth.psn ip.src
same_psn() { ! awk '$(NF - last) != $(NF - last - 1)' last="$1" "$SCRATCH/$2.pcapng.fields" | grep -q .; }
check 'description and headers agree' eval 'same_psn 0 left.rtc_rpg && same_psn 1 right.hp_ee && same_psn 1 right.respg_txa'
long() { tshark -r "$SCRATCH/$1.pcapng" -T fields -e frame.cap_len 2>/dev/null | awk '$1 > 174' | grep -q .; }
check 'no payload' eval '! long right.hp_ee && ! long left.rpg_txa'
capture slow right.hp_ee --buffer 64K -w "$SCRATCH/slow.pcapng"
kill -STOP "$capture"
received() { "$TOOL" --json --hca right counters | grep -o '"rx_packets":[0-9]*' | cut -d: -f2; }
received_since() { [ "$(received)" -ge $(($1 + 5000)) ]; }
wait_for 60 received_since "$(received)"
kill -CONT "$capture"
"$TOOL" set right.debug off >/dev/null
check 'debug off ends it' wait_for 10 grep -q 'daemon has ended' "$SCRATCH/slow.log"
wait_for 10 not_running "$capture"
check 'lost elements are counted' test "$(sed -n 's/.*elements captured, \([0-9]*\) dropped$/\1/p' "$SCRATCH/slow.log")" -gt 0
check 'in the file, too' test "$(dropped "$SCRATCH/slow.pcapng")" -gt 0
check 'nobody else has noticed' kill -0 "$traffic"

# More often than may be at once: nothing of the killed is left.
for round in 1 2 3 4 5 6; do
	capture "killed$round" left -w "$SCRATCH/killed.pcapng"
	kill -KILL "$capture"
	wait_for 10 not_running "$capture"
done
for round in 1 2 3 4; do
	capture "busy$round" left -w "$SCRATCH/none.pcapng"
done
check 'one too many is refused' refuses busy "$TOOL" capture left -w "$SCRATCH/none.pcapng"

# Who does not read loses frames, and knows it; nobody else does.
capture stopped right -w "$SCRATCH/stopped.pcapng"
kill -STOP "$capture"
missed() { [ "$("$TOOL" --json --hca right counters | grep -o '"capture_missed":[0-9]*' | cut -d: -f2)" -gt 0 ]; }
check 'a capture that is stopped misses frames' wait_for 60 missed
kill -CONT "$capture"
check 'and goes on' ends TERM
check 'it says how many' test "$(lost stopped)" -gt 0
check 'so does its file' test "$(dropped "$SCRATCH/stopped.pcapng")" = "$(lost stopped)"
check 'the others go on' kill -0 "$traffic"

if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	cp "$TOOL" "$SCRATCH/softhca" && chmod 755 "$SCRATCH/softhca"
	check 'another user is refused' refuses 'only root' setpriv --reuid 65534 --regid 65534 \
		--clear-groups "$SCRATCH/softhca" capture right -c 1
	check 'one of the admin_group is not' timeout 20 setpriv --reuid 65534 --regid 65534 \
		--groups games "$SCRATCH/softhca" capture right -c 1
else
	echo 'not run: another user (needs root, setpriv)'
fi

kill "$traffic"
wait_for 20 not_running "$traffic"
pair ring write_bw --verify -s 65537 -n 24
check 'the daemon ends cleanly' stop "$daemon"
wait_for 30 not_running "$capture"
over() { wait_for 30 grep -q 'frames captured' "$SCRATCH/busy4.log"; }
check 'captures end with it' over
finish
