"""A disk of this machine whose contents are elsewhere, on a LUN or in a file; and an ext4 on it.

The way of a request, the same for all that is compared:

    ext4 -> loop device (O_DIRECT) -> FUSE (nbdfuse) -> NBD on a unix socket -> QEMU's storage daemon
    -> libiscsi -> the target; or, for the local disk, -> the file (O_DIRECT, io_uring)

fsync in the file system becomes a flush of the loop device, that FUSE_FSYNC, that NBD_CMD_FLUSH, and that
SYNCHRONIZE CACHE(10) or, of the file, fdatasync. The loop device takes no FUA: the kernel flushes behind the write
instead. NBD stands between because the storage daemon of QEMU 7.2, when it shows a disk by FUSE itself, mixes up the
contents of writes that come while it waits for another one (a loop device with O_DIRECT sends such), and serves one
request at a time where none do. With NBD, what is written is what is read, and about six requests are under way at once.

Takes root, FUSE and loop devices. All that it starts ends with it; on ^C, too, which reaches none of it directly."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import threading
import time

import mariner
from uvfs_lab import run

CONNECTIONS = 8  # of nbdfuse, so that several requests are under way
PATIENCE_S = 60
TOOLS = ("qemu-storage-daemon", "nbdfuse", "fusermount3", "losetup", "mkfs.ext4", "mount", "umount")
# Tables of inodes are not written beforehand, nor in the background (noinit_itable): a target that makes each write durable
# would take minutes for a file system.
MKFS = ("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=1")


def lacks() -> str:
    """Empty: it can be done here."""
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.W_OK) or not pathlib.Path("/dev/loop-control").exists():
        return "mounting volumes takes root, FUSE (/dev/fuse) and loop devices (/dev/loop-control)"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"{', '.join(missing)} missing: deploy/install-packages.sh --apps" if missing else ""


def lun_node(url: str) -> dict:
    """What QEMU calls iscsi://HOST:PORT/IQN/LUN."""
    _, _, portal, target, lun = url.split("/")
    return {"driver": "iscsi", "transport": "tcp", "portal": portal, "target": target, "lun": int(lun)}


def file_node(path: pathlib.Path) -> dict:
    return {"driver": "file", "filename": str(path), "cache": {"direct": True}, "aio": "io_uring"}


class Disk:
    """`node`: where its contents are, in QEMU's words. `device` is its name here, within its `with`.

    `folder` is for its own use, and is empty again in the end."""

    def __init__(self, node: dict, folder: pathlib.Path):
        self.device = ""
        self._node, self._folder = node, folder
        self._storage: subprocess.Popen | None = None
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> "Disk":
        with self._undo as undo:
            self._folder.mkdir(parents=True)
            undo.callback(shutil.rmtree, self._folder, ignore_errors=True)
            self._start_storage(undo)
            file = self._start_fuse(undo)
            self.device = run("losetup", "--show", "--direct-io=on", "-f", file)
            undo.callback(run, "losetup", "-d", self.device)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_):
        self._undo.close()

    def _start_storage(self, undo: contextlib.ExitStack):
        socket = self._folder / "nbd"
        self._storage = _start(
            "qemu-storage-daemon", "--blockdev", json.dumps({"driver": "raw", "node-name": "disk", "file": self._node}),
            "--nbd-server", json.dumps({"addr": {"type": "unix", "path": str(socket)}}),
            "--export", json.dumps({"type": "nbd", "id": "disk", "node-name": "disk", "writable": True}))
        undo.callback(_end, self._storage)
        mariner.wait_until(lambda: _runs(self._storage) and _listens(socket), 20, "the storage daemon has the disk")

    def _start_fuse(self, undo: contextlib.ExitStack) -> pathlib.Path:
        shown = self._folder / "shown"
        shown.mkdir()
        fuse = _start("nbdfuse", "-C", str(CONNECTIONS), str(shown / "disk"), f"nbd+unix:///disk?socket={self._folder / 'nbd'}")
        undo.callback(_end, fuse, 10)  # by itself, once it shows nothing any more
        undo.callback(run, "fusermount3", "-u", shown)
        mariner.wait_until(lambda: _runs(fuse) and (shown / "disk").exists(), 20, "nbdfuse shows the disk")
        return shown / "disk"

    def cut(self):
        """From now on, all that is asked of it fails. From any thread."""
        self._storage.kill()

    @contextlib.contextmanager
    def watched(self, lives, patience_s: float):
        """While it is within this: when `lives()` is no more, or it lasts longer, it is cut, for who waits for it waits for ever."""
        ended = threading.Event()

        def watch():
            deadline = time.monotonic() + patience_s
            while not ended.wait(0.5):
                if not lives() or time.monotonic() > deadline:
                    return self.cut()

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    @contextlib.contextmanager
    def file_system(self, options: str = "defaults"):
        """A new ext4 with these options of mount(8); the root of it."""
        run(*MKFS, self.device)
        # Here, because users other than root may come here.
        root = pathlib.Path("/tmp") / f"mariner-apps-{os.getpid()}" / "files"
        root.mkdir(parents=True)
        try:
            run("mount", "-t", "ext4", "-o", f"{options},noinit_itable", self.device, root)
            try:
                yield root
            finally:
                self._unmount(root)
        finally:
            root.rmdir()
            root.parent.rmdir()

    def _unmount(self, root: pathlib.Path):
        """Where the target is dead, what waits for it would wait for ever: then it gets errors."""
        leaving = _start("umount", str(root))
        try:
            leaving.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.cut()
            leaving.wait(PATIENCE_S)
        if leaving.returncode != 0:
            raise mariner.Failed(f"umount {root}: {leaving.returncode}")


def _start(*command: str) -> subprocess.Popen:
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)


def _runs(process: subprocess.Popen) -> bool:
    if process.poll() is not None:
        raise mariner.Failed(f"{process.args[0]} ended with {process.returncode}")
    return True


def _listens(path: pathlib.Path) -> bool:
    return path.exists() and any(line.endswith(str(path)) for line in pathlib.Path("/proc/net/unix").read_text().splitlines())


def _end(process: subprocess.Popen, by_itself_s: float = 0):
    """It may end by itself for so long."""
    for ask, patience_s in ((lambda: None, by_itself_s), (process.terminate, 20), (process.kill, 20)):
        ask()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
            return
