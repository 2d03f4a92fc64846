#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A kernel as a member of groups and as their querier.

groups.py join INTERFACE GROUP...   joins, says "joined", leaves at the end of stdin
groups.py query INTERFACE GROUP     one query, IGMPv3 or MLDv2, to be answered in 0.2 s; general if
                                    GROUP is 0.0.0.0 or ::
"""
import socket
import struct
import sys


def joined(index, group):
    if ':' in group:
        s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP,
                     socket.inet_pton(socket.AF_INET6, group) + struct.pack('=I', index))
    else:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                     socket.inet_aton(group) + struct.pack('=4xI', index))
    return s


def checksum(data):
    total = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    total = (total & 0xffff) + (total >> 16)
    return ~((total & 0xffff) + (total >> 16)) & 0xffff


def query4(index, group):
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_IGMP)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack('=8xI', index))
    s.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, b'\x94\x04\0\0')
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
    query = struct.pack('!BBH4sBBH', 0x11, 2, 0, socket.inet_aton(group), 2, 125, 0)
    query = query[:2] + struct.pack('!H', checksum(query)) + query[4:]
    s.sendto(query, ('224.0.0.1' if group == '0.0.0.0' else group, 0))


def query6(index, group):
    s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_HOPOPTS, b'\0\0\5\2\0\0\1\0')
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 1)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)
    s.bind((link_local(index), 0, 0, index))
    query = struct.pack('!BBHHH16sBBH', 130, 0, 0, 200, 0,
                        socket.inet_pton(socket.AF_INET6, group), 2, 125, 0)
    s.sendto(query, ('ff02::1' if group == '::' else group, 0, 0, index))


def link_local(index):
    """The interface's: only such may ask."""
    for line in open('/proc/net/if_inet6'):
        address, number, _, scope = line.split()[:4]
        if int(number, 16) == index and scope == '20':
            return socket.inet_ntop(socket.AF_INET6, bytes.fromhex(address))
    raise SystemExit('no link-local address')


index = socket.if_nametoindex(sys.argv[2])
if sys.argv[1] == 'join':
    sockets = [joined(index, group) for group in sys.argv[3:]]
    print('joined', flush=True)
    sys.stdin.read()
else:
    (query6 if ':' in sys.argv[3] else query4)(index, sys.argv[3])
