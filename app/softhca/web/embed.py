#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""usage: embed.py OUTPUT FILE...
Writes the files as a table in C: web_files of web.h. The first one is what "/" answers."""
import os
import sys

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
LINE = 24


def main():
    output, files = sys.argv[1], sys.argv[2:]
    rows = []
    with open(output, "w", encoding="ascii") as out:
        out.write('#include <stddef.h>\n#include "web.h"\n\n')
        for i, path in enumerate(files):
            with open(path, "rb") as file:
                data = file.read()
            name = "/" + (os.path.basename(path) if i else "")
            rows.append(f'\t{{"{name}", "{TYPES[os.path.splitext(path)[1]]}", (char *)file{i}, sizeof(file{i})}},\n')
            out.write(f"static const unsigned char file{i}[] = {{\n")
            for at in range(0, len(data), LINE):
                out.write("".join(f"{byte}," for byte in data[at:at + LINE]) + "\n")
            out.write("};\n\n")
        out.write("const struct web_file web_files[] = {\n" + "".join(rows) + "\t{NULL, NULL, NULL, 0},\n};\n")


main()
