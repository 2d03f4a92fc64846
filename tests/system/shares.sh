#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What clients share (shares.def): for each row two users together take all that they can get, until they are refused, and hold it. A third
# one then gets a little of everything, and runs traffic on new connections, verified. A row without an attack fails.
# SOFTHCA_SHARES: only these attacks.
. "$(dirname "$0")/lib.sh"
need_root
need_command setpriv
need_command python3

attacker=$(program tests/system/shares_attack) || exit 1
table=$(dirname "$0")/../../lib/common/base/include/base/shares.def
# Small tables are taken sooner.
ring_config 'qps = 1024' 'cqs = 1024' 'srqs = 1024' 'mpts = 1024' 'mtts = 1048576' >"$SCRATCH/ring.conf"
chmod 755 "$SCRATCH" "$RUNTIME_DIRECTORY"
daemon ring -c "$SCRATCH/ring.conf" --set daemon.socket_mode=0666
daemon=$started
export SOFTHCA_SOCKET=$SCRATCH/ring.sock

as() { # as USER COMMAND...
	local user=$1
	shift
	setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
}

limits() { timeout 10 "$TOOL" --socket "$SOFTHCA_SOCKET" --json limits; }

# `row attack` of each row.
rows() {
	python3 - "$table" <<'PY'
import re, sys
text = re.sub(r"/\*.*?\*/", "", open(sys.argv[1]).read(), flags=re.S)
for row in re.findall(r"^SHARE\(([^\"]*)\"", text, flags=re.M):
    words = [word.strip() for word in row.split(",")]
    print(words[0], words[7])
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

# was_refused ROW...: somebody was, in each of these rows.
was_refused() {
	limits | python3 -c '
import json, sys
answer = json.load(sys.stdin)
answer = answer.get("/softhca/limits", answer)
refused = {}
for row in answer["rows"].values():
    refused[row["name"]] = refused.get(row["name"], 0) + row["refused"]
sys.exit(not all(refused.get(name) for name in sys.argv[1:]))' "$@"
}

holds() { grep -q holding "$SCRATCH/$1.log"; }

attack() { # attack NAME ROW...
	local name=$1 one two
	shift
	start attacker1 setpriv --reuid 60001 --regid 60001 --clear-groups "$attacker" "$SOFTHCA_SOCKET" "$name"
	one=$started
	wait_for 40 holds attacker1 || { fail "$name: the first attacker holds"; cat "$SCRATCH/attacker1.log"; }
	start attacker2 setpriv --reuid 60002 --regid 60002 --clear-groups "$attacker" "$SOFTHCA_SOCKET" "$name"
	two=$started
	wait_for 40 holds attacker2 || { fail "$name: the second attacker holds"; cat "$SCRATCH/attacker2.log"; }
	check "$name: they were refused ($(sed -n 1p "$SCRATCH/attacker1.log"), $(sed -n 1p "$SCRATCH/attacker2.log"))" \
		wait_for 20 was_refused "$@"
	check "$name: another user gets something of everything" \
		as 60003 timeout 60 "$attacker" "$SOFTHCA_SOCKET" victim
	check "$name: another user's traffic runs" \
		as 60003 timeout 60 "$PERF" write_bw --verify -s 3000 -n 256 --pair left,right
	kill "$one" "$two"
	wait "$one" "$two"
	check "$name: all of it comes back" wait_for 30 nobody_holds 60001 60002 60003
}

rows >"$SCRATCH/rows"
check 'the table was read' test -s "$SCRATCH/rows"
for name in ${SOFTHCA_SHARES:-$(awk '!seen[$2]++ { print $2 }' "$SCRATCH/rows")}; do
	# shellcheck disable=SC2046
	attack "$name" $(awk -v name="$name" '$2 == name { print $1 }' "$SCRATCH/rows")
done
check 'the daemon ends cleanly' stop "$daemon"
finish
