"""What people use for history today: a LUN of tgt in a file on Btrfs, of which a snapshot is made each second."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import threading

import servers  # first: it shows Python where the end-to-end drivers are
from servers import Tgtd, mariner

SNAPSHOT_EVERY_S = 1


def lacks() -> str | None:
    """What is missing for it; None: nothing."""
    if os.geteuid() != 0:
        return "it takes root, to mount"
    if shutil.which("mkfs.btrfs") is None:
        return "btrfs-progs is missing"
    modules = subprocess.run(["modprobe", "btrfs"], capture_output=True, check=False) if shutil.which("modprobe") else None
    if "\tbtrfs\n" not in pathlib.Path("/proc/filesystems").read_text():
        return "the kernel has no Btrfs" + (f": {modules.stderr.decode().strip()}" if modules else "")
    return None


def _run(*command) -> str:
    run = subprocess.run([str(part) for part in command], text=True, capture_output=True, timeout=120, check=False)
    if run.returncode != 0:
        raise mariner.Failed(f"{' '.join(map(str, command))}: {run.stderr.strip()}")
    return run.stdout.strip()


class TgtOnBtrfs:
    """A tgtd with one target, `url`: rdwr, on a Btrfs of its own, which is in a file of `folder` (a loop device, past the
    page cache of the file system below)."""

    def __init__(self, folder: pathlib.Path, volume_bytes: int, room_bytes: int):
        self._folder, self._volume_bytes, self._room_bytes = folder, volume_bytes, room_bytes
        self._tgtd = Tgtd(folder / "tgt")
        self._mount = folder / "mount"
        self._undo = contextlib.ExitStack()
        self.url = ""
        self.snapshots = 0  # that were made, ever

    @property
    def pid(self) -> int:
        return self._tgtd.pid

    def __enter__(self) -> "TgtOnBtrfs":
        with contextlib.ExitStack() as undo:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._mount.mkdir()
            room = self._folder / "btrfs.img"
            undo.callback(room.unlink, missing_ok=True)
            servers.write_once(room, self._room_bytes)
            device = _run("losetup", "--find", "--show", "--direct-io=on", room)
            undo.callback(_run, "losetup", "--detach", device)
            _run("mkfs.btrfs", "--quiet", "--force", device)
            _run("mount", "-o", "noatime", device, self._mount)
            undo.callback(_run, "umount", self._mount)
            _run("btrfs", "subvolume", "create", self._mount / "lun")
            servers.write_once(self._mount / "lun" / "disk.img", self._volume_bytes)
            undo.enter_context(self._tgtd)
            iqn = self._tgtd.new_target(1, "btrfs", servers.Tgt.TUNING)
            self._tgtd.admin("--mode", "logicalunit", "--op", "new", "--tid", 1, "--lun", 1, "--bstype", "rdwr",
                             "--backing-store", self._mount / "lun" / "disk.img")
            self.url = f"iscsi://{servers.HOST}:{self._tgtd.port}/{iqn}/1"
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_):
        self._undo.close()

    @contextlib.contextmanager
    def history(self):
        """A snapshot each second, as long as it lasts; then they are removed."""
        made: list[pathlib.Path] = []
        failed: list[Exception] = []
        end = threading.Event()

        def keep():
            try:
                while not end.wait(SNAPSHOT_EVERY_S):
                    path = self._mount / f"at-{self.snapshots}"
                    _run("btrfs", "subvolume", "snapshot", "-r", self._mount / "lun", path)
                    made.append(path)
                    self.snapshots += 1
            except Exception as error:  # told where it was asked for
                failed.append(error)

        keeper = threading.Thread(target=keep)
        keeper.start()
        try:
            yield
        finally:
            end.set()
            keeper.join()
            for path in made:
                _run("btrfs", "subvolume", "delete", path)
            _run("btrfs", "subvolume", "sync", self._mount)
        if failed:
            raise failed[0]
