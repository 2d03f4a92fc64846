#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# More programs that are written to libibverbs or librdmacm, as Debian packages them, unmodified:
# fio, MPICH on UCX, uDAPL's dtest, librpma, libfabric, Gloo, libiscsi with tgt; between two HCAs of a
# daemon and between two daemons. And perftest between programs in two network namespaces with a wire
# between them. Each part is left out where its package is not there; without any: skipped.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/verbs/pairs.sh"
. "$(dirname "$0")/verbs/cm.sh"
HERE=$(dirname "$0")
patience=120

port() { TCP_PORT=$((TCP_PORT + 1)); }

# hca SOCKET COMMAND...: on the devices of the daemon there.
hca() { "$TOOL" run --socket "$1" -- timeout -k 2 $patience "${@:2}"; }

have() { command -v "$1" >/dev/null; }

# The client has issued everything, and nothing failed; fio's exit code does not show it.
fio_did() { grep -q 'err= 0' "$1" && grep -qE "issued rwts: total=($2,0|0,$2)" "$1"; }

# For fio the end that reads is the server, whatever the verb. Not with verb=send: fio's connections
# allow no RNR retry, and its server posts receives when the client sends already.
with_fio() {
	local verb common
	for verb in write read; do
		port
		common=(--ioengine=rdma --port=$TCP_PORT --verb=$verb --bs=64k --size=8m --iodepth=8
			--thread --name=job)
		serve fio "${common[@]}" --rw=read
		hca "$client_socket" fio "${common[@]}" --hostname="$server_ip" --rw=write \
			>"$SCRATCH/client.log" 2>&1
		if fio_did "$SCRATCH/client.log" 128 && wait "$server"; then
			ok "$place: fio, verb $verb"
		else
			fail "$place: fio, verb $verb"
			show_both
		fi
		kill "$server" 2>/dev/null
	done
}

with_mpich() {
	local common=(-env UCX_TLS 'rc_verbs,ud_verbs,self' -env UCX_WARN_UNUSED_ENV_VARS n)
	check "$place: MPICH over UCX, ring and all-to-all of 4 ranks" hca "$client_socket" \
		mpirun.mpich -np 2 "${common[@]}" -env SOFTHCA_SOCKET "$server_socket" \
		-env UCX_NET_DEVICES "$server_hca:1" "$SCRATCH/ring" : \
		-np 2 "${common[@]}" -env SOFTHCA_SOCKET "$client_socket" \
		-env UCX_NET_DEVICES "$client_hca:1" "$SCRATCH/ring"
}

# The same provider names on both sides (the server tells the client which to take), each for its
# own HCA: ofa connects through librdmacm, scm by TCP.
dat_conf() {
	printf '%s u2.0 nonthreadsafe default lib%s.so.2 dapl.2.0 "%s" ""\n' \
		ofa daplofa "$1 0" scm daploscm "$2 1"
}

# dtest_pair PROVIDER ARGUMENTS...: where nobody else has its TCP ports, which are fixed. Checked.
DTEST_PORT=15828
dtest_pair() {
	local status
	start server "${inside[@]}" "$TOOL" run --socket "$server_socket" -- timeout -k 2 $patience \
		env DAT_OVERRIDE="$SCRATCH/dat.server" dtest -P "$@"
	server=$started
	wait_for 20 tcp_listens_or_gone $DTEST_PORT "$server"
	as_client env DAT_OVERRIDE="$SCRATCH/dat.client" dtest -P "$@" -h localhost >"$SCRATCH/client.log" 2>&1
	status=$?
	if [ $status -eq 0 ] && wait "$server"; then
		ok "$place: dtest -P $*"
	else
		fail "$place: dtest -P $* ($status)"
		show_both
	fi
	kill "$server" 2>/dev/null
}

with_dtest() {
	local inside=("${dtest_inside[@]}")
	dat_conf "$server_ip" "$server_hca" >"$SCRATCH/dat.server"
	dat_conf "$client_ip" "$client_hca" >"$SCRATCH/dat.client"
	dtest_pair ofa -b 65536
	dtest_pair scm -b 65536
	# As it is it moves 9 GB, which once is enough.
	[ "$place" = 'two daemons' ] || dtest_pair ofa
}

with_rpma() {
	port
	both "$SCRATCH/rpma" server "$server_ip" $TCP_PORT -- \
		"$SCRATCH/rpma" client "$server_ip" $TCP_PORT
}

with_fabric() {
	check "$place: libfabric registers, verbs" hca "$client_socket" "$SCRATCH/fabric" verbs msg "$client_hca"
	check "$place: libfabric registers, ofi_rxm" hca "$client_socket" \
		"$SCRATCH/fabric" 'verbs;ofi_rxm' rdm "$client_hca"
}

with_gloo() {
	rm -rf "$SCRATCH/store" && mkdir "$SCRATCH/store"
	start server hca "$server_socket" "$SCRATCH/gloo" "$SCRATCH/store" 0 2 "$server_hca"
	server=$started
	if hca "$client_socket" "$SCRATCH/gloo" "$SCRATCH/store" 1 2 "$client_hca" \
		>"$SCRATCH/client.log" 2>&1 && wait "$server"; then
		ok "$place: Gloo, sums over 2 ranks"
	else
		fail "$place: Gloo, sums over 2 ranks"
		show_both
	fi
	kill "$server" 2>/dev/null
}

