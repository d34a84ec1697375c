#!/bin/bash
# Builds the Linux guest of the tests: Debian's own cloud kernel, and an initramfs with open-iscsi and
# e2fsprogs, all from Debian's packages. Installs nothing. Needs apt-get, dpkg-deb and cpio.
#
#   build.sh FOLDER      leaves FOLDER/vmlinuz and FOLDER/initrd; does nothing if they are up to date
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: build.sh FOLDER}
. "$here/parts.sh"
stamp=$(stamp "$here"/{build.sh,parts.sh,init,agent.sh})
if up_to_date "$stamp" "$out/initrd"; then exit 0; fi

packages="busybox-static open-iscsi libopeniscsiusr libisns0 libkmod2 libmount1 libblkid1
  libselinux1 libpcre2-8-0 libssl3 libsystemd0 libcap2 libgcrypt20 libgpg-error0 liblz4-1 liblzma5
  libzstd1 e2fsprogs libext2fs2 libcom-err2 libss2 libuuid1 libc6"
kernel=$(kernel_package linux-image-cloud-amd64)
# shellcheck disable=SC2086  # a list of words
download "$kernel" $packages

work=$(mktemp -d "$out/work-XXXXXX")
trap 'rm -rf "$work"' EXIT
x=$work/extracted root=$work/root
mkdir -p "$x" "$root"/{bin,sbin,lib64,lib/x86_64-linux-gnu,dev,proc,sys,mnt,view,tmp}
extract "$x"
busybox=$x/bin/busybox

cp -L "$busybox" "$x"/sbin/{iscsid,iscsiadm,e2fsck,mke2fs} "$root/sbin/"
ln -s ../sbin/busybox "$root/bin/sh"
cp -L "$x"/lib64/ld-* "$root/lib64/"
cp -L "$x"/lib/x86_64-linux-gnu/*.so.* "$x"/usr/lib/x86_64-linux-gnu/*.so.* \
  "$root/lib/x86_64-linux-gnu/" 2>/dev/null || true
modules "$x" "$root" virtio_pci virtio_net iscsi_tcp sd_mod crc32c-intel ext4
open_iscsi "$x" "$root"
install -m 755 "$here/init" "$root/init"
install -m 755 "$here/agent.sh" "$root/agent.sh"

cp "$x"/boot/vmlinuz-* "$out/vmlinuz"
initramfs "$root"
echo "$stamp" > "$out/stamp"
