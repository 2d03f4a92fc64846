#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The middle layers that people run RDMA programs on, as Debian packages them, unmodified: UCX,
# libfabric, Open MPI; between two processes on one daemon. (qperf without the connection manager has no
# way to say a GID, so it runs on no RoCE device.)
. "$(dirname "$0")/lib.sh"

command -v ucx_perftest >/dev/null || skip 'needs ucx-utils'
ring_config >"$SCRATCH/ring.conf"
daemon ring -c "$SCRATCH/ring.conf"
export UCX_TLS=rc_verbs,ud_verbs,self UCX_WARN_UNUSED_ENV_VARS=n
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# hca SIDE COMMAND...: on the daemon of that side (a or b).
declare -A socket device
hca() {
	local side=$1
	shift
	SOFTHCA_SOCKET=${socket[$side]} UCX_NET_DEVICES=${device[$side]}:1 \
		timeout -k 5 60 "$TOOL" run -- "$@"
}

listening() { ss -Hltn "sport = :$1" | grep -q .; }

# both TITLE SERVER... -- CLIENT...: server on b, client on a; TCP_PORT is where they meet.
both() {
	local title=$1 server=() pid
	shift
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	start server hca b "${server[@]}"
	pid=$started
	wait_for 20 listening "$TCP_PORT"
	check "$title" hca a "$@"
	wait_for 20 not_running "$pid" || kill "$pid" 2>/dev/null
	TCP_PORT=$((TCP_PORT + 1))
}

ucx() {
	local kind
	check "ucx_info lists ${device[a]}" sees "${device[a]}"
	for kind in tag_lat tag_bw ucp_am_lat ucp_am_bw ucp_put_lat ucp_put_bw ucp_get ucp_add \
		ucp_fadd ucp_swap ucp_cswap; do
		both "ucx_perftest $kind" ucx_perftest -p $TCP_PORT -- \
			ucx_perftest localhost -p $TCP_PORT -t $kind -n 500 -w 50
	done
	for kind in 1 4096 1048576; do
		both "ucx_perftest tag_bw $kind bytes" ucx_perftest -p $TCP_PORT -- \
			ucx_perftest localhost -p $TCP_PORT -t tag_bw -s $kind -n 100 -w 10
	done
	for kind in am_lat put_lat 'get -D zcopy -s 4096' fadd; do
		both "ucx_perftest uct $kind over rc_verbs" ucx_perftest -p $TCP_PORT -- \
			ucx_perftest localhost -p $TCP_PORT -x rc_verbs -d "${device[a]}:1" \
			-t ${kind:?} -n 500 -w 50 # shellcheck disable=SC2086
	done
	both "ucx_perftest uct am_lat over ud_verbs" ucx_perftest -p $TCP_PORT -- \
		ucx_perftest localhost -p $TCP_PORT -x ud_verbs -d "${device[a]}:1" -t am_lat -n 500 -w 50
}

# Both transports of the device, or what it says.
sees() {
	hca a ucx_info -d >"$SCRATCH/ucx" 2>&1
	grep -A1 'Transport: rc_verbs' "$SCRATCH/ucx" | grep -q "Device: $1:1" &&
		grep -A1 'Transport: ud_verbs' "$SCRATCH/ucx" | grep -q "Device: $1:1" && return
	cat "$SCRATCH/ucx"
	return 1
}

libfabric() {
	hca a fi_info -p verbs >"$SCRATCH/fi" 2>&1
	check 'fi_info lists the domain' grep -q "domain: ${device[a]}-dgram" "$SCRATCH/fi"
	both 'fi_pingpong over verbs DGRAM' fi_pingpong -B $TCP_PORT -p verbs -e dgram \
		-d "${device[b]}-dgram" -I 100 -- \
		fi_pingpong -P $TCP_PORT -p verbs -e dgram -d "${device[a]}-dgram" -I 100 127.0.0.1
}

mpi() {
	mpicc -O1 -o "$SCRATCH/ring" "$(dirname "$0")/verbs/mpi_ring.c" >"$SCRATCH/mpicc.log" 2>&1 || {
		cat "$SCRATCH/mpicc.log"
		fail 'mpicc'
		return
	}
	check 'Open MPI over UCX: ring and all-to-all of 4 ranks' hca a mpirun --oversubscribe -np 4 \
		--mca pml ucx --mca btl ^openib,vader,tcp --mca osc ^rdma "$SCRATCH/ring"
}

all() {
	ucx
	if command -v fi_pingpong >/dev/null; then libfabric; fi
}

device[a]=left device[b]=right
socket[a]=$SCRATCH/ring.sock
socket[b]=${socket[a]}
all
if command -v mpicc >/dev/null; then mpi; fi
finish
