#!/bin/bash
# Builds the Linux guest of the tests: Debian's own cloud kernel, and an initramfs with open-iscsi and
# e2fsprogs, all from Debian's packages. Installs nothing. Needs apt-get, dpkg-deb and cpio.
#
#   build.sh FOLDER      leaves FOLDER/vmlinuz and FOLDER/initrd; does nothing if they are up to date
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: build.sh FOLDER}
stamp=$(cat "$here"/build.sh "$here"/init "$here"/agent.sh | sha256sum)
if [ -s "$out/initrd" ] && [ "$(cat "$out/stamp" 2>/dev/null)" = "$stamp" ]; then exit 0; fi

packages="busybox-static open-iscsi libopeniscsiusr libisns0 libkmod2 libmount1 libblkid1
  libselinux1 libpcre2-8-0 libssl3 libsystemd0 libcap2 libgcrypt20 libgpg-error0 liblz4-1 liblzma5
  libzstd1 e2fsprogs libext2fs2 libcom-err2 libss2 libuuid1 libc6"
modules="virtio_pci virtio_net iscsi_tcp sd_mod crc32c-intel ext4"

mkdir -p "$out/packages"
kernel=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ {print $2; exit}')
[ -n "$kernel" ] || { echo "no linux-image-cloud-amd64: run apt-get update" >&2; exit 1; }
if [ "$(cat "$out/packages/kernel" 2>/dev/null)" != "$kernel" ]; then
  rm -f "$out"/packages/*.deb
  # shellcheck disable=SC2086  # a list of words
  (cd "$out/packages" && apt-get download -qq -o APT::Sandbox::User=root "$kernel" $packages)
  echo "$kernel" > "$out/packages/kernel"
fi

work=$(mktemp -d "$out/work-XXXXXX")
trap 'rm -rf "$work"' EXIT
x=$work/extracted root=$work/root
mkdir -p "$x" "$root"/{bin,sbin,lib64,lib/x86_64-linux-gnu,dev,proc,sys,run/lock/iscsi,etc/iscsi,var/lib/iscsi,mnt,view,tmp}
for package in "$out"/packages/*.deb; do dpkg-deb -x "$package" "$x"; done
busybox=$x/bin/busybox

cp -L "$busybox" "$x"/sbin/{iscsid,iscsiadm,e2fsck,mke2fs} "$root/sbin/"
ln -s ../sbin/busybox "$root/bin/sh"
cp -L "$x"/lib64/ld-* "$root/lib64/"
cp -L "$x"/lib/x86_64-linux-gnu/*.so.* "$x"/usr/lib/x86_64-linux-gnu/*.so.* \
  "$root/lib/x86_64-linux-gnu/" 2>/dev/null || true

version=$(ls "$x/lib/modules")
find "$x/lib/modules" -name '*.xz' -exec unxz {} +
"$busybox" depmod -b "$x" "$version"
for module in $modules; do
  grep "/$module.ko:" "$x/lib/modules/$version/modules.dep" | tr -d : | tr ' ' '\n' || true  # or built in
done | sort -u | while read -r file; do
  install -D "$x/lib/modules/$version/$file" "$root/lib/modules/$version/$file"
done
"$busybox" depmod -b "$root" "$version"

sed 's#^iscsid.startup.*#iscsid.startup = /sbin/iscsid#; s#^node.startup.*#node.startup = manual#' \
  "$x/etc/iscsi/iscsid.conf" > "$root/etc/iscsi/iscsid.conf"
echo "InitiatorName=iqn.2026-11.org.mariner:guest" > "$root/etc/iscsi/initiatorname.iscsi"
echo "root:x:0:0::/:/bin/sh" > "$root/etc/passwd"
install -m 755 "$here/init" "$root/init"
install -m 755 "$here/agent.sh" "$root/agent.sh"

cp "$x"/boot/vmlinuz-* "$out/vmlinuz"
(cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null) > "$work/initrd"
mv "$work/initrd" "$out/initrd"
echo "$stamp" > "$out/stamp"
