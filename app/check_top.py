#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`softhca top` in a pseudo-terminal of 80x24: its screen fits, its keys work, and however it ends the terminal
is as it was; tables fit there, too.  usage: check_top.py SOFTHCA SOCKET; exit code 0 or 1"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

OFF = "\x1b[?25h\x1b[?1049l"
PATIENCE_S = 30


class Top:
    def __init__(self, *arguments, command="top"):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.read(0, 1)  # the terminal's size first
            os.execv(sys.argv[1], [sys.argv[1], "--socket", sys.argv[2], command, *arguments])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self.fd)
        os.write(self.fd, b"\n")

    def until(self, pattern):
        """Reads until the text since the last call matches; returns it."""
        end = time.monotonic() + PATIENCE_S
        while not re.search(pattern, self.text, re.S):
            ready = select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]
            assert ready, f"no {pattern!r} in {self.text!r}"
            try:
                self.text += os.read(self.fd, 65536).decode()
            except OSError:
                raise AssertionError(f"it ended: no {pattern!r} in {self.text!r}") from None
        seen, self.text = self.text, ""
        return seen

    def ends(self, code):
        self.until(re.escape(OFF))
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        after = termios.tcgetattr(self.fd)
        os.close(self.fd)
        assert after == self.before, "the terminal is not as it was"
        assert status == code, f"exit code {status}"


def main():
    frame = r"\x1b\[H(.*?)\x1b\[J"
    top = Top("-d", "0.2")
    lines = re.search(frame, top.until(frame), re.S)[1].replace("\x1b[K", "").split("\r\n")
    assert len(lines) <= 24 and max(map(len, lines)) <= 80, lines
    heads = [line.split()[0] for line in lines if line[:1].isupper()]
    assert heads == ["HCA", "ENGINE", "ENGINE", "HCA"], lines
    assert any(line.startswith("hca1 ") for line in lines), lines
    os.write(top.fd, b"s")
    top.until("queue pairs by qpn.*s: sort")
    os.write(top.fd, b"fSOFTHCAX\x7fd rts ")
    top.until("queue pairs with: SOFTHCAd rts _")
    os.write(top.fd, b"no\n")
    screen = top.until("softhca: [^\r]* 0 of 2 queue pairs .*'SOFTHCAd rts no'  q: quit")
    assert not re.search("UD +RTS", screen.split("0 of 2")[-1]), screen
    os.write(top.fd, b"f\x1b")
    top.until(", 2 queue pairs .*f: filter  q: quit")
    os.write(top.fd, b"\x1b[A")
    os.write(top.fd, b" ")
    top.until("PAUSED")
    os.write(top.fd, b" ")
    top.until(r"space: pause.*\x1b\[J")
    os.kill(top.pid, signal.SIGTSTP)
    top.until(re.escape(OFF))
    assert os.WIFSTOPPED(os.waitpid(top.pid, os.WUNTRACED)[1])
    os.kill(top.pid, signal.SIGCONT)
    top.until(frame)
    os.write(top.fd, b"q")
    top.ends(0)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        top = Top("-d", "0.2")
        top.until(frame)
        os.kill(top.pid, number)
        top.ends(0)
    top = Top("-n", "2", "-d", "0.1")
    top.until(frame + ".*" + frame + ".*" + "(?=" + re.escape(OFF) + ")")
    top.text = OFF
    top.ends(0)
    Top("--hca", "nosuch").until("there is no HCA 'nosuch'")
    folded = Top("hca0.address", command="set").until("GID_CHANGE.*addresses")
    lines = folded.replace("\r", "").split("\n")
    assert len(lines) > 8 and max(map(len, lines)) <= 80, lines


main()
