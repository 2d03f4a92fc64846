#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What more lcores would bring than this machine has, from what two of them do.

Reads what `softhca-stage` and `softhca-stage spread` print. An engine whose stages are spread is as
quick as its busiest lcore: the cycles of the stages there, and for each message that comes from, or
goes to, another lcore what such a crossing costs. That cost is fitted to the ways in which `spread`
divides the stages. Of two engines, each costs the other a share, which every further one costs again.
"""
import argparse
import itertools
import re
import subprocess

STAGES = ("doorbell_wqe", "segmentation", "header_parse", "requester_recv", "responder_exec")
# Where a message passes from stage to stage of the HCA that sends it, and of the one that receives it.
PATHS = {"requester": ((0, 1), (1, 2)), "responder": ((2, 4),)}
# The ways of spread.c that spread one engine: name, lcore of each stage.
WAYS = {"descriptors and segmentation | the rest": (0, 0, 1, 1, 1), "requester | headers and responder": (0, 0, 1, 0, 1)}
WORKLOADS = ("64-byte writes, lists of 16", "64-KiB writes, 4-KiB packets")


def tables(text):
    """Workload to (cycles per message by side and stage, packets of a message, TSC cycles per second)."""
    found = {}
    for name, body in re.findall(r"^(\d+-.*)\n((?:  .*\n)+)", text, re.M):
        cycles = dict.fromkeys(itertools.product(PATHS, STAGES), 0.0)
        packets = 1.0
        for side, stage, _, elements, cost in re.findall(r"^  (\w+) +(\w+) +([\d.]+) +([\d.]+) +([\d.]+)", body, re.M):
            cycles[side, stage] = float(cost)
            if (side, stage) == ("responder", "header_parse"):
                packets = float(elements)
        total, rate = re.search(r"both sides +([\d.]+) += ([\d.]+) Mmsg/s", body).groups()
        found[name] = cycles, packets, float(total) * float(rate) * 1e6
    return found


def ways(text):
    """Name to [(rate, share of one lcore) of each workload]."""
    rows = re.findall(r"^(\S.*?) {2,}([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +\w+$", text, re.M)
    return {row[0]: [(float(row[1]) * 1e6, float(row[2])), (float(row[3]) * 1e6, float(row[4]))] for row in rows}


def busiest(table, lcore, crossing):
    """Cycles of a message on the busiest lcore; both HCAs are spread alike."""
    cycles, packets, _ = table
    load = dict.fromkeys(lcore, 0.0)
    for side, path in PATHS.items():
        for stage, name in enumerate(STAGES):
            load[lcore[stage]] += cycles[side, name]
        for a, b in path:
            if lcore[a] != lcore[b]:
                load[lcore[a]] += crossing * packets / 2
                load[lcore[b]] += crossing * packets / 2
    return max(load.values())


def fitted(table, measured, which):
    """TSC cycles of a crossing: the median over the ways, not below 0."""
    costs = []
    for name, lcore in WAYS.items():
        low, high = 0.0, 1e5
        for _ in range(60):
            middle = (low + high) / 2
            slower = table[2] / busiest(table, lcore, middle) < measured[name][which][0]
            low, high = (low, middle) if slower else (middle, high)
        costs.append(low)
    return sum(costs) / len(costs)


def main():
    """Prints a table of lcores and what they bring."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", nargs="?", default="build")
    stage = f"{parser.parse_args().build}/bench/stage/softhca-stage"
    run = lambda *args: subprocess.run([stage, *args], stdout=subprocess.PIPE, text=True, check=True).stdout
    known, measured = tables(run()), ways(run("spread"))
    for which, name in enumerate(WORKLOADS):
        table, alone = known[name], busiest(known[name], (0,) * 5, 0)
        crossing = fitted(table, measured, which)
        share = max(2 / measured["two engines"][which][1] - 1, 0)
        print(f"\n{name}: {crossing:.0f} cycles a crossing, {100 * share:.0f} % for each other engine")
        print("  lcores  engines on one each  stages of one engine spread, at best")
        for count in (1, 2, 4, 8):
            spread = min((busiest(table, lcore, crossing), lcore) for lcore in itertools.product(range(min(count, 5)), repeat=5))
            where = " ".join(f"{stage}:{lcore}" for stage, lcore in zip(STAGES, spread[1]))
            print(f"  {count:6}  {count / (1 + share * (count - 1)):19.2f}  {alone / spread[0]:.2f}  {where}")


if __name__ == "__main__":
    main()
