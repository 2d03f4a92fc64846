#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Debian's perftest on the drop-in libibverbs: every program, service and way to post and to
# complete; between two HCAs of a daemon, between two daemons. Its measurements are not checked.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/verbs/pairs.sh"
need_command ib_write_bw
need_command ibv_devinfo

every_program() {
	local kind
	for kind in write read atomic send; do
		programs ib_${kind}_bw -x 1 -n 100
		programs ib_${kind}_lat -x 1 -n 50
		programs ib_${kind}_bw -x 2 -n 50 -q 16
		programs ib_${kind}_bw -x 1 -n 50 -b
	done
	for kind in write send; do
		programs ib_${kind}_bw -x 1 -n 50 -c UC
		programs ib_${kind}_lat -x 1 -n 50 -c UC
		programs ib_${kind}_bw -x 1 -n 64 -s 64 -l 8
		programs ib_${kind}_lat -x 1 -n 50 -s 60 -I 64
	done
	programs ib_send_bw -x 1 -n 100 -c UD -s 1024
	programs ib_send_lat -x 2 -n 50 -c UD -s 64
	programs ib_send_lat -x 2 -n 50 -c UD -s 64 -g
	programs ib_send_bw -x 2 -n 50 -c UD -s 512 -g -M 255:14:0:0:0:0:0:0:0:0:0:0:0:0:7:7
	programs ib_send_bw -x 1 -n 50 -c UD -s 512 --use-srq
	programs ib_send_bw -x 1 -n 50 -q 4 --use-srq
	programs ib_send_bw -x 1 -n 50 -e
	programs ib_send_lat -x 1 -n 50 -e
	programs ib_send_bw -x 1 -n 50 -c UD -s 512 -e
	programs ib_atomic_bw -x 1 -n 50 -A CMP_AND_SWAP
}

# all_sizes bw|lat. Not atomics: perftest has no other size for them. Each size costs it 0.2 s to
# measure the CPU's clock anew.
all_sizes() {
	local kind
	for kind in write read send; do programs ib_${kind}_$1 -x 1 -n 5 -a; done
}

every_mtu() {
	local mtu
	for mtu in 256 512 1024 2048 4096; do
		programs ib_write_bw -x 1 -n 20 -s 10000 -m $mtu
		programs ib_read_lat -x 2 -n 20 -s 10000 -m $mtu
		programs ib_send_bw -x 1 -n 20 -c UD -s $mtu -m $mtu
	done
}

one_hca
two_hcas
every_program
all_sizes bw
two_daemons
every_program
all_sizes lat
every_mtu
finish
