#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What softhca does as a share of what softhca-limit measures in the same run.

Needs an otherwise unused daemon at SOFTHCA_SOCKET, with both HCAs on one lcore and what --rows needs:
plain, more than 2^14 queue pairs each; icrc, icrc = always; tx_copy, tx_copy = always. Prints medians
of the rounds; buffers are reused, unless the row says DRAM. Exit code 1: a share is below its floor,
or has fallen against the baseline of the same kind of CPU by more than 5 %.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from typing import NamedTuple, Optional

BULK = "-t 32 -m 4096"
LISTS = "-l 32 -t 256"  # what the model of messages does


class Row(NamedTuple):
    """One measurement."""

    what: str
    test: str  # of softhca-perf, and its options; {span}: bytes of the walk through DRAM
    of: str  # what it is a share of: a limit, or a row above
    floor: Optional[float] = None
    column: Optional[int] = None  # of softhca-perf's table, if not that of the unit


WALK = "--span {span}"
VERIFIED = f"write_bw -s 65536 -n 20000 {BULK} --verify"
ROWS = (
    Row("WRITE 64 KiB", f"write_bw -s 65536 -n 60000 {BULK}", "copy", 0.5),
    Row("READ 64 KiB", f"read_bw -s 65536 -n 60000 {BULK}", "copy", 0.5),
    Row("SEND 64 KiB", f"send_bw -s 65536 -n 60000 {BULK}", "copy", 0.5),
    Row("WRITE 1 MiB", f"write_bw -s 1048576 -n 4000 {BULK}", "copy-1m", 0.5),
    Row("WRITE 64 KiB, DRAM", f"write_bw -s 65536 -n 50000 {BULK} {WALK}", "copy-dram"),
    Row("READ 64 KiB, DRAM", f"read_bw -s 65536 -n 50000 {BULK} {WALK}", "copy-dram"),
    # --verify: rounds of 256 messages in 16 MiB. First the transfer alone, from an empty queue until it is empty
    # again; then all of the time, in which the client also writes each message and reads it at the other side.
    Row("WRITE 64 KiB, verified", VERIFIED, "WRITE 64 KiB"),
    Row("WRITE 64 KiB, with checks", VERIFIED, "WRITE 64 KiB", column=5),
    Row("WRITE 64 B", f"write_bw -s 64 -n 2000000 {LISTS}", "messages", 0.65),
    Row("SEND 64 B", f"send_bw -s 64 -n 1000000 {LISTS}", "messages", 0.5),
    Row("READ 64 B", f"read_bw -s 64 -n 1000000 {LISTS}", "messages", 0.4),
    Row("atomics", f"atomic_bw -n 1000000 {LISTS}", "messages", 0.4),
    Row("WRITE 64 B, one by one", "write_bw -s 64 -n 1000000 -t 256", "WRITE 64 B", 0.7),
    Row("WRITE 64 B, 2^10 QPs", "write_bw -s 64 -n 2048 -l 32 -q 1024 --random", "WRITE 64 B", 0.7),
    # Last: the daemon takes a while to destroy them.
    Row("WRITE 64 B, 2^14 QPs", "write_bw -s 64 -n 256 -l 32 -t 64 -q 16384 --random", "WRITE 64 B", 0.7),
)
# With ICRCs, which the model has.
ICRC_ROWS = (
    Row("WRITE 64 KiB, ICRC", f"write_bw -s 65536 -n 40000 {BULK}", "bulk", 0.75),
    Row("READ 64 KiB, ICRC", f"read_bw -s 65536 -n 40000 {BULK}", "bulk", 0.75),
    Row("SEND 64 KiB, ICRC", f"send_bw -s 65536 -n 40000 {BULK}", "bulk", 0.75),
    Row("WRITE 64 B, ICRC", f"write_bw -s 64 -n 1000000 {LISTS}", "messages", 0.55),
)
# Payload is copied into retransmit buffers and from there, twice instead of once.
COPY_ROWS = (Row("WRITE 64 KiB, tx_copy", f"write_bw -s 65536 -n 60000 {BULK}", "copy"),)
DAEMONS = {"plain": ROWS, "icrc": ICRC_ROWS, "tx_copy": COPY_ROWS}
DRAM_MIB = 1024  # of each buffer that is walked through, or a quarter of the memory available
LATENCY_TRIPS = 6  # 8 B one way, in round trips of a cache line between two CPUs
WAKE_UP_US = 30
WAKE_UP_SHARE = 1.25  # or that of what a datagram takes between threads that sleep
LATENCIES = {  # us, by perftest's typical
    "write": "write_lat -s 8 -n 20000",
    "read": "read_lat -s 8 -n 5000",
    "read-asleep": "read_lat -s 8 -n 2000 --gap 300",  # the daemon has stopped spinning
}
GBIT, MILLIONS = "Gbit/s", "M/s"
UNITS = {"bulk": GBIT, "copy": GBIT, "copy-1m": GBIT, "copy-dram": GBIT, "messages": MILLIONS}
COLUMNS = {GBIT: 3, MILLIONS: 4}  # of softhca-perf's table


