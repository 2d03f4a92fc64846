#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""cdi.py mounts|env FILE DEVICE: of that device in a CDI specification, the folders as HOST:CONTAINER, or the variables
as NAME=VALUE."""
import json
import sys

with open(sys.argv[2], encoding="utf-8") as file:
    spec = json.load(file)
assert spec["kind"] == "softhca/hca", spec
edits = {d["name"]: d["containerEdits"] for d in spec["devices"]}[sys.argv[3]]
if sys.argv[1] == "env":
    print(*edits["env"], sep="\n")
else:
    print(*(f"{m['hostPath']}:{m['containerPath']}" for m in edits["mounts"]), sep="\n")
