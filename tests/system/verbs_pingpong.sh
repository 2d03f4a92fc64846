#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Debian's ibv_*_pingpong on the drop-in libibverbs: every service, polled and by events, by
# ibv_post_send() and by ibv_wr_*(), all sizes and MTUs, data checked; on one HCA, between two HCAs
# of a daemon, between two daemons.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/verbs/pairs.sh"
need_command ibv_rc_pingpong

each_kind() {
	local gid=1
	programs ibv_rc_pingpong -g $gid -n 200
	programs ibv_rc_pingpong -g $gid -n 100 -e
	programs ibv_rc_pingpong -g $gid -n 100 -N
	programs ibv_rc_pingpong -g $gid -n 100 -N -e -c
	programs ibv_uc_pingpong -g $gid -n 100 -c
	programs ibv_uc_pingpong -g $gid -n 100 -e
	programs ibv_ud_pingpong -g $gid -n 100 -c
	programs ibv_ud_pingpong -g $gid -n 100 -e
	programs ibv_srq_pingpong -g $gid -n 100 -c
	programs ibv_srq_pingpong -g $gid -n 100 -e -q 4
}

# each_size LARGEST: of the messages of a service that may lose some.
each_size() {
	local size gid
	for size in 1 1023 4097 65536 1048576; do
		programs ibv_rc_pingpong -g 1 -n 20 -c -s $size
		[ $size -gt "$1" ] || programs ibv_uc_pingpong -g 1 -n 20 -s $size
		programs ibv_srq_pingpong -g 1 -n 20 -c -s $size
	done
	for size in 256 512 1024 2048 4096; do
		programs ibv_rc_pingpong -g 1 -n 20 -c -s 10000 -m $size
		programs ibv_uc_pingpong -g 1 -n 20 -s 10000 -m $size
	done
	programs ibv_ud_pingpong -g 1 -n 50 -c -s 1
	for gid in 0 2; do # link-local; IPv6
		programs ibv_rc_pingpong -g $gid -n 50 -c
		programs ibv_ud_pingpong -g $gid -n 50 -c
	done
}

one_hca
each_kind
two_hcas
each_kind
each_size 1048576
two_daemons
each_kind
each_size 4097
finish
