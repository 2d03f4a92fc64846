#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: interop.sh [short]
# Linux's soft-RoCE in a guest under QEMU, joined by a tap to a daemon's af_packet port: the programs of interop/programs in
# both directions, on a clean wire and while the guest loses frames; every frame is dissected, every ICRC checked. `short`:
# some of them, where QEMU and the image of the guest are already here (interop/image makes it).
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/verbs/cm.sh"
HERE=$(dirname "$0")/interop
IMAGE=$BUILD/interop
form=${1:-long}

need_netns
for command in qemu-system-x86_64 tshark ibv_rc_pingpong ib_write_bw rping; do need_command $command; done
[ "$form" = long ] || [ -s "$IMAGE/vmlinuz" ] || skip 'needs the image that make interop makes'

# Of a side, here or guest: address of its HCA, device, and where its programs listen with TCP.
declare -A address=([here]=192.0.2.101 [guest]=192.0.2.2) device=([here]=hca0 [guest]=rxe0)
declare -A name=([here]=192.0.2.1 [guest]=192.0.2.2)

# The daemon's host with its end of the wire. The other is the guest's card.
lay_host() {
	# shellcheck disable=SC2034
	hosts_laid=yes
	ip netns add "$HOST_A" && ip tuntap add "sh$$" mode tap && host "$HOST_A" "sh$$" 1 4200
}

# Boots the guest, emulated, and waits until it answers. QEMU captures the wire: what an af_packet port sends past the queueing
# discipline no capture in its own host sees.
boot() {
	cp "$HERE/init" "$IMAGE/root/init"
	(cd "$IMAGE/root" && find . | chroot . /bin/cpio --quiet -o -H newc) >"$SCRATCH/initramfs"
	mkfifo "$SCRATCH/guest.in" "$SCRATCH/guest.out"
	start qemu on "$HOST_A" nice -n 5 qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
		-accel tcg -cpu max -smp 1 -m 512 -kernel "$IMAGE/vmlinuz" -initrd "$SCRATCH/initramfs" \
		-append 'console=ttyS0 loglevel=5 mitigations=off panic=-1' -serial "file:$SCRATCH/console" \
		-chardev "pipe,id=control,path=$SCRATCH/guest" -serial chardev:control \
		-netdev tap,id=wire,ifname=hca0,script=no,downscript=no,vnet_hdr=off \
		-object "filter-dump,id=capture,netdev=wire,file=$SCRATCH/captures/wire.pcap" \
		-device virtio-net-pci,netdev=wire,host_mtu=4200
	qemu=$started
	exec 8<>"$SCRATCH/guest.in" 9<>"$SCRATCH/guest.out"
	answer 300 boot && return
	cat "$SCRATCH/qemu.log" "$SCRATCH/console"
	return 1
}

# answer SECONDS NUMBER: what the guest prints until that command ends; its exit code, 124 if nothing comes for so long. What
# it still says of a command that was given up is dropped.
answer() {
	local line said=
	while IFS= read -r -t "$1" line <&9; do
		case $line in
		"=$2 "*)
			printf %s "$said"
			return "${line##* }"
			;;
		=*) said= ;;
		*) said+=${line# }$'\n' ;;
		esac
	done
	printf %s "$said"
	return 124
}

# guest COMMAND...: a line for the guest's shell.
guest() {
	local number=$EPOCHREALTIME
	echo "$number $*" >&8
	answer 100 "$number"
}

joined() { grep -q 'joined dgid' "$SCRATCH/server.log" || not_running "$server"; }

# serve_on SIDE COMMAND...: in the background; returns when it waits for its client.
serve_on() {
	if [ "$1" = guest ]; then
		guest serve "$kind" $TCP_PORT "${@:2}" >"$SCRATCH/server.log"
		return
	fi
	start server "${inside[@]}" "$TOOL" run --socket "$server_socket" -- timeout "$patience" stdbuf -o0 "${@:2}"
	server=$started
	case $kind in
	tcp) wait_for 20 tcp_listens_or_gone $TCP_PORT "$server" ;;
	cm) wait_for 20 listens_or_ended "$server" ;;
	group) wait_for 20 joined ;;
	esac
}

