#!/bin/bash
# Makes lvm2.sectors anew: a disk with a GPT and a volume group over two of its partitions, as sfdisk and lvm2 write
# them. Needs root, loop devices, gcc, fdisk, lvm2, python3. Says what lvm2 says of it, for real_tables_test.cc.
set -euo pipefail
cd "$(dirname "$0")"

folder=$(mktemp -d)
loops=()
finish() {
  for loop in "${loops[@]}"; do losetup -d "$loop"; done
  rm -r "$folder"
}
trap finish EXIT

disk=$folder/disk
truncate -s 64M "$disk"
printf 'label: gpt\nlabel-id: 11111111-1111-1111-1111-111111111111
start=2048, size=8192, type=L, name=boot, uuid=22222222-2222-2222-2222-222222222222
start=10304, size=49152, type=V, uuid=33333333-3333-3333-3333-333333333333
start=59456, size=49152, type=V, uuid=44444444-4444-4444-4444-444444444444\n' | sfdisk -q "$disk"
for start in 10304 59456; do
  loops+=("$(losetup -f --show -o $((start * 512)) --sizelimit $((49152 * 512)) "$disk")")
done

# Metadata say which host wrote them, and by which command.
gcc -shared -fPIC -x c -o "$folder/uname.so" - << 'C'
#include <string.h>
#include <sys/utsname.h>
int uname(struct utsname* name) {
  memset(name, 0, sizeof *name);
  strcpy(name->sysname, "Linux");
  strcpy(name->nodename, "host.example");
  strcpy(name->release, "6.1.0");
  strcpy(name->version, "#1");
  strcpy(name->machine, "x86_64");
  return 0;
}
C
cat > "$folder/lvm.conf" << CONF
devices { use_devicesfile=0 scan_lvs=0 filter=["a|^${loops[0]}\$|","a|^${loops[1]}\$|","r|.*|"] }
backup { backup=0 archive=0 }
activation { udev_sync=0 udev_rules=0 verify_udev_operations=0 monitoring=0 }
global { use_lvmpolld=0 event_activation=0 }
CONF
# No volume is activated: the kernel needs no device mapper.
run() { LVM_SYSTEM_DIR=$folder LVM_SUPPRESS_FD_WARNINGS=1 LD_PRELOAD=$folder/uname.so lvm "$1" --driverloaded n "${@:2}"; }
run pvcreate --metadatasize 32k --dataalignment 64k "${loops[@]}"
run vgcreate -s 1m my-vg "${loops[@]}"
create() { run lvcreate -an -Zn -Wn "$@"; }
create -l 5 -n root my-vg
create -l 3 -n swap my-vg
run lvextend -l +4 my-vg/root
create -l 17 -n da-ta my-vg
create -i 2 -l 2 -n striped my-vg
# Until the newest text goes round the ring: it begins before its end and ends behind its beginning.
area=$(((10304 + 8) * 512))
number() { od -An -t u8 -j $((area + $1)) -N 8 "$disk"; }
for i in $(seq 1 200); do
  run lvchange -q --addtag "tag$i" my-vg/swap > "$folder/out" 2>&1
  sync "$disk"
  [ $(($(number 40) + $(number 48))) -le "$(number 32)" ] || break
done
run lvs --segments -o lv_name,segtype,seg_start_pe,seg_size_pe,seg_pe_ranges my-vg
run pvs -o pv_name,pe_start --units s

# What of it is needed: the GPT, labels, headers of metadata areas and the newest text of each, but no older ones.
python3 - "$disk" <<'PYTHON'
import struct, sys
disk = open(sys.argv[1], "rb").read()
keep = set(range(34)) | set(range(len(disk) // 512 - 33, len(disk) // 512))
for start in (10304, 59456):
    keep |= {start + 1, start + 8}
    area = (start + 8) * 512
    size, = struct.unpack_from("<Q", disk, area + 32)
    offset, length = struct.unpack_from("<QQ", disk, area + 40)
    print(f"area of {size}: {length} bytes from {offset} on")
    for i in range(length):
        at = offset + i if offset + i < size else offset + i - size + 512
        keep.add((area + at) // 512)
with open("lvm2.sectors", "wb") as out:
    for number in sorted(keep):
        sector = disk[number * 512:][:512]
        if any(sector):
            out.write(struct.pack("<Q", number) + sector)
PYTHON
ls -l lvm2.sectors
