#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# /tmp is everybody's: another user comes first to each path that a daemon or a program of a user
# without $XDG_RUNTIME_DIR would use. Users without names, in a /tmp of the test's own.
. "$(dirname "$0")/lib.sh"
need_root
need_command setpriv
need_command unshare
if [ "${1:-}" != inside ]; then
	unshare --mount true 2>/dev/null || skip 'may not make mount namespaces'
	unshare --mount bash "$0" inside
	exit
fi
# The build folder and the scratch folder may lie in /tmp: both stay reachable.
STAGE=/run/softhca-impostor-$$
mkdir -p "$STAGE"
mount -t tmpfs -o mode=0755 stage "$STAGE"
cp "$DAEMON" "$TOOL" "$PERF" "$(program lib/host/client/libsofthca.so.0)" "$STAGE"
mount -t tmpfs -o mode=1777 tmp /tmp
mkdir -p "$SCRATCH"
unset RUNTIME_DIRECTORY SOFTHCA_SOCKET XDG_RUNTIME_DIR
trap 'clean_up; umount --lazy "$STAGE"; rmdir "$STAGE"' EXIT
ATTACKER=41001 VICTIM=41002

# as USER COMMAND...: in place of this shell when it is the last thing a job does.
as() {
	local user=$1
	shift
	exec setpriv --reuid "$user" --regid "$user" --clear-groups \
		env -u SOFTHCA_SOCKET LD_LIBRARY_PATH="$STAGE" "$@"
}
run_as() { (as "$@"); }

# Starts the victim's daemon where its user's is; leaves the process in $started.
victim_starts() {
	: >"$SCRATCH/victim.log"
	as $VICTIM "$STAGE/softhcad" >"$SCRATCH/victim.log" 2>&1 </dev/null &
	started=$!
	pids+=("$started")
}
victim_listens() {
	not_running "$started" && return 1
	[ -S "$OWN/softhca.sock" ]
}
OWN=/tmp/softhca-$VICTIM

run_as $ATTACKER mkdir -m 0777 /tmp/dpdk
victim_starts
check "starts although DPDK's /tmp/dpdk is another's" wait_for 20 victim_listens
check 'the tool finds it' run_as $VICTIM "$STAGE/softhca" status
check 'a program finds it' run_as $VICTIM "$STAGE/softhca-perf" write_bw --pair hca0,hca1 -n 10
check 'its folder is closed to others' [ "$(stat -c '%a %u' "$OWN/dpdk")" = "700 $VICTIM" ]
check 'stops' stop "$started"
check 'leaves nothing behind' [ -z "$(ls -A "$OWN")" ]
rm -rf "$OWN"

# refused WHAT: the victim's daemon exits, with a reason.
refused() {
	victim_starts
	if wait_for 10 not_running "$started" && ! wait "$started" &&
		grep -q "another user's" "$SCRATCH/victim.log"; then
		ok "refuses $1"
	else
		fail "refuses $1: $(cat "$SCRATCH/victim.log")"
	fi
}

run_as $VICTIM mkdir /tmp/home
run_as $VICTIM touch /tmp/home/config /tmp/home/letter
run_as $ATTACKER ln -s /tmp/home "$OWN"
refused "a link of another user's in place of its folder"
rm "$OWN"
run_as $ATTACKER mkdir -p -m 0777 "$OWN"
refused "a folder of another user's"
run_as $ATTACKER mkdir -m 0777 "$OWN/dpdk"
run_as $ATTACKER ln -s /tmp/home "$OWN/dpdk/softhca"
refused "another user's folder with a link in it"
check 'nothing of it is lost' [ -f /tmp/home/config -a -f /tmp/home/letter ]

# The attacker's daemon at the victim's path, open to all.
run_as $ATTACKER chmod 0755 "$OWN"
start attacker as $ATTACKER env RUNTIME_DIRECTORY=/tmp/softhca-$ATTACKER \
	"$STAGE/softhcad" --socket "$OWN/softhca.sock"
wait_for 20 test -S "$OWN/softhca.sock" || fail "the attacker's daemon comes up: $(cat "$SCRATCH/attacker.log")"
impostor_refused() {
	! run_as $VICTIM "$STAGE/softhca-perf" write_bw --pair hca0,hca1 -n 10 >"$SCRATCH/log" 2>&1
}
check 'a program does not talk to it' impostor_refused
check 'nor if it is named' eval "! run_as $VICTIM env SOFTHCA_SOCKET=$OWN/softhca.sock $STAGE/softhca-perf write_bw --pair hca0,hca1 -n 10"
ln -s "$OWN" /tmp/elsewhere
check "but to another user's at a path that only a name leads to" run_as $VICTIM \
	env SOFTHCA_SOCKET=/tmp/elsewhere/softhca.sock "$STAGE/softhca-perf" write_bw --pair hca0,hca1 -n 10
finish
