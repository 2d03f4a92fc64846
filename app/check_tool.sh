#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: check_tool.sh SOFTHCAD SOFTHCA
# The command-line tool against a running daemon: every view, as tables and as JSON; exit codes.
set -uo pipefail
softhcad=$1 softhca=$2 failed=0 daemon=
scratch=$(mktemp -d "${TMPDIR:-/tmp}/softhca-tool.XXXXXX")
clean_up() {
	[ -z "$daemon" ] || { kill "$daemon" && wait "$daemon"; } 2>/dev/null
	rm -rf "$scratch"
}
trap clean_up EXIT
export RUNTIME_DIRECTORY=$scratch
socket=$scratch/d.sock

# expect CODE WORD ARGUMENTS...: the tool ends with CODE and its output has WORD.
expect() {
	local code=$1 word=$2 output
	shift 2
	output=$("$softhca" "$@" 2>&1)
	if [ $? -eq "$code" ] && [[ $output == *"$word"* ]]; then
		echo "ok softhca $*"
	else
		failed=1
		echo "FAIL softhca $*: expected exit code $code and '$word' in: $output"
	fi
}

is_json() {
	if "$softhca" --socket "$socket" --json "$@" |
		python3 -c 'import json, sys; [json.loads(line) for line in sys.stdin]'; then
		echo "ok JSON of $*"
	else
		failed=1
		echo "FAIL JSON of $*"
	fi
}

expect 1 'no daemon answers' --socket "$socket" status
expect 2 "unknown command 'nonsense'" nonsense
expect 2 "did you mean 'status'?" staus
expect 2 "did you mean 'counters'?" show count
expect 2 $'unknown command \'foo\'\n' foo
expect 2 'show what?' show
expect 2 "did you mean '--json'?" status --josn
expect 2 'takes no --dot' fifos --dot
expect 2 'missing the argument of -i' runtime -i
expect 2 'missing command' --json
expect 2 'unexpected argument too' status too many
expect 0 'usage' --help
expect 0 '--interval' help runtime
expect 0 'measure the distances' status --help
expect 2 "did you mean 'runtime'?" help runtim
expect 0 'Runs a libibverbs program' --socket "$socket" run --help
expect 0 'counters' complete cou
expect 0 '--all' complete counters --a
expect 0 'DoorbellProcessing' topology
expect 0 'digraph' topology --dot

"$softhcad" --socket "$socket" --set daemon.log_level=error --set hca0.engines=2 \
	--set hca1.engines=2 </dev/null &
daemon=$!
for ((i = 0; i < 500; i++)); do
	[ ! -S "$socket" ] || break
	sleep 0.02
done
# The socket is there before it is served.
for ((i = 0; i < 100; i++)); do
	! "$softhca" --socket "$socket" status >/dev/null 2>&1 || break
	sleep 0.02
done

expect 0 '192.168.77.1/24' --socket "$socket" status
expect 0 ', crc ' --socket "$socket" status
expect 0 '  none  ' --socket "$socket" status # the ICRC of no frame between the two
expect 0 'engine  node  from the port' --socket "$socket" status
expect 0 "engine  port's node  node  distance" --socket "$socket" topology
expect 0 $'hca0: 1 queue pair\n' --socket "$socket" qp # the connection manager's
expect 0 'RTS' --socket "$socket" qp --state rts
for view in status limits cm clients counters topology metrics set; do
	expect 1 "there is no HCA 'nosuch'" --socket "$socket" $view --hca nosuch
done
expect 0 $'hca1 ' --socket "$socket" status --hca hca1
for view in limits cm; do
	[[ $("$softhca" --socket "$socket" $view --hca hca1) != *'hca0 '* ]] || { failed=1 && echo "FAIL $view of one HCA"; }
