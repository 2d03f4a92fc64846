#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two machines of a cluster, as doc/cluster.md sets them up, in network namespaces: MPI jobs that
# mpirun spawns over ssh, and sbatch and srun by Slurm. The control socket has the same path on both.
. "$(dirname "$0")/lib.sh"
need_netns
need_command mpicc
need_command ucx_info
need_command fi_info
SOCKET=$SCRATCH/here/softhca.sock
RUN=("$TOOL" run --socket "$SOCKET" --)
# As root, on machines whose cores the daemons and the other ranks need, too.
ANY=(env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --bind-to none)
MPIRUN=("${ANY[@]}" --mca pml ucx)
# Once more in quotes: a shell of the machine's reads it.
OFI=("${ANY[@]}" --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include "'verbs;ofi_rxm'" --mca btl "'^openib,vader,tcp,ofi'"
	--mca osc "'^rdma,ucx'")

# A machine's folder is $SCRATCH/HOST, which it sees as $SCRATCH/here. `$SCRATCH/remote HOST COMMAND...`
# is its ssh: with the host's network and name, and nothing of the caller's environment.
machines() {
	printf '127.0.0.1 localhost\n192.0.2.1 %s\n192.0.2.2 %s\n' "$HOST_A" "$HOST_B" >"$SCRATCH/hosts"
	mkdir "$SCRATCH/here" "$SCRATCH/$HOST_A" "$SCRATCH/$HOST_B"
	cat >"$SCRATCH/remote" <<-END
		#!/bin/sh
		host=\$1
		shift
		exec env -i PATH="$PATH" HOME="${HOME:-/}" ip netns exec "\$host" unshare --uts sh -c '
			hostname "\$1" && mount --bind $SCRATCH/hosts /etc/hosts &&
				mount --bind "$SCRATCH/\$1" $SCRATCH/here && exec sh -c "\$2"' sh "\$host" "\$*"
	END
	chmod +x "$SCRATCH/remote"
}

# machine_daemon NUMBER HOST: its daemon.
machine_daemon() {
	network_config "$1" $((($1 - 1) % $(nproc))) >"$SCRATCH/$2/softhcad.conf"
	daemon "$2/softhca" on "$2" -c "$SCRATCH/$2/softhcad.conf"
}

# Bytes of RoCE packets that reached the second machine.
received() {
	"$TOOL" --socket "$SCRATCH/$HOST_B/softhca.sock" counters | awk '$1 == "rx_bytes" { print $2 }'
}

# job NAME COMMAND...: given on the first machine. It ends well, and its data crossed the HCAs: the
# ring sends 3 MB each way; Open MPI that finds no device takes TCP without a word.
job() {
	local name=$1 before
	before=$(received)
	check "$name" "$SCRATCH/remote" "$HOST_A" timeout -k 5 200 "${@:2}"
	check "$name: by RDMA" test $(($(received) - before)) -gt 3000000
}

with_mpirun() {
	local hosts=(--mca plm_rsh_agent "$SCRATCH/remote" --host "$HOST_A:2,$HOST_B:2")
	job 'mpirun starts softhca run on each machine' "${MPIRUN[@]}" "${hosts[@]}" "${RUN[@]}" "$SCRATCH/ring"
	job 'mpirun carries the environment' "${RUN[@]}" "${MPIRUN[@]}" "${hosts[@]}" \
		-x SOFTHCA_SOCKET -x LD_LIBRARY_PATH -x LD_PRELOAD "$SCRATCH/ring"
	# Some of these ranks choose the interface's link-local address, others another one.
	job 'mpirun, libfabric' "${OFI[@]}" "${hosts[@]}" "${RUN[@]}" "$SCRATCH/ring"
}

SLURM=(env SLURM_CONF="$SCRATCH/slurm.conf")

# slurm_daemon NAME HOST COMMAND
slurm_daemon() { start "$1" "$SCRATCH/remote" "$2" exec "${SLURM[@]}" "$3" -D; }

both_idle() { [ "$("$SCRATCH/remote" "$HOST_A" "${SLURM[@]}" sinfo -h -t idle -o %D)" = 2 ]; }

# Slurm without munge and cgroups. Its patience is for machines that are busy.
slurm_files() {
	mkdir "$SCRATCH/state"
	echo 'CgroupPlugin=cgroup/v1' >"$SCRATCH/cgroup.conf" # or slurmd wants to see a cgroup file system
	cat >"$SCRATCH/slurm.conf" <<-END
		ClusterName=softhca
		SlurmctldHost=$HOST_A
		SlurmUser=root
		AuthType=auth/none
		CredType=cred/none
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SelectType=select/linear
		StateSaveLocation=$SCRATCH/state
		SlurmctldPidFile=$SCRATCH/state/pid
		SlurmdPidFile=$SCRATCH/%n/slurmd.pid
		SlurmdSpoolDir=$SCRATCH/%n
		TmpFS=$SCRATCH/%n
		SlurmdParameters=config_overrides
		MessageTimeout=90
		BatchStartTimeout=90
		ReturnToService=2
		Prolog=$SCRATCH/prolog
		NodeName=$HOST_A,$HOST_B CPUs=2
		PartitionName=all Nodes=ALL Default=YES
	END
	printf '#!/bin/sh\nexec %s true\n' "${RUN[*]}" >"$SCRATCH/prolog"
	printf '#!/bin/sh\n%s env | sed -nE "/^(SOFTHCA_SOCKET|LD_LIBRARY_PATH|LD_PRELOAD)=/s/^/export /p"\n' \
		"${RUN[*]}" >"$SCRATCH/task_prolog"
	printf '#!/bin/sh\n#SBATCH --nodes=2 --ntasks-per-node=2\n%s\n' \
		"${MPIRUN[*]} ${RUN[*]} $SCRATCH/ring" >"$SCRATCH/batch"
	chmod +x "$SCRATCH/prolog" "$SCRATCH/task_prolog"
}

with_slurm() {
	local srun=("${SLURM[@]}" OMPI_MCA_pml=ucx srun --mpi=pmix -N 2 -n 4)
	slurm_files
	slurm_daemon slurmctld "$HOST_A" slurmctld
	slurm_daemon slurmd-a "$HOST_A" slurmd
	slurm_daemon slurmd-b "$HOST_B" slurmd
	check 'Slurm: both nodes are idle' wait_for 120 both_idle
	job 'sbatch, mpirun' "${SLURM[@]}" sbatch --wait -o "$SCRATCH/batch.log" "$SCRATCH/batch"
	job 'srun, softhca run' "${srun[@]}" "${RUN[@]}" "$SCRATCH/ring"
	job 'srun, task prolog' "${srun[@]}" --task-prolog="$SCRATCH/task_prolog" "$SCRATCH/ring"
	check 'Slurm: both nodes are idle again' wait_for 60 both_idle
	check 'the daemon of the second machine ends cleanly' stop "$daemon_b"
	check 'Slurm: the prolog refuses a node without a daemon' refuses 'Prolog failure' \
		"$SCRATCH/remote" "$HOST_A" timeout -k 5 100 "${srun[@]}" hostname
	# shellcheck disable=SC2154
	[ "$failed" -eq 0 ] || tail -n 20 "$SCRATCH"/slurm*.log "$SCRATCH"/batch.log
}

check 'mpicc' mpicc -O1 -o "$SCRATCH/ring" "$(dirname "$0")/verbs/mpi_ring.c"
hosts 4200
machines
machine_daemon 1 "$HOST_A"
machine_daemon 2 "$HOST_B"
daemon_b=$started
with_mpirun
given slurmctld given slurmd given srun with_slurm
finish
