#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# HCAs join a running daemon under traffic of others, are used, removed, and added again, often, without leaving anything
# behind. `softhca add`, as several users; and a file with one section more that SIGHUP makes it read.
. "$(dirname "$0")/lib.sh"
need_command ibv_devices
need_command ibv_rc_pingpong
need_command rping
need_command python3

other_config() { printf '[hca other]\npeer = other\naddress = 192.168.78.1/24\n'; }
{ ring_config; other_config; } >"$SCRATCH/ring.conf"
daemon ring -c "$SCRATCH/ring.conf" --set daemon.admin_group=games
daemon=$started
export SOFTHCA_SOCKET=$SCRATCH/ring.sock

# What the log says since `mark`: in which line, and does it in time?
mark() { seen=$(wc -l <"$SCRATCH/ring.log"); }
line() { awk -v text="$1" -v seen="$seen" 'NR > seen && index($0, text) { print NR; exit }' "$SCRATCH/ring.log"; }
has_line() { [ "$(line "$1")" ]; }
says() { wait_for 20 has_line "$1"; }
in_order() { [ "$(line "$1")" -lt "$(line "$2")" ]; }
mark
tool() { "$TOOL" --socket "$SCRATCH/ring.sock" "$@" >"$SCRATCH/tool.log" 2>&1; }
run() { "$TOOL" --socket "$SCRATCH/ring.sock" run -- "$@"; }
# refuses_add PATTERN ARGUMENTS...
refuses_add() { refuses "$1" "$TOOL" --socket "$SCRATCH/ring.sock" add "${@:2}"; }
add_lo() { tool add lo peer=lo 'address=192.168.79.1/24, fd79::1/64' "$@"; }
link_of() { tool status && grep -qE "^ *$1 .* $2 " "$SCRATCH/tool.log"; }
goes_across() { "$PERF" write_bw --verify -n 200 -s 20000 --socket "$SCRATCH/ring.sock" --pair "$1"; }
# connects ADDRESS FROM: rping across QP 1 of two HCAs.
connects() {
	local server
	start host "$TOOL" --socket "$SCRATCH/ring.sock" run -- rping -s -a "$1" -p 7176 -C 10
	server=$started
	wait_for 20 listens || return 1
	timeout 60 "$TOOL" --socket "$SCRATCH/ring.sock" run -- rping -c -a "$1" -I "$2" -p 7176 -C 10 >"$SCRATCH/guest.log" 2>&1
	ended_well $? "$SCRATCH/guest.log" && wait_for 20 not_running "$server"
}
listens() { tool cm && grep -q 'LISTEN.*:7176' "$SCRATCH/tool.log"; }

# Looks at the devices again and again, in one process.
cat >"$SCRATCH/look.py" <<'PY'
import ctypes, sys, time
verbs = ctypes.CDLL("libibverbs.so.1")
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
verbs.ibv_get_device_name.restype = ctypes.c_char_p
verbs.ibv_get_device_name.argtypes = [ctypes.c_void_p]
verbs.ibv_free_device_list.argtypes = [ctypes.c_void_p]
def names():
    n = ctypes.c_int()
    devices = verbs.ibv_get_device_list(ctypes.byref(n))
    found = [verbs.ibv_get_device_name(devices[i]).decode() for i in range(n.value)]
    verbs.ibv_free_device_list(devices)
    return found
print(*names(), flush=True)
while "lo" not in names():
    time.sleep(.02)
print("lo has come", flush=True)
while "lo" in names():
    time.sleep(.02)
print("lo has gone", flush=True)
PY
start look "$TOOL" --socket "$SCRATCH/ring.sock" run -- python3 "$SCRATCH/look.py"
look=$started
looked() { wait_for 20 grep -q "$1" "$SCRATCH/look.log"; }
check 'a program looks at the devices' looked 'left right other'

