#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The drop-in libibverbs under Debian's own programs: it has what they and the libraries in them are
# linked with, and they see the device. (What they move: the other tests named verbs_*.)
. "$(dirname "$0")/lib.sh"
need_command ibv_devinfo

here=$(dirname "$0")
library=$BUILD/lib/host/verbs/libibverbs.so.1

# Everything that a file wants of a libibverbs is there.
resolves() {
	local missing
	missing=$(drop_in ldd -r "$1" 2>&1 | grep -E 'IBVERBS|ibv_|libibverbs.*not found') || true
	[ -z "$missing" ] || {
		echo "$missing"
		return 1
	}
	[[ $(drop_in ldd "$1") == *"$library"* ]]
}

# says PATTERN COMMAND...: its output has a line that matches.
says() {
	local pattern=$1
	shift
	drop_in "$@" >"$SCRATCH/said.txt" 2>&1 && grep -qE -- "$pattern" "$SCRATCH/said.txt" && return
	cat "$SCRATCH/said.txt"
	return 1
}

check 'the symbols of libibverbs.map' "$here/verbs/symbols.sh" "$library" "$here/../../lib/host/verbs"
for file in "$(command -v ibv_devinfo)" "$(command -v ib_write_bw)" "$(command -v rping)" \
	/usr/lib/*/lib{mlx4,mlx5,efa,mana,rdmacm,fabric}.so.1 /usr/lib/*/ucx/libuct_{ib,rdmacm}.so.0 \
	/usr/lib/*/openmpi/lib/openmpi3/mca_btl_openib.so \
	/usr/lib/python3/dist-packages/pyverbs/*.so; do
	[ ! -f "$file" ] || check "resolves: ${file#/usr/}" resolves "$file"
done

check 'no daemon, no device' says '0 HCAs? found|No IB devices found' \
	env SOFTHCA_SOCKET="$SCRATCH/none.sock" ibv_devinfo -l
# Opens the device the moment that the daemon lets it.
watch() {
	until [ -S "$SOFTHCA_SOCKET" ]; do :; done
	drop_in exec timeout 120 stdbuf -oL ibv_asyncwatch -d left
}

ring_config >"$SCRATCH/ring.conf"
export SOFTHCA_SOCKET=$SCRATCH/ring.sock
start watcher watch
watcher=$started
daemon ring -c "$SCRATCH/ring.conf"
ring=$started

check 'ibv_devices' says '^[[:space:]]*left[[:space:]]+[0-9a-f]{16}$' ibv_devices
check 'ibv_devices: the other one' grep -qE '^[[:space:]]*right[[:space:]]+[0-9a-f]{16}$' \
	"$SCRATCH/said.txt"
check 'ibv_devinfo -l' says '^[[:space:]]*right$' ibv_devinfo -l
check 'ibv_devinfo' says 'state:.*PORT_ACTIVE' ibv_devinfo
check 'ibv_devinfo -v' says 'GID\[ *[0-9]+\]:.*::ffff:192\.168\.77\.1, RoCE v2' ibv_devinfo -v
check 'ibv_devinfo -v: the other address' grep -q 'GID\[.*fd77::1, RoCE v2' \
	"$SCRATCH/said.txt"
check 'ibv_devinfo -v: nothing unknown' no_lines <(grep -iE 'unknown|invalid' "$SCRATCH/said.txt" | grep -v '0x14000000000$')
check 'ibv_devinfo -d left -i 1' says 'link_layer:.*Ethernet' ibv_devinfo -d left -i 1
check 'ibv_devinfo -d right' says 'hca_id:.*right' ibv_devinfo -d right

python=/usr/bin/python3
if $python -c 'import pyverbs.device' 2>/dev/null; then
	check 'pyverbs: open and query' says '^left 1 1 Ethernet$' $python - <<-'END'
		import pyverbs.device as d
		with d.Context(name='left') as ctx:
		    attr = ctx.query_device()
		    port = ctx.query_port(1)
		    gid = ctx.query_gid_ex(port_num=1, gid_index=0)
		    print(ctx.name, attr.phys_port_cnt, gid.port_num,
		          d.translate_link_layer(port.link_layer))
	END
fi

check 'a log in remote memory: WRITE, FLUSH, ATOMIC WRITE' says '^500 records$' \
	"$BUILD/tests/system/flush" left right

# The daemon's death, once; not the ports' coming up, which was before.
wait_for 10 test -s "$SCRATCH/watcher.log"
kill -KILL "$ring"
check 'ibv_asyncwatch ends with the daemon' wait_for 10 not_running "$watcher"
check 'ibv_asyncwatch: device fatal' grep -q 'DEVICE_FATAL (8)' "$SCRATCH/watcher.log"
check 'ibv_asyncwatch: and no other event' \
	no_lines <(grep event_type "$SCRATCH/watcher.log" | grep -v 'DEVICE_FATAL (8)')
finish
