"""A volume grows under a mounted file system that is being written to."""

import pytest

import mariner

pytestmark = pytest.mark.slow

# Size before, after; how it is made, how it grows.
FILE_SYSTEMS = {
    "ext4": (128, 256, "/sbin/mke2fs -q -F -t ext4", "resize2fs {disk}"),
    "xfs": (320, 640, "mkfs.xfs -q -f", "xfs_growfs -d /mnt"),
}


def grow_mounted(run, command):
    """Again when resize2fs read the superblock while the kernel was writing it: that of Debian 12 reads it through the
    page cache, where the checksum may be older than what it is of."""
    for _ in range(10):
        said = run(f"{command} 2>&1 || echo failed", timeout_s=180)
        if "failed" not in said:
            return
        assert "Superblock checksum does not match" in said, said
    raise mariner.Failed(said)


@pytest.mark.parametrize("name", ["ext4", pytest.param("xfs", marks=pytest.mark.long)])
def test_a_volume_grows_under_load(lab, name):
    before, after, make, grow = FILE_SYSTEMS[name]
    volume, iqn = lab.volume(f"{before}M")
    run = lab.guest.run
    disk = lab.guest.login(iqn, lab.daemon.portal())
    run(f"modprobe {name}; {make} {disk} && mount -t {name} {disk} /mnt", timeout_s=180)
    run("rm -f /tmp/result /tmp/enough")
    lab.guest.begin("(until [ -e /tmp/enough ]; do verified_writes /mnt/file 32m || break; done; echo $? > /tmp/result) > /tmp/verified 2>&1")

    lab.daemon.ask("volume", "resize", volume, f"{after}M")
    # Unit attention 2A/09, which the kernel tells of and leaves to the administrator.
    mariner.wait_until(lambda: "Capacity data has changed" in run("dmesg", check=False), 30, "the kernel is told",
                       interval_s=0.5)
    run(f"echo 1 > /sys/block/{disk.rsplit('/', 1)[1]}/device/rescan")
    assert run(f"blockdev --getsize64 {disk}") == str(after << 20)
    grow_mounted(run, grow.format(disk=disk))
    kilobytes = int(run("df -k /mnt | awk 'END {print $(NF - 4)}'"))
    assert kilobytes > (before << 10) * 1.2, "the file system is larger than the disk was"

    # Beyond the old end, and whatever was being written meanwhile.
    run(f"dd if=/dev/urandom of=/mnt/more bs=1M count={before - 16} conv=fsync 2>/dev/null", timeout_s=180)
    run("touch /tmp/enough")
    mariner.wait_until(lambda: run("cat /tmp/result 2>/dev/null", check=False), 120, "the last pass ends", interval_s=0.5)
    assert run("cat /tmp/result") == "0", run("cat /tmp/verified")
    sums = run("md5sum /mnt/file /mnt/more", timeout_s=180)
    run(f"umount /mnt; {'e2fsck -fn' if name == 'ext4' else 'xfs_repair -n'} {disk}", timeout_s=180)
    run(f"blockdev --flushbufs {disk}; mount -t {name} {disk} /mnt")
    assert run("md5sum /mnt/file /mnt/more", timeout_s=180) == sums
    assert lab.complaints() == ""
    assert lab.damage() == ""
