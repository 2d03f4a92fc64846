#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What clients share (shares.def): for each row two users together take all that they can get, until they are refused, and hold
# it. A third one, who runs traffic, then gets a little of everything, opens new connections, and keeps his rates (`floor`)
# as beside two honest neighbours, measured a moment before. A row without an attack fails. SOFTHCA_SHARES: only these attacks.
. "$(dirname "$0")/lib.sh"
need_root
need_command setpriv
need_command python3

# Rates are compared: what else this machine does shall not matter.
renice -n -15 -p $$ >/dev/null 2>&1
{ echo -15 >/proc/$$/autogroup; } 2>/dev/null

# On one that is busy already they are shown, and not judged: it is enough that the victim gets on.
read -r load _ </proc/loadavg
judged=yes
((${load%.*} < 2 * $(nproc))) || judged=no

attacker=$(program tests/system/shares_attack) || exit 1
table=$(dirname "$0")/../../lib/common/base/include/base/shares.def
# Small tables are taken sooner.
ring_config 'qps = 1024' 'cqs = 1024' 'srqs = 1024' 'mpts = 1024' 'mtts = 1048576' 'rpb_elements = 512' \
	'reb_elements = 1024' >"$SCRATCH/ring.conf"
chmod 755 "$SCRATCH" "$RUNTIME_DIRECTORY"
daemon ring -c "$SCRATCH/ring.conf" --set daemon.socket_mode=0666 --set daemon.descriptor_buffers=8191
daemon=$started
export SOFTHCA_SOCKET=$SCRATCH/ring.sock
SAMPLES=2 SAMPLES_MAX=8 # of each rate; the best counts

limits() { timeout 10 "$TOOL" --socket "$SOFTHCA_SOCKET" --json limits; }

# `row attack` of each row.
rows() {
	python3 - "$table" <<'PY'
import re, sys
text = re.sub(r"/\*.*?\*/", "", open(sys.argv[1]).read(), flags=re.S)
for row in re.findall(r"^(?:DATA_)?SHARE\(([^\"]*)\"", text, flags=re.M):
    words = [word.strip() for word in row.split(",")]
    print(words[0], words[-2])
PY
}

# nobody_holds USER...: they hold nothing any more.
nobody_holds() {
	limits | python3 -c '
import json, sys
answer = json.load(sys.stdin)
answer = answer.get("/softhca/limits", answer)
sys.exit(any(str(h["uid"]) in sys.argv[1:] for h in answer["holders"].values()))' "$@"
}

# were_refused ROW...: somebody was, in each of these rows. The data path makes wait instead: a quarter is in use. Requests of
# one source end at a sixteenth.
were_refused() {
	limits | python3 -c '
import json, sys
answer = json.load(sys.stdin)
answer = answer.get("/softhca/limits", answer)
taken = {}
for row in answer["rows"].values():
    part = {"packets_kept": 4, "reads_kept": 4, "entries_kept": 4, "descriptors": 4, "cm_requests": 16}.get(row["name"], 0)
    taken[row["name"]] = taken.get(row["name"]) or row["refused"] or (part and part * row["used"] >= row["total"])
sys.exit(not all(taken.get(name) for name in sys.argv[1:]))' "$@"
}

holds() { grep -q holding "$SCRATCH/$1.log"; }

# two NAME: two users who do that, from when they hold what they take. Leaves the processes in $two.
two() {
	local user kinder=0
	# What CPU they themselves take is not the daemon's to share out.
	case $1 in requests | log | busy) kinder=15 ;; esac
	two=()
	for user in 60001 60002; do
		start "$user" nice -n "$kinder" setpriv --reuid "$user" --regid "$user" --clear-groups "$attacker" "$SOFTHCA_SOCKET" "$1"
		two+=("$started")
		wait_for 100 holds "$user" || { fail "$1: user $user holds"; cat "$SCRATCH/$user.log"; }
	done
}

end_two() {
	kill "${two[@]}"
	wait "${two[@]}" 2>/dev/null
}

# victim WORDS...: its answer in $answer. False: it has died, or does not answer.
victim() {
	echo "$@" >&"$to_victim" && read -r -t 60 -u "$from_victim" answer
}

# sample N: the victim's rates, the best of N more and of $bytes and $connections.
sample() {
	local i b c
	for ((i = 0; i < $1; i++)); do
		victim rate || return
		read -r b c <<<"$answer"
		((b > bytes)) && bytes=$b
		((c > connections)) && connections=$c
	done
	true
}

# Both rates are at least that percentage of the fair ones. Nine tenths are what is aimed at
# (SHARES_FLOOR=90, on a machine that does nothing else); what one sees of a rate in a tenth of a second
# varies by more than the rest.
floor=${SHARES_FLOOR:-20}
are_fair() {
	((100 * bytes >= floor * fair_bytes && 100 * connections >= floor * fair_connections)) && return
	[ "$judged" = no ] && ((bytes > 0 && connections > 0))
}

# fair_beside NAME: what is fair, beside two honest neighbours.
fair_beside() {
	local bytes=0 connections=0
	two "$1"
	sample "$SAMPLES"
	end_two
	fair_bytes=$bytes fair_connections=$connections
}

# The victim's rates now; measured again while they are not fair.
rates_now() {
	local n
	bytes=0 connections=0
	for ((n = 0; n < SAMPLES_MAX; n += SAMPLES)); do
		sample "$SAMPLES" || return
		are_fair && return
	done
	true
}

gets_everything() {
	victim check "$1" && [ "$answer" = ok ]
}

attack() { # attack NAME ROW...
	local name=$1 honest=idle
	shift
	case $name in requests | log) honest=busy ;; esac
	fair_beside "$honest"
	two "$name"
	check "$name: they were refused ($(sed -n 1p "$SCRATCH/60001.log"), $(sed -n 1p "$SCRATCH/60002.log"))" \
		wait_for 20 were_refused "$@"
	check "$name: another user gets something of everything" gets_everything "$name"
	check "$name: it works" rates_now
	end_two
	if ! are_fair; then # the machine may have become slower
		wait_for 30 nobody_holds 60001 60002
		fair_beside "$honest"
	fi
	check "$name: another user keeps its rates: $((100 * bytes / (fair_bytes + 1))) % of the bytes, $((100 * connections / (fair_connections + 1))) % of the new connections" are_fair
	check "$name: all of it comes back" wait_for 30 nobody_holds 60001 60002
}

rows >"$SCRATCH/rows"
[ "$judged" = yes ] || echo "the machine is busy ($load): rates are not judged"
check 'the table was read' test -s "$SCRATCH/rows"
coproc VICTIM { exec setpriv --reuid 60003 --regid 60003 --clear-groups "$attacker" "$SOFTHCA_SOCKET" victim; }
exec {to_victim}>&"${VICTIM[1]}" {from_victim}<&"${VICTIM[0]}"
trap '' PIPE
check 'the victim begins' read -r -t 60 -u "$from_victim" answer
for name in ${SOFTHCA_SHARES:-$(awk '!seen[$2]++ { print $2 }' "$SCRATCH/rows")}; do
	# shellcheck disable=SC2046
	attack "$name" $(awk -v name="$name" '$2 == name { print $1 }' "$SCRATCH/rows")
done
check 'the daemon ends cleanly' stop "$daemon"
finish
