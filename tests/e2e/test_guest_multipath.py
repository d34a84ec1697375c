"""Two portals, two sessions, one disk: I/O goes on while a path is gone, and uses it again when it is back."""


import pytest

import guest as linux
import mariner

pytestmark = pytest.mark.slow

# A path that says nothing for so long is given up.
QUICKLY = ("node.session.timeo.replacement_timeout 2 'node.conn[0].timeo.noop_out_interval' 1 "
           "'node.conn[0].timeo.noop_out_timeout' 2")


class Paths:
    def __init__(self, guest: linux.Guest):
        self._guest = guest

    def states(self) -> list[str]:
        """What multipathd says of each path, sorted."""
        return sorted(self._guest.run("multipathd show paths raw format '%t'", check=False).split())

    def wait_for(self, *states: str):
        mariner.wait_until(lambda: self.states() == sorted(states), 90, f"paths are {states}", interval_s=0.5)


@pytest.fixture
def disk(lab) -> str:
    """One LUN over both portals, as device-mapper makes it one disk."""
    _, iqn = lab.volume()
    for number in range(2):
        portal = lab.daemon.portal(number)
        lab.guest.run(f"node {iqn} {portal} {QUICKLY} && iscsiadm -m node -T {iqn} -p {portal} -l > /dev/null")
    lab.guest.run("modprobe -a dm-multipath dm-round-robin scsi_dh_alua; start_udev; multipathd > /dev/null")
    Paths(lab.guest).wait_for("active", "active")
    disks = mariner.wait_until(lambda: lab.guest.run("ls /dev/mapper | grep -v control", check=False).split(), 60,
                               "udev names the disk", interval_s=0.5)
    assert len(disks) == 1, f"two paths are one disk: {disks}"
    return f"/dev/mapper/{disks[0]}"


def test_a_path_is_lost_and_comes_back_under_load(lab, disk, long_run):
    run, paths = lab.guest.run, Paths(lab.guest)
    run("rm -f /tmp/result")
    lab.guest.begin(f"(until [ -e /tmp/enough ]; do verified_writes {disk} 16m || break; done; echo $? > /tmp/result) > /tmp/verified 2>&1")
    reads = "cat /sys/block/sda/stat /sys/block/sdb/stat | awk '{print $5}'"

    def both_are_used():
        before = run(reads).split()
        mariner.wait_until(lambda: all(int(a) > int(b) for a, b in zip(run(reads).split(), before)), 60,
                           "both paths carry writes", interval_s=0.5)

    for _ in range(5 if long_run else 1):
        both_are_used()
        lab.network.run("ip link set tap1 down")
        paths.wait_for("active", "failed")
        before = run(reads).split()
        mariner.wait_until(lambda: run(reads).split() != before, 30, "writes go on over the other path", interval_s=0.5)
        lab.network.run("ip link set tap1 up")
        paths.wait_for("active", "active")
        both_are_used()

        for session in lab.daemon.ask("session", "list")["sessions"][:1]:
            lab.daemon.ask("session", "kick", session["id"])
        both_are_used()
    run("touch /tmp/enough")
    mariner.wait_until(lambda: run("cat /tmp/result 2>/dev/null", check=False), 120, "the last pass ends", interval_s=0.5)
    assert run("cat /tmp/result; rm /tmp/enough") == "0", run("cat /tmp/verified")
    assert "on dev dm-" not in lab.complaints()
    assert lab.damage() == ""
