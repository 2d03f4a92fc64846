#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The middle layers that people run RDMA programs on, as Debian packages them, unmodified: UCX,
# libfabric, Open MPI; between two HCAs of a daemon and between two daemons.
#
# Those that connect to an address, by TCP as well, are in rdmacm_apps.sh.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/verbs/pairs.sh"
need_command ucx_perftest
export UCX_TLS=rc_verbs,ud_verbs,self UCX_WARN_UNUSED_ENV_VARS=n
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# hca SOCKET COMMAND...: on the devices of the daemon there.
hca() { "$TOOL" run --socket "$1" -- "${@:2}"; }

# ucx ARGUMENTS...: one of ucx_perftest's tests, as server and client. Checked.
ucx() {
	local server
	TCP_PORT=$((TCP_PORT + 1))
	start server hca "$server_socket" env UCX_NET_DEVICES="$server_hca:1" \
		timeout 60 ucx_perftest -p $TCP_PORT
	server=$started
	wait_for 20 listens_or_gone $TCP_PORT "$server"
	check "$place: ucx_perftest $*" hca "$client_socket" env \
		UCX_NET_DEVICES="$client_hca:1" timeout 60 ucx_perftest localhost -p $TCP_PORT "$@"
	wait_for 20 not_running "$server" || kill "$server" 2>/dev/null
}

# Both transports of the device, or the message instead.
ucx_sees() {
	hca "$2" ucx_info -d >"$SCRATCH/ucx.txt" 2>&1
	grep -A1 'Transport: rc_verbs' "$SCRATCH/ucx.txt" | grep -q "Device: $1:1" &&
		grep -A1 'Transport: ud_verbs' "$SCRATCH/ucx.txt" | grep -q "Device: $1:1" && return
	cat "$SCRATCH/ucx.txt"
	return 1
}

with_ucx() {
	local kind
	check "$place: ucx_info lists $client_hca" ucx_sees "$client_hca" "$client_socket"
	for kind in tag_lat tag_bw ucp_am_lat ucp_am_bw ucp_put_lat ucp_put_bw ucp_get ucp_add \
		ucp_fadd ucp_swap ucp_cswap; do
		ucx -t $kind -n 500 -w 50
	done
	for kind in 1 4096 1048576; do
		ucx -t tag_bw -s $kind -n 100 -w 10
	done
	# These send the client's device to the server, which must have it, too.
	[ "$place" = 'one daemon' ] || return
	for kind in am_lat put_lat fadd; do
		ucx -x rc_verbs -d "$client_hca:1" -t $kind -n 500 -w 50
	done
	ucx -x rc_verbs -d "$client_hca:1" -t get -D zcopy -s 4096 -n 500 -w 50
	ucx -x ud_verbs -d "$client_hca:1" -t am_lat -n 500 -w 50
}

fabric_sees() {
	hca "$client_socket" fi_info -p verbs | grep "domain: $client_hca-dgram"
}

# Two ranks on each HCA.
mpi() {
	check "$place: Open MPI over UCX, ring and all-to-all of 4 ranks" hca "$client_socket" timeout 100 \
		mpirun --oversubscribe --mca pml ucx --mca btl '^openib,vader,tcp' --mca osc '^rdma' \
		-np 2 env SOFTHCA_SOCKET="$server_socket" UCX_NET_DEVICES="$server_hca:1" \
		"$SCRATCH/ring" : \
		-np 2 env SOFTHCA_SOCKET="$client_socket" UCX_NET_DEVICES="$client_hca:1" \
		"$SCRATCH/ring"
}

# fabric PROVIDER TYPE: by addresses that only the HCAs have, not the kernel. Checked.
fabric() {
	local server
	TCP_PORT=$((TCP_PORT + 1))
	start server hca "$server_socket" timeout 60 \
		fi_pingpong -p "$1" -e "$2" -c -d "$server_hca" -B $TCP_PORT
	server=$started
	wait_for 20 listens_or_gone $TCP_PORT "$server"
	check "$place: fi_pingpong -p $1 -e $2, addresses of the HCAs alone" hca "$client_socket" \
		timeout 60 fi_pingpong -p "$1" -e "$2" -c -P $TCP_PORT 127.0.0.1
	wait_for 20 not_running "$server" || kill "$server" 2>/dev/null
}

# Two ranks on each HCA, which find addresses by themselves.
mpi_over_fabric() {
	local common=(--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include 'verbs;ofi_rxm'
		--mca btl '^openib,vader,tcp,ofi' --mca osc '^rdma,ucx')
	check "$place: Open MPI over libfabric, ring and all-to-all of 4 ranks" \
		hca "$client_socket" timeout 100 mpirun --oversubscribe "${common[@]}" \
		-np 2 env SOFTHCA_SOCKET="$server_socket" FI_VERBS_DEVICE_NAME="$server_hca" \
		"$SCRATCH/ring" : \
		-np 2 env SOFTHCA_SOCKET="$client_socket" FI_VERBS_DEVICE_NAME="$client_hca" \
		"$SCRATCH/ring"
}

with_fabric() {
	check "$place: fi_info lists the datagram domain" fabric_sees
	fabric verbs msg
	fabric 'verbs;ofi_rxm' rdm
	[ ! -x "$SCRATCH/ring" ] || mpi_over_fabric
}

all() {
	with_ucx
	[ ! -x "$SCRATCH/ring" ] || mpi
	given fi_info with_fabric
}

if command -v mpicc >/dev/null; then
	check 'mpicc' mpicc -O1 -o "$SCRATCH/ring" "$(dirname "$0")/verbs/mpi_ring.c"
else
	leave_out mpicc
fi
ring_config >"$SCRATCH/one.conf"
daemon one -c "$SCRATCH/one.conf"
two_hcas
all
two_daemons
all
finish
