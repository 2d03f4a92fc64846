#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Containers: two programs of two ordinary users, each in separate user, mount, process and network
# namespaces, with nothing of the host except the folder of the socket and the folder of the
# libraries, communicate through one daemon. Who may connect.
. "$(dirname "$0")/lib.sh"
need_netns
need_command setpriv
need_command unshare
HERE=$(cd "$(dirname "$0")" && pwd)
setpriv --reuid 65534 --regid 65534 --clear-groups unshare --user --map-root-user --mount true \
	2>/dev/null || skip 'users may not make namespaces'
hosts 1500 # the network over which two programs tell each other their numbers; no RDMA on it

# What a library folder holds; programs of the image would be there already.
mkdir -p "$SCRATCH/lib" "$SCRATCH/socket" "$SCRATCH/root-a" "$SCRATCH/root-b"
cp "$(program lib/host/verbs/libibverbs.so.1)" "$(program lib/host/preload/libsofthca-preload.so)" \
	"$(program lib/host/client/libsofthca.so.0)" "$PERF" "$TOOL" "$SCRATCH/lib"
ln -s libibverbs.so.1 "$SCRATCH/lib/libibverbs.so"
chmod 755 "$SCRATCH"

# container a|b COMMAND...: on its host, as its user, with what `softhca cdi` says.
container() {
	local host=$HOST_A user=65534
	[ "$1" = a ] || host=$HOST_B user=65533
	chown $user "$SCRATCH/root-$1"
	set -- "$SCRATCH/root-$1" "${mounts[@]}" -- "${environment[@]}" "${@:2}"
	ip netns exec "$host" setpriv --reuid $user --regid $user --clear-groups \
		unshare --user --map-root-user --mount --pid --fork --mount-proc \
		sh "$HERE/containers/container.sh" "$@"
}

# talk ARGUMENTS...: softhca-perf, server in a, client in b.
talk() {
	local server
	TCP_PORT=$((TCP_PORT + 1))
	container a timeout 60 /opt/softhca/softhca-perf "$@" -p $TCP_PORT \
		>"$SCRATCH/server.log" 2>&1 </dev/null &
	server=$!
	container b timeout 60 /opt/softhca/softhca-perf "$@" -p $TCP_PORT 192.0.2.1 &&
		wait $server
}

{
	printf '[daemon]\nsocket = %s/socket/softhca.sock\n' "$SCRATCH"
	printf '[hca hca0]\npeer = hca0\naddress = 10.9.0.1/24, fd09::1/64\n'
	printf '[hca hca1]\npeer = hca1\naddress = 10.9.1.1/24, fd09:1::1/64\n'
} >"$SCRATCH/c.conf"
daemon socket/softhca -c "$SCRATCH/c.conf"
daemon=$started
SOFTHCA_LIBDIR=$SCRATCH/lib "$TOOL" --socket "$SCRATCH/socket/softhca.sock" cdi >"$SCRATCH/cdi.json"
mapfile -t mounts < <("$HERE/containers/cdi.py" mounts "$SCRATCH/cdi.json" all)
# gets DEVICE: containers from now on, of those that `softhca cdi` names.
gets() { mapfile -t environment < <("$HERE/containers/cdi.py" env "$SCRATCH/cdi.json" "$1"); }
gets all

check 'two folders and three variables' test "${#mounts[@]} ${#environment[@]}" = '2 3'
check 'a container has nothing of the host' container a sh -c '[ ! -e /sys/class ] && [ "$(id -u)" = 0 ]'
check 'it sees the device' container a ls -l /sys/class/infiniband/hca0/ports/1
check 'its counters are live' container b grep -q '[0-9]' \
	/sys/class/infiniband/hca0/ports/1/counters/port_xmit_data
if [ -x /usr/bin/ibv_devinfo ]; then
	check 'ibv_devinfo' container a ibv_devinfo -v
	container a ibv_devinfo >"$SCRATCH/devinfo" 2>&1
	check 'the port is active' grep PORT_ACTIVE "$SCRATCH/devinfo"
