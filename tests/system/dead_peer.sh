#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A dead peer costs the others less than 5 %: ratio of medians of interleaved runs.
. "$(dirname "$0")/lib.sh"

ring_config >"$SCRATCH/ring.conf"
daemon ring -c "$SCRATCH/ring.conf"
"$PERF" --dead-peer -s 65536 --socket "$SCRATCH/ring.sock" --pair left,right
case $? in
0) ok 'one dead peer costs less than 5 %' ;;
*) fail 'one dead peer costs less than 5 %' ;;
esac
finish
