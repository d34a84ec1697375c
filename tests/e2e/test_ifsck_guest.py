"""Histories of a real kernel: what iFSCK makes of any moment is a file system, with what its host was promised."""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import threading
import time

import pytest

import guest as linux
import mariner

pytestmark = pytest.mark.slow

WORKLOAD = mariner.BUILD / "tests" / "e2e" / "history-workload"
CAPTURE = mariner.BUILD / "ifsck" / "program" / "ifsck-capture"
IFSCK = mariner.BUILD / "ifsck" / "program" / "ifsck"
MOMENTS = mariner.BUILD / "tests" / "ifsck" / "mariner_ifsck_moments"

# The options of mke2fs and of mount: all else is as the guest has it by itself.
FILE_SYSTEMS = {
    "ext2": ("-t ext2", "-t ext2"),
    "ext3": ("-t ext3", "-t ext3 -o data=ordered"),
    "ext4": ("-t ext4", "-t ext4"),
    "ext4-nojournal": ("-t ext4 -O ^has_journal", "-t ext4"),
    # With little journal, and much that says where blocks are.
    "ext3-small": ("-t ext3 -b 1024 -J size=4", "-t ext3"),
    "ext4-small": ("-t ext4 -b 1024 -J size=4", "-t ext4"),
    # As newer ones are made.
    "ext4-orphan-file": ("-t ext4 -O orphan_file,metadata_csum_seed", "-t ext4"),
}
WITHOUT_JOURNAL = {"ext2", "ext4-nojournal"}
# What the workload does in a short run and in a long one, behind its folder, seed and seconds.
WORKLOADS = {
    "postmark": ("postmark", "150 60 300", "1000 1000 1000"),
    "tree": ("tree", "800", "6000"),
    "sqlite-delete": ("sqlite", "delete 100", "delete 1000"),
    "sqlite-wal": ("sqlite", "wal 100", "wal 1000"),
    "truncate": ("truncate", "8", "60"),
}
SHORT = [("ext4", "tree"), ("ext4-nojournal", "tree")]


class Promises:
    """Writes down what the guest was promised, by the host's clock (tests/ifsck/file_promises.h): of what is durable when it was
    told so, of what is to change before it answers that it may."""

    def __init__(self, guest: linux.Guest, file: pathlib.Path, command: str, timeout_s: float):
        self.count = 0
        self.error = ""
        self._guest = guest
        self._file = file
        self._timeout_s = timeout_s
        guest.begin(command)
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self):
        with open(self._file, "w", encoding="utf8") as file:
            try:
                while (line := self._guest.writer_line.receive(self._timeout_s)) != "END":
                    now = time.time_ns()
                    kind, _, rest = line.partition(" ")
                    if kind not in ("SYNCED", "CHANGE", "COMMIT"):
                        self.error = line
                        return
                    file.write(f"{kind} {now} {rest}\n")
                    self.count += kind != "CHANGE"
                    if kind == "CHANGE":
                        self._guest.writer_line.send("")
            except mariner.Failed as error:
                self.error = str(error)

    def wait(self) -> int:
        self._thread.join()
        if self.error:
            raise mariner.Failed(f"the guest's workload: {self.error}")
        return self.count


@dataclasses.dataclass
class Machine:
    daemon: mariner.Daemon
    guest: linux.Guest


@pytest.fixture(scope="module")
def machine(module_folder):
    if re.search(r"^MARINER_SANITIZE:\w+=.", (mariner.BUILD / "CMakeCache.txt").read_text(), re.MULTILINE):
        pytest.skip("what guests run is linked statically, and sanitizers cannot be")
    with linux.Network() as network, \
            mariner.Daemon(module_folder, address=linux.HOST_ADDRESS, prefix=network.prefix, log={"max_size": "4G"}) as daemon, \
            linux.Guest(module_folder, network, (WORKLOAD,)) as guest:
        daemon.start()
        yield Machine(daemon, guest.start())


CASES = [(system, workload) for system in ("ext2", "ext3", "ext4", "ext4-nojournal")
         for workload in ("postmark", "tree", "sqlite-delete", "sqlite-wal")]
