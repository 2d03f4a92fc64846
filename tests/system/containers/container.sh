#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# container.sh ROOT SOCKET_FOLDER LIBRARY_FOLDER COMMAND...: runs COMMAND as a container engine would,
# in namespaces that the caller made (unshare --user --map-root-user --mount --pid --fork): a root
# of its own with the host's /usr as its image, empty /tmp, /run and /sys, and two folders of the
# host: /run/softhca with the daemon's socket and /opt/softhca with the libraries.
set -e
root=$1 socket=$2 libraries=$3
shift 3
mount -t tmpfs container "$root"
cd "$root"
mkdir usr etc proc dev tmp run run/softhca opt opt/softhca sys
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
mount --bind -o ro "$socket" run/softhca
mount --bind -o ro "$libraries" opt/softhca
exec chroot . /usr/bin/env -i PATH=/usr/bin:/usr/sbin HOME=/tmp "$@"