done
expect 1 'nothing is paused' --socket "$socket" step
expect 0 'none' --socket "$socket" qp --state ERR
expect 2 'no state of a queue pair' --socket "$socket" qp --state RDY
expect 0 "$daemon  softhcad" --socket "$socket" qp --pid "$daemon"
expect 0 'none' --socket "$socket" qp --pid 1
expect 0 'peer qpn' --socket "$socket" qp
expect 1 'hca0 has no queue pair 77' --socket "$socket" --hca hca0 qp 77
expect 1 'no HCA has a queue pair 77' --socket "$socket" qp 77
expect 0 'hca1' --socket "$socket" qp 1
expect 1 'has no queue pair' qp 77 --hca hca0 --socket "$socket"
expect 2 'no number of a queue pair' --socket "$socket" qp abc
expect 2 'no number of a queue pair' --socket "$socket" qp 7x
expect 2 'no number of a queue pair' --socket "$socket" qp 0
expect 0 'hca1' complete --socket "$socket" --hca h
expect 1 "there is no HCA 'nosuch';" --socket "$socket" --hca nosuch counters
expect 0 'hca1, engine 1' --socket "$socket" fifos
expect 0 'cycles each' --socket "$socket" show runtime -i 0.2
expect 2 'seconds' --socket "$socket" runtime -i soon
expect 0 'what it counts' --socket "$socket" counters
expect 0 'drop_rx_icrc' --socket "$socket" counters --all
expect 0 'retransmit_elements' --socket "$socket" held
expect 0 'qps' --socket "$socket" limits
expect 0 'queue pairs' --socket "$socket" limits --all
expect 0 'hca1.loss' --socket "$socket" set
expect 0 'Probability that a packet is dropped' --socket "$socket" set loss
expect 0 '512' --socket "$socket" --hca hca0 set quantum_bytes 512
expect 0 'hca0.quantum_bytes: as before' set --socket "$socket" hca0.quantum_bytes 512
expect 0 'hca0.gateway: nothing -> 192.168.77.9' --socket "$socket" set hca0.gateway 192.168.77.9
expect 0 'hca1.gateway: nothing -> fd77::9' --socket "$socket" set hca1.gateway=fd77::9
expect 0 'hca1.gateway: fd77::9 -> nothing' --socket "$socket" set hca1.gateway=
expect 1 "hca0.address: '10.9.9.9' has no prefix length" --socket "$socket" set hca0.address 10.9.9.9
expect 1 'needs a restart' --socket "$socket" set daemon.cm off
expect 1 'is none of' --socket "$socket" set log_level loud
expect 2 "did you mean 'loss'?" --socket "$socket" set los 1
expect 2 "no HCA 'hca2'" --socket "$socket" set hca2.loss 1
expect 2 'unexpected argument more' --socket "$socket" set loss 1 more
expect 1 'no daemon answers' --socket "$scratch/none.sock" set
expect 2 'add which HCA' --socket "$socket" add
expect 2 "did you mean 'address'" --socket "$socket" add x adress=1.2.3.4/8
expect 2 'not of the form KEY=VALUE' --socket "$socket" add x peer
expect 1 "HCA 'hca1' exists already" --socket "$socket" add hca1 peer=hca1
expect 2 'remove which HCA' --socket "$socket" remove
expect 1 "no HCA 'hca2'" --socket "$socket" remove hca2
expect 0 'hca1' complete --socket "$socket" remove h
expect 0 '1' complete --socket "$socket" trace ''
expect 0 "$daemon" complete --socket "$socket" qp --pid ''
expect 0 'RTS' complete qp --state R
expect 0 'qpn' complete top -s q
expect 0 'hca1.hp_rrc' complete capture hca1.hp
expect 0 'hca0.respg' complete pause hca0.r
expect 0 'dcqcn' complete set hca0.cc d
expect 0 '--libdir' complete run --l
# A daemon that does not answer is not one that has gone.
python3 -c 'import os, socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(sys.argv[1] + ".new")
s.listen()
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(60)' "$scratch/mute.sock" &
mute=$!
for ((i = 0; i < 100; i++)); do
	[ ! -S "$scratch/mute.sock" ] || break
	sleep 0.02
