# SPDX-License-Identifier: BSD-3-Clause
"""usage: held.py PID <answers of `softhca --json status` and `held`
One line for each thing that the daemon holds: `name number`."""
import json
import os
import sys


def process(pid):
    """Descriptors, mappings of client memory and threads of the process."""
    with open(f'/proc/{pid}/maps') as maps:
        mappings = sum('memfd:softhca' in line for line in maps)
    return {'descriptors': len(os.listdir(f'/proc/{pid}/fd')), 'client mappings': mappings,
            'threads': len(os.listdir(f'/proc/{pid}/task'))}


answers = [json.loads(line) for line in sys.stdin if line.strip()]
answers = [next(iter(a.values())) if len(a) == 1 else a for a in answers]
status = next(a for a in answers if 'memory' in a)
held = [a for a in answers if 'retransmit_elements' in a]
stock = sum(a['stock'] for a in held)
out = process(sys.argv[1])
out['clients'] = status['client_count']
pools = status['memory']['buffers']
for kind in ('packets', 'descriptors', 'clones'):
    of_kind = [pool for name, pool in pools.items() if name.startswith(kind)]  # one for each node
    assert of_kind, kind
    used = sum(pool['buffers'] - pool['free'] for pool in of_kind)
    out[f'{kind} in use'] = used - (stock if kind == 'packets' else 0)
for a in held:
    for name, value in a.items():
        if name not in ('hca', 'stock'):
            out[f"{a['hca']}: {name}"] = value
for name, value in sorted(out.items()):
    print(name, value)
