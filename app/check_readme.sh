#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: check_readme.sh SOFTHCA README
# The drawing in the README is what `softhca topology` prints.
set -euo pipefail
drawing=$("$1" --socket "/nonexistent-$$" topology) # of no daemon: the drawing alone
readme=$(cat "$2")
if [[ $readme != *"$drawing"* ]]; then
	echo "the drawing in $2 differs from: softhca topology" >&2
	exit 1
fi
