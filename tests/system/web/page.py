#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""usage: page.py CHROMIUM URL TOPOLOGY NAME FOLDER
The page of `softhca web` in headless Chromium, while traffic passes between left and right: the pipeline of TOPOLOGY (a
file: `softhca topology --json`) and the numbers are there, a queue pair of the process NAME can be opened, nothing was
refused by the content security policy or thrown. Then it makes FOLDER/live and waits for the daemon to go; it makes
FOLDER/gone and waits for it to come back. Pictures are left in FOLDER. Exit code 0 or 1."""
import json
import sys

from browser import Browser

PICTURES = [("light", 1280, False), ("dark", 1280, True), ("phone", 400, False)]
BLANK_BYTES = 50000  # an empty page of that size has fewer; ours about 200000
NUMBER = "/[1-9]/.test"
VALUE = "document.querySelectorAll('#hcas article')[{card}].querySelectorAll('figure')[{plot}].querySelectorAll('b')[{value}].textContent"
CELLS = "[...document.querySelectorAll('#list td:nth-child(5)')].map(cell => cell.textContent)"


def main():
    program, url, topology_file, name, folder = sys.argv[1:]
    with open(topology_file) as file:
        topology = json.load(file)["/softhca/topology"]
    failed = []

    def check(what, holds):
        print("ok" if holds else "FAIL", what)
        if not holds:
            failed.append(what)

    browser = Browser(program)
    look = browser.until
    try:
        browser.look(1280, 900)
        browser.open(url)
        check("every module", look(f"document.querySelectorAll('#drawing .module').length === {len(topology['modules'])}"))
        check("every channel", look(f"document.querySelectorAll('#drawing path.channel').length === {len(topology['channels'])}"))
        check("every call", look(f"document.querySelectorAll('#drawing path.call').length === {len(topology['calls'])}"))
        check("every ring", look(f"document.querySelectorAll('#rings tbody tr').length === {len(topology['channels'])}"))
        check("cycles per element", look("/[1-9][^]*cycles.element/.test(document.querySelector('#drawing').textContent)"))
        check("throughput", look(f"{NUMBER}({VALUE.format(card=0, plot=0, value=0)})"))
        check("messages", look(f"{NUMBER}({VALUE.format(card=0, plot=1, value=0)})"))
        check("retransmissions", look(f"{NUMBER}({VALUE.format(card=0, plot=2, value=0)})"))
        check("drops of the receiver", look(f"{NUMBER}({VALUE.format(card=1, plot=4, value=0)})"))
        check("round trips", look(f"{NUMBER}({VALUE.format(card=0, plot=5, value=0)})"))
        check("a name is text", look(f"{CELLS}.some(text => text.startsWith({json.dumps(name + ' (')}))")
              and not browser.evaluate("document.querySelector('#list b')"))
        browser.evaluate(f"document.querySelectorAll('#list tbody tr')[{CELLS}.findIndex(text => text.startsWith({json.dumps(name)}))].click()")
        check("a queue pair opens", look("!document.querySelector('#life').hidden && "
                                         "/first seen: RTS/.test(document.querySelector('#life ol').textContent)"))
        check("its messages", look(f"{NUMBER}(document.querySelector('#life figure b').textContent)"))
        check("its fields", look("/window_sixteenths/.test(document.querySelector('#life dl').textContent)"))
        check("it is in the address", look("/^#[0-9a-f]{32}.left.[0-9]+$/.test(location.hash)"))
        for picture, width, dark in PICTURES:
            browser.look(width, 900, dark)
            check(f"{picture}: nothing is wider than the screen", look("document.documentElement.scrollWidth <= innerWidth"))
            check(f"{picture}: it is drawn", browser.screenshot(f"{folder}/{picture}.png") > BLANK_BYTES)
        open(f"{folder}/live", "w").close()
        check("it says that the daemon has gone", look("/Trying again/.test(document.querySelector('#news').textContent)"))
        open(f"{folder}/gone", "w").close()
        check("and that it is back", look("/restarted/.test(document.querySelector('#news').textContent)"))
        check("with new numbers", look(f"{VALUE.format(card=0, plot=0, value=0)} !== '–' && !document.querySelector('.stale')"))
        check("nothing was thrown or refused: " + "; ".join(browser.errors), not browser.errors)
    finally:
        browser.close()
    sys.exit(bool(failed))


main()
