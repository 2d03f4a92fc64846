#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What clients share (shares.def): for each row two users together take all that they can get, until they are refused, and hold
# it. A third one, who runs traffic and opens new connections, then gets a little of everything, and keeps the rates that he has
# beside two honest neighbours: measured in turns with these, a second and for a second of the daemon's CPU time. A row
# without an attack fails. SOFTHCA_SHARES: only these attacks. SHARES_FLOOR, SHARES_CPU_FLOOR: percent of those rates.
. "$(dirname "$0")/lib.sh"
need_root
need_command setpriv
need_command python3

# Rates are compared: what else this machine does shall not matter.
renice -n -15 -p $$ >/dev/null 2>&1
{ echo -15 >/proc/$$/autogroup; } 2>/dev/null

# A rate a second depends on whatever else the machine does, so only the loss of most of it is judged. What the CPU time of
# the daemon's threads buys hardly depends on that: it is less if an attacker makes the work of others dearer. The aim
# is nine tenths of both: SHARES_FLOOR=90 SHARES_CPU_FLOOR=90 on a machine that does nothing else, with a
# CPU for each of the four busy threads.
floor=${SHARES_FLOOR:-20}
cpu_floor=${SHARES_CPU_FLOOR:-30} # of a thread that three users keep busy nobody has more than a third
SAMPLES=3  # of a turn
TURNS=4    # at most, until the rates are kept ...
ENOUGH=180 # ... and while the test has run for fewer seconds

attacker=$(program tests/system/shares_attack) || exit 1
table=$(dirname "$0")/../../lib/common/base/include/base/shares.def
# Small tables are taken sooner.
ring_config 'qps = 1024' 'cqs = 1024' 'srqs = 1024' 'mpts = 1024' 'mtts = 1048576' 'rpb_elements = 512' \
	'reb_elements = 1024' >"$SCRATCH/ring.conf"
chmod 755 "$SCRATCH" "$RUNTIME_DIRECTORY"
daemon ring -c "$SCRATCH/ring.conf" --set daemon.socket_mode=0666 --set daemon.descriptor_buffers=8191
daemon=$started
export SOFTHCA_SOCKET=$SCRATCH/ring.sock

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

# samples FILE: adds the victim's rates to it.
samples() {
	local i
	for ((i = 0; i < SAMPLES; i++)); do
		victim rate || return
		echo "$answer" >>"$1"
	done
}

# fair_turn NAME: what is fair, beside two honest neighbours.
fair_turn() {
	two "$1"
	samples "$SCRATCH/fair"
	end_two
}

# Prints what part of the fair rates the victim has, in percent, of the medians. False: it is less than the floors.
are_kept() {
	python3 - "$SCRATCH/fair" "$SCRATCH/attacked" "$floor" "$cpu_floor" <<'PY'
import statistics, sys
def medians(path):
    with open(path) as rows:
        return [statistics.median(column) for column in zip(*([int(n) for n in row.split()] for row in rows))]
fair, attacked = medians(sys.argv[1]), medians(sys.argv[2])
floor, cpu_floor = int(sys.argv[3]), int(sys.argv[4])
kept = [round(100 * a / max(f, 1)) for f, a in zip(fair, attacked)]
print("%d %% of the bytes, %d %% of the new connections a second; for CPU time %d %%, %d %%" % (kept[0], kept[2], kept[1], kept[3]))
sys.exit(min(kept[0], kept[2]) < floor or min(kept[1], kept[3]) < cpu_floor)
PY
}

gets_everything() {
	victim check "$1" && [ "$answer" = ok ]
}

attack() { # attack NAME ROW...
	local name=$1 honest=idle turn kept
	shift
	case $name in requests | log) honest=busy ;; esac
	rm -f "$SCRATCH/fair" "$SCRATCH/attacked"
	for ((turn = 0; turn < TURNS && (turn == 0 || SECONDS < ENOUGH); turn++)); do
		fair_turn "$honest"
		two "$name"
		if ((turn == 0)); then
			check "$name: they were refused ($(sed -n 1p "$SCRATCH/60001.log"), $(sed -n 1p "$SCRATCH/60002.log"))" \
				wait_for 20 were_refused "$@"
			check "$name: another user gets something of everything" gets_everything "$name"
		fi
		samples "$SCRATCH/attacked" || fail "$name: the victim answers"
		end_two
		kept=$(are_kept) && break
		wait_for 30 nobody_holds 60001 60002
	done
	if ((turn == 1)); then # it was not enough, and there is no time for another one
		echo "   $name: not judged, the machine is too slow: $kept"
	else
		check "$name: another user keeps its rates: $kept" are_kept
	fi
	check "$name: all of it comes back" wait_for 30 nobody_holds 60001 60002
}

rows >"$SCRATCH/rows"
check 'the table was read' test -s "$SCRATCH/rows"
# The threads whose CPU time its traffic and its connections take.
lcore=$(grep -l rte-worker "/proc/$daemon/task"/*/comm | head -n 1)
coproc VICTIM { exec setpriv --reuid 60003 --regid 60003 --clear-groups "$attacker" "$SOFTHCA_SOCKET" victim \
	"${lcore%comm}schedstat" "/proc/$daemon/task/$daemon/schedstat"; }
exec {to_victim}>&"${VICTIM[1]}" {from_victim}<&"${VICTIM[0]}"
trap '' PIPE
check 'the victim begins' read -r -t 60 -u "$from_victim" answer
for name in ${SOFTHCA_SHARES:-$(awk '!seen[$2]++ { print $2 }' "$SCRATCH/rows")}; do
	# shellcheck disable=SC2046
	attack "$name" $(awk -v name="$name" '$2 == name { print $1 }' "$SCRATCH/rows")
done
check 'the daemon ends cleanly' stop "$daemon"
finish
