#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: floors.sh BUILD [COMMAND PREFIX...]     with an otherwise unused daemon at SOFTHCA_SOCKET
# The speed floors, each as a share of what softhca-limit measures in the same run: five rounds of
# limit, 64-KiB WRITEs, 64-byte WRITEs (lists of 32, 256 outstanding: what the model does), 8-byte
# latency; medians. Both HCAs on one lcore, buffers reused. Exit code 1: below a floor.
set -euo pipefail
build=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# bw OPTIONS...: the table's row: size, iterations, peak, average Gbit/s, M messages/s
bw() { "${@:1:prefix}" "$build/bench/path/softhca-perf" write_bw --pair hca0,hca1 "${@:prefix+1}" | awk '$1 ~ /^[0-9]+$/'; }
prefix=$#
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

for ((round = 0; round < 5; round++)); do
	"$build/bench/limit/softhca-limit" >"$scratch/limit"
	awk -v d="$scratch" '
		$1 == "bulk" { print $2 * 8 >>(d "/bulk.limit") }
		$1 == "messages" { print $2 >>(d "/messages.limit") }
		/^(udp|tcp)-(busy|blocking)/ { print $2 / 1000 >>(d "/" $1) }' "$scratch/limit"
	bw "$@" -s 65536 -m 4096 -t 32 -n 60000 | awk '{ print $4 }' >>"$scratch/bulk"
	bw "$@" -s 64 -l 32 -t 256 -n 2000000 | awk '{ print $5 }' >>"$scratch/messages"
	"$@" "$build/bench/path/softhca-perf" write_lat --pair hca0,hca1 -s 8 -n 20000 |
		awk '$1 == 8 { print $5 }' >>"$scratch/latency"
done

awk -v bulk="$(median "$scratch/bulk")" -v bulk_limit="$(median "$scratch/bulk.limit")" \
	-v messages="$(median "$scratch/messages")" -v messages_limit="$(median "$scratch/messages.limit")" \
	-v latency="$(median "$scratch/latency")" \
	-v ub="$(median "$scratch/udp-busy")" -v uk="$(median "$scratch/udp-blocking")" \
	-v tb="$(median "$scratch/tcp-busy")" -v tk="$(median "$scratch/tcp-blocking")" '
	function row(what, got, limit, unit, floor) {
		printf "%-34s %8.2f of %8.2f %-8s share %.2f, floor %.2f: %s\n", what, got, limit, unit,
			got / limit, floor, (got / limit >= floor ? "ok" : "BELOW")
		if (got / limit < floor)
			below++
	}
	BEGIN {
		print "medians of five rounds, both HCAs on one lcore"
		row("RC WRITE 64 KiB, MTU 4096", bulk, bulk_limit, "Gbit/s", 0.5)
		row("RC WRITE 64 B, one client", messages, messages_limit, "Mmsg/s", 0.35)
		printf "8 B one way: WRITE %.2f us; UDP %.2f (busy) %.2f (blocking), TCP %.2f, %.2f: %s\n",
			latency, ub, uk, tb, tk, (latency < ub && latency < tb ? "ok" : "NOT BELOW")
		if (latency >= ub || latency >= tb)
			below++
		exit (below > 0)
	}'
