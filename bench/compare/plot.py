#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""usage: plot.py RESULTS MACHINE FILE.svg [README.md]

RESULTS has lines 'WAY<tab>bw|lat<tab>SIZE<tab>VALUE', VALUE in Gbit/s or microseconds, once for each round, or
nothing where a program failed. Prints their medians as a Markdown table, draws them, and puts the table
between the README's lines '<!-- compare -->' and '<!-- /compare -->'."""
import math
import re
import statistics
import sys


def medians(path):
    """The ways in their order, {(way, kind, size): median}, and the number of rounds."""
    results = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            way, kind, size, value = line.rstrip("\n").split("\t")
            results.setdefault((way, kind, int(size)), []).append(value)
    found = {}
    for key, values in results.items():
        if numbers := [float(v) for v in values if v and float(v) > 0]:
            found[key] = statistics.median_low(numbers)
            if key[1] == "bw":
                found[key[0], "rate", key[2]] = found[key] * 1000 / 8 / key[2]
    return list(dict.fromkeys(key[0] for key in results)), found, max(map(len, results.values()))


def bytes_of(size):
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size} B"


def sizes_of(values, kind):
    return sorted({size for _, k, size in values if k == kind})


def short(value):
    """Three significant digits."""
    return "-" if value is None else f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}"


def table(ways, values):
    columns = [("bw", size) for size in sizes_of(values, "bw")]
    columns += [("rate", size) for size in sizes_of(values, "rate")[:1]]
    columns += [("lat", size) for size in sizes_of(values, "lat")]
    units = {"bw": "Gbit/s", "rate": "Mmsg/s", "lat": "us"}
    lines = ["| |" + "".join(f" {bytes_of(size)}, {units[kind]} |" for kind, size in columns),
             "|---|" + "--:|" * len(columns)]
    for way in ways:
        lines.append(f"| {way} |" + "".join(f" {short(values.get((way, *column)))} |" for column in columns))
    return "\n".join(lines) + "\n"


class Panel:
    """Logarithmic axes at a place of the picture, and a line for each way."""

    WIDTH, HEIGHT, GAP, TOP = 250, 250, 65, 40

    def __init__(self, number, title, sizes, values):
        self.left = self.GAP + number * (self.WIDTH + self.GAP)
        self.sizes = sizes
        self.low = math.floor(math.log10(min(values, default=1)))
        self.high = max(math.ceil(math.log10(max(values, default=1))), self.low + 1)
        self.svg = [f'<text x="{self.left}" y="{self.TOP - 18}" font-weight="bold">{title}</text>']
        for power in range(self.low, self.high + 1):
            y = self.y(10**power)
            self.svg.append(f'<path class="grid" d="M{self.left},{y:.1f}h{self.WIDTH}"/>')
            self.svg.append(f'<text x="{self.left - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
        for size in sizes:
            self.svg.append(f'<text x="{self.x(size):.1f}" y="{self.TOP + self.HEIGHT + 18}"'
                            f' text-anchor="middle" font-size="11">{bytes_of(size)}</text>')

    def x(self, size):
        return self.left + self.WIDTH * math.log(size / self.sizes[0]) / (math.log(self.sizes[-1] / self.sizes[0]) or 1)

    def y(self, value):
        return self.TOP + self.HEIGHT * (self.high - math.log10(value)) / (self.high - self.low)

    def line(self, style, points):
        path = " ".join(f"{self.x(size):.1f},{self.y(value):.1f}" for size, value in points)
        self.svg.append(f'<polyline {style} points="{path}"/>')
        self.svg += [f'<circle {style} cx="{self.x(size):.1f}" cy="{self.y(value):.1f}" r="1.5"/>'
                     for size, value in points]


# Readable on white and on black.
COLOURS = ("#e15759", "#b5651d", "#f28e2b", "#c9a227", "#59a14f", "#d37295", "#4e79a7", "#76b7b2", "#8a8a8a", "#b07aa1")
STYLE = """<style>
svg { font: 13px sans-serif } text { fill: #24292f } .paper { fill: #ffffff } .grid { stroke: #d8dee4 }
polyline, circle, .key { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .paper { fill: #0d1117 } .grid { stroke: #30363d } }
</style>"""


def style_of(number, way):
    """softhca's lines are solid, the others dashed."""
    dashes = "" if "softhca" in way else ' stroke-dasharray="5 3"'
    return f'stroke="{COLOURS[number % len(COLOURS)]}"{dashes}'


def picture(ways, values, machine):
    titles = {"bw": "Bandwidth, Gbit/s", "rate": "Message rate, millions/s", "lat": "Latency one way, us"}
    width = 3 * (Panel.WIDTH + Panel.GAP) + Panel.GAP // 2
    legend = Panel.TOP + Panel.HEIGHT + 45
    rows = math.ceil(len(ways) / 3)
    height = legend + 20 * rows + 20
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">', STYLE,
           f'<rect class="paper" width="{width}" height="{height}"/>']
    for number, (kind, title) in enumerate(titles.items()):
        sizes = sizes_of(values, kind)
        panel = Panel(number, title, sizes, [v for key, v in values.items() if key[1] == kind])
        for i, way in enumerate(ways):
            points = [(size, values[way, kind, size]) for size in sizes if (way, kind, size) in values]
            panel.line(style_of(i, way), points)
        svg += panel.svg
    for i, way in enumerate(ways):
        x, y = Panel.GAP + i // rows * (Panel.WIDTH + Panel.GAP), legend + 20 * (i % rows)
        svg.append(f'<path class="key" {style_of(i, way)} d="M{x},{y - 4}h22"/><text x="{x + 28}" y="{y}">{way}</text>')
    svg.append(f'<text x="{Panel.GAP}" y="{height - 12}" font-size="11">{machine}</text></svg>')
    return "\n".join(svg) + "\n"


def publish(readme, text):
    with open(readme, encoding="utf-8") as file:
        old = file.read()
    new, count = re.subn(r"(?<=<!-- compare -->\n).*?(?=<!-- /compare -->\n)", lambda _: text, old, flags=re.S)
    if count != 1:
        sys.exit(f"{readme}: no lines '<!-- compare -->' and '<!-- /compare -->'")
    with open(readme, "w", encoding="utf-8") as file:
        file.write(new)


results, machine, svg = sys.argv[1:4]
ways, values, rounds = medians(results)
caption = f"{machine}; medians of {rounds} round{'s' if rounds > 1 else ''}"
text = f"{caption}:\n\n{table(ways, values)}"
print(text, end="")
with open(svg, "w", encoding="utf-8") as out:
    out.write(picture(ways, values, caption))
for readme in sys.argv[4:]:
    publish(readme, text)
