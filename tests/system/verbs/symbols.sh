#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: symbols.sh LIBRARY SOURCES
# Is every symbol of lib/host/verbs/libibverbs.map and private_symbols.def in the built library, in its
# node, functions interposed on libc without a version, and nothing else? Prints the differences.
set -euo pipefail

wanted() {
	awk '/^IBVERBS_/ { node = $1 } /^\tlocal:/ { node = "" }
		node && /^\t\t[a-z_]/ { sub(/;/, ""); print $1 "@" node }' "$1/libibverbs.map"
	printf '%s\n' madvise mmap mmap64 mremap munmap # lib/host/share-in-place/interpose.c
	{
		awk -F '[()]' '/^PRIVATE/ { print $2 }' "$1/private_symbols.def"
		# Not refused: private.c has them.
		echo ibv_query_gid_type
		echo verbs_allow_disassociate_destroy
	} | while read -r name; do
		for release in 25 34 57 59 64; do echo "$name@IBVERBS_PRIVATE_$release"; done
	done
}

there() {
	nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@@/, "@", $3); print $3 }'
}

diff <(wanted "$2" | sort) <(there "$1" | sort)
