#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# container.sh ROOT HOST:CONTAINER... -- NAME=VALUE... COMMAND...: runs COMMAND as a container engine
# would, in namespaces that the caller made (unshare --user --map-root-user --mount --pid --fork): a
# root of its own with the host's /usr as its image, empty /tmp, /run and /sys, those folders of the
# host, read-only, and those variables.
set -e
root=$1
shift
mount -t tmpfs container "$root"
cd "$root"
mkdir usr etc proc dev tmp run opt sys
for folder in bin lib lib64 sbin; do
	[ ! -L "/$folder" ] || ln -s "usr/$folder" "$folder"
done
mount --rbind /usr usr
mount --rbind /etc etc
mount -t proc proc proc
for node in null zero urandom; do
	: >"dev/$node"
	mount --bind "/dev/$node" "dev/$node"
done
mkdir dev/shm
mount -t tmpfs shm dev/shm
while [ "$1" != -- ]; do
	mkdir -p "./${1#*:}"
	mount --bind -o ro "${1%%:*}" "./${1#*:}"
	shift
done
shift
exec chroot . /usr/bin/env -i PATH=/usr/bin:/usr/sbin HOME=/tmp "$@"
