#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: arm64.sh SOURCE-ROOT
# The CRC on ARMv8: cross-compiled, and run by emulation of an early CPU and of the latest. Skips where compiler or
# emulator is missing. The emulator has no CPU without PMULL; the program hides it from the choice of a form.
set -euo pipefail
cd "$1"
for program in aarch64-linux-gnu-gcc qemu-aarch64-static; do
	command -v "$program" >/dev/null || { echo "no $program"; exit 77; }
done
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
aarch64-linux-gnu-gcc -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -fno-strict-aliasing -static \
	-Wl,--wrap=getauxval -Ilib/common/wire -Ilib/common/wire/include -o "$made/arm64" tests/unit/wire/arm64.c \
	lib/common/wire/crc.c lib/common/wire/crc_portable.c lib/common/wire/crc_crc32.c \
	lib/common/wire/crc_pmull.c
for cpu in cortex-a53 max; do
	qemu-aarch64-static -cpu "$cpu" "$made/arm64" | tee "$made/said"
	for form in pmull crc32 portable; do
		grep -q "^$form is right" "$made/said"
	done
done