tgt() { tgtadm --control-port "$TGT_CONTROL" --lld iser --mode "$@"; }

# tgt's server of SCSI over iSER: a target of one disk, for the initiator whose name is $INITIATOR.
# It does not end by SIGTERM while it has a target. libiscsi takes the memory of its connection from
# malloc() and sets a part of it: under meson's MALLOC_PERTURB_ it follows what it finds there and
# crashes. Neither end has it here.
TGT_CONTROL=$$ INITIATOR=iqn.2026-01.example:initiator DISK=iqn.2026-01.example:disk
serve_disk() {
	start server "$TOOL" run --socket "$server_socket" -- env -u MALLOC_PERTURB_ tgtd -f --control-port "$TGT_CONTROL" \
		--iscsi portal=127.0.0.1:$TCP_PORT --iser port=$((TCP_PORT + 1)),pool_sz_mb=16
	server=$started
	wait_for 20 tgt target --op show >/dev/null 2>&1 &&
		tgt target --op new --tid 1 --targetname $DISK &&
		tgt logicalunit --op new --tid 1 --lun 1 --backing-store "$SCRATCH/disk" &&
		tgt target --op bind --tid 1 --initiator-address ALL &&
		tgt target --op bind --tid 1 --initiator-name $INITIATOR
}

# The server moves the data: by WRITE for a disk that is read, by READ for one that is written.
with_tgt() {
	local program url
	port
	url=iser://$server_ip:$((TCP_PORT + 1))/$DISK/1
	truncate -s 16M "$SCRATCH/disk"
	check "$place: tgt, a disk over iSER" serve_disk
	for program in iscsi-readcapacity16 'iscsi-test-cu --dataloss --test=ALL.Write10.Simple' \
		'iscsi-test-cu --test=ALL.Read10.Simple'; do
		# shellcheck disable=SC2086
		check "$place: $program" hca "$client_socket" env -u MALLOC_PERTURB_ $program \
			-i $INITIATOR $url
	done
	kill -KILL "$server"
	wait "$server" 2>/dev/null
	port
}

# Server and client each in the namespace of its daemon: all that they have in common is the wire.
with_wire() {
	local program inside=(ip netns exec "$HOST_B")
	network_daemons
	for program in ib_send_lat ib_write_bw; do
		port
		start server "${inside[@]}" "$TOOL" run --socket "$SCRATCH/b.sock" -- \
			timeout $patience $program -d hca0 -x 1 -p $TCP_PORT -n 50 -u 18
		server=$started
		wait_for 20 tcp_listens_or_gone $TCP_PORT "$server"
		check "two network namespaces: $program" on "$HOST_A" "$TOOL" run \
			--socket "$SCRATCH/a.sock" -- timeout $patience \
			$program -d hca0 -x 1 -p $TCP_PORT -n 50 -u 18 192.0.2.2
		check "two network namespaces: its server" wait "$server"
	done
	stop "$daemon_a"
	stop "$daemon_b"
}

all() {
	addresses
	given fio with_fio
	[ ! -x "$SCRATCH/ring" ] || with_mpich
	given dtest with_dtest
	[ ! -x "$SCRATCH/rpma" ] || with_rpma
	[ ! -x "$SCRATCH/fabric" ] || with_fabric
	[ ! -x "$SCRATCH/gloo" ] || with_gloo
	given tgtd given iscsi-test-cu with_tgt
	check "$place: nothing is left" wait_for 30 nothing_left
}

if have mpicc.mpich && have mpirun.mpich; then
	check 'mpicc.mpich' mpicc.mpich -O1 -o "$SCRATCH/ring" "$HERE/verbs/mpi_ring.c"
else
	leave_out mpicc.mpich
fi
if [ -f /usr/include/librpma.h ]; then
	check 'rpma.c' cc -O1 -o "$SCRATCH/rpma" "$HERE/programs/rpma.c" -lrpma -libverbs
else
	leave_out librpma.h
fi
if [ -f /usr/include/rdma/fabric.h ]; then
	check 'fabric.c' cc -O1 -o "$SCRATCH/fabric" "$HERE/programs/fabric.c" -lfabric
else
	leave_out rdma/fabric.h
fi
if [ -d /usr/include/gloo ] && have g++; then
	check 'gloo.cc' g++ -o "$SCRATCH/gloo" "$HERE/programs/gloo.cc" -lgloo -libverbs
else
	leave_out Gloo and g++
fi
have fio || have dtest || [ $passed -gt 0 ] || skip 'none of the programs is there'
dtest_inside=()
if may_netns; then
	hosts 4200
	dtest_inside=(ip netns exec "$HOST_A")
fi
ring_config >"$SCRATCH/one.conf"
daemon one -c "$SCRATCH/one.conf"
two_hcas
all
if [ $hosts_laid = yes ]; then
	given ib_send_lat with_wire
else
	leave_out network namespaces
fi
two_daemons
all
finish
