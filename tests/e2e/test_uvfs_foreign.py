"""Versions of files of NTFS and exFAT, as their drivers write them: on a disk whose writes are recorded."""

import contextlib
import dataclasses
import os
import pathlib
import random
import shutil
import subprocess
import time

import pytest

import foreign_workload
import mariner
import version_trace
from test_uvfs_kernel import DISK, VERSIONS, run, unmount

pytestmark = pytest.mark.slow


@dataclasses.dataclass(frozen=True)
class System:
    make: str
    mount: str
    tick_ns: int  # of times that it keeps, as the driver sets them
    links: bool  # and numbers that are those of the file system
    load: tuple[int, int, int]
    long_load: tuple[int, int, int]
    device: bool = False  # the driver takes nothing else
    bytes: int = 64 << 20


SYSTEMS = {
    "ntfs": System("mkntfs -q -F -f", "ntfs-3g {disk} {files}", 10**6, True, (40, 8, 150), (400, 40, 3000)),
    "ntfs-small-clusters": System("mkntfs -q -F -f -c 512", "ntfs-3g {disk} {files}", 10**6, True, (40, 8, 150), (400, 40, 3000)),
    "ntfs-compressed": System("mkntfs -q -F -f -C", "ntfs-3g -o compression {disk} {files}", 10**6, True, (20, 4, 50), (100, 10, 500)),
    "exfat": System("mkfs.exfat", "mount.exfat-fuse {disk} {files}", 10**9, False, (20, 8, 60), (60, 20, 400), device=True),
}


@pytest.fixture(autouse=True)
def machine():
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.W_OK) or not pathlib.Path("/dev/loop-control").exists():
        pytest.skip("mounting takes root, FUSE and loop devices")


@contextlib.contextmanager
def device_of(disk: pathlib.Path, system: System):
    if not system.device:
        yield disk
        return
    loop = run("losetup", "--show", "-f", disk)
    try:
        yield loop
    finally:
        run("losetup", "-d", loop)


def record(folder: pathlib.Path, system: System, seed: int, load: tuple[int, int, int]):
    """In the folder: `image` before anything, `written` since, and `told`, what was done."""
    work, mounted, files = folder / "work", folder / "disk", folder / "files"
    mounted.mkdir()
    files.mkdir()
    with open(work, "wb") as file:
        file.truncate(system.bytes)
    run(*system.make.split(), work)
    run("cp", "--sparse=always", work, folder / "image")
    with subprocess.Popen([DISK, work, folder / "written", mounted]) as disk:
        try:
            deadline = time.monotonic() + 20
            while not (mounted / "disk").exists():
                assert disk.poll() is None and time.monotonic() < deadline
                time.sleep(0.02)
            with device_of(mounted / "disk", system) as device:
                run(*system.mount.format(disk=device, files=files).split())
                try:
                    traced = foreign_workload.TracedFiles(files, folder / "told", system.tick_ns)
                    try:
                        foreign_workload.postmark(traced, random.Random(seed), load, system.links)
                    finally:
                        traced.close()
                finally:
                    unmount(files)
        finally:
            unmount(mounted)
            disk.wait(20)


def as_both_have_it(histories: version_trace.Histories, system: System) -> version_trace.Histories:
    """Drivers show permissions of their own, and sizes of folders; and numbers, where a file system has none. What the mount itself changed is
    in the root, and of folders without a time of their own (exFAT) each name is another version."""
    kept = {}
    for path, lives in histories.items():
        folder = all(version.mode & 0o170000 == 0o040000 for life in lives for version in life.versions)
        if folder and (not system.links or path == "/"):
            continue
        kept[path] = []
        for life in lives:
            versions = [dataclasses.replace(each, mode=each.mode & 0o170000, size=0 if folder else each.size) for each in life.versions]
            inode = life.inode if system.links else 0
            kept[path].append(version_trace.Incarnation(inode, version_trace.distinct(versions), life.ended))
    return kept


@pytest.mark.parametrize("name", SYSTEMS)
def test_all_versions_are_found_and_no_others(folder, seed, long_run, name):
    system = SYSTEMS[name]
    for program in (system.make.split()[0], system.mount.split()[0]):
        if shutil.which(program, path=os.environ["PATH"] + ":/sbin:/usr/sbin") is None:
            pytest.skip(f"{program} is not installed")
    record(folder, system, seed, system.long_load if long_run else system.load)
    found = subprocess.run([VERSIONS, folder / "image", folder / "written"], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    ends = version_trace.ends_of(folder / "told")
    ours = as_both_have_it(version_trace.between_operations(version_trace.of_search(found.stdout), ends), system)
    wanted = as_both_have_it(version_trace.of_trace(folder / "told"), system)
    print(f"{name}: {found.stderr.strip()}; paths, incarnations, versions of the trace: {version_trace.count(wanted)}")
    differences = version_trace.differences(ours, wanted)
    assert not differences, f"{len(differences)} of {len(wanted)} paths differ:\n" + "\n".join(differences[:5])
    paths, incarnations, versions = version_trace.count(wanted)
    assert incarnations > paths / 2 and versions > 2 * paths
