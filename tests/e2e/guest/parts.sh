# What both images are built with. Wants $out, the folder of the image.

# stamp FILE...: of what an image is made; `up_to_date STAMP FILE` says whether it is made of that.
stamp() { cat "$@" | sha256sum; }
up_to_date() { [ -s "$2" ] && [ "$(cat "$out/stamp" 2>/dev/null)" = "$1" ]; }

# kernel_package NAME: the package that a metapackage of the kernel stands for today.
kernel_package() {
  local kernel
  kernel=$(apt-cache depends "$1" | awk '/Depends: linux-image/ {print $2; exit}')
  [ -n "$kernel" ] || { echo "no $1: run apt-get update" >&2; return 1; }
  echo "$kernel"
}

# download PACKAGE...: into $out/packages, unless exactly these are there.
download() {
  [ "$(cat "$out/packages/list" 2>/dev/null)" != "$*" ] || return 0
  mkdir -p "$out/packages"
  rm -f "$out"/packages/*
  (cd "$out/packages" && apt-get download -qq -o APT::Sandbox::User=root "$@")
  echo "$*" > "$out/packages/list"
}

extract() { # FOLDER
  local package
  for package in "$out"/packages/*.deb; do dpkg-deb -x "$package" "$1"; done
}

# modules FROM TO NAME...: kernel modules with what they need, not compressed.
modules() {
  local from=$1 to=$2 version module
  shift 2
  version=$(ls "$from/lib/modules")
  if [ ! -e "$from/lib/modules/$version/modules.dep" ]; then
    find "$from/lib/modules" -name '*.xz' -print0 | xargs -0 -r -P 2 -n 500 unxz
    "$busybox" depmod -b "$from" "$version"
  fi
  for module in "$@"; do
    grep -E "/${module//[-_]/[-_]}\.ko:" "$from/lib/modules/$version/modules.dep" | tr -d : | tr ' ' '\n' || true  # or built in
  done | sort -u | while read -r file; do
    install -D "$from/lib/modules/$version/$file" "$to/lib/modules/$version/$file"
  done
  "$busybox" depmod -b "$to" "$version"
}

# open_iscsi FROM TO: its configuration, for a guest that starts nothing by itself.
open_iscsi() {
  mkdir -p "$2"/{etc/iscsi,var/lib/iscsi,run/lock/iscsi}
  sed 's#^iscsid.startup.*#iscsid.startup = /sbin/iscsid#; s#^node.startup.*#node.startup = manual#' \
    "$1/etc/iscsi/iscsid.conf" > "$work/iscsid.conf"
  mv "$work/iscsid.conf" "$2/etc/iscsi/iscsid.conf"
  echo "InitiatorName=iqn.2026-11.org.mariner:guest" > "$2/etc/iscsi/initiatorname.iscsi"
  echo "root:x:0:0::/:/bin/sh" > "$2/etc/passwd"
}

# initramfs ROOT: packs it.
initramfs() {
  (cd "$1" && find . | "$busybox" cpio -o -H newc 2>/dev/null) > "$work/initrd"
  mv "$work/initrd" "$out/initrd"
}