done
expect 1 'does not answer status: Connection timed out' --socket "$scratch/mute.sock" status
kill "$mute"
expect 0 'hca1.loss' complete --socket "$socket" set hca1.l
expect 0 '0 identifiers' --socket "$socket" cm
expect 0 'mad_malformed' --socket "$socket" cm --all
expect 0 'a second' --socket "$socket" counters --all --watch=0.1 -n 2
expect 0 'received  a second' --socket "$socket" qp -w0.1 -n 2
expect 0 'sleeps  a second' --socket "$socket" status -w0.1 -n 2
expect 0 'Mmsg/s out' --socket "$socket" status -w0.1 -n 2
expect 2 'not a number of seconds' --socket "$socket" status --watch=never
expect 2 'takes no --watch' --socket "$socket" held --watch
expect 0 '--watch[=SECONDS]' help qp
expect 2 'takes no --write' --socket "$socket" status --write x
expect 2 '--rotate needs a file' --socket "$socket" capture --rotate 1M
expect 2 'not a number of bytes' --socket "$socket" capture -w x --rotate 1T
expect 2 "unknown HCA or channel 'nosuch'" --socket "$socket" capture nosuch
expect 2 "did you mean 'hp_rrc'" --socket "$socket" capture hca0.hp_rc
expect 2 "filter 'no such host'" --socket "$socket" capture -f 'no such host'
expect 0 'hca1' complete --socket "$socket" capture h
expect 0 'hp_ee' complete --socket "$socket" capture hp
expect 1 'debug is off' --socket "$socket" capture hca1.hp_ee
expect 1 'there is no such HCA' --socket "$socket" capture nosuch.hp_ee
expect 0 '--write FILE' help capture
expect 0 'Gbit/s out' --socket "$socket" top --batch -n 2 -d 0.1
expect 0 'Gbit/s out' -s pid --socket "$socket" top --batch -n 1 -d 0.1
expect 0 'header_parse' --socket "$socket" top -b -n 1 -d 0.1 --hca hca1
expect 2 'wants a terminal' --socket "$socket" top
expect 2 'not a number above 0' --socket "$socket" top -n 0
expect 0 ' 0 of 2 queue pairs' --socket "$socket" top -b -n 1 -d 0.1 --pid 1
expect 0 ', 2 queue pairs' --socket "$socket" top -b -n 1 -d 0.1 --pid "$daemon" --state rts
expect 2 'these are: RST INIT' --socket "$socket" top -b --state RDY
expect 2 'no key to sort by' --socket "$socket" top -b --sort size
expect 2 'pause what' --socket "$socket" pause
expect 2 'stands with it' --socket "$socket" pause rwm
expect 2 "did you mean 'segmentation'" --socket "$socket" pause segmentatio
expect 1 'debug of hca1 is off' --socket "$socket" pause hca1.ee
expect 0 'debug: off -> on' --socket "$socket" set hca1.debug on
expect 0 'hca1: ee respg paused' --socket "$socket" pause responder_exec --keep
expect 0 'ee is paused' --socket "$socket" fifos
expect 0 'ee: nothing to do' --socket "$socket" step hca1.ee 2
expect 2 'no number of steps' --socket "$socket" step ee no
expect 0 'ee resumed' --socket "$socket" --hca hca1 resume ee
expect 1 'ee is not paused' --socket "$socket" step ee
expect 0 'respg resumed' --socket "$socket" resume
expect 0 'nothing was paused' --socket "$socket" resume
expect 0 'responder_exec' complete --socket "$socket" pause resp
expect 1 'message 1 was not posted' --socket "$socket" trace 1 --wqe 1 -i 0.05
expect 2 'trace which queue pair' --socket "$socket" trace x
expect 1 'no such queue pair' --socket "$socket" trace 77
expect 1 '77: there is no such queue pair' --socket "$socket" trace --qp 77
expect 2 'trace which queue pair' --socket "$socket" trace 1 --qp 1
expect 0 '0 steps of 0 messages' --socket "$socket" trace 1 -i 0.05
expect 0 'softhcad' --socket "$socket" clients
SOFTHCA_LIBDIR=$scratch expect 1 'is missing' --socket "$socket" cdi
expect 1 'the whole folder' --socket /tmp/softhca.sock cdi
expect 1 'the whole folder' --socket /softhca.sock cdi
expect 0 'none' --socket "$socket" clients --pid 1
expect 1 "there is no HCA 'nosuch'" --socket "$socket" --hca nosuch all
for script in check_top.py check_json.py; do
	if "$(dirname "$0")/$script" "$softhca" "$socket"; then
		echo "ok $script"
	else
		failed=1
		echo "FAIL $script"
	fi
done
for view in all clients status qp fifos runtime counters held limits cm topology set; do
	is_json "$view"
done
exit $failed
