#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Shows on a terminal how far long work is: percent, rate, time left. Nothing of it elsewhere.

usage: COMMAND | progress.py lines COUNT UNIT    copies its input; each line is one of COUNT
       progress.py seconds SECONDS COMMAND...    runs a command that takes about so long

The line is written to stderr; what the work itself prints goes to stdout as it is, above the line."""
import subprocess
import sys
import threading
import time

END_LINE = "\033[K\r"


class Progress:
    """Of work that consists of `total` parts, called `unit`."""

    def __init__(self, total, unit):
        self.total, self.unit, self.done = total, unit, 0
        self.begin = time.monotonic()
        self.shown = sys.stderr.isatty()

    def show(self):
        if not self.shown:
            return
        elapsed = time.monotonic() - self.begin
        line = f"{min(100, 100 * self.done / max(self.total, 1)):3.0f} %"
        if self.unit and elapsed > 1:
            line += f"  {60 * self.done / elapsed:.1f} {self.unit} a minute"
        if self.done:
            left = max(0, elapsed * (self.total - self.done) / self.done)
            line += f"  {left // 60:.0f}:{left % 60:02.0f} left"
        print(line, end=END_LINE, file=sys.stderr, flush=True)

    def step(self, done):
        """So many parts are done by now."""
        self.done = done
        self.show()

    def clear(self):
        if self.shown:
            print(end=END_LINE, file=sys.stderr, flush=True)


def copy(lines, progress, counts):
    for line in lines:
        progress.clear()
        print(line, end="", flush=True)
        if counts:
            progress.done += 1
        progress.show()
    progress.clear()


def seconds(total, command):
    progress = Progress(total, "")
    ended = threading.Event()

    def tick():
        while not ended.wait(1):
            progress.step(time.monotonic() - progress.begin)

    threading.Thread(target=tick, daemon=True).start()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as work:
        copy(work.stdout, progress, counts=False)
    ended.set()
    return work.returncode


def main(arguments):
    if len(arguments) == 3 and arguments[0] == "lines":
        copy(sys.stdin, Progress(int(arguments[1]), arguments[2]), counts=True)
        return 0
    if len(arguments) > 2 and arguments[0] == "seconds":
        return seconds(float(arguments[1]), arguments[2:])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
