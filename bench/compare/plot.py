#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""usage: plot.py MACHINE FILE.svg WAY...   reads lines 'WAY SIZE|latency VALUE', VALUE in Gbit/s or us

Prints them as a table, a row for each way in the given order, and draws bandwidth over size."""
import math
import sys

machine, path, ways = sys.argv[1], sys.argv[2], sys.argv[3:]
values = {}
for line in sys.stdin:
    way, size, value = line.split()
    if value != "-":
        values[way, size] = float(value)
sizes = sorted({int(s) for _, s in values if s != "latency"})


def title(way):
    carrier, program = way.split("_")
    return f"{program} over {carrier}" if program != "native" else "softhca-perf"


def bytes_of(size):
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size // factor} {unit}"
    return f"{size} B"


def cell(way, column, form="{:.2f}"):
    value = values.get((way, column))
    return "-" if value is None else form.format(value)


print(f"{machine}; Gbit/s, and microseconds one way")
print("| |" + "".join(f" {bytes_of(s)} |" for s in sizes) + f" {bytes_of(sizes[0])}, Mmsg/s | 8 B, us |")
print("|---|" + "--:|" * (len(sizes) + 2))
for way in ways:
    rate = values.get((way, str(sizes[0])))
    cells = [cell(way, str(s)) for s in sizes]
    cells += ["-" if rate is None else f"{rate * 1000 / 8 / sizes[0]:.2f}", cell(way, "latency")]
    print(f"| {title(way)} | " + " | ".join(cells) + " |")

WIDTH, HEIGHT, LEFT, TOP = 620, 360, 60, 20
COLOURS = ("#999999", "#555555", "#2b8cbe", "#fdae61", "#f46d43", "#d73027")
low = math.floor(math.log10(min(v for (_, s), v in values.items() if s != "latency")))
high = math.ceil(math.log10(max(v for (_, s), v in values.items() if s != "latency")))


def x_of(size):
    span = math.log2(sizes[-1] / sizes[0]) or 1
    return LEFT + WIDTH * math.log2(size / sizes[0]) / span


def y_of(value):
    return TOP + HEIGHT * (high - math.log10(value)) / (high - low)


svg = [
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 190} {TOP + HEIGHT + 60}"'
    ' font-family="sans-serif" font-size="13">',
    '<rect width="100%" height="100%" fill="white"/>',
]
for power in range(low, high + 1):
    y = y_of(10**power)
    svg.append(f'<path d="M{LEFT},{y:.1f}h{WIDTH}" stroke="#dddddd"/>')
    svg.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
for size in sizes:
    svg.append(
        f'<text x="{x_of(size):.1f}" y="{TOP + HEIGHT + 20}" text-anchor="middle">{bytes_of(size)}</text>'
    )
svg.append(f'<text x="{LEFT}" y="{TOP - 6}" text-anchor="middle">Gbit/s</text>')
svg.append(f'<text x="{LEFT}" y="{TOP + HEIGHT + 46}" fill="#555555">{machine}</text>')
free = TOP - 14.0
ends = {w: y_of(values[w, str(sizes[-1])]) for w in ways if (w, str(sizes[-1])) in values}
for way, end in sorted(ends.items(), key=lambda item: item[1]):
    colour = COLOURS[ways.index(way) % len(COLOURS)]
    points = [(x_of(s), y_of(values[way, str(s)])) for s in sizes if (way, str(s)) in values]
    svg.append(
        f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="'
        + " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        + '"/>'
    )
    free = max(free + 16, end + 4)
    svg.append(f'<text x="{LEFT + WIDTH + 8}" y="{free:.1f}" fill="{colour}">{title(way)}</text>')
svg.append("</svg>")
with open(path, "w", encoding="utf-8") as out:
    out.write("\n".join(svg) + "\n")