def output(command):
    """The lines of what a command prints, in words."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines() if line.strip()]


def dram_mib():
    """What fits twice into half of the memory available, for the model and then for softhca-perf."""
    with open("/proc/meminfo", encoding="utf-8") as file:
        available = int(re.search(r"^MemAvailable: +(\d+) kB", file.read(), re.MULTILINE).group(1)) // 1024
    return max(1, min(DRAM_MIB, available // 4))


def limits(build, mib):
    """Names to values: Gbit/s, M/s, microseconds; and 'crc', the form of the CRC."""
    lines = {words[0]: words[1] for words in output([f"{build}/bench/limit/softhca-limit", "50", "5", str(mib)])}
    found = {name: float(lines[name]) * (8 if UNITS[name] == GBIT else 1) for name in UNITS if name in lines}
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


def unit(rows, of):
    """Of a row that is a share of this."""
    while of not in UNITS:
        of = next(row.of for row in rows if row.what == of)
    return UNITS[of]


def measure(args, rows, mib):
    """One round: limits, a value for each row, latencies."""
    limit = limits(args.build, mib)
    latency = {name: float(perf(args, test)[4]) for name, test in LATENCIES.items()}
    values = []
    for row in rows:
        words = perf(args, row.test.format(span=mib << 20))
        values.append(float(words[row.column or COLUMNS[unit(rows, row.of)]]))
    return limit, values, latency


def judge(row, share, before):
    """What there is to say of a share, and whether it is good enough. before: the baseline, if there is one."""
    words, good = [f"share {share:.2f}"], True
    if row.floor:
        good = share >= row.floor
        words.append(f"floor {row.floor:.2f}: {'ok' if good else 'BELOW'}")
    if before and row.what in before:
        fell = share < before[row.what] * 0.95
        words.append(f"baseline {before[row.what]:.2f}: {'FELL' if fell else 'ok'}")
        good = good and not fell
    elif before:
        words.append("not in the baseline")
    return ", ".join(words), good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--baseline", help="compare with the shares in this file")
    parser.add_argument("--save", action="store_true", help="write the shares into the baseline instead")
    parser.add_argument("--rows", choices=DAEMONS, default="plain", help="what the daemon is for")
    parser.add_argument("build")
    parser.add_argument("prefix", nargs="*", help="in front of each softhca-perf, such as taskset -c 0")
    args = parser.parse_args()

    rows = DAEMONS[args.rows]
    mib = dram_mib() if any(row.of == "copy-dram" for row in rows) else 0
    rounds = [measure(args, rows, mib) for _ in range(args.rounds)]
    kind = cpu_kind(rounds[0][0]["crc"])
    limit = {n: statistics.median(r[0][n] for r in rounds) for n in rounds[0][0] if n != "crc"}
    baselines = {}
    if args.baseline and os.path.exists(args.baseline):
        with open(args.baseline, encoding="utf-8") as file:
            baselines = json.load(file)
    before = None if args.save else baselines.get(kind)

    trips = [1000 * r[0]["trip"] for r in rounds]
    print(
        f"medians of {args.rounds} rounds, both HCAs on one lcore, {kind}, "
        f"CPU to CPU and back {min(trips):.0f} to {max(trips):.0f} ns" + (f", DRAM: {mib} MiB" if mib else "")
    )
    if args.baseline and not args.save and before is None:
        print(f"no baseline for this kind of CPU ({kind}): nothing to compare with")
    all_good, shares = True, {}
    for i, row in enumerate(rows):
        got, of = statistics.median(r[1][i] for r in rounds), limit[row.of]
        limit[row.what] = got
        shares[row.what] = round(got / of, 3)
        text, good = judge(row, shares[row.what], before)
        print(f"{row.what:26} {got:8.2f} of {of:8.2f} {unit(rows, row.of):6} {text}")
        all_good = all_good and good
    latency = {name: statistics.median(r[2][name] for r in rounds) for name in LATENCIES}
    away = latency["write"] / limit["trip"]
    near = away <= LATENCY_TRIPS
    faster = latency["write"] < limit["udp-busy"] and latency["write"] < limit["tcp-busy"]
    print(
        f"8 B one way: WRITE {latency['write']:.2f} us, {away:.1f} of CPU to CPU and back, "
        f"floor {LATENCY_TRIPS}: {'ok' if near else 'BELOW'}; "
        f"UDP {limit['udp-busy']:.2f} (busy) {limit['udp-blocking']:.2f} (blocking), "
        f"TCP {limit['tcp-busy']:.2f}, {limit['tcp-blocking']:.2f}: {'ok' if faster else 'NOT BELOW'}"
    )
    wake_up = latency["read-asleep"] - latency["read"]
    quick = wake_up <= max(WAKE_UP_US, WAKE_UP_SHARE * limit["udp-blocking"])
    print(
        f"READ 8 B: {latency['read']:.2f} us, from a daemon that sleeps {latency['read-asleep']:.2f}, so a wake-up takes "
        f"{wake_up:.2f}, floor {WAKE_UP_US} or {WAKE_UP_SHARE} of UDP (blocking): {'ok' if quick else 'BELOW'}"
    )
    if args.save:
        with open(args.baseline, "w", encoding="utf-8") as file:
            json.dump(baselines | {kind: baselines.get(kind, {}) | shares}, file, indent="\t", sort_keys=True)
            file.write("\n")
    return 0 if all_good and near and faster and quick else 1


if __name__ == "__main__":
    sys.exit(main())
