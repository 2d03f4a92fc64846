# SPDX-License-Identifier: BSD-3-Clause
# For the scripts here and in ../compare that read it: a daemon of the benchmark's own, with two HCAs joined by rings on a
# private socket. Sets scratch, a folder of the benchmark's, and beside, in front of clients. $build: the build.
scratch=$(mktemp -d /tmp/softhca-bench.XXXXXX)
daemon=
stop() {
	[ -z "$daemon" ] || { kill "$daemon" && wait "$daemon"; } || true
	daemon=
}
clean_up() {
	stop
	rm -rf "$scratch"
}
trap clean_up EXIT
export RUNTIME_DIRECTORY=$scratch SOFTHCA_SOCKET=$scratch/daemon.sock

# start OPTION...: in place of the one before
start() {
	stop
	"$build/app/softhcad" --socket "$SOFTHCA_SOCKET" --set daemon.log_level=warning "$@" </dev/null &
	daemon=$!
	for ((i = 0; i < 500; i++)); do
		[ ! -S "$SOFTHCA_SOCKET" ] || break
		kill -0 "$daemon" || exit
		sleep 0.02
	done
}

# The daemon takes the last CPU; a client that shares it waits for the scheduler in each turn.
beside=()
[ "$(nproc)" -lt 2 ] || beside=(taskset -c 0)