start traffic "$PERF" write_bw --verify -D 10 -s 20000 --socket "$SCRATCH/ring.sock" --pair left,right
traffic=$started
start anywhere "$TOOL" --socket "$SCRATCH/ring.sock" run -- rping -s -a 0.0.0.0 -p 7177 -C 10
anywhere=$started
anywhere_listens() { tool cm && grep -q 'LISTEN.*:7177' "$SCRATCH/tool.log"; }
check 'a program listens everywhere' wait_for 20 anywhere_listens
sleep 1
check 'an HCA is added' add_lo
check 'which is told' grep -qx 'lo: added' "$SCRATCH/tool.log"
check 'and logged with the user' says ": user $(id -u): "
check 'a program that runs sees it when it asks again' looked 'lo has come'
check 'new ones, too' eval 'run ibv_devices | grep -q lo'
check 'and sysfs' eval 'run ls /sys/class/infiniband | grep -qx lo'
for view in status fifos counters held limits cm topology set all metrics; do
	check "$view shows it" eval "tool $view --all || tool $view; grep -qE '\\<lo\\>' \$SCRATCH/tool.log"
done
check 'top' eval 'tool top -b -n 1 && grep -qE "\<lo\>" "$SCRATCH/tool.log"'
check 'it moves data' goes_across lo,lo
start pong "$TOOL" --socket "$SCRATCH/ring.sock" run -- ibv_rc_pingpong -d lo -g 1 -p $((TCP_PORT + 1)) -n 100
pong=$started
ping() { run ibv_rc_pingpong -d lo -g 1 -p $((TCP_PORT + 1)) -n 100 127.0.0.1 >/dev/null 2>&1; }
check 'of programs of verbs' eval 'wait_for 20 ping && wait "$pong"'
check 'and of librdmacm' connects 192.168.79.1 192.168.79.1
start late "$TOOL" --socket "$SCRATCH/ring.sock" run -- rping -c -a 192.168.79.1 -p 7177 -C 10
check 'whoever listens everywhere is reached through it' eval 'wait_for 20 not_running "$anywhere" && waited_well "$started" "$SCRATCH/late.log"'
check 'it can be changed' tool set lo.loss 0.01
start capture timeout 60 "$TOOL" --socket "$SCRATCH/ring.sock" capture lo -c 20 -w "$SCRATCH/lo.pcapng"
check 'and captured' eval 'says "captures lo" && goes_across lo,lo && wait "$started"'
check 'others have noticed nothing' eval 'wait "$traffic" || { cat "$SCRATCH/traffic.log"; false; }'

check 'it is removed' tool remove lo
check 'as the program sees that runs' eval 'looked "lo has gone" && wait "$look"'

# A ring whose other end is not there is an unplugged cable.
check 'an end of a ring is removed' tool remove right
check 'and the other end is down' link_of left down
check 'it comes back' tool add right peer=left address=192.168.77.2/24
check 'with the link' link_of left up
check 'and traffic' goes_across left,right
check 'and connections' connects 192.168.77.2 192.168.77.1
tool remove left
check 'another one takes the place of the first' add_lo
check 'and works' goes_across lo,lo
check 'the first comes back' tool add left peer=right address=192.168.77.1/24
check 'and works, too' goes_across right,left
check 'two leave' eval '{ tool remove lo && tool remove other; } || { cat "$SCRATCH/tool.log"; false; }'
# In their places.
check 'one end of a new ring waits for the other' eval 'tool add one peer=two address=192.168.80.1/24 && link_of one down'
check 'which comes' eval 'tool add two peer=one address=192.168.80.2/24 && link_of one up'
check 'and they work' goes_across one,two
check 'and connect' connects 192.168.80.1 192.168.80.2
refuses_no_place() { refuses_add 'more than 4 HCAs' lo peer=lo address=192.168.79.1/24; }
check 'no place is left' refuses_no_place
tool remove two