client_on() {
	if [ "$1" = guest ]; then guest timeout "$patience" "${@:2}"; else as_client "${@:2}"; fi
}

# The server's end.
end_on() {
	if [ "$1" = guest ]; then
		guest served
	else
		wait_for "$patience" not_running "$server"
		wait "$server"
	fi
}

# well NAME COMMAND...: the program ended well whose end the command sees, with the rest of $SCRATCH/NAME.log.
well() {
	local status=0
	"${@:2}" >>"$SCRATCH/$1.log" 2>&1 || status=$?
	echo "ended with $status" >>"$SCRATCH/$1.log"
	ended_well $status "$SCRATCH/$1.log"
}

# both_ends SERVER-SIDE CLIENT-SIDE SERVER-COMMAND CLIENT-COMMAND: both end well. Leaves the server's in $shown.
both_ends() {
	local serving using good=yes
	TCP_PORT=$((TCP_PORT + 1))
	read -ra serving <<<"${3//OWN/SERVER}"
	read -ra using <<<"${4//OWN/${address[$2]}}"
	serving=("${serving[@]/SERVER/${address[$1]}}")
	using=("${using[@]/SERVER/${address[$1]}}")
	if [ "$kind" = tcp ]; then
		serving+=(-d "${device[$1]}" -p "$TCP_PORT")
		using+=(-d "${device[$2]}" -p "$TCP_PORT" "${name[$1]}")
	fi
	shown=${serving[*]}
	: >"$SCRATCH/client.log"
	serve_on "$1" "${serving[@]}" && well client client_on "$2" "${using[@]}" || good=no
	# Whatever came of that, the server has to end before the next one.
	well server end_on "$1" && [ $good = yes ]
}

# row SERVER-SIDE CLIENT-SIDE: this row of the table. Checked.
row() {
	if both_ends "$1" "$2" "${command%|*}" "${command#*|}"; then
		ok "$wire, server $1: $shown"
	else
		fail "$wire, server $1: $command"
		show_both
	fi
}

# tables WIRE LETTER: what the table has for it, both ways.
tables() {
	local wire=$1 kind when command
	while read -r kind when command; do
		[[ $when == *$2* ]] || continue
		[[ $form = long || $when == *s* ]] || continue
		row here guest </dev/null
		row guest here </dev/null
	done < <(grep -v '^#' "$HERE/programs")
}

# losses WIRE ARGUMENTS...: of the guest's `lossy`; then the table's rows for that.
losses() {
	check "$1: 1 of $2 lost on the way to the guest; from it netem ${*:3}" guest lossy "${@:2}"
	tables "$1" l
	check "$1: frames were lost both ways" guest lost
	sed 's/^/   /' "$SCRATCH/check.log"
}

# The guest's kernel has nothing to complain of.
quiet() { ! grep -E 'WARNING|BUG|Oops|Call Trace' "$SCRATCH/console"; }

# What the daemon counted of frames that no right sender sends.
malformed() {
	"$TOOL" --socket "$server_socket" counters |
		grep -E ' drop_rx_(truncated|version|fragmented|length|checksum|opcode|tver|pkey|icrc) '
}

[ "$form" != long ] || "$HERE/image" "$IMAGE" || exit 1
lay_host || skip 'may not make a tap'
inside=(ip netns exec "$HOST_A")
mkdir "$SCRATCH/captures"
network_config 1 0 >"$SCRATCH/a.conf"
daemon a on "$HOST_A" -c "$SCRATCH/a.conf"
daemon_a=$started
server_socket=$SCRATCH/a.sock client_socket=$server_socket

check 'the guest boots' boot
tables clean c
losses lossy 100 loss 1%
[ "$form" = short ] || losses rough 200 delay 1ms 1ms loss 0.5% duplicate 1%
check 'no complaint of the kernel in the guest' quiet
check 'the daemon counted no malformed frame' no_lines <(malformed)
check 'the daemon ends cleanly' stop "$daemon_a"
check 'the guest ends' stop "$qemu"
frames_right "$SCRATCH/captures"
finish
