#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Debian's own programs are killed at random moments, or the daemon under them. Who is left and has
# asked its HCA for something ends by itself, for it gets an error or an event; the daemon holds
# nothing of the dead; a daemon that was started again serves them as before. (A program that only
# waits for a message of its dead peer waits for ever on any HCA: those are not left behind here.)
# Such are the pingpongs, and fi_pingpong: who has the acknowledgement of its message polls for the
# answer alone, and checks neither its socket nor events. Both are killed then. A server of
# qperf -t 60, which forks for each client, only gets messages, and its socket does not wake it: it
# notices when the 60 seconds are over, of which a SIGALRM tells it.
#
# What needs the connection manager and TCP to know the same addresses is left out where no network
# namespace can be made, and what is not installed, too: Open MPI, qperf, fi_pingpong.
# SOFTHCA_KILL_SEED (the time).
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/verbs/pairs.sh"
. "$(dirname "$0")/verbs/cm.sh"
. "$(dirname "$0")/verbs/kill.sh"
need_command ib_write_bw
need_command ibv_rc_pingpong
need_command rping
need_command ucx_perftest
# UCX has its own credits for messages: a client that waits for some of a dead peer has nothing
# outstanding, and waits for ever. So without. It notices its peer's death after 2 s instead of 9.
export UCX_TLS=rc_verbs,ud_verbs,self UCX_RC_VERBS_FC_ENABLE=n UCX_RC_VERBS_RETRY_COUNT=1

# launch NAME COMMAND...: its process in $started.
launch() {
	local name=$1
	shift
	start "$name" "${inside[@]}" "$TOOL" run -- "$@"
}

# A pair in the middle of its traffic: its processes in $server and $client.
pair() {
	TCP_PORT=$((TCP_PORT + 1))
	case $1 in
	rping)
		launch server rping -s -a 192.168.77.1 -p $TCP_PORT
		server=$started
		wait_for 20 rping_listens
		launch client rping -c -a 192.168.77.1 -I 192.168.77.2 -p $TCP_PORT
		;;
	ucx_perftest)
		launch server env UCX_NET_DEVICES=left:1 "$@" -p $TCP_PORT
		server=$started
		wait_for 20 listens $TCP_PORT
		launch client env UCX_NET_DEVICES=right:1 "$@" -p $TCP_PORT 127.0.0.1
		wait_for 30 streams
		;;
	*)
		launch server "$@" -d left -p $TCP_PORT
		server=$started
		wait_for 20 listens $TCP_PORT
		launch client "$@" -d right -p $TCP_PORT 127.0.0.1
		;;
	esac
	client=$started
	# The client's does. (A server of perftest may be in RTR alone.)
	amid_traffic "$1" server client right
}

# UCX's client is connected. It connects by datagrams, and one whose peer dies meanwhile keeps asking
# for five minutes, as UCX_UD_TIMEOUT says. It has no warm-up (-w 0): between its rounds both sides
# meet over TCP, with nothing outstanding, and who finds that connection closed reads it for ever.
streams() {
	"$TOOL" --hca right qp 2>/dev/null |
		awk '$2 == "RC" && $3 == "RTS" && $8 > 1000 { found = 1 } END { exit !found }'
}

rping_listens() { "$TOOL" cm 2>/dev/null | grep -qw LISTENING; }

# ends NAME PID: it terminates in time.
ends() {
	ends_itself "$2" && return
	echo 'it said:'
	tail -n 5 "$SCRATCH/$1.log"
	return 1
}

server_killed() {
	pair "$@"
	kill -KILL "$server"
	check "$*: the server is killed, the client ends" ends client "$client"
	check "$*: nothing of them is held" wait_for 20 all_back
}

client_killed() {
	pair "$@"
	kill -KILL "$client"
	check "$*: the client is killed, the server ends" ends server "$server"
	check "$*: nothing of them is held" wait_for 20 all_back
}

daemon_killed() {
	pair "$@"
	kill -KILL "$daemon"
	check "$*: the daemon is killed, the client ends" ends client "$client"
	check "$*: and the server" ends server "$server"
	up
}

# Four ranks, two on each HCA, that talk for ever: their mpirun in $mpirun, they in $ranks.
ranks_talk() {
	launch mpirun mpirun --oversubscribe --mca pml ucx --mca btl '^openib,vader,tcp' \
		--mca osc '^rdma' -np 2 env UCX_NET_DEVICES=left:1 "$SCRATCH/ring" forever : \
		-np 2 env UCX_NET_DEVICES=right:1 "$SCRATCH/ring" forever
	mpirun=$started
	wait_for 60 four_ranks
	amid_traffic 'Open MPI' mpirun mpirun left right
	check 'Open MPI: 4 ranks talk' four_ranks
}