check 'a misspelt setting is corrected' refuses_add "did you mean 'peer'" lo pear=lo
check 'a wrong value is refused' refuses_add 'loss: 2 is out of range 0..1' two peer=one address=192.168.80.2/24 loss=2
check 'a name that is taken' refuses_add "HCA 'left' exists already" left peer=left address=192.168.79.1/24
check 'an address that is taken' refuses_add 'listed twice, in \[hca left\]' two peer=one address=192.168.77.1/24
check 'half of a cable' refuses_add "the peer of its peer 'two' is 'left'" two peer=left address=192.168.80.2/24
check 'another ICRC than its peer has' refuses_add 'the ring of one needs icrc = auto' two peer=one address=192.168.80.2/24 icrc=always
check 'a device that takes rights' refuses_add 'ring and memif only' two port=af_packet device=lo address=192.168.80.2/24
check 'a CPU without an lcore' refuses_add 'no lcore on CPU 1023' two peer=one address=192.168.80.2/24 'stages=all on lcore 1023'
check 'more memory than there is' refuses_add 'it takes about [0-9]* MiB' two peer=one address=192.168.80.2/24 swpb_elements=1048576
check 'no setting at all' refuses_add 'KEY=VALUE' lo peer
check 'no name' refuses_add 'add which HCA'
check 'what was refused is not shown' eval 'tool status && ! grep -qE "^ *two " "$SCRATCH/tool.log"'
if [ "$(id -u)" -eq 0 ]; then
	chmod 755 "$SCRATCH"
	cp "$TOOL" "$SCRATCH/softhca"
	as_nobody() { setpriv --reuid 65533 --regid 65533 --clear-groups "$SCRATCH/softhca" --socket "$SCRATCH/ring.sock" "$@"; }
	check 'not every user may' refuses EPERM as_nobody add two peer=one address=192.168.80.2/24
	check 'the attempt is logged' says 'user 65533 may not add HCAs'
	as_admin() { setpriv --reuid 65533 --regid 65533 --groups games "$SCRATCH/softhca" --socket "$SCRATCH/ring.sock" "$@"; }
	check 'one of the admin_group may name no file' refuses 'only root' as_admin add two peer=one address=192.168.80.2/24 "capture=$SCRATCH/two"
	check 'nor a socket' refuses 'only root' as_admin add two port=memif "device=$SCRATCH/two" address=192.168.80.2/24
	check 'but may add an HCA' as_admin add two peer=one address=192.168.80.2/24
	check 'and remove it' as_admin remove two
fi

# Again and again, used each time. What the first rounds left is what later ones find.
descriptors() { find "/proc/$daemon/fd" -mindepth 1 | wc -l; }
memory_kib() { awk '/^Rss:/ { print $2 }' "/proc/$daemon/smaps_rollup"; }
# Free elements of the pools, with those that HCAs keep in stock.
pools_free() {
	{ "$TOOL" --socket "$SCRATCH/ring.sock" --json status && "$TOOL" --socket "$SCRATCH/ring.sock" --json held; } |
		grep -oE '"(free|stock)":[0-9]+' | awk -F: '{ n += $2 } END { print n }'
}
once_more() {
	tool add two peer=one address=192.168.80.2/24 || { cat "$SCRATCH/tool.log"; return 1; }
	goes_across one,two >"$SCRATCH/perf.log" 2>&1 || { cat "$SCRATCH/perf.log"; return 1; }
	tool remove two || { cat "$SCRATCH/tool.log"; return 1; }
}
rounds() {
	local i
	for ((i = 0; i < $1; i++)); do once_more || return 1; done
}
check 'added and removed' rounds 3
fds=$(descriptors) memory=$(memory_kib) free=$(pools_free)
check 'and 20 times more' rounds 20
same_fds() { [ "$(descriptors)" -le "$fds" ]; }
check 'no descriptor stays' eval 'wait_for 10 same_fds || { echo "$(descriptors), before $fds"; false; }'
same_pools() { [ "$(pools_free)" -ge "$free" ]; }
check 'nor a buffer' eval 'wait_for 10 same_pools || { echo "$(pools_free), before $free"; false; }'
now=$(memory_kib)
sanitized || check 'nor memory' eval '[ $((now - memory)) -lt 4096 ] || { echo "$now KiB, before $memory"; false; }'
echo "   $memory KiB, then $now KiB; $fds descriptors"

