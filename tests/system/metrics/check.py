#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two scrapes of `softhca exporter`, with traffic between them: is each as Prometheus's text format 0.0.4 and
the naming rules want it, did the counts grow that had to, and did none fall?

usage: check.py BEFORE AFTER [MINIMUM METRIC{LABELS}]..."""
import re
import sys

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(rf"({NAME})((?:\{{{LABEL}(?:,{LABEL})*\}})?) (-?[0-9.]+(?:e[+-]?[0-9]+)?)")
HELP = re.compile(rf"# HELP ({NAME}) \S.*")
TYPE = re.compile(rf"# TYPE ({NAME}) (counter|gauge)")


def refuse(number, line, why):
    sys.exit(f"line {number}: {why}: {line}")


def read(path):
    """{metric{labels}: value}, {metric: type}; every metric has HELP, TYPE, then all of its samples."""
    text, values, types, helped = open(path).read(), {}, {}, None
    assert text.endswith("\n"), "the last line has no end"
    current = None
    for number, line in enumerate(text.splitlines(), 1):
        if found := HELP.fullmatch(line):
            helped = found[1]
        elif found := TYPE.fullmatch(line):
            current = found[1]
            if current != helped or current in types:
                refuse(number, line, "not behind its HELP, or a second time")
            if (found[2] == "counter") != current.endswith("_total"):
                refuse(number, line, "counters, and only they, end in _total")
            types[current] = found[2]
        elif found := SAMPLE.fullmatch(line):
            if found[1] != current:
                refuse(number, line, "not with its metric")
            if found[1] + found[2] in values:
                refuse(number, line, "a second time")
            values[found[1] + found[2]] = float(found[3])
        else:
            refuse(number, line, "neither HELP, TYPE nor a sample")
    return values, types


def main():
    (before, types), (after, _) = (read(path) for path in sys.argv[1:3])
    for sample, value in before.items():
        if types[sample.split("{")[0]] == "counter" and after[sample] < value:
            sys.exit(f"{sample} fell from {value} to {after[sample]}")
    for least, sample in zip(sys.argv[3::2], sys.argv[4::2]):
        if after[sample] - before[sample] < float(least):
            sys.exit(f"{sample}: {before[sample]}, then {after[sample]}; expected {least} more")
    print(f"{len(types)} metrics, {len(after)} samples")


main()
