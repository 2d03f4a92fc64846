#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""core_words.py CORE: how many pieces of messages that softhca-perf --verify filled lie in the memory of a core dump. (Its notes
have the registers, hence the last bytes that a thread copied.)"""
import array
import struct
import sys

STEP = 0xd1342543de82ef95  # between words of a message: bench/path/verify.c
PAGE = 4096

core = open(sys.argv[1], 'rb').read()
headers, = struct.unpack_from('<Q', core, 32)
size, count = struct.unpack_from('<HH', core, 54)
found = 0
for i in range(count):
    kind, _, offset, _, _, length = struct.unpack_from('<IIQQQQ', core, headers + i * size)
    for at in range(offset, offset + length, PAGE) if kind == 1 else ():
        page = core[at:at + PAGE]
        for lead in range(8 if any(page) else 0):
            words = array.array('Q', page[lead:len(page) - 8 + lead if lead else len(page)])
            found += sum(b - a in (STEP, STEP - 2**64) for a, b in zip(words[::4], words[1::4]))
print(found)
