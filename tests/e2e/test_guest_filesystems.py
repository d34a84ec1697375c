"""File systems of a Linux host on a LUN: verified writes with discards among them, then their own checkers."""

import dataclasses

import pytest

pytestmark = pytest.mark.slow


@dataclasses.dataclass
class FileSystem:
    make: str
    mount: str
    check: str   # changes nothing


FILE_SYSTEMS = {
    "ext4": FileSystem("/sbin/mke2fs -q -F -t ext4", "-t ext4", "e2fsck -fn"),
    "xfs": FileSystem("mkfs.xfs -q -f", "-t xfs", "xfs_repair -n"),
    "btrfs": FileSystem("mkfs.btrfs -q -f", "-t btrfs", "btrfs check --readonly"),
    # ntfsresize goes through all metadata and accounts for every cluster before it would do anything.
    "ntfs": FileSystem("mkntfs -Q -F", "-t ntfs3", "ntfsresize --info --force"),
}


@pytest.mark.parametrize("name", [
    name if name == "xfs" else pytest.param(name, marks=pytest.mark.long) for name in FILE_SYSTEMS])
def test_a_file_system_is_written_verified_and_trimmed(lab, name, long_run):
    kind = FILE_SYSTEMS[name]
    _, iqn = lab.volume("512M")
    disk = lab.guest.login(iqn, lab.daemon.portal())
    seconds = 600 if long_run else 5
    run = lab.guest.run
    run(f"modprobe {kind.mount.split()[1]}; {kind.make} {disk} && mount {kind.mount} -o discard {disk} /mnt", timeout_s=180)
    print(run(f"exercise /mnt {seconds}", timeout_s=seconds + 300))
    run("sync")
    full = lab.mapped_mb(iqn)
    sums = run("md5sum /mnt/small /mnt/large", timeout_s=180)
    run(f"umount /mnt && {kind.check} {disk}", timeout_s=300)

    # What is on the disk, not what the guest remembers.
    run(f"blockdev --flushbufs {disk}; mount {kind.mount} {disk} /mnt", timeout_s=180)
    assert run("md5sum /mnt/small /mnt/large", timeout_s=180) == sums
    # Mounted again: some free a removed file's space in the background. With discard: ntfs3 trims nothing without it.
    run(f"rm /mnt/large && umount /mnt && mount {kind.mount} -o discard {disk} /mnt && /sbin/fstrim /mnt", timeout_s=180)
    trimmed = lab.mapped_mb(iqn)
    print(f"{full:.0f} MiB mapped, {trimmed:.0f} after fstrim")
    assert trimmed < full - 24, "the 32 MiB of a removed file were not given back"
    run(f"umount /mnt && {kind.check} {disk}", timeout_s=300)
    assert lab.complaints() == ""
    assert lab.damage() == ""


@pytest.mark.long
def test_a_raw_disk_is_written_verified_and_trimmed(lab, long_run):
    _, iqn = lab.volume()
    disk = lab.guest.login(iqn, lab.daemon.portal())
    for _ in range(20 if long_run else 1):
        lab.guest.run(f"writes_and_trims {disk}", timeout_s=300)
    assert lab.complaints() == ""
    assert lab.damage() == ""
