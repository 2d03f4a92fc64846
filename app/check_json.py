#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""usage: check_json.py SOFTHCA SOCKET
The document of `softhca all` at a running daemon has every path that doc/json.md promises, of that
type, and no other; and all clients, however many."""
import itertools
import json
import os
import re
import socket
import subprocess
import sys

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "doc", "json.md")
ROW = re.compile(r"^\| `([^`]+)` \| (number|string) \|")
CLIENTS = 90  # more than in one answer of the daemon
TYPES = {"number": (int, float), "string": str}


def expand(path):
    """All paths that a path with {a,b} stands for."""
    parts = [p[1:-1].split(",") if p[0] == "{" else [p] for p in re.findall(r"\{[^}]*\}|[^{]+", path)]
    return ["".join(choice) for choice in itertools.product(*parts)]


def promises():
    """(pattern, type, path, must be there) of each."""
    for row in filter(None, map(ROW.match, open(PAGE))):
        optional = row[1].endswith("?")
        for path in expand(row[1].rstrip("?")):
            pattern = re.sub(r"\\?\b[A-Z]{2,}\b", "[^.]+", re.escape(path))
            yield re.compile(pattern + "$"), TYPES[row[2]], path, not optional


def leaves(value, path=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, path + "." + key if path else key)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, path + "[]")
    else:
        yield path, value


def main():
    clients = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(CLIENTS)]
    for client in clients:
        client.connect(sys.argv[2])
    text = subprocess.run([sys.argv[1], "--socket", sys.argv[2], "all"], check=True, stdout=subprocess.PIPE).stdout
    document = json.loads(text)
    found, wrong, rows = set(), [], list(promises())
    if len(document["clients"]) != document["client_count"] or document["client_count"] < CLIENTS:
        wrong.append("not all clients")
    for path, value in leaves(document):
        kept = [p for p in rows if p[0].match(path)]
        if not any(isinstance(value, type_) for _, type_, _, _ in kept):
            wrong.append(f"{path}: {value!r} is not described")
        found.update(path for _, _, path, _ in kept)
    wrong += [f"{path}: is missing" for _, _, path, must in rows if must and path not in found]
    for line in wrong[:20]:
        print(line)
    return bool(wrong) or len(rows) < 50


sys.exit(main())
