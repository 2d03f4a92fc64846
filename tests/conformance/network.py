#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""usage: network.py POINTS FILE.svg   draws what `test_conformance_network long POINTS` has left there

Lines 'rate,SCENARIO,FLOW,MS,GBIT/S', 'time,SCENARIO,0,TIME/FAIR,QUANTILE' and
'share,SCENARIO,ENDS,LOSS/10^6,SHARE'; a panel for each kind."""
import math
import sys

WIDTH, HEIGHT, LEFT, TOP, RIGHT = 420, 260, 60, 40, 130
COLOURS = ("#2b8cbe", "#f46d43", "#555555", "#1a9850")
ENDS = ("standard to standard", "standard to keep", "keep to keep", "equals")

points = {"rate": [], "time": [], "share": []}
with open(sys.argv[1], encoding="utf-8") as lines:
    for line in lines:
        kind, *rest = line.rstrip("\n").split(",")
        scenario, series, x, y = ",".join(rest[:-3]), int(rest[-3]), float(rest[-2]), float(rest[-1])
        points[kind].append((scenario, series, x, y))


class Panel:
    """Axes at a place of the picture, and lines in them."""

    def __init__(self, column, title, x_axis, y_axis):
        self.left = LEFT + column * (LEFT + WIDTH + RIGHT)
        (self.x_low, self.x_high, x_ticks, x_name) = x_axis
        (self.y_low, self.y_high, y_ticks, y_name) = y_axis
        self.out = [f'<text x="{self.left}" y="{TOP - 20}" font-weight="bold">{title}</text>']
        for y in y_ticks:
            at = self.y(y)
            self.out.append(f'<path d="M{self.left},{at:.1f}h{WIDTH}" stroke="#dddddd"/>')
            self.text(self.left - 8, at + 4, f"{y:g}", "end")
        for x, name in x_ticks:
            self.text(self.x(x), TOP + HEIGHT + 18, name, "middle")
        self.text(self.left, TOP - 5, y_name, "middle")
        self.text(self.left + WIDTH, TOP + HEIGHT + 36, x_name, "end")

    def x(self, x):
        return self.left + WIDTH * (x - self.x_low) / (self.x_high - self.x_low)

    def y(self, y):
        return TOP + HEIGHT * (self.y_high - y) / (self.y_high - self.y_low)

    def text(self, x, y, text, anchor="start", colour="black"):
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{text}</text>')

    def line(self, number, name, xy):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in xy)
        self.out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{path}"/>')
        self.text(self.left + WIDTH + 8, TOP + 16 + 18 * number, name, "start", colour)


def series(kind, wanted):
    found = {}
    for scenario, number, x, y in points[kind]:
        if wanted in scenario:
            found.setdefault(number, []).append((x, y))
    return found


def rates():
    lines = series("rate", "DCQCN")
    end = max(x for xy in lines.values() for x, _ in xy) + 1
    panel = Panel(0, "Three flows with DCQCN on a link of 40 Gbit/s",
                  (0, end, [(x, f"{x}") for x in range(0, int(end) + 1, 10)], "ms"),
                  (0, 40, range(0, 41, 10), "Gbit/s"))
    for number, xy in sorted(lines.items()):
        panel.line(number, f"flow {number + 1}", xy)
    return panel


def times():
    lines = series("time", "incast of 16, 512 KiB of buffer")
    low, high = -2, 2
    panel = Panel(1, "Incast of 16: 64-KiB WRITEs",
                  (low, high, [(x, f"{10.0**x:g}") for x in range(low, high + 1)],
                   "time, of the time with fair shares"),
                  (0, 1, (0, 0.25, 0.5, 0.75, 1), "share of them"))
    for number, xy in lines.items():
        panel.line(number, "", [(min(max(math.log10(x), low), high), y) for x, y in xy if x > 0])
    return panel


def shares():
    lines = series("share", "loss")
    panel = Panel(2, "Goodput of 64-KiB WRITEs under loss",
                  (-3.1, -1.4, [(math.log10(x), f"{100 * x:g} %") for x in (0.001, 0.01, 0.03)], "packets lost"),
                  (0, 1, (0, 0.25, 0.5, 0.75, 1), "of lossless"))
    for number, xy in lines.items():
        panel.line(number, ENDS[number], [(math.log10(x / 1e6), y) for x, y in sorted(xy)])
    return panel


panels = [make() for make in (rates, times, shares)]
svg = [
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {3 * (LEFT + WIDTH + RIGHT) + 30} {TOP + HEIGHT + 50}"'
    ' font-family="sans-serif" font-size="13">',
    '<rect width="100%" height="100%" fill="white"/>',
]
for panel in panels:
    svg += panel.out
svg.append("</svg>")
with open(sys.argv[2], "w", encoding="utf-8") as out:
    out.write("\n".join(svg) + "\n")
