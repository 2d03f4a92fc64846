#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Debian's own programs are killed at random moments, or the daemon under them. Who is left and has
# asked its HCA for something ends by itself, for it gets an error or an event; the daemon holds
# nothing of the dead; a daemon that was started again serves them as before. (A program that only
# waits for a message of its dead peer waits for ever on any HCA: those are not left behind here.)
# SOFTHCA_KILL_SEED (the time).
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/verbs/pairs.sh"
. "$(dirname "$0")/verbs/kill.sh"
need_command ib_write_bw
need_command ibv_rc_pingpong
need_command rping
need_command ucx_perftest
export UCX_TLS=rc_verbs,ud_verbs,self

# launch NAME COMMAND...: its process in $started.
launch() {
	local name=$1
	shift
	start "$name" "$TOOL" run -- "$@"
}

# A pair in the middle of its traffic: its processes in $server and $client.
pair() {
	TCP_PORT=$((TCP_PORT + 1))
	case $1 in
	rping)
		launch server rping -s -a 192.168.77.1 -p $TCP_PORT
		server=$started
		wait_for 20 cm_listens
		launch client rping -c -a 192.168.77.1 -I 192.168.77.2 -p $TCP_PORT
		;;
	ucx_perftest)
		launch server env UCX_NET_DEVICES=left:1 "$@" -p $TCP_PORT
		server=$started
		wait_for 20 listens $TCP_PORT
		launch client env UCX_NET_DEVICES=right:1 "$@" -p $TCP_PORT 127.0.0.1
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

cm_listens() { "$TOOL" cm 2>/dev/null | grep -qw LISTENING; }

# ends NAME PID: by itself, in time.
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
	server_killed ucx_perftest -t $kind -n 100000000 -s 4096
	daemon_killed ucx_perftest -t $kind -n 100000000 -s 4096
done
server_killed rping
client_killed rping
daemon_killed rping
once_again() { "$TOOL" run -- ibv_devinfo | grep -q PORT_ACTIVE; }
check 'a new daemon serves' once_again
finish
