#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Random operations on a wire that loses 1 %, doubles 1 % and reorders 1 % of the packets, in both
# directions: each happens once, in order, every byte right. SOFTHCA_SOAK: how many (100000).
. "$(dirname "$0")/lib.sh"

# Is a counter of that HCA above 0?
counted() {
	"$TOOL" --socket "$SCRATCH/soak.sock" --hca "$1" counters | grep -E "^ *$2 +[1-9]"
}

ring_config 'loss = 0.01' 'duplicate = 0.01' 'reorder = 0.01' >"$SCRATCH/soak.conf"
daemon soak -c "$SCRATCH/soak.conf"
if timeout 900 "$PERF" --soak "${SOFTHCA_SOAK:-100000}" --socket "$SCRATCH/soak.sock" \
	--pair left,right ${SOFTHCA_SEED:+--seed "$SOFTHCA_SEED"}; then
	ok 'soak'
else
	fail 'soak'
	tail -n 20 "$SCRATCH/soak.log"
fi

# Without these it would have shown nothing.
for hca in left right; do
	for counter in impaired_lost impaired_duplicated impaired_reordered; do
		check "$hca: $counter is not 0" counted $hca $counter
	done
done
check 'the daemon ends cleanly' stop "$started"
finish
