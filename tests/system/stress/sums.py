# SPDX-License-Identifier: BSD-3-Clause
"""usage: sums.py STRESS_OUTPUT... <answers of `softhca --json counters`
Sums that must come out, whatever was done to the clients. Prints those that do not; exit status 1."""
import json
import re
import sys

answers = [json.loads(line) for line in sys.stdin if line.strip()]
answers = [next(iter(a.values())) if len(a) == 1 else a for a in answers]
by_hca = {a['hca']: a['counters'] for a in answers}
by_port = {a['hca']: a['port_counters'] for a in answers}
client = {}
for line in (line for name in sys.argv[1:] for line in open(name)):
    m = re.match(r' *(\d+) (.+)$', line)
    if m:
        client[m[2]] = client.get(m[2], 0) + int(m[1])
wrong = []


def must(what, ok, *values):
    print('  ' if ok else 'NO', what, *values)
    if not ok:
        wrong.append(what)


for one, other in (('left', 'right'), ('right', 'left')):
    sent, got = by_hca[one]['tx_packets'], by_hca[other]['rx_packets']
    full = by_port[one]['drop_tx_engine_full']
    must(f'packets {one} sent, found no room, {other} received', sent - full == got, sent, full, got)
total = {k: sum(c[k] for c in by_hca.values()) for k in by_hca['left']}
must('the clients polled no completion that was not written',
     client['completed'] + client['messages received'] <= total['cqes'],
     client['completed'], client['messages received'], total['cqes'])
overflows = client['CQs that overflowed']
must('completions were lost in the CQs alone that were to overflow',
     overflows <= total['cq_overruns'] <= 24 * overflows, overflows, total['cq_overruns'])
for name in ('drop_rx_icrc', 'drop_rx_truncated', 'drop_rx_not_roce', 'drop_rx_version',
             'drop_rx_fragmented', 'drop_rx_length', 'drop_rx_opcode', 'client_sigbus', 'bad_wqe',
             'control_malformed', 'srq_errors', 'eq_overruns', 'drop_rx_checksum'):
    must(f'{name} is 0', total[name] == 0, total[name])
sys.exit(1 if wrong else 0)
