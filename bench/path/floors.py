#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What softhca does as a share of what softhca-limit measures in the same run.

Needs an otherwise unused daemon at SOFTHCA_SOCKET, with both HCAs on one lcore and more than 2^14
queue pairs each; with --icrc one that computes and checks ICRCs. Prints medians of the rounds;
buffers are reused. Exit code 1: a share is below its floor, or has fallen against the baseline of
the same kind of CPU by more than 5 %.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys

BULK = "-t 32 -m 4096"
LISTS = "-l 32 -t 256"  # what the model of messages does
# What; test and options; what it is a share of, which may be a row above; its floor.
ROWS = (
    ("WRITE 64 KiB", f"write_bw -s 65536 -n 60000 {BULK}", "copy", 0.5),
    ("READ 64 KiB", f"read_bw -s 65536 -n 60000 {BULK}", "copy", 0.5),
    ("SEND 64 KiB", f"send_bw -s 65536 -n 60000 {BULK}", "copy", 0.5),
    ("WRITE 1 MiB", f"write_bw -s 1048576 -n 4000 {BULK}", "copy-1m", 0.5),
    ("WRITE 64 B", f"write_bw -s 64 -n 2000000 {LISTS}", "messages", 0.65),
    ("SEND 64 B", f"send_bw -s 64 -n 1000000 {LISTS}", "messages", 0.5),
    ("READ 64 B", f"read_bw -s 64 -n 1000000 {LISTS}", "messages", 0.4),
    ("atomics", f"atomic_bw -n 1000000 {LISTS}", "messages", 0.4),
    ("WRITE 64 B, one by one", "write_bw -s 64 -n 1000000 -t 256", "WRITE 64 B", 0.7),
    ("WRITE 64 B, 2^10 QPs", "write_bw -s 64 -n 2048 -l 32 -q 1024 --random", "WRITE 64 B", 0.7),
    # Last: the daemon takes a while to destroy them.
    ("WRITE 64 B, 2^14 QPs", "write_bw -s 64 -n 256 -l 32 -t 64 -q 16384 --random", "WRITE 64 B", 0.7),
)
# With icrc = always, which the model has.
ICRC_ROWS = (
    ("WRITE 64 KiB, ICRC", f"write_bw -s 65536 -n 40000 {BULK}", "bulk", 0.75),
    ("READ 64 KiB, ICRC", f"read_bw -s 65536 -n 40000 {BULK}", "bulk", 0.75),
    ("SEND 64 KiB, ICRC", f"send_bw -s 65536 -n 40000 {BULK}", "bulk", 0.75),
    ("WRITE 64 B, ICRC", f"write_bw -s 64 -n 1000000 {LISTS}", "messages", 0.55),
)
LATENCY_TRIPS = 6  # 8 B one way, in round trips of a cache line between two CPUs
GBIT, MILLIONS = "Gbit/s", "M/s"
UNITS = {"bulk": GBIT, "copy": GBIT, "copy-1m": GBIT, "messages": MILLIONS}
COLUMNS = {GBIT: 3, MILLIONS: 4}  # of softhca-perf's table


def output(command):
    """The lines of what a command prints, in words."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines() if line.strip()]


def limits(build):
    """Names to values: Gbit/s, M/s, microseconds; and 'crc', the form of the CRC."""
    lines = {words[0]: words[1] for words in output([f"{build}/bench/limit/softhca-limit"])}
    found = {name: float(lines[name]) * (8 if UNITS[name] == GBIT else 1) for name in UNITS}
    for name in ("udp-busy", "udp-blocking", "tcp-busy", "tcp-blocking"):
        found[name] = float(lines[name]) / 1000
    found["trip"] = max(float(lines[f"core-to-core-{when}"]) for when in ("before", "after")) / 1000
    return found | {"crc": lines["crc"]}


def cpu_kind(crc):
    """Vendor, family and form of the CRC: what the shares of a baseline hold for."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        fields = dict(re.findall(r"^(vendor_id|cpu family)\s*: (\S+)", file.read(), re.MULTILINE))
    return " ".join([*fields.values(), crc])


