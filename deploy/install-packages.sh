#!/bin/bash
# Installs the Debian 12 packages that building, testing and running from a clone need; only those
# that are missing. Works as root or with sudo.
#
#   install-packages.sh [--build-only] [--apps] [--list]
#
# --apps: also what the benchmark of applications measures (tests/bench/run.sh apps).
set -euo pipefail

build="build-essential cmake ninja-build ccache pkg-config libboost1.81-dev liburing-dev
  libprotobuf-dev protobuf-compiler librocksdb-dev libisal-dev libxxhash-dev libzstd-dev liblz4-dev
  libssl-dev libext2fs-dev libtsk-dev libfuse3-dev fuse3 libseccomp-dev libtomlplusplus-dev libcli11-dev libspdlog-dev libfmt-dev prometheus-cpp-dev
  libsystemd-dev libiscsi-dev python3"
[ "$(dpkg --print-architecture)" != amd64 ] || build="$build libipsec-mb-dev"
test="libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev libsqlite3-dev
  libiscsi-bin sg3-utils python3-pytest qemu-system-x86 ipxe-qemu qemu-utils qemu-block-extra tgt fio cpio xz-utils
  iproute2 nftables ethtool e2fsprogs ntfs-3g exfatprogs exfat-fuse dosfstools mtools makefs fdisk gdisk rsync samba samba-vfs-modules smbclient
  nfs-ganesha nfs-ganesha-vfs libnfs-utils etcd-server openssl clang-16 clang-tidy-16 clang-format-16 libclang-rt-16-dev"

wanted="$build $test"
for argument in "$@"; do
  case $argument in
    # The quick start formats nothing and tests nothing, but its tour speaks iSCSI through QEMU's tools.
    --build-only) wanted="$build qemu-utils qemu-block-extra" ;;
    # nbdfuse, and a database.
    --apps) wanted="$wanted libnbd-bin postgresql" ;;
    --list) list=1 ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
if [ -n "${list:-}" ]; then
  printf '%s\n' $wanted
  exit 0
fi

missing=()
for package in $wanted; do
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo > /dev/null || { echo "These packages are missing, and there is no sudo: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
# What is installed for tests is not to run: some packages start a service, which would take its port.
# invoke-rc.d and deb-systemd-invoke ask this file (policy-rc.d); who has one keeps it.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" > /dev/null
  "${as_root[@]}" chmod 755 "$policy"
fi
echo "Installing ${#missing[@]} packages: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  "${missing[@]}" > /dev/null
# Nor at the next start of the machine.
if command -v systemctl > /dev/null; then
  for each in etcd-server:etcd samba:smbd samba:nmbd samba:samba-ad-dc nfs-ganesha:nfs-ganesha nfs-ganesha:rpcbind postgresql:postgresql; do
    [[ " ${missing[*]} " != *" ${each%:*} "* ]] || "${as_root[@]}" systemctl --quiet disable "${each#*:}.service" 2> /dev/null || true
  done
fi
