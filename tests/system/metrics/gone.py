#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A control socket before the daemon's, for one client: questions about one HCA are refused with ENODEV, as when
that has been removed since the client learnt of it.

usage: gone.py SOCKET DAEMON'S-SOCKET HCA COMMAND [ARGUMENT]..."""
import errno
import socket
import struct
import subprocess
import sys

HEADER = struct.Struct("=IiII")  # type, status, length, reserved
PARAMETERS = slice(HEADER.size + 40, HEADER.size + 168)  # of struct control_view

path, daemons, hca = sys.argv[1:4]
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(path)
listener.listen()
command = subprocess.Popen(sys.argv[4:])
client, _ = listener.accept()
daemon = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
daemon.connect(daemons)
while request := client.recv(1 << 17):
    if request[PARAMETERS].split(b"\0")[0].split(b",")[0] == hca.encode():
        client.send(HEADER.pack(HEADER.unpack_from(request)[0], -errno.ENODEV, 0, 0))
    else:
        daemon.send(request)
        client.send(daemon.recv(1 << 17))
sys.exit(command.wait())
