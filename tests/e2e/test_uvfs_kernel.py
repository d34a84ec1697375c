"""Versions of files of this machine's kernel, whose every write to its disk is recorded: as many as a guest's in a fraction of its time."""

import os
import pathlib
import subprocess
import time

import pytest

import mariner
import version_trace
from programs import done

pytestmark = pytest.mark.slow

WORKLOAD = mariner.BUILD / "tests" / "e2e" / "version-workload"
DISK = mariner.BUILD / "tests" / "bench" / "mariner-trace-disk"
VERSIONS = mariner.BUILD / "tests" / "uvfs" / "mariner_uvfs_versions"

FILE_SYSTEMS = {
    "ext2": ("-t ext2", "ext2"),
    "ext3": ("-t ext3", "ext3"),
    "ext4": ("-t ext4", "ext4"),
    "ext4-4k": ("-t ext4 -b 4096 -O 64bit,inline_data", "ext4"),
    "ext4-nojournal": ("-t ext4 -O ^has_journal", "ext4"),
    # A journal that goes round, often.
    "ext3-small": ("-t ext3 -b 1024 -J size=1", "ext3"),
}
SHORT, LONG = "60 20 200", "1000 1000 10000"  # files, folders, transactions


def run(*words) -> str:
    return done(*words, timeout_s=1800).strip()


@pytest.fixture(autouse=True)
def machine():
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.W_OK) or not pathlib.Path("/dev/loop-control").exists():
        pytest.skip("mounting takes root, FUSE and loop devices")
    if not WORKLOAD.exists():
        pytest.skip("what guests run is linked statically, and sanitizers cannot be")


def record(folder: pathlib.Path, make: str, kind: str, seed: int, load: str):
    """In the folder: `image` before anything, `written` since, and `told`, what was done."""
    work, mounted, files = folder / "work", folder / "disk", folder / "files"
    mounted.mkdir()
    files.mkdir()
    with open(work, "wb") as file:
        file.truncate(256 << 20)
    run("mke2fs", "-q", *make.split(), work)
    run("cp", "--sparse=always", work, folder / "image")
    with subprocess.Popen([DISK, work, folder / "written", mounted]) as disk:
        try:
            deadline = time.monotonic() + 20
            while not (mounted / "disk").exists():
                assert disk.poll() is None and time.monotonic() < deadline
                time.sleep(0.02)
            loop = run("losetup", "--show", "-f", mounted / "disk")
            try:
                run("mount", "-t", kind, "-o", "sync,dirsync", loop, files)
                try:
                    assert run(WORKLOAD, files, folder / "told", seed, *load.split()) == "END"
                finally:
                    run("umount", files)
            finally:
                run("losetup", "-d", loop)
        finally:
            unmount(mounted)
            disk.wait(20)


def unmount(folder: pathlib.Path):
    """A loop device that is being taken down has the file open for a moment more."""
    deadline = time.monotonic() + 10
    while subprocess.run(["umount", folder], capture_output=True, check=False).returncode != 0:
        if time.monotonic() > deadline:
            subprocess.run(["umount", "-l", folder], check=False)
            return
        time.sleep(0.1)


@pytest.mark.parametrize("system", FILE_SYSTEMS)
def test_all_versions_are_found_and_no_others(folder, seed, long_run, system):
    record(folder, *FILE_SYSTEMS[system], seed, LONG if long_run else SHORT)
    found = subprocess.run([VERSIONS, folder / "image", folder / "written"], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    ours, wanted = version_trace.of_search(found.stdout), version_trace.of_trace(folder / "told")
    ours.pop("/lost+found")
    print(f"{system}: {found.stderr.strip()}; paths, incarnations, versions of the trace: {version_trace.count(wanted)}")
    differences = version_trace.differences(ours, wanted)
    assert not differences, f"{len(differences)} of {len(wanted)} paths differ:\n" + "\n".join(differences[:5])
    paths, incarnations, versions = version_trace.count(wanted)
    assert incarnations > paths and versions > (10_000 if long_run else 200)
