# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For the tests to source: an installed softhcad with the demo's two HCAs, in a folder of its own.
scratch=$(mktemp -d "${AUTOPKGTEST_TMP:-/tmp}/softhca.XXXXXX")
export RUNTIME_DIRECTORY=$scratch SOFTHCA_SOCKET=$scratch/softhca.sock

softhcad -c /usr/share/softhca/demo.conf --socket "$SOFTHCA_SOCKET" </dev/null 2>&1 &
daemon=$!
trap 'kill "$daemon" && wait "$daemon"; rm -rf "$scratch"' EXIT
for ((i = 0; i < 500; i++)); do
	[ ! -S "$SOFTHCA_SOCKET" ] || break
	sleep 0.02
done
softhca status
