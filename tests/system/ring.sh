#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two HCAs of one daemon, joined by rings: every operation, all data verified; then the demo.
. "$(dirname "$0")/lib.sh"

# once NAME: long payloads were copied once, from client to client, and no packet went missing.
once() {
	"$TOOL" --socket "$SCRATCH/$1.sock" counters --all >"$SCRATCH/counters" &&
		grep -qE ' payload_refs +[1-9]' "$SCRATCH/counters" &&
		! grep -qE ' (drop_payload_gone|drop_rx_icrc|payload_changed) +[1-9]' "$SCRATCH/counters"
}

ring_config >"$SCRATCH/ring.conf"
daemon icrc -c "$SCRATCH/ring.conf" --set left.icrc=always --set right.icrc=always
every_operation pair icrc
check 'with ICRCs, payload is copied once' once icrc
check 'the daemon ends cleanly' stop "$started"
daemon ring -c "$SCRATCH/ring.conf"
every_operation pair ring
check 'payload is copied once' once ring

# As `make demo` shows it: the table, at the end what was verified, and neither what the daemon says nor counters.
demo() { "$(dirname "$0")/../../app/demo.sh" "$BUILD"; }
check 'the demo' demo
cp "$SCRATCH/check.log" "$SCRATCH/demo"
check 'it has a table' grep -E '^RC FLUSH .* %$' "$SCRATCH/demo"
check 'and ends with what was verified' grep '^Verified: .* every byte right' <(tail -n 1 "$SCRATCH/demo")
check 'it shows nothing else' no_lines <(grep -E 'ready after|_packets' "$SCRATCH/demo")
pair ring write_bw -a -n 200
pair ring write_bw -q 64 -D 1
# More descriptors posted in chains than the daemon has buffers for.
PAIR_SECONDS=60 pair ring write_bw -q 128 -l 16 -s 64 -D 1
PAIR_SECONDS=60 pair ring write_bw -q 1000 -l 16 -s 64 -D 1
for service in RC UC UD; do
	pair ring send_bw --srq -c $service -q 8 -s 1000 -b -n 500 -t 16
done
# Through more memory than the messages outstanding take, from end to end and round again.
for kind in write read send atomic flush; do
	pair ring "${kind}_bw" --span 4194304 --verify -s 20000 -q 2 -n 300
	pair ring "${kind}_bw" --span 4194304 -s 20000 -b -n 500
done
# refused WHY OPTION...: and nothing runs
refused() {
	! "$PERF" "${@:2}" --socket "$SCRATCH/ring.sock" --pair left,right 2>"$SCRATCH/refused" >/dev/null &&
		grep -q "$1" "$SCRATCH/refused"
}
check 'a span is of one size' refused 'span is for throughput of one size' write_bw -a --span 4194304
check 'latency has none' refused 'span is for throughput of one size' write_lat --span 4194304
check 'throughput has no gap' refused 'gap is for latency' write_bw --gap 100
check 'a span larger than memory' refused 'MiB are available' write_bw --span 68719476736
# Two runs of two seconds, one of them on a terminal.
runs() { "$PERF" write_bw -D 2 --socket "$SCRATCH/ring.sock" --pair left,right 2>&1; }
on_terminal() {
	export -f runs && export PERF SCRATCH
	SHELL=$BASH script -qec runs /dev/null </dev/null
}
check 'a terminal shows how far it is' grep -qE '%  [0-9.]+ Gbit/s  [01] s left' <(on_terminal)
check 'nothing else does' no_lines <(runs | grep left)
check 'the daemon ends cleanly' stop "$started"
finish