# A file with more sections; and with fewer at the same time. What no ring waits for gives up its place.
check 'an HCA goes' tool remove one
check 'and another comes' tool add one peer=one address=192.168.80.1/24
printf '[daemon]\n[hca left]\npeer = right\naddress = 192.168.77.1/24, fd77::1/64\n[hca right]\npeer = left\naddress = 192.168.77.2/24, fd77::2/64\n[hca lo]\npeer = lo\naddress = 192.168.79.1/24\n' >"$SCRATCH/ring.conf"
mark
kill -HUP "$daemon"
check 'an HCA that the file has in addition is added' says 'hca lo: added'
check 'what it no longer has is removed' says 'hca one: removed'
check 'before' in_order 'hca one: removed' 'hca lo: added'
check 'it works' goes_across lo,lo

# Whoever asks for it is answered when it is there, or why it is not.
{ cat "$SCRATCH/ring.conf"; printf '[hca more]\npeer = more\naddress = 192.168.84.1/24\n'; } >"$SCRATCH/more.conf"
cp "$SCRATCH/ring.conf" "$SCRATCH/less.conf"
mv "$SCRATCH/more.conf" "$SCRATCH/ring.conf"
check 'a reload that is asked for adds one' eval 'tool reload && goes_across more,more'
cp "$SCRATCH/less.conf" "$SCRATCH/ring.conf"
check 'and removes it' eval 'tool reload && ! tool qp --hca more'
{ cat "$SCRATCH/less.conf"; printf '[hca more]\npeer = more\naddress = 192.168.84.1/24\nswpb_elements = 1048576\n'; } >"$SCRATCH/ring.conf"
check 'what does not fit is said' refuses 'it takes about [0-9]* MiB' "$TOOL" --socket "$SCRATCH/ring.sock" reload
cp "$SCRATCH/less.conf" "$SCRATCH/ring.conf"
tool reload

# Each of several who ask at once learns what became of his.
asks_for() {
	local i
	for ((i = 0; i < 400; i++)); do
		"$TOOL" --socket "$SCRATCH/ring.sock" add "$@" >"$SCRATCH/asks.$1" 2>&1
		grep -q 'try again' "$SCRATCH/asks.$1" || return 0
		sleep 0.01
	done
}
asks_for more1 peer=more1 address=192.168.85.1/24 swpb_elements=1048576 &
first=$!
asks_for more2 peer=more2 address=192.168.86.1/24 swpb_elements=1048576 &
second=$!
wait $first $second
check 'each is told of his own' eval 'for i in 1 2; do grep -q "hca more$i: .*it takes about" "$SCRATCH/asks.more$i" || { cat "$SCRATCH"/asks.*; exit 1; }; done'

