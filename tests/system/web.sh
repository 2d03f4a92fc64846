#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# softhca web: who gets which answer; the page in a browser, while two HCAs move data and the daemon restarts.
. "$(dirname "$0")/lib.sh"

need_command curl
need_command python3
folder=$(dirname "$0")/web
pictures=${SOFTHCA_PICTURES:-$SCRATCH}
ring_config 'loss = 0.02' >"$SCRATCH/ring.conf"
daemon ring -c "$SCRATCH/ring.conf"
export SOFTHCA_SOCKET=$SCRATCH/ring.sock
served=$started

http_server web
web=$started
site=${url%/#*} key=${url#*#}

# status_is STATUS PATH [ARGUMENTS]: of what it answers, which is in $SCRATCH/answer.
status_is() {
	local status
	status=$(curl -s -o "$SCRATCH/answer" -D "$SCRATCH/head" -w '%{http_code}' "${@:3}" "$site$2")
	[ "$status" = "$1" ] || { echo "$status" && return 1; }
}
with_key=(-H "Authorization: Bearer $key")

# A program whose name would be markup; sleeping, so that it leaves some of the CPU.
name='<b>&x'
ln -s "$(realpath "$PERF")" "$SCRATCH/$name"
start traffic "$SCRATCH/$name" write_bw -e -q 2 -s 8192 -D 600 --pair left,right
traffic=$started

check 'the page' status_is 200 /
check 'has a policy' grep -qi "^content-security-policy: default-src 'none'" "$SCRATCH/head"
check 'is kept by nobody' grep -qi '^cache-control: no-store' "$SCRATCH/head"
asked_for=$(grep -ohE '(src|href)="[^"]*"|from "\./[^"]*"' "$SCRATCH/answer" "$folder"/../../../app/softhca/web/*.js |
	sed 's/.*"\(\.\/\)\?\([^"]*\)"/\2/' | sort -u)
check 'asks for files' test "$(wc -w <<<"$asked_for")" -ge 8
for file in $asked_for; do
	check "which are there: $file" status_is 200 "/$file"
done
check 'HEAD' status_is 200 / -I
check 'nothing else' status_is 404 /nonsense
check 'nor anything outside' status_is 404 /../../etc/passwd --path-as-is
check 'GET only' status_is 405 /all.json "${with_key[@]}" -X POST -d x=1
check 'another name of this host' status_is 403 / -H 'Host: softhca.example'
check 'a name that begins as an address' status_is 403 / -H 'Host: 127.0.0.1.example:80'
check 'no name' status_is 403 / -H 'Host:' -0
check 'localhost' status_is 200 / -H 'Host: LocalHost:8080'
check 'IPv6' status_is 200 / -H 'Host: [::1]:8080'
check 'no answers without the key' status_is 401 /all.json
check 'nor with another' status_is 401 /all.json -H "Authorization: Bearer ${key//[0-9]/a}"
check 'nor with a part of it' status_is 401 /all.json -H "Authorization: Bearer ${key%?}"
check 'nor with it in the address' status_is 401 "/all.json?key=$key"

# has EXPRESSION: true of the answer, which is JSON.
has() { python3 -c 'import json, sys; it = json.load(open(sys.argv[1])); assert '"$1" "$SCRATCH/answer"; }
check 'all' status_is 200 /all.json "${with_key[@]}"
check 'is the document' has 'it["schema"] == 1 and set(it["hcas"]) == {"left", "right"}'
check 'topology' status_is 200 /topology.json "${with_key[@]}"
check 'has stages' has 'len(it["stages"]) == 5'
check 'runtime' status_is 200 /runtime.json "${with_key[@]}"
check 'has modules' has 'it["left,0"]["modules"]["rtc"]["stage"] == "segmentation"'
check 'a queue pair' status_is 200 '/qp.json?hca=left&qpn=1' "${with_key[@]}"
check 'in full' has 'it["qp"]["qpn"] == 1 and it["waits_for"]'
for which in '' '?hca=left' '?qpn=1' '?hca=left&qpn=77' '?hca=none&qpn=1' '?hca=left,0&qpn=1' '?hca=left&qpn=-1' \
	"?hca=$(printf 'x%.0s' {1..300})&qpn=1" '?hca=left&qpn=0' '?hca=left&qpn=99999999999999'; do
	check "no queue pair ${which::30}" status_is 404 "/qp.json$which" "${with_key[@]}"
done

# crowd: as many connections as others like; some are served at a time, and it serves again after them.
crowd() {
	python3 - "${site##*:}" "/proc/$web/fd" <<-'END'
		import os, socket, sys, time
		held = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(60)]
		taken, end = 0, time.monotonic() + 30
		while taken <= 16 and time.monotonic() < end:
		    time.sleep(0.1)
		    taken = len(os.listdir(sys.argv[2]))
		enough = taken > 16
		time.sleep(0.5)
		taken = len(os.listdir(sys.argv[2]))
		print(taken, "descriptors")
		sys.exit(not (enough and taken < 40))
	END
}
check 'connections are bounded' crowd
check 'and others are served again' wait_for 30 status_is 200 /

# The page: it stays open while the daemon restarts.
"$TOOL" --json topology >"$SCRATCH/topology.json"
in_browser() {
	start page python3 "$folder/page.py" "$1" "$url" "$SCRATCH/topology.json" "$name" "$pictures"
	page=$started
	rm -f "$pictures/live" "$pictures/gone"
	# Each look of it has a limit of its own, so these are for a page that does not end at all.
	wait_for 400 sh -c "test -e '$pictures/live' || ! kill -0 $page"
	check 'the daemon ends cleanly' stop "$served"
	wait_for 100 sh -c "test -e '$pictures/gone' || ! kill -0 $page"
	check 'without a daemon' status_is 503 /all.json "${with_key[@]}"
	daemon ring -c "$SCRATCH/ring.conf"
	wait_for 200 not_running "$page"
	check 'the page in Chromium' wait "$page"
	grep -E '^(ok|FAIL)' "$SCRATCH/page.log" | sed 's/^/   /'
}
if command -v chromium >/dev/null; then
	in_browser chromium
else
	leave_out chromium
	check 'the daemon ends cleanly' stop "$served"
	check 'without a daemon' status_is 503 /all.json "${with_key[@]}"
fi
kill "$traffic" 2>/dev/null
check 'SIGTERM ends it' stop "$web"
finish
