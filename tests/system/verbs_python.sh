#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# rdma-core's own Python tests on one device: every one that is not of a vendor's hardware passes,
# or skips for a reason that verbs/python_suite.skips gives.
. "$(dirname "$0")/lib.sh"

[ -d /usr/share/doc/rdma-core/tests ] || skip 'needs python3-pyverbs'
ring_config >"$SCRATCH/ring.conf"
daemon ring -c "$SCRATCH/ring.conf"
# What a port on a network card has. Its address the tests want to know, of a command that python_suite
# stands in for.
mkdir -p "$SCRATCH/ring.sock.sysfs/sys/devices/virtual/softhca/left/net/left"
export SOFTHCA_SOCKET=$SCRATCH/ring.sock
folder=$(dirname "$0")/verbs
check "rdma-core's tests" "$folder/python_suite" --skips "$folder/python_suite.skips" --dev left \
	--address 192.168.77.1 \
	-- "$TOOL" run --
[ "$failed" -gt 0 ] || sed 's/^/   /' "$SCRATCH/check.log"
finish