# A file is read again when an HCA that leaves is gone: its connections keep that one, as a module stands.
tool set lo.debug on
start host "$TOOL" --socket "$SCRATCH/ring.sock" run -- rping -s -a 192.168.79.1 -p 7176
wait_for 20 listens
start guest "$TOOL" --socket "$SCRATCH/ring.sock" run -- rping -c -a 192.168.79.1 -p 7176
check 'an HCA is in use' wait_for 20 eval "tool cm && grep -q ' CONNECT ' \$SCRATCH/tool.log"
tool pause lo.txa --keep
mark
tail -n +$((seen + 1)) -f "$SCRATCH/ring.log" | { grep -qm 1 'hca lo is being removed' && kill -HUP "$daemon"; } &
tool remove lo
wait $!
check 'it is removed and comes back' says 'hca lo: added'
check 'in this order' in_order 'hca lo: removed' 'hca lo was added'
check 'with its connections' connects 192.168.79.1 192.168.79.1
{ cat "$SCRATCH/ring.conf"; printf '[hca eth]\nport = af_packet\ndevice = lo\naddress = 192.168.90.1/24\n'; } >"$SCRATCH/more.conf"
mv "$SCRATCH/more.conf" "$SCRATCH/ring.conf"
kill -HUP "$daemon"
check 'one that it cannot open needs a restart' says 'reload: hca eth was added: needs a restart'
sed -i 's/^\(.hca \)right/\1renamed/; /^.hca eth/,$d; s/^peer = right/peer = renamed/' "$SCRATCH/ring.conf"
kill -HUP "$daemon"
check 'so does one that does not fit with what stays' says 'reload: hca renamed was added: needs a restart'
check 'and what it would replace stays' goes_across left,right
check 'the daemon ends cleanly' stop "$daemon"

# memif needs no rights either: two daemons are joined while they run.
lone() { printf '[daemon]\n[hca lone]\npeer = lone\naddress = 192.168.81.%s/24\n' "$1" >"$SCRATCH/$2.conf"; }
sides=()
for side in a b; do
	lone 1 $side
	daemon $side -c "$SCRATCH/$side.conf"
	sides+=("$started")
done
on_side() { "$TOOL" --socket "$SCRATCH/$1.sock" "${@:2}"; }
add_memif() { on_side "$1" add wire port=memif "device=$SCRATCH/memif.sock" "address=10.9.0.$2/24" "memif_server=$3" "${@:4}"; }
check 'an HCA at the end of a memif is added' add_memif a 1 yes
check 'and at the other' add_memif b 2 no
wire_up() { on_side a status | grep -qE '^ *wire .* up ' && on_side b status | grep -qE '^ *wire .* up '; }
check 'they join' wait_for 20 wire_up
start server "$PERF" write_bw --verify -n 200 -s 20000 --socket "$SCRATCH/b.sock" -d wire -p $((TCP_PORT + 2))
client() { timeout 60 "$PERF" write_bw --verify -n 200 -s 20000 --socket "$SCRATCH/a.sock" -d wire -p $((TCP_PORT + 2)) 127.0.0.1; }
check 'and move data' eval 'sleep 1; client && wait "$started"'

# Whoever connects to the socket and goes before it is greeted, or says what it wants when the HCA has been removed.
cat >"$SCRATCH/strangers.py" <<'PY'
import os, socket, struct, sys, time
def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    while True:
        try:
            s.connect(sys.argv[1])
            return s
        except BlockingIOError:
            time.sleep(.01)
for i in range(20):
    connect().close()
s = connect()
hello = s.recv(4096)
print("greeted", flush=True)
while not os.path.exists(sys.argv[2]):
    time.sleep(.01)
s.send(struct.pack("<HHI", 3, 0x200, 0).ljust(len(hello), b"\0"))
print("answered", len(s.recv(4096)) == len(hello), flush=True)
PY
start stranger python3 "$SCRATCH/strangers.py" "$SCRATCH/memif.sock" "$SCRATCH/gone"
stranger() { wait_for 30 grep -q "$1" "$SCRATCH/stranger.log"; }
check 'strangers come and go' stranger greeted
check 'it is removed' on_side a remove wire
touch "$SCRATCH/gone"
check 'one is told that it is gone' stranger 'answered True'
check 'it comes back' eval 'add_memif a 1 yes && wait_for 20 wire_up'
check 'both daemons end cleanly' eval 'on_side a status >/dev/null && on_side b status >/dev/null'
check 'with their socket' eval 'for d in "${sides[@]}"; do stop "$d" || exit 1; done; [ ! -e "$SCRATCH/memif.sock" ]'
finish
