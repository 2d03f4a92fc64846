#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: demo.sh [-v] [BUILD]
# Two HCAs in one daemon, joined by rings, move data through each other: every operation, in both
# directions, every byte checked. Needs no device, no root, no hugepages; leaves nothing behind.
# Without the build folder it runs the installed programs.
# -v also shows the daemon's log, its state, and the nonzero counters.
set -euo pipefail

verbose= log_level=warning
if [ "${1:-}" = -v ]; then
	verbose=yes log_level=info
	shift
fi
if [ $# -gt 1 ]; then
	echo "usage: $0 [-v] [BUILD]" >&2
	exit 2
fi
if [ $# -eq 1 ]; then
	for program in app/softhcad app/softhca bench/path/softhca-perf bench/limit/softhca-limit; do
		if [ ! -x "$1/$program" ]; then
			echo "$0: $1/$program has not been built: ninja -C $1 demo" >&2
			exit 2
		fi
	done
	build=$(cd "$1" && pwd)
	PATH=$build/app:$build/bench/path:$PATH
	config=$(dirname "$0")/../config/demo.conf
else
	installed=$(command -v softhcad) || {
		echo "$0: softhcad is not installed: name a build folder" >&2
		exit 2
	}
	config=$(dirname "$installed")/../share/softhca/demo.conf
fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/softhca-demo.XXXXXX")
daemon=

clean_up() {
	local status=$?
	trap - EXIT
	if [ -n "$daemon" ] && kill "$daemon" 2>/dev/null; then
		wait "$daemon" || status=$((status ? status : 1))
	fi
	rm -rf "$scratch"
	exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# DPDK's files and the control socket are removed with the scratch directory.
export RUNTIME_DIRECTORY=$scratch SOFTHCA_SOCKET=$scratch/softhca.sock

softhcad -c "$config" --socket "$SOFTHCA_SOCKET" \
	--set daemon.log_level="$log_level" </dev/null &
daemon=$!
tool() {
	softhca --socket "$SOFTHCA_SOCKET" "$@"
}
until tool status >/dev/null 2>&1; do
	if [ $SECONDS -ge 120 ] || ! kill -0 "$daemon" 2>/dev/null; then
		echo "demo: the daemon did not come up" >&2
		exit 1
	fi
	sleep 0.02
done
if [ "$verbose" ]; then
	printf '\n'
	tool status
	printf '\n'
fi
echo "hca0 <-> hca1: every operation in both directions, about half a minute"
outcome=0
# The daemon's lcore is the last CPU; the client keeps away from it where there is another one.
pin=()
[ "$(nproc)" -lt 2 ] || pin=(taskset -c 0)
timeout 300 "${pin[@]}" softhca-perf --demo --pair hca0,hca1 || outcome=$?
if [ "$verbose" ] || [ "$outcome" -ne 0 ]; then
	printf '\ncounters of what happened (softhca counters)\n'
	tool counters
fi
[ "$outcome" -eq 0 ] || echo "demo: failed (softhca-perf: $outcome)" >&2
exit "$outcome"