four_ranks() {
	mapfile -t ranks < <(pgrep -f "^$SCRATCH/ring forever")
	[ ${#ranks[@]} -eq 4 ]
}

all_end() {
	local rank
	ends mpirun "$mpirun" || return
	for rank in "${ranks[@]}"; do ends mpirun "$rank" || return; done
}

with_mpi() {
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	ranks_talk
	kill -KILL "${ranks[RANDOM % ${#ranks[@]}]}"
	check 'Open MPI: a rank is killed, mpirun and all ranks end' all_end
	check 'Open MPI: nothing of them is held' wait_for 20 all_back
	ranks_talk
	kill -KILL "$daemon"
	check 'Open MPI: the daemon is killed, mpirun and all ranks end' all_end
	up
}

# The server, its process in $server, continues through all of this.
qperf_listens() {
	TCP_PORT=$((TCP_PORT + 1))
	launch server qperf -lp $TCP_PORT
	server=$started
	wait_for 20 tcp_listens_or_gone $TCP_PORT "$server"
}

# qperf_talks TEST: a client in the middle of it in $client, the server's process for it in $child.
qperf_talks() {
	launch client qperf -lp $TCP_PORT -to 60 -t 60 192.168.77.1 -cm 1 "$1"
	client=$started
	amid_traffic "qperf $1" server client left
	child=$(pgrep -P "$server")
}

# The server's process takes this for the end of its time, wherever it is.
out_of_time() {
	kill -ALRM "$child" 2>/dev/null
	not_running "$child"
}

serves_next() { as_client qperf -lp $TCP_PORT -to 60 -t 1 192.168.77.1 -cm 1 "$1"; }

qperf_killed() {
	qperf_talks "$1"
	kill -KILL "$client"
	check "qperf $1: the client is killed, the server's time ends" wait_for 60 out_of_time
	check "qperf $1: nothing of them is held" wait_for 20 all_back
	check "qperf $1: the server serves the next" serves_next "$1"
	qperf_talks "$1"
	kill -KILL "$child"
	check "qperf $1: the server's process is killed, the client ends" ends client "$client"
	check "qperf $1: nothing of them is held" wait_for 20 all_back
	qperf_talks "$1"
	kill -KILL "$daemon"
	check "qperf $1: the daemon is killed, the client ends" ends client "$client"
	check "qperf $1: and the server's process" ends server "$child"
	up
	check "qperf $1: the server serves the next on a new daemon" serves_next "$1"
}

fi_pair() {
	TCP_PORT=$((TCP_PORT + 1))
	launch server fi_pingpong -p verbs -e msg -I 100000000 -S 64 -d left -B $TCP_PORT
	server=$started
	wait_for 20 tcp_listens_or_gone $TCP_PORT "$server"
	launch client fi_pingpong -p verbs -e msg -I 100000000 -S 64 -P $TCP_PORT 192.168.77.1
	client=$started
	amid_traffic fi_pingpong server client left
}

fi_killed() {
	fi_pair
	kill -KILL "$client"
	sleep 0.$((RANDOM % 9))
	kill -KILL "$server" 2>/dev/null
	check 'fi_pingpong: both are killed, nothing of them is held' wait_for 20 all_back
	fi_pair
	kill -KILL "$daemon"
	check 'fi_pingpong: the daemon is killed, the client ends' ends client "$client"
	check 'fi_pingpong: and the server' ends server "$server"
	up
}

namespaces() { (need_netns) >/dev/null; }

up
wait_for 20 cm_holds_its_own
held >"$SCRATCH/before"
for kind in write read atomic send; do
	server_killed ib_${kind}_bw -x 1 -D 60
	daemon_killed ib_${kind}_bw -x 1 -D 60
done
server_killed ib_write_bw -x 1 -D 60 -q 16
daemon_killed ib_send_bw -x 1 -n 100000000 -e
daemon_killed ibv_rc_pingpong -g 1 -n 100000000
daemon_killed ibv_rc_pingpong -g 1 -n 100000000 -e
daemon_killed ibv_srq_pingpong -g 1 -n 100000000
daemon_killed ibv_ud_pingpong -g 1 -n 100000000 -s 100
for kind in tag_bw ucp_put_bw ucp_get; do
	server_killed ucx_perftest -t $kind -w 0 -n 100000000 -s 4096
	daemon_killed ucx_perftest -t $kind -w 0 -n 100000000 -s 4096
done
server_killed rping
client_killed rping
daemon_killed rping
if command -v mpicc >/dev/null; then
	check 'mpicc' mpicc -O1 -o "$SCRATCH/ring" "$(dirname "$0")/verbs/mpi_ring.c"
	with_mpi
else
	leave_out mpicc
fi
if namespaces; then
	host_addresses
	two_hcas
	server_socket=$SOFTHCA_SOCKET client_socket=$SOFTHCA_SOCKET
	if command -v qperf >/dev/null; then
		qperf_listens
		for kind in rc_bw rc_rdma_write_bw; do qperf_killed $kind; done
	else
		leave_out qperf
	fi
	given fi_pingpong fi_killed
else
	leave_out network namespaces
fi
once_again() { "$TOOL" run -- ibv_devinfo | grep -q PORT_ACTIVE; }
check 'a new daemon serves' once_again
finish