CASES += [("ext3-small", "truncate"), ("ext4-small", "truncate"), ("ext4-orphan-file", "tree")]


def cases():
    for system, workload in CASES:
        marks = [] if (system, workload) in SHORT else [pytest.mark.long]
        yield pytest.param(system, workload, marks=marks, id=f"{system}-{workload}")


@dataclasses.dataclass
class History:
    """In a folder: image, trace and promises."""

    made_ns: int     # the file system was there
    promises: int
    captured: str    # what ifsck-capture says


def record(machine: Machine, folder: pathlib.Path, system: str, workload: str, seed: int, long_run: bool) -> History:
    name = f"{system}-{workload}"
    make, mount = FILE_SYSTEMS[system]
    verb, short, long = WORKLOADS[workload]
    iqn = machine.daemon.create(name, "384M" if workload == "tree" and long_run else "256M")["iqn"]
    disk = machine.guest.login(iqn, machine.daemon.portal())
    # More states in less time: the kernel writes back what is 3 s old, each second, and not 30 and 5.
    machine.guest.run("echo 100 > /proc/sys/vm/dirty_writeback_centisecs; echo 300 > /proc/sys/vm/dirty_expire_centisecs")
    machine.guest.run(f"/sbin/mke2fs -q -F {make} {disk} && sync")
    made_ns = time.time_ns()
    machine.guest.run(f"mount {mount} {disk} /mnt")
    seconds = 65 if long_run else 8
    promises = Promises(machine.guest, folder / "promises",
                        f"/history-workload {verb} /mnt {seed} {seconds} {long if long_run else short}", seconds + 300)
    count = promises.wait()
    follow(machine.daemon, name, system)
    machine.guest.run("umount /mnt", timeout_s=300)
    machine.guest.run(f"logout {iqn}")
    assert machine.guest.complaints() == ""
    captured = subprocess.run([CAPTURE, "--socket", machine.daemon.socket, name, "--image", folder / "image", "--trace",
                               folder / "trace"], capture_output=True, text=True, check=False)
    assert captured.returncode == 0, captured.stderr
    machine.daemon.ask("volume", "delete", name)
    return History(made_ns, count, captured.stdout.strip())


def follow(daemon: mariner.Daemon, name: str, system: str):
    """While it is mounted: its last transaction is complete, and whole, and the history shows it."""
    followed = subprocess.run([IFSCK, "--socket", daemon.socket, "--json", "follow", "--once", name], capture_output=True,
                              text=True, check=False)
    assert followed.returncode == 0, followed.stderr
    if system in WITHOUT_JOURNAL and not followed.stdout:
        return  # it does not rest
    report = json.loads(followed.stdout)
    events = daemon.ask("history", "show", name)["events"]
    assert report["verdict"] in [each["kind"] for each in events], (report, events)
    if system not in WITHOUT_JOURNAL:
        # (What was deleted while it is open, or is cut off, is so at the next mount: bitmaps and counts do not know yet.)
        derived = {"inode-marked", "block-marked", "free-inodes", "free-blocks", "directories"}
        assert report["verdict"] == "clean" or {each["code"] for each in report["findings"]} <= derived, followed.stdout


@pytest.mark.parametrize("system,workload", cases())
def test_any_moment_becomes_a_file_system(machine, folder, seed, long_run, system, workload):
    history = record(machine, folder, system, workload, seed, long_run)
    print(f"{history.captured}; {history.promises} promises")
    assert history.promises > 10
    # Without a journal e2fsck guesses, too, and may guess otherwise.
    alike = [] if system in WITHOUT_JOURNAL else ["--alike"]
    # In memory: e2fsck waits for a disk each time.
    environment = os.environ | ({"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {})
    checked = subprocess.run([MOMENTS, folder / "image", folder / "trace", "--promises", folder / "promises", "--after",
                              str(history.made_ns), "--seed", str(seed), "--moments", "300" if long_run else "12", *alike],
                             capture_output=True, text=True, check=False, env=environment)
    print(checked.stdout)
    assert checked.returncode == 0, checked.stdout + checked.stderr
