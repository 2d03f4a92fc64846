#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Memory of every kind that a program has, registered: data moves through it between two HCAs; as
# root and as an ordinary user. What registration costs is printed; with the argument `judge`, for a
# machine that does nothing else, too much is a failure (`make bench`).
. "$(dirname "$0")/lib.sh"

PROGRAM=$(program tests/system/memory) || exit 1
ring_config >"$SCRATCH/ring.conf"
daemon ring -c "$SCRATCH/ring.conf"
daemon=$started

# Three times the largest registration must be there: the program's, the copy, and some room. What is more than an
# eighth of all memory is copied back when it is deregistered.
largest=1024
awk '/^MemTotal/ { all = $2 } /^MemAvailable/ { free = $2 } END { exit free < 4000000 || all / 8 < 1024 * 1024 }' \
	/proc/meminfo || largest=64

check 'every kind of memory' timeout 200 "$PROGRAM" "$SCRATCH/ring.sock" left right $largest "$@"
sed 's/^/   /' "$SCRATCH/check.log"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	cp "$PROGRAM" "$SCRATCH/memory"
	cp "$BUILD"/lib/host/client/libsofthca.so.0 "$SCRATCH"
	chmod a+rx "$SCRATCH" "$SCRATCH/memory" "$SCRATCH/libsofthca.so.0"
	check 'every kind of memory, as an ordinary user' timeout 200 \
		setpriv --reuid 65534 --regid 65534 --clear-groups \
		env LD_LIBRARY_PATH="$SCRATCH" "$SCRATCH/memory" "$SCRATCH/ring.sock" left right 16
	sed 's/^/   /' "$SCRATCH/check.log"
else
	leave_out root, to be an ordinary user as well
fi
check 'the daemon lives' kill -0 "$daemon"
check 'the daemon ends cleanly' stop "$daemon"

# A kernel that uses huge pages for files in memory reports them as block size, which is only a hint.
huge=/sys/kernel/mm/transparent_hugepage/shmem_enabled
if [ "$(id -u)" = 0 ] && before=$(grep -o '\[.*\]' $huge 2>/dev/null | tr -d '[]') &&
	trap 'echo "$before" >$huge; clean_up' EXIT && echo always 2>/dev/null >$huge; then
	daemon ring -c "$SCRATCH/ring.conf"
	daemon=$started
	check 'memory, where files in memory have huge pages' timeout 100 \
		"$PROGRAM" "$SCRATCH/ring.sock" left right 16
	check 'the daemon ends cleanly, too' stop "$daemon"
else
	leave_out root and huge pages for files in memory
fi
finish
