#!/bin/bash
# Builds the full Linux guest of the tests: Debian's newest kernel, and a root file system with the tools
# that people use on their LUNs: open-iscsi, multipath-tools, udev, sg3-utils, fio and file systems. All from Debian's packages.
# Installs nothing and needs no root: apt-get, dpkg-deb, cpio and mke2fs.
#
#   build_full.sh FOLDER      leaves FOLDER/vmlinuz, FOLDER/initrd and FOLDER/root.img; does nothing if
#                             they are up to date
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: build_full.sh FOLDER}
. "$here/parts.sh"
stamp=$(stamp "$here"/{build_full.sh,parts.sh,full_init,full_root_init,multipath.conf})
if up_to_date "$stamp" "$out/root.img"; then exit 0; fi

wanted="busybox-static open-iscsi udev multipath-tools sg3-utils util-linux fio e2fsprogs xfsprogs
  btrfs-progs ntfs-3g"
# What their packages depend on and nothing here uses: scripts, users, boot.
unused='^(perl|libperl|python|libpython|libfile-find|libnumber|libtext-glob|libgdbm|libdb5|debconf|dpkg|tar|sed|coreutils|passwd|adduser|libpam|init|initramfs|sysv|usrmerge|linux-base|klibc|libklibc|cpio|lsb|media-types|readline|libsqlite|sg3-utils-udev|gcc|libnsl|libsemanage|libsepol|util-linux-extra$)'

mkdir -p "$out"
work=$(mktemp -d "$out/work-XXXXXX")
trap 'rm -rf "$work"' EXIT
: > "$work/status"
# 6.12 has ntfs3 and scsi_dh_alua; it is in bookworm-security, and where that is not configured Debian's own will do.
kernel=$(kernel_package linux-image-6.12-amd64 2>/dev/null || kernel_package linux-image-amd64)
# As on a machine that has nothing: the answer does not depend on what this one has installed.
# shellcheck disable=SC2086  # a list of words
packages=$(apt-get install -y --no-install-recommends --print-uris -o Dir::State::status="$work/status" $wanted |
  sed -n "s/^'[^']*' \([^_ ]*\)_.*/\1/p" | grep -Ev "$unused" | sort)
# shellcheck disable=SC2086
download "$kernel" $packages

root=$work/root first=$work/first
mkdir -p "$root"/{bin,sbin,dev,proc,sys,run,tmp,mnt,view,usr/busybox} "$first"/{bin,sbin,lib64,lib/x86_64-linux-gnu,dev,proc,sys,root}
extract "$root"
cp "$root"/boot/vmlinuz-* "$out/vmlinuz"
busybox=$work/busybox
cp -L "$root/bin/busybox" "$busybox"
mkdir -p "$work/all/lib"
mv "$root/lib/modules" "$work/all/lib/modules"
rm -rf "$root"/{boot,usr/share/{doc,man,locale,info,bash-completion,bug,lintian},lib/firmware,lib/udev/hwdb.d,usr/lib/udev/hwdb.d}
open_iscsi "$root" "$root"
boot="virtio_pci virtio_net virtio_blk iscsi_tcp sd_mod crc32c-intel ext4"
# shellcheck disable=SC2086
modules "$work/all" "$root" $boot sg xfs btrfs ntfs3 fuse dm-mod dm-multipath dm-round-robin \
  dm-service-time scsi_dh_alua loop
ln -sf busybox "$root/bin/sh"
printf 'root:x:0:\ndisk:x:6:\n' > "$root/etc/group"
install -m 644 "$here/multipath.conf" "$root/etc/multipath.conf"
install -m 755 "$here/full_root_init" "$root/sbin/init"

# The first root file system mounts the second, from the disk beside it or from a LUN.
cp "$busybox" "$first/bin/busybox"
ln -s busybox "$first/bin/sh"
cp "$root/sbin/iscsistart" "$first/sbin/"
cp -L "$root"/lib64/ld-* "$first/lib64/"
LD_LIBRARY_PATH=$root/lib/x86_64-linux-gnu:$root/usr/lib/x86_64-linux-gnu ldd "$root/sbin/iscsistart" |
  awk -v root="$root" 'index($3, root) == 1 {print $3}' | xargs cp -L -t "$first/lib/x86_64-linux-gnu"
# shellcheck disable=SC2086
modules "$work/all" "$first" $boot
install -m 755 "$here/full_init" "$first/init"
initramfs "$first"

truncate -s 384M "$work/root.img"
/sbin/mke2fs -q -F -t ext4 -E root_owner=0:0 -d "$root" "$work/root.img"
mv "$work/root.img" "$out/root.img"
echo "$stamp" > "$out/stamp"
