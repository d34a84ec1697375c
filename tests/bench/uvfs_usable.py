"""The past of a volume as people use it: through FUSE, beside the same through a current LUN."""

import contextlib
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

import loads
import uvfs_lab as lab
from results import say

MIB = 1 << 20
FOLDERS, FILES = 50, 100  # of what is browsed
PIECE = MIB
BROWSERS = 100
WRITES = loads.Load("write", "random 4 KiB writes", write=True, random=True, block=4096, depth=32)
# Browsers, each of one folder: all directories, all that they say of their entries, and the first block of each file; again and again. They stand for processes elsewhere:
# altogether they get what nobody else wants of this machine's processors (a session of their own, whose nice value is 19 where the kernel knows that).
BROWSERS_PROGRAM = """
import os, sys
os.nice(19)
try:
    with open("/proc/self/autogroup", "w") as group:
        group.write("19")
except OSError:
    pass
for folder in sys.argv[1:]:
    if os.fork() == 0:
        while True:
            for at, _, names in os.walk(folder):
                for name in names:
                    os.lstat(f"{at}/{name}")
                    with open(f"{at}/{name}", "rb") as file:
                        file.read(4096)
os.wait()
"""


@contextlib.contextmanager
def mounted(daemon: lab.mariner.Daemon, volume: str, folder: pathlib.Path):
    """`uvfs mount` of the volume's past."""
    folder.mkdir()
    shown = subprocess.Popen([lab.UVFS, "mount", volume, folder, "--foreground", "--socket", daemon.socket])
    try:
        lab.mariner.wait_until(lambda: os.path.ismount(folder), 20, "the past is mounted")
        yield folder
    finally:
        subprocess.run(["umount", folder], check=False)
        try:
            shown.wait(20)
        except subprocess.TimeoutExpired:
            shown.kill()
            subprocess.run(["umount", "-l", folder], check=False)
        folder.rmdir()


def empty_page_cache():
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")


def fill(disk: lab.Disk, moments: int, large: int) -> list[int]:
    """A tree of small files and one large file; and moments in which some were written to."""
    for i in range(FOLDERS):
        folder = disk.root / f"folder{i}"
        folder.mkdir()
        for j in range(FILES):
            (folder / f"file{j}").write_bytes(os.urandom(2000))
    with open(disk.root / "large", "wb") as file:
        for _ in range(large // MIB):
            file.write(os.urandom(MIB))
    disk.sync()
    found = []
    for i in range(moments):
        (disk.root / f"folder{i % FOLDERS}" / f"file{i % FILES}").write_bytes(os.urandom(3000))
        disk.sync()
        found.append(disk.newest())
    return found


def first_ls(folder: pathlib.Path, moments: list[int]) -> list[float]:
    """What `ls -l` of a moment that nobody has looked at takes, in milliseconds: of its root, with nothing in the page cache."""
    took = []
    for moment in moments:
        empty_page_cache()
        begun = time.monotonic()
        entries = [each.stat(follow_symlinks=False) for each in os.scandir(folder / f"@#{moment}")]
        took.append((time.monotonic() - begun) * 1e3)
        if len(entries) < FOLDERS:
            raise RuntimeError(f"@#{moment} has {len(entries)} entries")
    return took


def read_all(file: pathlib.Path) -> float:
    """MB/s, with nothing in the page cache."""
    empty_page_cache()
    begun, count = time.monotonic(), 0
    with open(file, "rb", buffering=0) as source:
        while piece := source.read(PIECE):
            count += len(piece)
    return count / (time.monotonic() - begun) / 1e6


def write(daemon: lab.mariner.Daemon, volume: str, begin: int, seconds: float) -> float:
    """Writes per second, to the volume behind its file system."""
    run = loads.run_iscsi(WRITES, loads.Target(daemon.volume_url(volume), daemon.process.pid), loads.Limits(1, seconds, 0, region_from=begin))
    if run.get("failure"):
        raise RuntimeError(run["failure"])
    return run["rate"]


def written_while_browsed(daemon: lab.mariner.Daemon, volume: str, folder: pathlib.Path, moments: list[int], begin: int, seconds: float, rounds: int) -> dict:
    """The writer's rate alone, and with a browser in each moment, in turn."""
    rates: dict[str, list[float]] = {"alone": [], "browsed": []}
    for number in range(rounds):
        rates["alone"].append(write(daemon, volume, begin, seconds))
        browsers = subprocess.Popen([sys.executable, "-c", BROWSERS_PROGRAM, *(folder / f"@#{moment}" for moment in moments)], start_new_session=True)
        try:
            time.sleep(1)
            rates["browsed"].append(write(daemon, volume, begin, seconds))
            if browsers.poll() is not None:
                raise RuntimeError(f"a browser has ended: {browsers.returncode}")
        finally:
            os.killpg(browsers.pid, signal.SIGKILL)
            browsers.wait()
        say(f"round {number + 1}: {rates['alone'][-1]:,.0f} writes/s alone, {rates['browsed'][-1]:,.0f} beside {len(moments)} browsers")
    return {"rates": rates, "ratio": statistics.median(browsed / alone for browsed, alone in zip(rates["browsed"], rates["alone"]))}