fi
# An unmodified program of the image, its own memory registered.
pingpong() {
	local server
	container a timeout 60 ibv_rc_pingpong -g 1 -n 200 -c >"$SCRATCH/server.log" 2>&1 </dev/null &
	server=$!
	wait_for 20 listening 18515
	container b timeout 60 ibv_rc_pingpong -g 1 -n 200 -c 192.0.2.1 && wait $server
}
listening() { ip netns exec "$HOST_A" ss -Hltn "sport = :$1" | grep -q .; }
if [ -x /usr/bin/ibv_rc_pingpong ]; then
	check 'ibv_rc_pingpong between containers' pingpong
fi
check 'softhca run in a container' container a \
	env -u LD_PRELOAD -u LD_LIBRARY_PATH -u SOFTHCA_SOCKET \
	/opt/softhca/softhca run --libdir /opt/softhca --socket /run/softhca/softhca.sock \
	ls /sys/class/infiniband/hca0
check 'RC between containers' talk send_bw --verify -b -s 100000 -n 50
check 'with events' talk write_lat --verify -e -n 50
check 'reads' talk read_bw --verify -s 65537 -n 50
check 'UD' talk send_bw -c UD --verify -s 1000 -n 64

# Each with an HCA of its own, as where each has a network namespace with an interface: ports are its own.
sees() {
	gets "$1"
	container "$2" ibv_devices >"$SCRATCH/devices" && [ "$(grep -c ' hca' "$SCRATCH/devices")" = 1 ] && grep -q " $1 " "$SCRATCH/devices"
}
listeners() { [ "$("$TOOL" --socket "$SCRATCH/socket/softhca.sock" cm | grep -c 'LISTEN.*:7471')" = "$1" ]; }
serves() {
	gets "$1"
	container "$2" timeout 60 rping -s -a 0.0.0.0 -p 7471 -C 5 >"$SCRATCH/rping.$2" 2>&1 </dev/null &
}
calls() {
	gets "$1"
	container "$2" timeout 30 rping -c -a "$3" -p 7471 -C 5 >"$SCRATCH/call.$2" 2>&1
	ended_well $? "$SCRATCH/call.$2"
}
if [ -x /usr/bin/ibv_devices ] && [ -x /usr/bin/rping ]; then
	check 'a container with one HCA sees no other' sees hca1 b
	serves hca0 a
	server_a=$!
	check 'one listens at any address' wait_for 20 listeners 1
	serves hca1 b
	server_b=$!
	check 'and the other, at the same port' wait_for 20 listeners 2
	check 'each is reached through its own: the first' calls hca1 b 10.9.1.1
	check 'which is the second' waited_well "$server_b" "$SCRATCH/rping.b"
	check 'not through the other' eval '! calls hca1 b 10.9.0.1'
	check 'and the second' calls hca0 a 10.9.0.1
	check 'which is the first' waited_well "$server_a" "$SCRATCH/rping.a"
fi
check 'the daemon ends cleanly' stop "$daemon"

# Only members of a group may connect.
group=$(getent group 65534 | cut -d: -f1)
[ -n "$group" ] || finish
sed -i "s/^socket = .*/&\nsocket_mode = 0660\nsocket_group = $group/" "$SCRATCH/c.conf"
daemon socket/softhca -c "$SCRATCH/c.conf"
daemon=$started
as() { setpriv --reuid 65533 --regid "$1" --clear-groups "$TOOL" run \
	--socket "$SCRATCH/socket/softhca.sock" true; }
check 'the socket is for its group' test \
	"$(stat -c %a:%G "$SCRATCH/socket/softhca.sock")" = "660:$group"
check 'a member of the group connects' as 65534
check 'others do not' eval '! as 65533'
check 'the daemon ends cleanly' stop "$daemon"
sed -i "s/= $group/= no-such-group/" "$SCRATCH/c.conf"
check 'a group that is not there is refused' eval \
	'! timeout 20 "$DAEMON" -c "$SCRATCH/c.conf" --socket "$SCRATCH/refused.sock"'
finish