def perf(args, test):
    """The row that softhca-perf prints for its one size."""
    command = args.prefix + [f"{args.build}/bench/path/softhca-perf", *test.split(), "--pair", "hca0,hca1"]
    return next(words for words in output(command) if words[0].isdigit())


def unit(of):
    """Of a row that is a share of this."""
    return UNITS.get(of, MILLIONS)


def measure(args, rows):
    """One round: limits, a value for each row, the latency."""
    limit = limits(args.build)
    latency = float(perf(args, "write_lat -s 8 -n 20000")[4])
    values = [float(perf(args, test)[COLUMNS[unit(of)]]) for _, test, of, _ in rows]
    return limit, values, latency


def judge(what, share, floor, before):
    """What there is to say of a share, and whether it is good enough."""
    words, good = [f"share {share:.2f}"], True
    if floor:
        good = share >= floor
        words.append(f"floor {floor:.2f}: {'ok' if good else 'BELOW'}")
    if what in before:
        fell = share < before[what] * 0.95
        words.append(f"baseline {before[what]:.2f}: {'FELL' if fell else 'ok'}")
        good = good and not fell
    return ", ".join(words), good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--baseline", help="compare with the shares in this file")
    parser.add_argument("--save", action="store_true", help="write the shares into the baseline instead")
    parser.add_argument("--icrc", action="store_true", help="the daemon computes and checks ICRCs")
    parser.add_argument("build")
    parser.add_argument("prefix", nargs="*", help="in front of each softhca-perf, such as taskset -c 0")
    args = parser.parse_args()

    rows = ICRC_ROWS if args.icrc else ROWS
    rounds = [measure(args, rows) for _ in range(args.rounds)]
    kind = cpu_kind(rounds[0][0]["crc"])
    limit = {n: statistics.median(r[0][n] for r in rounds) for n in rounds[0][0] if n != "crc"}
    baselines = {}
    if args.baseline and os.path.exists(args.baseline):
        with open(args.baseline, encoding="utf-8") as file:
            baselines = json.load(file)
    before = {} if args.save else baselines.get(kind, {})

    trips = [1000 * r[0]["trip"] for r in rounds]
    print(
        f"medians of {args.rounds} rounds, both HCAs on one lcore, {kind}, "
        f"CPU to CPU and back {min(trips):.0f} to {max(trips):.0f} ns"
    )
    all_good, shares = True, {}
    for i, (what, _, of, floor) in enumerate(rows):
        limit[what] = statistics.median(r[1][i] for r in rounds)
        shares[what] = round(limit[what] / limit[of], 3)
        text, good = judge(what, shares[what], floor, before)
        print(f"{what:26} {limit[what]:8.2f} of {limit[of]:8.2f} {unit(of):6} {text}")
        all_good = all_good and good
    latency = statistics.median(r[2] for r in rounds)
    away = latency / limit["trip"]
    near = away <= LATENCY_TRIPS
    faster = latency < limit["udp-busy"] and latency < limit["tcp-busy"]
    print(
        f"8 B one way: WRITE {latency:.2f} us, {away:.1f} of CPU to CPU and back, "
        f"floor {LATENCY_TRIPS}: {'ok' if near else 'BELOW'}; "
        f"UDP {limit['udp-busy']:.2f} (busy) {limit['udp-blocking']:.2f} (blocking), "
        f"TCP {limit['tcp-busy']:.2f}, {limit['tcp-blocking']:.2f}: {'ok' if faster else 'NOT BELOW'}"
    )
    if args.save:
        with open(args.baseline, "w", encoding="utf-8") as file:
            json.dump(baselines | {kind: baselines.get(kind, {}) | shares}, file, indent="\t", sort_keys=True)
            file.write("\n")
    return 0 if all_good and near and faster else 1


if __name__ == "__main__":
    sys.exit(main())
