#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: arm64.sh SOURCE-ROOT
# The CRC on ARMv8: cross-compiled and run by emulation. Skips where either is missing.
set -euo pipefail
cd "$1"
for program in aarch64-linux-gnu-gcc qemu-aarch64-static; do
	command -v "$program" >/dev/null || { echo "no $program"; exit 77; }
done
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
aarch64-linux-gnu-gcc -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -fno-strict-aliasing -static \
	-Ilib/common/wire -Ilib/common/wire/include -o "$made/arm64" tests/unit/wire/arm64.c \
	lib/common/wire/crc.c lib/common/wire/crc_portable.c lib/common/wire/crc_pmull.c
qemu-aarch64-static "$made/arm64" | tee "$made/said"
grep -q '^pmull is right' "$made/said"
