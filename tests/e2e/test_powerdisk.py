"""The disk that loses power, proved through its mount: what was flushed stays, what was not may go."""

import ctypes
import errno
import mmap
import os
import subprocess

import pytest

from powerdisk import PowerDisk

SECTOR = 512
PAGE = 4096


@pytest.fixture
def disk(folder):
    with PowerDisk(folder) as disk:
        yield disk


def power_cycle(disk: PowerDisk, seed: int):
    disk.cut(seed)
    disk.unmount()
    disk.power_on()


def aligned(value: int, length: int = PAGE) -> mmap.mmap:
    """Bytes at an address that O_DIRECT takes."""
    memory = mmap.mmap(-1, length)
    memory.write(bytes([value]) * length)
    return memory


def punch_hole(fd: int, offset: int, length: int):
    """Without the fsync that the program `fallocate` adds."""
    keep_size, punch = 1, 2
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(fd, keep_size | punch, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


def synchronous_writes():
    """Ways to write `value` at `offset` so that it is on the medium when they return."""
    def fsync(path, offset, value):
        fd = os.open(path, os.O_RDWR)
        os.pwrite(fd, bytes([value]) * PAGE, offset)
        os.fsync(fd)
        os.close(fd)

    def fdatasync(path, offset, value):
        fd = os.open(path, os.O_RDWR)
        os.pwrite(fd, bytes([value]) * PAGE, offset)
        os.fdatasync(fd)
        os.close(fd)

    def opened(flags):
        def write(path, offset, value):
            fd = os.open(path, os.O_RDWR | flags)
            os.pwritev(fd, [aligned(value)], offset)
            os.close(fd)
        return write

    def flagged(open_flags, write_flags):
        def write(path, offset, value):
            fd = os.open(path, os.O_RDWR | open_flags)
            os.pwritev(fd, [aligned(value)], offset, write_flags)
            os.close(fd)
        return write

    def io_uring(path, offset, value):
        out = subprocess.run(
            ["fio", "--name=one", f"--filename={path}", "--ioengine=io_uring", "--direct=1",
             "--sync=dsync", "--rw=write", "--bs=4k", "--size=4k", f"--offset={offset}",
             f"--buffer_pattern={value:#04x}", "--allow_file_create=0", "--overwrite=1",
             "--end_fsync=0", "--fsync=0"], capture_output=True, text=True)
        assert out.returncode == 0, out.stdout + out.stderr

    return {"fsync": fsync, "fdatasync": fdatasync, "O_DSYNC": opened(os.O_DSYNC),
            "O_DIRECT and O_DSYNC": opened(os.O_DIRECT | os.O_DSYNC),
            "RWF_DSYNC": flagged(0, os.RWF_DSYNC), "RWF_SYNC": flagged(0, os.RWF_SYNC),
            "O_DIRECT and RWF_DSYNC": flagged(os.O_DIRECT, os.RWF_DSYNC), "io_uring": io_uring}


@pytest.mark.parametrize("way", synchronous_writes())
def test_what_was_flushed_survives_every_cut(disk, way):
    write = synchronous_writes()[way]
    path = disk.mount / "file"
    path.write_bytes(bytes(16 * PAGE))
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    for seed in range(6):
        write(path, 3 * PAGE, seed + 1)
        with open(path, "r+b", buffering=0) as file:   # neighbours that no flush covers
            os.pwrite(file.fileno(), b"\xff" * PAGE, 4 * PAGE)
        power_cycle(disk, seed)
        assert path.read_bytes()[3 * PAGE:4 * PAGE] == bytes([seed + 1]) * PAGE, f"seed {seed}"


def test_what_was_not_flushed_goes_for_some_seed_and_is_torn_for_another(disk):
    path = disk.mount / "file"
    seen = set()
    for seed in range(40):
        path.write_bytes(bytes(PAGE))
        with open(path, "r+b", buffering=0) as file:
            os.fsync(file.fileno())
            os.pwrite(file.fileno(), b"\x01" * PAGE, 0)
            assert path.read_bytes() == b"\x01" * PAGE, "a read sees the cache"
        power_cycle(disk, seed)
        sectors = path.read_bytes().count(b"\x01") // SECTOR
        seen.add("lost" if sectors == 0 else "kept" if sectors == PAGE // SECTOR else "torn")
    assert seen == {"lost", "kept", "torn"}


def test_without_power_everything_fails(disk):
    path = disk.mount / "file"
    with open(path, "wb", buffering=0) as file:
        file.write(b"x" * PAGE)
        disk.cut(1)
        for action in (lambda: os.pwrite(file.fileno(), b"y", 0), lambda: os.fsync(file.fileno()),
                       lambda: os.listdir(disk.mount), lambda: os.unlink(path)):
            with pytest.raises(OSError) as failure:
                action()
            assert failure.value.errno == errno.EIO
    assert disk.statistics()["power"] == "off"


def test_names_are_durable_at_once(disk):
    (disk.mount / "folder").mkdir()
    (disk.mount / "folder" / "a").write_bytes(b"")
    (disk.mount / "folder" / "a").rename(disk.mount / "folder" / "b")
    power_cycle(disk, 1)
    assert os.listdir(disk.mount / "folder") == ["b"]


def test_a_punched_hole_needs_a_flush(disk):
    path = disk.mount / "file"
    outcomes = set()
    for seed in range(20):
        path.write_bytes(b"\x01" * 16 * PAGE)
        with open(path, "r+b", buffering=0) as file:
            os.fsync(file.fileno())
            punch_hole(file.fileno(), PAGE, 2 * PAGE)
            assert path.read_bytes()[PAGE:3 * PAGE] == bytes(2 * PAGE)
        power_cycle(disk, seed)
        outcomes.add(path.read_bytes()[PAGE:3 * PAGE] == bytes(2 * PAGE))
    assert outcomes == {True, False}
