"""Versions of a real kernel's files: all that its trace knows of, and no others, byte for byte."""

import base64
import dataclasses
import gzip
import pathlib
import re
import subprocess
import time

import pytest

import guest as linux
import mariner
import version_trace

pytestmark = pytest.mark.slow

WORKLOAD = mariner.BUILD / "tests" / "e2e" / "version-workload"
CAPTURE = mariner.BUILD / "ifsck" / "program" / "ifsck-capture"
VERSIONS = mariner.BUILD / "tests" / "uvfs" / "mariner_uvfs_versions"

FILE_SYSTEMS = {
    "ext2": ("-t ext2", "-t ext2 -o sync,dirsync"),
    "ext3": ("-t ext3", "-t ext3 -o sync,dirsync"),
    "ext4": ("-t ext4", "-t ext4 -o sync,dirsync"),
    "ext4-nojournal": ("-t ext4 -O ^has_journal", "-t ext4 -o sync,dirsync"),
}
IN_SHORT = ("ext4",)
SHORT, LONG = "60 20 200", "1000 1000 10000"  # files, folders, transactions


@pytest.fixture(scope="module")
def machine(module_folder):
    if re.search(r"^MARINER_SANITIZE:\w+=.", (mariner.BUILD / "CMakeCache.txt").read_text(), re.MULTILINE):
        pytest.skip("what guests run is linked statically, and sanitizers cannot be")
    with linux.Network() as network, \
            mariner.Daemon(module_folder, address=linux.HOST_ADDRESS, prefix=network.prefix, log={"max_size": "4G"}) as daemon, \
            linux.Guest(module_folder, network, (WORKLOAD,)) as guest:
        daemon.start()
        yield daemon, guest.start()


@dataclasses.dataclass
class Recorded:
    image: pathlib.Path  # before anything, and what was written since
    written: pathlib.Path
    first: int           # the moment before the load
    told: pathlib.Path   # what the guest did
    asked: dict          # what `mariner fs versions` says of all, asked of the daemon
    asked_s: float


def record(daemon: mariner.Daemon, guest: linux.Guest, folder: pathlib.Path, system: str, seed: int, load: str) -> Recorded:
    make, mount = FILE_SYSTEMS[system]
    iqn = daemon.create(system, "256M")["iqn"]
    disk = guest.login(iqn, daemon.portal())
    guest.run(f"/sbin/mke2fs -q -F {make} {disk} && sync && mount {mount} {disk} /mnt && sync", timeout_s=300)
    first = int(daemon.ask("history", "show", system)["to"]["sequence"])
    guest.run("rm -f /over")
    guest.begin(f"/version-workload /mnt /trace {seed} {load}; touch /over")
    said = guest.writer_line.receive(3600)
    assert said == "END", said
    # (It says so before it has ended, and until then it holds the file system.)
    guest.run("until [ -e /over ]; do sleep 0.1; done; umount /mnt", timeout_s=300)
    guest.run(f"logout {iqn}")
    packed = guest.run("gzip -c /trace | base64 && rm /trace", timeout_s=1800)
    assert guest.complaints() == ""
    begun = time.monotonic()
    asked = daemon.ask("fs", "versions", f"{system}:/", "--below", "--since", f"#{first}")
    recorded = Recorded(folder / "image", folder / "written", first, folder / "told", asked, time.monotonic() - begun)
    recorded.told.write_bytes(gzip.decompress(base64.b64decode(packed)))
    captured = subprocess.run([CAPTURE, "--socket", daemon.socket, system, "--image", recorded.image, "--trace", recorded.written],
                              capture_output=True, text=True, check=False)
    assert captured.returncode == 0, captured.stderr
    daemon.ask("volume", "delete", system)
    return recorded


@pytest.mark.parametrize("system", [name if name in IN_SHORT else pytest.param(name, marks=pytest.mark.long) for name in FILE_SYSTEMS])
def test_all_versions_are_found_and_no_others(machine, folder, seed, long_run, system):
    daemon, guest = machine
    recorded = record(daemon, guest, folder, system, seed, LONG if long_run else SHORT)
    found = subprocess.run([VERSIONS, recorded.image, recorded.written, "--first", str(recorded.first)], capture_output=True, text=True,
                           check=False)
    assert found.returncode == 0, found.stderr
    ours, wanted = version_trace.of_search(found.stdout), version_trace.of_trace(recorded.told)
    ours.pop("/lost+found")
    print(f"{system}: {found.stderr.strip()}; paths, incarnations, versions of the trace: {version_trace.count(wanted)}")
    print(f"the same of the daemon, as JSON: {recorded.asked_s:.2f} s")
    differences = version_trace.differences(ours, wanted)
    assert not differences, f"{len(differences)} of {len(wanted)} paths differ:\n" + "\n".join(differences[:5])
    of_daemon = [life["versions"] for path in recorded.asked["paths"] if path["path"]["text"] != "/lost+found" for life in path["incarnations"]]
    paths, incarnations, versions = version_trace.count(wanted)
    assert (len(recorded.asked["paths"]) - 1, len(of_daemon), sum(map(len, of_daemon))) == (paths, incarnations, versions)
    assert incarnations > paths and versions > (10_000 if long_run else 200)
