"""What the applications' disks are on: Mariner, tgt in three ways, and a file of this machine.

Each of them is one LUN (or file) of the same size whose every block was written before."""

import contextlib
import dataclasses
import pathlib
import shutil
import tempfile

import servers  # first: it shows Python where the end-to-end drivers are
import apps_disk
import loads
from servers import Mariner, Tgt, Tgtd

OURS, SYNC, FLUSHED, MEMORY, LOCAL = "mariner", "tgt_sync", "tgt_flushed", "tgt_memory", "local"
DURABLE = "tgt_durable"  # the better of SYNC and FLUSHED
NAMES = {OURS: "Mariner", SYNC: "tgt, bsoflags=sync", FLUSHED: "tgt, write cache, flushed", DURABLE: "tgt, durable",
         MEMORY: "tgt, in memory", LOCAL: "local disk, same path"}
MEMORY_FOLDER = pathlib.Path("/dev/shm")

FILL = loads.Load("fill", "fill", True, False, 256 << 10, 8)
FILL_PATIENCE_S = 600


@dataclasses.dataclass(frozen=True)
class Server:
    """`node`: in QEMU's words (apps_disk). `url`: its LUN; none of a file."""
    name: str
    node: dict
    url: str = ""


class Rack:
    """All of them, from its `with` on; `mariner` is our daemon."""

    def __init__(self, folder: pathlib.Path, volume_bytes: int, log_bytes: int, initialise_s: float, storage: dict):
        self.servers: dict[str, Server] = {}
        self.initialised = False  # whether the log's space has been written once
        self.mariner = Mariner(folder / "mariner", volume_bytes, log_bytes, storage)
        # A session of its own: a ^C is to reach it when nobody's disk is on it any more.
        self._tgtd = Tgtd(folder / "tgt", prefix=("setsid",))
        self._folder, self._volume_bytes, self._log_bytes, self._initialise_s = folder, volume_bytes, log_bytes, initialise_s
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> "Rack":
        with self._undo as undo:
            undo.enter_context(self.mariner)
            self.initialised = self.mariner.wait_initialised(self._initialise_s)
            self._fill()
            self._add(OURS, self.mariner.url)
            self._start_tgt(undo)
            local = self._folder / "local.img"
            servers.write_once(local, self._volume_bytes)
            self.servers[LOCAL] = Server(LOCAL, apps_disk.file_node(local))
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_):
        self._undo.close()

    def _fill(self):
        """Every block of ours was written before, as those of the others."""
        run = loads.run_iscsi(FILL, loads.Target(self.mariner.url, self.mariner.pid),
                              loads.Limits(0, FILL_PATIENCE_S, self._volume_bytes, self._volume_bytes))
        if run["failure"]:
            raise servers.mariner.Failed(f"filling Mariner's volume: {run['failure']}")
        self.mariner.wait_applied(FILL_PATIENCE_S)

    def _start_tgt(self, undo: contextlib.ExitStack):
        undo.enter_context(self._tgtd)
        file = self._folder / "tgt.img"
        servers.write_once(file, self._volume_bytes)
        if shutil.disk_usage(MEMORY_FOLDER).free < 2 * self._volume_bytes:
            raise servers.mariner.Failed(f"{MEMORY_FOLDER}: {2 * self._volume_bytes >> 20} MiB are to be free")
        memory = pathlib.Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="mariner-apps-", dir=MEMORY_FOLDER)))
        servers.write_once(memory / "tgt.img", self._volume_bytes)
        for tid, (name, store) in enumerate({
                SYNC: (file, "--bsoflags", "sync"), FLUSHED: (file,), MEMORY: (memory / "tgt.img",)}.items(), 1):
            iqn = self._tgtd.new_target(tid, name.replace("_", "-"), Tgt.TUNING)
            self._tgtd.admin("--mode", "logicalunit", "--op", "new", "--tid", tid, "--lun", 1, "--bstype", "rdwr",
                             "--backing-store", *store)
            self._add(name, f"iscsi://{servers.HOST}:{self._tgtd.port}/{iqn}/1")

    def _add(self, name: str, url: str):
        self.servers[name] = Server(name, apps_disk.lun_node(url), url)

    def lives(self, name: str) -> bool:
        """Whether its process still runs."""
        if name == LOCAL:
            return True
        return self.mariner.daemon.process.poll() is None if name == OURS else self._tgtd.runs

    def commands(self, operation: str) -> float:
        """Those that Mariner has answered, in the words of its metrics: "write", "flush" (SYNCHRONIZE CACHE)."""
        rows = self.mariner.daemon.http("/metrics")[1].splitlines()
        return sum(float(row.split()[-1]) for row in rows
                   if row.startswith("mariner_scsi_commands_total{") and f'op="{operation}"' in row)
