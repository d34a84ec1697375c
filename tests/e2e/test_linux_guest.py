"""Debian's kernel and open-iscsi in a guest: a file system on a LUN that goes back in time, and a target that is killed."""

import dataclasses
import random
import time

import pytest

import guest as linux
import mariner

pytestmark = pytest.mark.slow

VOLUME = "disk"


@pytest.fixture
def network():
    with linux.Network() as network:
        yield network


@pytest.fixture
def daemon(folder, network):
    with mariner.Daemon(folder, address=linux.HOST_ADDRESS, prefix=network.prefix) as daemon:
        daemon.start()
        yield daemon


@pytest.fixture
def machine(folder, network):
    with linux.Guest(folder, network) as guest:
        yield guest.start()


@dataclasses.dataclass
class Moment:
    """A recorded moment: its name for `mariner`, and between which times of the host it lies."""

    name: str
    earliest_ns: int
    latest_ns: int


def mount_fresh_file_system(daemon, machine) -> str:
    iqn = daemon.create(VOLUME, "256M")["iqn"]
    disk = machine.login(iqn, daemon.portal())
    machine.run(f"/sbin/mke2fs -q -t ext4 -F {disk} && mount -t ext4 {disk} /mnt")
    return disk


def record_moments(daemon, seconds: float, rng: random.Random) -> list[Moment]:
    """Three moments by time, one by mark and one by sequence number, over the next `seconds`."""
    moments = []
    began = time.monotonic()
    for kind in ("time", "mark", "time", "sequence", "time"):
        share = (len(moments) + rng.uniform(0.4, 1.0)) / 5
        time.sleep(max(0.0, began + seconds * share - time.monotonic()))
        before = time.time_ns()
        if kind == "time":
            moments.append(Moment(mariner.time_text(before), before, before))
            continue
        if kind == "mark":
            daemon.ask("mark", "add", VOLUME, "halfway")
            name = "mark:halfway"
        else:
            name = f"#{mariner.sequence_of(daemon.ask('volume', 'show', VOLUME)['newest'])}"
        moments.append(Moment(name, before, time.time_ns()))
    time.sleep(max(0.0, began + seconds - time.monotonic()))
    return moments


def check_disk(machine, disk: str, files, moment: Moment):
    """fsck, mount, and compare every file with the moment."""
    machine.run(f"blockdev --flushbufs {disk}; replay_and_check {disk} && mount -t ext4 {disk} /mnt")
    required, forbidden = linux.compare_files(machine, "/mnt", files, moment.earliest_ns,
                                              moment.latest_ns)
    machine.run("umount /mnt")
    print(f"{moment.name}: {required} files there and whole, {forbidden} later ones absent")


def test_a_file_system_goes_back_in_time(daemon, machine, seed, long_run):
    disk = mount_fresh_file_system(daemon, machine)
    writer = linux.Writer(machine)
    moments = record_moments(daemon, 60 if long_run else 15, random.Random(seed))
    files = writer.stop()
    machine.run("umount /mnt")
    newest = Moment("newest", time.time_ns(), time.time_ns())
    print(f"{len(files)} files")
    assert len(files) > 50

    for moment in moments:
        daemon.rollback(VOLUME, moment.name)
        check_disk(machine, disk, files, moment)
        daemon.ask("rollback", "undo", VOLUME, "--force")
    check_disk(machine, disk, files, newest)
    assert machine.complaints() == ""

    # The same moments as disks of their own, while the guest goes on writing to the origin.
    machine.run(f"mount -t ext4 {disk} /mnt")
    writer = linux.Writer(machine, first=len(files) + 1)
    moment = moments[len(moments) // 2]
    views = [daemon.expose(VOLUME, moment.name), daemon.expose(VOLUME, moment.name, "--writable")]
    read_only, writable = [machine.login(view["iqn"], daemon.portal()) for view in views]
    machine.run(f"cmp {read_only} {writable}")
    assert machine.run(f"blockdev --getro {read_only}") == "1"
    before = machine.run(f"md5sum < {read_only}")
    machine.run(f"replay_and_check {writable} && mount -t ext4 {writable} /view")
    linux.compare_files(machine, "/view", files, moment.earliest_ns, moment.latest_ns)
    machine.run("echo mine > /view/mine && sync && umount /view")
    assert machine.complaints() == ""
    # Without its journal, which a read-only disk cannot replay, a file system in the middle of its work may have
    # metadata that do not fit together: what is asked here is that looking at it changes nothing.
    machine.run(f"mount -t ext4 -o ro,noload {read_only} /view && ls /view > /dev/null; umount /view")
    assert "I/O error" not in machine.complaints()
    machine.run(f"blockdev --flushbufs {read_only}")
    assert machine.run(f"md5sum < {read_only}") == before, "a view changed"
    more = writer.stop()
    assert len(more) > 1
    for view in views:
        machine.run(f"logout {view['iqn']}")
        daemon.ask("view", "unexpose", view["name"])
    machine.run("umount /mnt")
    check_disk(machine, disk, files + more, Moment("newest", time.time_ns(), time.time_ns()))
    assert machine.complaints() == ""


def test_the_initiator_survives_a_kill_and_restart(daemon, machine):
    disk = mount_fresh_file_system(daemon, machine)
    writer = linux.Writer(machine)
    for _ in range(2):
        time.sleep(2)
        daemon.kill()
        time.sleep(3)
        written = len(writer.files)
        daemon.start()
        mariner.wait_until(lambda: len(writer.files) > written + 3, 60, "writing resumes")
    files = writer.stop()
    machine.run("umount /mnt")
    check_disk(machine, disk, files, Moment("newest", time.time_ns(), time.time_ns()))
    assert machine.complaints() == ""
    print(f"{len(files)} files through two kills")
