"""File systems of this machine's kernel on volumes of a daemon, what is done to their files, and what questions about their past take.

Takes root: QEMU's storage daemon shows a LUN as a file (by FUSE), and the kernel mounts that (by loop)."""

import contextlib
import ctypes
import json
import os
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import mariner  # noqa: E402

QUERY = mariner.BUILD / "tests" / "bench" / "mariner-files-query"
WORKLOAD = mariner.BUILD / "tests" / "e2e" / "version-workload"
UVFS = mariner.BUILD / "uvfs" / "program" / "uvfs"
PATIENCE_S = 3600
TICK_S = 0.005  # of the kernel's clock, at least: what is done later has another time of change
FORMATS = {
    "ext2": ["mkfs.ext2", "-q", "-F"],
    "ext3": ["mkfs.ext3", "-q", "-F"],
    "ext4": ["mkfs.ext4", "-q", "-F"],
    "ext4 without journal": ["mkfs.ext4", "-q", "-F", "-O", "^has_journal"],
}
MOUNTED_AS = {"ext2": "ext2", "ext3": "ext3"}


def may_measure() -> str:
    """Empty: it can be done here."""
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.W_OK) or not pathlib.Path("/dev/loop-control").exists():
        return "mounting file systems takes root, FUSE and loop devices"
    return ""


def run(*command) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(str(c) for c in command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout.strip()


class Disk:
    """A volume, mounted on this machine while it is within its `with`. `first` is the moment behind the making of its file system."""

    def __init__(self, daemon: mariner.Daemon, folder: pathlib.Path, name: str, kind: str, size: str, options: str = "sync,dirsync",
                 file_system: str = ""):
        self.daemon, self.name, self.kind = daemon, name, kind
        self.root = folder / f"{name}.files"
        self.first = 0
        self._file = folder / f"{name}.disk"
        self._size, self._options = size, options
        self._file_system = [file_system] if file_system else []  # its size; else all of the volume
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> "Disk":
        self.daemon.create(self.name, self._size)
        with self._undo as undo:
            self._file.touch()
            self.root.mkdir()
            undo.callback(self.root.rmdir)
            undo.callback(self._file.unlink)
            shown = subprocess.Popen(
                ["qemu-storage-daemon", "--blockdev", json.dumps({"driver": "raw", "node-name": "disk", "file": {"driver": "iscsi", **self._lun()}}),
                 "--export", json.dumps({"type": "fuse", "id": "disk", "node-name": "disk", "mountpoint": str(self._file), "writable": True})])
            undo.callback(_end, shown)
            mariner.wait_until(lambda: self._file.stat().st_size > 0, 20, "the storage daemon shows the LUN")
            loop = run("losetup", "--show", "-f", self._file)  # (what is written to a file of FUSE goes through at once)
            undo.callback(run, "losetup", "-d", loop)
            run(*FORMATS[self.kind], loop, *self._file_system)
            self.first = self.newest()
            run("mount", "-t", MOUNTED_AS.get(self.kind, "ext4"), "-o", self._options, loop, self.root)
            undo.callback(run, "umount", self.root)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_):
        self._undo.close()

    def _lun(self) -> dict:
        iqn = self.daemon.ask("volume", "show", self.name)["iqn"]
        return {"transport": "tcp", "portal": self.daemon.portal(), "target": iqn, "lun": mariner.LUN}

    def newest(self) -> int:
        return mariner.sequence_of(self.daemon.ask("volume", "show", self.name)["newest"])

    def sync(self):
        fd = os.open(self.root, os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).syncfs(fd) != 0:
                raise OSError(ctypes.get_errno(), "syncfs")
        finally:
            os.close(fd)


def _end(process: subprocess.Popen):
    process.terminate()
    process.wait(20)


# -- what is done to files ------------------------------------------------------------------------

def postmark(disk: Disk, told: pathlib.Path, load: str):
    """As the paper's, and names changed, links made, permissions: the same as the tests' (tests/e2e/guest/version_workload.cc)."""
    if run(WORKLOAD, disk.root, told, 1, *load.split()) != "END":
        raise RuntimeError("the workload did not end")


def deep(disk: Disk, entries: int, depth: int, lives: int, versions: int) -> str:
    """The paper's synthetic load, N entries in each of `depth` directories, the root being the first of them: other directories, that come and go;
    in the last one files, each with so many lives and versions. The path of one of these; all are removed in the end."""
    def step(what, *words):
        what(*words)
        disk.sync()
        time.sleep(TICK_S)

    folders = [disk.root]
    for level in range(1, depth):
        for i in range(entries):
            step((folders[-1] / f"d{i}").mkdir)
        folders.append(folders[-1] / f"d{level * 7 % entries}")
    for _ in range(lives):
        for i in range(entries):
            step((folders[-1] / f"f{i}").touch)
        for version in range(1, versions):
            for i in range(entries):
                step((folders[-1] / f"f{i}").write_text, f"{version}\n" * 100)
        for i in range(entries):
            step((folders[-1] / f"f{i}").unlink)
    for folder in reversed(folders[:-1]):
        for i in range(entries):
            step((folder / f"d{i}").rmdir)
    return "/" + str((folders[-1] / "f3").relative_to(disk.root))


def wide(disk: Disk, entries: int):
    """Files in the root directory, all made, then all written to, then all removed."""
    names = [disk.root / f"file-{i}" for i in range(entries)]
    for name in names:
        name.touch()
    for name in names:
        name.write_text("second\n")
    for name in names:
        name.unlink()


def archive(disk: Disk, objects: int, versions: int):
    """As a file server's hour: almost everything is made, and stays as it is; a few are written to again."""
    chance = random.Random(1)
    files: list[pathlib.Path] = []
    folder, made = disk.root, 2  # the root, lost+found
    while made < objects:
        if made % 19 == 2:
            folder = disk.root / f"{made % 97}" / f"{made}"
            made += 1 if folder.parent.exists() else 2
            folder.mkdir(parents=True)
        else:
            files.append(folder / f"{made}")
            files[-1].write_bytes(chance.randbytes(chance.randint(200, 9000)))
            made += 1
        if made % 400 == 0:
            disk.sync()
    disk.sync()
    for name in chance.sample(files, versions - objects):
        name.write_bytes(chance.randbytes(chance.randint(200, 9000)))
    disk.sync()


# -- what is asked --------------------------------------------------------------------------------

def ask(daemon: mariner.Daemon, volume: str, since: int, kind: str, paths: list[str], rounds: int, kept: bool = False) -> list[dict]:
    """`kept`: behind a first round, whose connection and blocks are there still, and what the journal had; that one is left out."""
    found = json.loads(run(QUERY, "--socket", daemon.socket, "--volume", volume, "--since", f"#{since}", "--kind", kind, "--rounds", rounds + kept, *(["--kept"] if kept else []), *paths))
    for each in found:
        each["rounds"] = each["rounds"][int(kept):]
    return found


def ask_process(daemon: mariner.Daemon, volume: str, since: int, path: str, rounds: int) -> list[float]:
    """The same of the command, from its start to its end, with all that it prints, in milliseconds."""
    took = []
    for _ in range(rounds):
        begun = time.monotonic()
        run(UVFS, "versions", f"{volume}:{path}", "--below", "--since", f"#{since}", "--json", "--socket", daemon.socket)
        took.append((time.monotonic() - begun) * 1e3)
    return took
